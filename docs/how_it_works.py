"""The pictures of the page "How it works": `python docs/how_it_works.py` writes them."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import softmap

HERE = Path(__file__).resolve().parent / "images"
SIDE, LABELS = 12, 3
COLOURS = ["#3b6fb6", "#e0a030", "#b0413e"]
plt.rcParams |= {"font.size": 12, "svg.hashsalt": "softmap"}


def save(figure, name):
    figure.savefig(HERE / f"how-{name}.svg", metadata={"Date": None})
    plt.close(figure)


def image(axes, labels, title, rings=None):
    colours = np.array([plt.matplotlib.colors.to_rgb(colour) for colour in COLOURS])
    axes.imshow(colours[labels.reshape(SIDE, SIDE)])
    if rings is not None:
        rows, columns = np.nonzero(rings.reshape(SIDE, SIDE))
        axes.scatter(columns, rows, s=60, facecolors="none", edgecolors="white", linewidths=2)
    axes.set(title=title, xticks=[], yticks=[])


model = softmap.generators.random_grid(SIDE, SIDE, LABELS, seed=1)
alone = model.unary.reshape(-1, LABELS).argmin(axis=1)
counts = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
runs = [softmap.solve(model, goal="lp", max_work=2 * model.m * count) for count in counts]
lp = softmap.solve(model, goal="lp", lp_gap=1e-6)
best = softmap.solve(model, goal="optimal")

figure, axes = plt.subplots(figsize=(3.4, 3.6), layout="constrained")
image(axes, alone, f"each alone: cost {model.energy(alone):.0f}")
save(figure, "alone")

figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
axes.plot(
    counts,
    np.minimum.accumulate([run.energy for run in runs]),
    "-o",
    color="#b2182b",
    label="energy of the labels",
)
axes.plot(counts, [run.primal for run in runs], ":s", color="#8c6d1f", label="cost of the point")
axes.plot(counts, [run.bound for run in runs], "--^", color="#2166ac", label="bound")
axes.axhline(best.energy, color="0.4", linewidth=1)
axes.text(1, best.energy + 0.15, "optimum", color="0.3")
axes.set(xlabel="passes", ylabel="cost", xscale="log", ylim=(-268, -250))
axes.set_xticks(counts[::3], [str(count) for count in counts[::3]])
axes.minorticks_off()
axes.legend(frameon=False)
axes.grid(alpha=0.3)
save(figure, "passes")

fractional = lp.node_marginals.reshape(-1, LABELS).max(axis=1) < 0.999
figure, panels = plt.subplots(1, 2, figsize=(6.8, 3.6), layout="constrained")
image(panels[0], lp.node_marginals.reshape(-1, LABELS).argmax(axis=1), "the point", fractional)
image(panels[1], lp.labels, f"the labels: cost {lp.energy:.2f}")
save(figure, "point")

figure, axes = plt.subplots(figsize=(3.4, 3.6), layout="constrained")
image(
    axes, best.labels, f"proved: cost {best.energy:.2f}", best.labels.ravel() != lp.labels.ravel()
)
save(figure, "proved")
