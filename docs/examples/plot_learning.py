"""
Learning the weights of a segmentation
======================================

How much should a pixel trust what it sees, and how much its neighbours? Four labelled pictures are
enough to find out, and better weights than one would set by hand.
"""

# %%
# Pictures of three materials
# ---------------------------
# Each material has a colour, but the camera is noisy, and its channels are not equally good: red is
# fine, green is poor, blue is next to useless.

import warnings

import matplotlib.pyplot as plt
import numpy as np

import softmap
from softmap.learn import StructuredClassifier

size, colours = 20, np.array([[0.2, 0.3, 0.8], [0.5, 0.8, 0.2], [0.8, 0.4, 0.5]])
noise = np.array([0.25, 0.6, 1.2])
edges = softmap.generators.grid_edges(size, size)


def scene(seed):
    """Labels of a random picture, and the picture."""
    rng = np.random.default_rng(seed)
    centres, kinds = rng.uniform(0, size, (7, 2)), np.r_[0:3, rng.integers(0, 3, 4)]
    pixels = np.stack(np.mgrid[0:size, 0:size], axis=-1).reshape(-1, 1, 2)
    labels = kinds[np.argmin(((pixels - centres) ** 2).sum(axis=-1), axis=1)]
    return labels, colours[labels] + noise * rng.normal(size=(size * size, 3))


# %%
# Features
# --------
# The costs of a pixel's labels are linear in its colour. An edge has two features: 1, and how
# alike its ends look in the red channel. Both enter as Potts costs, paid where labels differ.


def sample(picture):
    """What the model is told about a picture."""
    difference = picture[edges[:, 0], 0] - picture[edges[:, 1], 0]
    alike = np.exp(-(difference**2) / (4 * noise[0] ** 2))
    return picture, edges, np.stack([np.ones(len(edges)), alike], axis=1)


train, test = [scene(seed) for seed in range(4)], [scene(100 + seed) for seed in range(6)]
X, y = [sample(picture) for _, picture in train], [labels for labels, _ in train]
X_test, y_test = [sample(picture) for _, picture in test], [labels for labels, _ in test]

# %%
# Weights set by hand
# -------------------
# The squared distance to the colour of each material, and a Potts weight that was chosen as the
# best of several on the pictures we learn from.


def by_hand(picture, weight):
    distance = ((picture[:, None, :] - colours) ** 2).sum(axis=-1)
    model = softmap.Model(distance, edges, softmap.Potts(np.full(len(edges), weight)))
    return softmap.solve(model, goal="lp", lp_gap=1e-3).labels


def accuracy(found, truth):
    return float(np.mean(np.concatenate(found) == np.concatenate(truth)))


hand = {w: accuracy([by_hand(p, w) for _, p in train], y) for w in (0.25, 0.5, 1.0, 2.0)}
weight = max(hand, key=hand.get)
found_by_hand = [by_hand(picture, weight) for _, picture in test]
hand_set = accuracy(found_by_hand, y_test)
print(f"by hand, Potts weight {weight}: {hand_set:.1%} of the pixels of new pictures are right")

# %%
# Learned weights
# ---------------
# The Fenchel-Young loss compares the soft beliefs of the model with the truth: its gradient is the
# difference of their features. The structured hinge asks for labels: every wrong labelling should
# cost more than the truth, by as many pixels as it gets wrong.

warnings.simplefilter("ignore", softmap.ConvergenceWarning)  # a few rounds are enough here
scores = {}
for loss, rounds in (("fenchel-young", 8), ("hinge", 30)):
    learner = StructuredClassifier(loss=loss, alpha=0.01, eta=2.0, max_iter=rounds).fit(X, y)
    scores[loss] = learner.score(X_test, y_test)
    worst = max(inference.gap for inference in learner.log_[-1].inferences)
    print(f"{loss}: {scores[loss]:.1%}, largest gap of the last inferences {worst:.1e}")
    print("  weights of red, green, blue:", np.ptp(learner.coef_, axis=1)[:3].round(1))
    print("  weights of edges:", learner.pairwise_coef_.round(2))

assert min(scores.values()) > hand_set + 0.03

# %%
# Both have found out that red is the channel to trust. A new picture:

figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained")
shown = [
    (np.clip(test[0][1], 0, 1).reshape(size, size, 3), "picture"),
    (colours[found_by_hand[0]].reshape(size, size, 3), f"by hand ({hand_set:.0%} of all)"),
    (
        colours[learner.predict(X_test[:1])[0]].reshape(size, size, 3),
        f"learned ({scores['hinge']:.0%} of all)",
    ),
    (colours[y_test[0]].reshape(size, size, 3), "truth"),
]
for axis, (picture, title) in zip(axes, shown, strict=True):
    axis.imshow(picture)
    axis.set(title=title, xticks=[], yticks=[])
