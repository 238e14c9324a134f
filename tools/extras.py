"""Install softmap with one extra alone, each in an environment of its own, and use what it adds.

extras.py [--wheel FILE] [EXTRA ...]: all extras that have a line in `USES` by default. Without a
wheel of softmap, one is built first. The exit status is 1 if one does not install or work.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

TREE = "import softmap; model = softmap.generators.random_tree(6, 3, seed=1); "
GRID = "import softmap; model = softmap.generators.potts_grid(4, 4, 3, seed=1); "
USES = {
    "": GRID + "import softmap.app.cli.app; assert softmap.solve(model)._repr_html_()",
    "plot": GRID + "softmap.solve(model).plot('x.png')",
    "opengm": TREE + "softmap.write(model, 'x.h5'); assert softmap.read('x.h5').n == 6",
    "dask": "import distributed, softmap.scale.many",
    "mpi": "import mpi4py, softmap.scale.distributed",
    "metis": "import pymetis; " + GRID + "softmap.distributed.solve(model, parts=2, max_passes=5)",
    "interop": "import networkx, pandas, softmap; from softmap.interop import from_networkx, "
    "to_pgmpy; " + TREE + "to_pgmpy(model)",
    "dimod": "import dimod; from softmap.interop.dimod import Sampler; "
    "assert Sampler().sample_ising({'a': 1.0}, {}).first.energy == -1.0",
    "cpmpy": "import softmap.interop.cpmpy, cpmpy",
    "pyagrum": "import pyagrum; from softmap.interop import from_pyagrum; "
    "from_pyagrum(pyagrum.fastBN('a->b'))",
    "toulbar2": "import pytoulbar2; from softmap.interop import to_toulbar2; "
    + TREE
    + "to_toulbar2(model)",
    "sinter": "import sinter, softmap.codes.sinter",
    "torch": "import torch, softmap; unary = torch.zeros((2, 2), requires_grad=True); "
    "softmap.soft_map(unary, 1.0, [[0, 1]], 1.0).nodes[0, 0].backward(); unary.grad.sum()",
    "jax": "import jax, softmap; jax.grad(lambda u: softmap.soft_map("
    "u, 1.0, [[0, 1]], 1.0).nodes[0, 0])(jax.numpy.zeros((2, 2)))",
}
"""What shows that an extra works, by its name; the empty name is softmap itself."""
OTHERS = {"report", "plugs", "cuda12", "cuda13", "bench", "docs", "test", "dev"}
"""Extras without a line above: empty, sums of others, for a GPU, or for work on softmap."""


def wheel(folder: Path) -> Path:
    """Build a wheel of softmap in a folder, and return it."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*command, str(folder), str(ROOT)], check=True)
    return next(folder.glob("softmap-*.whl"))


def failure(built: Path, extra: str, folder: Path) -> str | None:
    """Return what fails in a new environment with one extra; None if nothing does.

    Parameters
    ----------
    built : Path
        A wheel of softmap.
    extra : str
        The name of the extra; empty for softmap itself.
    folder : Path
        An empty folder for the environment.
    """
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    wanted = f"softmap[{extra}] @ {built.resolve().as_uri()}" if extra else str(built)
    commands = [
        [sys.executable, "-m", "venv", "--without-pip", str(folder)],
        [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", wanted],
        [str(python), "-c", USES[extra]],
    ]
    for command in commands:
        done = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True)
        if done.returncode:
            return (done.stderr.strip() or done.stdout.strip())[-2000:]
    return None


def main() -> int:
    """Try the extras, and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="*", default=[*USES], choices=[*USES], metavar="EXTRA")
    parser.add_argument("--wheel", type=Path, help="a wheel of softmap; by default one is built")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        built = arguments.wheel or wheel(Path(name))
        for extra in arguments.extras:
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as environment:
                problem = failure(built, extra, Path(environment))
            failed += problem is not None
            what = f"softmap[{extra}]" if extra else "softmap"
            print(f"{what}: {problem or 'works'} ({time.monotonic() - began:.0f} s)", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
