"""The images of the landing page and of the README: `python docs/landing.py` writes them.

The photograph is computed (`softmap.app.vision.landscape`), as in `softmap demo`. The facts of the
run go to `docs/benchmarks/landing.json`, from which `make figures` takes the numbers of the text.
"""

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import softmap
from softmap.app.vision.landscape import damaged, landscape

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.facts import facts  # noqa: E402

ROWS, LEVELS, SECONDS = 200, 16, 240
plt.rcParams |= {"font.size": 14, "svg.hashsalt": "softmap"}


def save(image, name):
    """Write an image twice as large as it is."""
    pixels = Image.fromarray(np.clip(np.round(image), 0, 255).astype(np.uint8))
    large = pixels.resize((2 * pixels.width, 2 * pixels.height), Image.Resampling.NEAREST)
    large.save(HERE / "images" / name, quality=90)


def curves():
    """Energy and bound after more and more passes over a grid of 64 x 64 variables, 8 labels."""
    model = softmap.generators.potts_grid(64, 64, 8, seed=0)
    counts = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
    runs = [softmap.solve(model, goal="lp", max_work=2 * model.m * count) for count in counts]
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    red, blue = {"color": "#b2182b"}, {"color": "#2166ac"}
    axes.plot(
        counts,
        np.minimum.accumulate([run.energy for run in runs]),
        "-o",
        label="energy: cost of the answer",
        **red,
    )
    axes.plot(
        counts, [run.bound for run in runs], "--^", label="bound: no answer costs less", **blue
    )
    axes.set(xlabel="passes over the graph", ylabel="cost", xscale="log")
    axes.set_xticks(counts[::2], [str(count) for count in counts[::2]])
    axes.minorticks_off()
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(HERE / "images" / "landing-curves.svg", metadata={"Date": None})
    return [(run.energy, run.bound) for run in runs]


clean = landscape(ROWS, 3 * ROWS // 2)
noisy, scratched = damaged(clean)
found = softmap.denoise(
    noisy, levels=LEVELS, mask=scratched, time_limit=SECONDS, gap=1e-5, lp_gap=1e-5
)
save(noisy, "photo-damaged.jpg")
save(found.image, "photo-restored.jpg")
run = {
    "rows": ROWS,
    "columns": 3 * ROWS // 2,
    "levels": LEVELS,
    "seconds": found.result.seconds,
    "relative_gap": found.relative_gap,
    "error_before": float(np.sqrt(((noisy - clean) ** 2).mean())),
    "error_after": float(np.sqrt(((found.image - clean) ** 2).mean())),
}
stored = {"facts": facts(), "run": run}
path = HERE / "benchmarks" / "landing.json"
path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
print(found, run, curves())
