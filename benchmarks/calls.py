"""How much of the package one solve runs: Python functions and files that it calls.

`python -m benchmarks.calls`: a default solve of a 30 × 30 grid, after one of another grid, so that
imports do not count; then the same with a time limit that it does not reach, and the calls of
`run/budget.py` and `drive/schedule.py`. A reader who follows the run reads these functions.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import typer

import softmap

ROOT = Path(softmap.__file__).parent
CLOCKS = ("run/budget.py", "drive/schedule.py")


def called(work: Callable[[], object]) -> Counter[tuple[str, str]]:
    """Count the calls of the package's functions by file and name.

    Parameters
    ----------
    work : function
        What is observed.
    """
    calls: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls[frame.f_code] += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    found: Counter[tuple[str, str]] = Counter()
    for code, count in calls.items():
        path = Path(code.co_filename)
        if path.is_relative_to(ROOT) and not code.co_name.startswith("<"):
            found[path.relative_to(ROOT).as_posix(), code.co_qualname] += count
    return found


def main(side: int = 30, labels: int = 3, seconds: float = 60.0, verbose: bool = False) -> None:
    softmap.solve(softmap.generators.potts_grid(side, side, labels, seed=1), threads=1)
    model = softmap.generators.potts_grid(side, side, labels, seed=2)
    plain = called(lambda: softmap.solve(model, threads=1))
    files = Counter(file for file, _ in plain)
    print(f"default: {len(plain)} functions in {len(files)} files")
    limited = called(lambda: softmap.solve(model, threads=1, time_limit=seconds))
    clocks = {key: count for key, count in limited.items() if key[0] in CLOCKS}
    print(f"with a time limit: {sum(clocks.values())} calls in {' and '.join(CLOCKS)}")
    if verbose:
        for file, count in sorted(files.items(), key=lambda item: -item[1]):
            names = ", ".join(name for path, name in sorted(plain) if path == file)
            print(f"{count:4d} {file}: {names}")
        for (file, name), count in sorted(clocks.items(), key=lambda item: -item[1]):
            print(f"{count:6d} {file}: {name}")


if __name__ == "__main__":
    typer.run(main)
