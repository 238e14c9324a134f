"""Each number of `softmap.solving.tuning.Tuning` halved and doubled, over some thirty models.

`python -m benchmarks.tuning [--seconds S] [--processes P] [--only MODEL] [--numbers TEXT]
[--out FILE]`: proofs, energies, bounds and times beside the unchanged solver. A number without
effect in either direction should go, with the rule that needs it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.variants import PLAIN, compared, run_all, table
from softmap.solving.tuning import TUNING, Tuning

PAGES = (
    "labels.decoding:DECODING", "labels.feasibility:TUNING",
    "labels.penalties:TUNING", "methods.sweeps.anneal:COARSENING", "methods.sweeps.anneal:RECOVERY",
    "methods.sweeps.chains:AVERAGING", "proof.tightening.clusters:SEARCHED",
    "proof.tightening.point:CORRECTIONS",
)  # fmt: skip
"""Numbers of a method that its own module keeps."""


@contextmanager
def changed(name: str = "", factor: float = 1.0) -> Iterator[dict[str, Any]]:
    """The options of a run with one number multiplied."""
    yield {"tuning": multiplied(TUNING, name, factor) if name else TUNING}


@contextmanager
def changed_in(where: str, name: str, factor: float) -> Iterator[dict[str, Any]]:
    """A run with one number of a module multiplied."""
    module, page = _page(where)
    with patch.object(module, where.partition(":")[2], multiplied(page, name, factor)):
        yield {}


def _page(where: str) -> tuple[Any, Any]:
    path, _, name = where.partition(":")
    module = import_module(f"softmap.{path}")
    return module, getattr(module, name)


def multiplied(page: Any, name: str, factor: float) -> Any:
    """The page with one number multiplied; `a.b` is field b of the rule a."""
    head, _, rest = name.partition(".")
    value = getattr(page, head)
    if rest:
        return replace(page, **{head: multiplied(value, rest, factor)})
    least = min(value, 1) if isinstance(value, int) else 0.0  # a count does not become none
    return replace(page, **{head: max(type(value)(value * factor), least)})


def numbers(page: Any = TUNING, prefix: str = "") -> list[str]:
    """The names of all numbers of a page but sizes in bytes, which keep a promise."""
    found = []
    for each in fields(page):
        if "bytes" in each.name or "memory" in each.name:
            continue
        value = getattr(page, each.name)
        if is_dataclass(value):
            found += numbers(value, f"{prefix}{each.name}.")
        elif isinstance(value, int | float):
            found.append(prefix + each.name)
    return found


def main() -> None:
    """Run the sweep, and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--numbers", default="")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    variants: dict[str, Any] = {PLAIN: changed}
    for factor in (0.5, 2.0):
        for name in numbers(Tuning()):
            variants[f"{name} × {factor:g}"] = partial(changed, name, factor)
        for where in PAGES:
            for name in numbers(_page(where)[1]):
                key = f"{where.partition(':')[0]}.{name} × {factor:g}"
                variants[key] = partial(changed_in, where, name, factor)
    variants = {k: v for k, v in variants.items() if k == PLAIN or given.numbers in k}
    found = run_all(
        variants, seconds=given.seconds, processes=given.processes, repeats=given.repeats,
        out=given.out, only=given.only,
    )  # fmt: skip
    print(table(compared(found)))


if __name__ == "__main__":
    main()
