"""`denoise` beside scikit-image's total variation: `python -m benchmarks.denoising [SECONDS ...]`.

Five photographs of scikit-image, noise of 25 grey levels. Total variation (TV) runs to convergence
with two weights; `denoise` runs with its defaults, once for each time limit. Printed are the PSNR
in dB, with processor seconds in parentheses.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import softmap

NOISE = 25.0


def photographs() -> dict[str, Any]:
    """Grey photographs, in 0..255."""
    from skimage import color, data

    grey = {
        name: getattr(data, name)().astype(float) for name in ("camera", "coins", "moon", "page")
    }
    return grey | {"astronaut": 255 * color.rgb2gray(data.astronaut())}


def psnr(image: Any, clean: Any) -> float:
    """The peak signal-to-noise ratio, in dB."""
    return float(10 * np.log10(255**2 / ((np.clip(image, 0, 255) - clean) ** 2).mean()))


def methods(limits: list[float]) -> dict[str, Callable[[Any], Any]]:
    """Functions from a noisy image to a restored one, by name."""
    from skimage.restoration import denoise_tv_chambolle

    def variation(weight: float) -> Callable[[Any], Any]:
        limits = {"eps": 1e-6, "max_num_iter": 2000}
        return lambda noisy: 255 * denoise_tv_chambolle(noisy / 255, weight=weight, **limits)

    def ours(limit: float) -> Callable[[Any], Any]:
        return lambda noisy: softmap.denoise(noisy, time_limit=limit).image.astype(float)

    return {f"TV {w}": variation(w) for w in (0.1, 0.08)} | {f"{t:g} s": ours(t) for t in limits}


def main() -> None:
    """Print one line per photograph, and the means."""
    chosen = methods([float(word) for word in sys.argv[1:]] or [0.2, 8.0])
    found: dict[str, list[float]] = {name: [] for name in chosen}
    for title, clean in photographs().items():
        rng = np.random.default_rng(0)
        noisy = np.clip(clean + rng.normal(0, NOISE, clean.shape), 0, 255)
        words = []
        for name, method in chosen.items():
            began = time.process_time()
            found[name].append(psnr(method(noisy), clean))
            words.append(f"{name}: {found[name][-1]:.2f} ({time.process_time() - began:.1f})")
        print(title, *words, sep="  ", flush=True)
    print("mean", *(f"{name}: {np.mean(values):.2f}" for name, values in found.items()), sep="  ")


if __name__ == "__main__":
    main()
