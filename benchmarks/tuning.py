"""Each number of `softmap.tuning.Tuning` halved and doubled, over some thirty models.

`python -m benchmarks.tuning [--seconds S] [--processes P] [--only MODEL] [--numbers TEXT]
[--outside] [--out FILE]`: proofs, energies, bounds and times beside the unchanged solver. A number
without effect in either direction should go, with the rule that needs it. `--outside`: the numbers
of `docs/benchmarks/numbers.md` that are in modules of Python, instead of those on the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.variants import PLAIN, compared, run_all, table
from softmap.tuning import TUNING


@contextmanager
def replaced(numbers: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """A run with other numbers on the page; `a.b` is field b of the rule a.

    The page itself is changed, because methods read it where no run hands it to them.
    """
    with ExitStack() as stack:
        for name, value in numbers.items():
            *heads, last = name.split(".")
            page = reduce(getattr, heads, TUNING)
            stack.callback(object.__setattr__, page, last, getattr(page, last))
            object.__setattr__(page, last, value)
        yield {}


def changed(name: str = "", factor: float = 1.0) -> AbstractContextManager[dict[str, Any]]:
    """A run with one number of the page multiplied."""
    if not name:
        return replaced({})
    value = reduce(getattr, name.split("."), TUNING)
    least = min(value, 1) if isinstance(value, int) else 0.0  # a count does not become none
    return replaced({name: max(type(value)(value * factor), least)})


def numbers(page: Any = TUNING, prefix: str = "") -> list[str]:
    """The names of all numbers of a page."""
    found = []
    for each in fields(page):
        value = getattr(page, each.name)
        if is_dataclass(value):
            found += numbers(value, f"{prefix}{each.name}.")
        elif isinstance(value, int | float):
            found.append(prefix + each.name)
    return found


@dataclass(frozen=True)
class Listed:
    """A row of `docs/benchmarks/numbers.md`: a number that steers, outside the page."""

    file: str
    name: str
    value: str
    meaning: str
    origin: str

    @property
    def owner(self) -> Any:
        """The module or the object of a module that holds the number; None if it is not found."""
        if not self.file.startswith("src/softmap/"):
            return None
        module = import_module(self.file.removeprefix("src/").removesuffix(".py").replace("/", "."))
        own = [each for each in vars(module).values() if is_dataclass(each)]
        found = [each for each in own if not isinstance(each, type) and hasattr(each, self.name)]
        return next(iter([module] if hasattr(module, self.name) else found), None)


def listed() -> list[Listed]:
    """Return the rows of `docs/benchmarks/numbers.md`."""
    page = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "numbers.md"
    lines = [line for line in page.read_text().splitlines() if line.startswith("| `src/")]
    return [Listed(*(cell.strip(" `") for cell in line.strip("|").split("|"))) for line in lines]


@contextmanager
def changed_outside(number: Listed, factor: float) -> Iterator[dict[str, Any]]:
    """A run with one number outside the page multiplied."""
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
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    variants: dict[str, Any] = {PLAIN: changed}
    others = [each for each in listed() if each.owner is not None] if given.outside else []
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
