"""How fast files are read, and in how much memory; pgmpy's UAI reader in the same run.

`python -m benchmarks.io_speed [--no-pgmpy] [--megabytes 2]`. A second table has a file of every
format, made here. Speeds are of the text (after decompression), in
processor time, best of three; memory is the peak while reading the plain file over the size of the
model.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import softmap
from benchmarks.format_texts import TEXTS
from softmap.io import parse
from softmap.io.formats import FORMATS
from softmap.io.streams import load

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.data import shared_data

PGMPY_BYTES = 40_000  # its reader is too slow for whole files; a small one gives its speed


def best_of(action: Callable[[], Any], times: int = 3) -> float:
    spent = []
    for _ in range(times):
        begin = time.process_time()
        action()
        spent.append(time.process_time() - begin)
    return min(spent)


def written(model: softmap.Model, form: str) -> bytes:
    """The content of a file with the model."""
    file = io.BytesIO()
    softmap.write(model, file, format=form)
    return file.getvalue()


def peak_ratio(action: Callable[[], softmap.Model]) -> float:
    """Peak memory while reading over the memory of the model."""
    tracemalloc.start()
    model = action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / model.network.nbytes


def uai_row(path: Path) -> tuple[str, float]:
    values = "cost" if "uai-cost" in str(path) else "potential"
    size = len(load(path).data) / 1e6
    text = load(path).data
    parsed = size / best_of(lambda: parse(text, "uai", values=values))
    whole = size / best_of(lambda: softmap.read(path, values=values))
    with tempfile.NamedTemporaryFile(suffix=".uai") as plain:
        plain.write(text)
        plain.flush()
        memory = peak_ratio(lambda: softmap.read(plain.name, values=values))
    return f"| {path.name} | {size:.1f} | {parsed:.0f} | {whole:.0f} | {memory:.1f} |", parsed


def opengm_row(path: Path) -> str:
    data = path.read_bytes()
    size = len(data) / 1e6
    parsed = size / best_of(lambda: parse(data, "opengm"), 10)
    whole = size / best_of(lambda: softmap.read(path), 10)
    memory = peak_ratio(lambda: softmap.read(path))
    return f"| {path.name} | {size:.1f} | {parsed:.0f} | {whole:.0f} | {memory:.1f} |"


def large_opengm() -> str:
    """A larger OpenGM file made here: a 256 x 256 grid, one table per edge."""
    model = softmap.generators.random_grid(256, 256, 8, seed=0)
    data = written(model, "opengm")
    size = len(data) / 1e6
    parsed = size / best_of(lambda: parse(data, "opengm"))
    memory = peak_ratio(lambda: softmap.read(io.BytesIO(data)))
    return f"| 256 x 256 grid, dense | {size:.1f} | {parsed:.0f} | {parsed:.0f} | {memory:.1f} |"


def pgmpy_speed() -> float:
    """MB/s of pgmpy's reader on a grid of about PGMPY_BYTES."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.readwrite import UAIReader

        side, text = 4, ""
        while len(text) < PGMPY_BYTES:
            model = softmap.generators.random_grid(side, side, 8, seed=0)
            text = written(model, "uai").decode()
            side += 2
        begin = time.process_time()
        UAIReader(string=text).get_model()
        return len(text) / 1e6 / (time.process_time() - begin)


def every_format(size: int) -> None:
    """Print the speed of each format, and of long rows and clauses."""
    print("\n| format | MB | parse, MB/s |\n| --- | --- | --- |")
    for name, (form, make) in TEXTS.items():
        data = make(size if form != "qap" else 10_000)  # n^4 costs of n^2 numbers
        megabytes = len(data) / 1e6
        speed = megabytes / best_of(partial(FORMATS[form].parse, data))
        print(f"| {name} | {megabytes:.1f} | {speed:.1f} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-pgmpy", action="store_true")
    parser.add_argument("--megabytes", type=float, default=2.0, help="size of each made file")
    options = parser.parse_args()
    root = shared_data()
    print(
        "| file | MB | parse, MB/s | read, MB/s | memory / model |\n| --- | --- | --- | --- | --- |"
    )
    speed = 0.0
    for name in ("gm_000.uai.xz", "pdb1d2e.uai.xz", "ImageAlignment_14.uai.xz", "wcsp_18.uai.xz"):
        for path in [] if root is None else root.glob(f"*/{name}"):
            text, found = uai_row(path)
            speed = speed or found
            print(text, flush=True)
    for path in [] if root is None else root.glob("*/*.h5"):
        print(opengm_row(path), flush=True)
    print(large_opengm(), flush=True)
    if not options.no_pgmpy:
        other = pgmpy_speed()
        print(f"\npgmpy's UAI reader: {other:.3f} MB/s; ours is {speed / other:.0f} times as fast")
    every_format(int(1e6 * options.megabytes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
