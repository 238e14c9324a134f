"""
Decoding a message with rules
=============================

Variables with different numbers of labels, pairs that are forbidden, and a rule over three
variables: words are sent letter by letter over a bad line, and only words of a dictionary are
possible.
"""

# %%
# The line
# --------
# Letters are numbers here: row i of ``heard`` says how likely each of the 26 letters was heard at
# place i. The line mixes up letters.

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import softmap

words = ["bread", "broad", "dream", "tea", "ten", "and", "any", "butter", "better", "bitter"]
alphabet = "abcdefghijklmnopqrstuvwxyz"
sent = ["bread", "and", "butter"]
rng = np.random.default_rng(5)


def hear(word):
    """Likelihoods of all letters at every place of a word."""
    odds = rng.gamma(0.3, size=(len(word), 26))
    odds[np.arange(len(word)), [alphabet.index(letter) for letter in word]] += 1.5
    return odds / odds.sum(axis=1, keepdims=True)


heard = [hear(word) for word in sent]
print("by ear:", ["".join(alphabet[k] for k in place.argmax(axis=1)) for place in heard])

# %%
# The model
# ---------
# One variable per *word*. Its labels are the dictionary's words of the right length, so label
# counts differ. The cost of a word is minus the logarithm of how likely its letters were heard.

choices = [[w for w in words if len(w) == len(place)] for place in heard]
unary = [
    np.array([-sum(np.log(place[k, alphabet.index(c)]) for k, c in enumerate(w)) for w in options])
    for place, options in zip(heard, choices, strict=True)
]

# %%
# Two words in a row may be unlikely together, and some pairs are impossible: after "dream" nothing
# but "any" may come. A cost of infinity forbids a pair.

tables = [np.zeros((len(a), len(b))) for a, b in pairwise(choices)]
for second in ("tea", "ten", "and"):
    tables[0][choices[0].index("dream"), choices[1].index(second)] = np.inf
tables[1][choices[1].index("any"), choices[2].index("bitter")] = 1.0

# %%
# And a rule over all three: the first letters of the message must not all differ. That is a factor
# over three variables, one more array.

first = [np.array([w[0] for w in options]) for options in choices]
a, b, c = np.ix_(*first)
all_differ = (a != b) & (b != c) & (a != c)
factors = [((i,), costs) for i, costs in enumerate(unary)]
factors += [((0, 1), tables[0]), ((1, 2), tables[1]), ((0, 1, 2), np.where(all_differ, np.inf, 0))]
model = softmap.Model.from_factors([len(options) for options in choices], factors)
print(model)

result = softmap.solve(model)
decoded = [options[k] for options, k in zip(choices, result.labels, strict=True)]
print("decoded:", decoded, "-", result.status)

# %%
# How sure?
# ---------
# The second-best answer: forbid the best word at each place in turn and see what that costs at
# least. The bound makes this a statement about *all* other messages.

margins = []
for i, best in enumerate(result.labels):
    others = model.unary.copy()
    others[model.network.node_slice(i)][best] = np.inf
    margins.append(softmap.solve(model.replace(unary=others)).bound - result.energy)

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.barh(decoded, margins, color="#2166ac")
axes.set(xlabel="any message without this word costs at least so much more")
axes.invert_yaxis()
