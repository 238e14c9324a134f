"""The images of the landing page and of the README: `python docs/landing.py` writes them.

The photograph is the official portrait of Grace Hopper, taken by James S. Davis for the US Navy: a
work of the US government, in the public domain. matplotlib brings it along.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import cbook
from PIL import Image

import softmap

HERE = Path(__file__).resolve().parent / "images"


def damaged(photo, rng):
    """The photograph with noise and scratches, and where the scratches are."""
    rows, columns = photo.shape[:2]
    y, x = np.mgrid[:rows, :columns]
    scratched = np.zeros((rows, columns), dtype=bool)
    for k in range(5):
        begin, end = rng.uniform(0, rows, 2)
        line = begin + (end - begin) * x / columns + 8 * np.sin(9 * x / columns + k)
        scratched |= np.abs(y - line) < 1.6
    noisy = np.clip(photo + rng.normal(0, 20, photo.shape), 0, 255)
    noisy[scratched] = 255
    return noisy, scratched


def save(image, name):
    """Write an image twice as large as it is."""
    pixels = Image.fromarray(np.clip(np.round(image), 0, 255).astype(np.uint8))
    large = pixels.resize((2 * pixels.width, 2 * pixels.height), Image.Resampling.NEAREST)
    large.save(HERE / name, quality=88)


def curves(trace):
    """Energy and bound of the run, from both sides."""
    figure, axes = plt.subplots(figsize=(5.2, 2.9), layout="constrained")
    passes = trace["sweeps"]
    axes.plot(passes, trace["energy"], "-o", color="#b2182b", label="energy: cost of the answer")
    axes.plot(passes, trace["bound"], "--^", color="#2166ac", label="bound: no answer costs less")
    axes.set(xlabel="passes over the image", ylabel="cost")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(HERE / "landing-curves.svg", metadata={"Date": None})


path = cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)
photo = plt.imread(path)[20:500:2, 50:450:2].astype(float)
noisy, scratched = damaged(photo, np.random.default_rng(0))
found = softmap.denoise(noisy, levels=40, mask=scratched, smoothness=1.2, time_limit=120)
save(noisy, "photo-damaged.jpg")
save(found.image, "photo-restored.jpg")
curves(found.result.trace.columns())
print(found)
for name, image in {"damaged": noisy, "restored": found.image}.items():
    print(f"{name}: {np.sqrt(((image - photo) ** 2).mean()):.1f} grey levels off")
