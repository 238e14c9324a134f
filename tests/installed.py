"""Try an installed softmap: every instruction set solves a small model, and no file is written.

Run by `make wheel` and the release workflow in an environment with nothing but the wheel.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import softmap
from softmap import core

SIDE, LABELS = 3, 2


def expected(model: softmap.Model) -> float:
    """Return the least energy of all labellings."""
    every = np.array(list(itertools.product(range(LABELS), repeat=SIDE * SIDE)))
    return float(model.energy(every).min())


def solve() -> None:
    """Solve a small model and compare with the best of all its labellings."""
    model = softmap.generators.potts_grid(SIDE, SIDE, LABELS, seed=1)
    result = softmap.solve(model)
    optimum = expected(model)
    assert result.bound <= optimum + 1e-9, (result.bound, optimum)
    assert abs(result.energy - optimum) < 1e-9, (result.energy, optimum)
    smoothed = softmap.paper.accel_emp(model.network, 10.0, 50)  # readable in an installation, too
    assert softmap.certificate(model, smoothed, 10.0).bound <= optimum + 1e-9
    print(f"softmap {softmap.__version__}, {core.level()}: energy {result.energy:.6f}, as expected")


def files() -> set[Path]:
    """Return the files of the installation."""
    assert softmap.__file__ is not None
    return set(Path(softmap.__file__).parent.rglob("*"))


def main() -> None:
    """Solve once per instruction set, each in a process of its own."""
    before = files()
    for level in core.available():
        environment = os.environ | {"SOFTMAP_CPU": level, "PYTHONDONTWRITEBYTECODE": "1"}
        # No folder to keep anything in: an installation may be read-only.
        environment |= {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent"}
        subprocess.run([sys.executable, __file__, "solve"], check=True, env=environment)
    assert files() == before, files() - before


if __name__ == "__main__":
    solve() if sys.argv[1:] == ["solve"] else main()
