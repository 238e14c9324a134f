"""Each number that `tuning=` reaches halved and doubled, over some thirty models.

`python -m benchmarks.tuning [--seconds S] [--processes P] [--only MODEL] [--numbers TEXT]
[--outside] [--out FILE]`: proofs, energies, bounds and times beside the unchanged solver. A number
without effect in either direction should go, with the rule that needs it. `--outside`: the
constants of `docs/maintainers/numbers.md` that are in modules of Python. `--page` writes that page.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.numbers_page import PAGE, Constant, constants, fields_of_rooms, page
from benchmarks.variants import PLAIN, compared, run_all, table
from softmap.tuning import TUNING, Numbers, Tuning


@cache
def groups() -> dict[str, type[Numbers]]:
    """The groups of numbers by name."""
    found = {}
    for each in fields_of_rooms():
        name = each.file.removeprefix("src/").removesuffix(".py").replace("/", ".")
        found[each.group] = getattr(import_module(name), each.group)
    return found


def numbers() -> list[str]:
    """The names of all numbers, with those of their groups: `SearchNumbers.fresh`."""
    return [f"{each.group}.{each.name}" for each in fields_of_rooms()]


def tuned(values: Mapping[str, float]) -> Tuning:
    """Return the default numbers but some, which are named as in `numbers`."""
    changes: dict[str, dict[str, float]] = defaultdict(dict)
    for name, value in values.items():
        group, _, field = name.partition(".")
        changes[group][field] = value
    return Tuning(*(groups()[group](**fields) for group, fields in changes.items()))


@contextmanager
def replaced(values: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """A run with other numbers."""
    yield {"tuning": tuned(values)}


def changed(name: str = "", factor: float = 1.0) -> AbstractContextManager[dict[str, Any]]:
    """A run with one number multiplied."""
    if not name:
        return replaced({})
    group, _, field = name.partition(".")
    value = getattr(TUNING.of(groups()[group]), field)
    least = min(value, 1) if isinstance(value, int) else 0.0  # a count does not become none
    return replaced({name: max(type(value)(value * factor), least)})


@contextmanager
def changed_outside(number: Constant, factor: float) -> Iterator[dict[str, Any]]:
    """A run with one constant multiplied."""
    owner = number.owner
    value = getattr(owner, number.name)
    try:
        object.__setattr__(owner, number.name, type(value)(value * factor))
        yield {}
    finally:
        object.__setattr__(owner, number.name, value)


def main() -> None:
    """Run the sweep, and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--numbers", default="")
    parser.add_argument("--outside", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.page:
        PAGE.write_text(page(), encoding="utf-8")
        return
    variants: dict[str, Any] = {PLAIN: changed}
    others = [each for each in constants() if each.owner is not None] if given.outside else []
    for factor in (0.5, 2.0):
        for name in [] if given.outside else numbers():
            variants[f"{name} × {factor:g}"] = partial(changed, name, factor)
        for each in others:
            name = f"{Path(each.file).stem}.{each.name} × {factor:g}"
            variants[name] = partial(changed_outside, each, factor)
    variants = {k: v for k, v in variants.items() if k == PLAIN or given.numbers in k}
    found = run_all(
        variants, seconds=given.seconds, processes=given.processes, repeats=given.repeats,
        out=given.out, only=given.only,
    )  # fmt: skip
    print(table(compared(found)))


if __name__ == "__main__":
    main()
