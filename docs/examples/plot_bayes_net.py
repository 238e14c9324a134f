"""
A Bayes net with names
======================

Why does the patient cough? The most likely explanation of what was observed, by names from end to
end.
"""

# %%
# Tables of probabilities
# -----------------------
# Costs are negative logarithms. Factors name their variables.

import matplotlib.pyplot as plt
import numpy as np

import softmap


def no_yes(p):
    """Rows for no and yes, given the chance of yes."""
    p = np.asarray(p, dtype=float)
    return -np.log(np.stack([1 - p, p], axis=-1))


answers = ["no", "yes"]
net = softmap.Model.from_factors(
    {"Winter": answers, "Cold": answers, "Flu": answers, "Fever": answers, "Cough": answers},
    [
        (("Winter",), no_yes(0.25)),
        (("Winter", "Cold"), no_yes([0.1, 0.4])),
        (("Winter", "Flu"), no_yes([0.01, 0.1])),
        (("Flu", "Fever"), no_yes([0.02, 0.9])),
        (("Cold", "Flu", "Cough"), no_yes([[0.05, 0.7], [0.6, 0.9]])),
    ],
)

# %%
# The best explanation of each observation
# ----------------------------------------

seen = [{"Cough": "yes"}, {"Fever": "yes"}, {"Cough": "yes", "Fever": "yes"}]
best = [softmap.solve(net.condition(observed)) for observed in seen]
for observed, result in zip(seen, best, strict=True):
    print(observed, "->", result.as_dict(), f"probability {np.exp(-result.energy):.3f}")

table = np.array([result.labels for result in best])
plt.figure(figsize=(6.5, 2.6), layout="constrained")
plt.imshow(table, cmap="Blues", vmin=0, vmax=1.4)
plt.xticks(range(5), net.names.variables)
plt.yticks(range(3), [", ".join(observed) for observed in seen])
plt.title("what explains the observations best (dark: yes)")
