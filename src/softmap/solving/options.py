"""Every option of a run: its type, its default, and what it may be."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softmap.algorithms.registry import find
from softmap.errors import OptionError
from softmap.solving.result import Result
from softmap.solving.trace import Snapshot

__all__ = ["BACKENDS", "DTYPES", "GOALS", "Options"]

DTYPES = ("float64", "float32")
BACKENDS = ("cpu",)
GOALS = ("map", "lp", "labels", "optimal")


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """What `softmap.solve` may be told; its docstring says what each option means.

    Wrong values raise an `OptionError` that names the option, the value and what was expected.
    Numbers are stored as plain floats and integers, `checkpoint` as a path.
    """

    method: str = "anneal"
    goal: str = "map"
    lp_gap: float = 1e-4
    gap: float = 1e-6
    time_limit: float | None = None
    max_work: int | None = None
    updates: int | None = None
    threads: int | None = None
    dtype: str = "float64"
    seed: int = 0
    warm_start: ArrayLike | Result | None = None
    checkpoint: str | Path | None = None
    on_snapshot: Callable[[Snapshot], Any] | None = None
    backend: str = "cpu"
    eta: float | None = None

    def __post_init__(self) -> None:
        checked = {
            "lp_gap": _tolerance("lp_gap", self.lp_gap),
            "gap": _tolerance("gap", self.gap),
            "time_limit": _optional(_tolerance, "time_limit", self.time_limit),
            "max_work": _optional(_count, "max_work", self.max_work),
            "updates": _optional(_count, "updates", self.updates),
            "threads": _optional(_positive_count, "threads", self.threads),
            "seed": _count("seed", self.seed),
            "dtype": _dtype(self.dtype),
            "eta": _optional(_positive, "eta", self.eta),
            "checkpoint": _optional(_target, "checkpoint", self.checkpoint),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._check_method()
        if self.goal not in GOALS:
            raise _wrong("goal", self.goal, _choice(GOALS))
        if self.backend not in BACKENDS:
            raise _wrong("backend", self.backend, _choice(BACKENDS))
        if self.on_snapshot is not None and not callable(self.on_snapshot):
            raise _wrong("on_snapshot", self.on_snapshot, "a function of one snapshot, or None")

    def _check_method(self) -> None:
        if not isinstance(self.method, str):
            raise _wrong("method", self.method, "the name of a method")
        if find(self.method).fixed_eta and self.eta is None:
            raise OptionError(
                f"method {self.method!r} works at a fixed η: give eta=..., for example 1000.0"
            )


def _wrong(name: str, value: object, expected: str) -> OptionError:
    return OptionError(f"{name}={value!r}: expected {expected}")


def _choice(names: tuple[str, ...]) -> str:
    return " or ".join(repr(name) for name in names)


def _optional(check: Callable[[str, Any], Any], name: str, value: Any) -> Any:
    return None if value is None else check(name, value)


def _is_number(value: object) -> bool:
    """Whether it is a real number; truth values are not, and neither are strings and arrays."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _tolerance(name: str, value: Any) -> float:
    if not _is_number(value) or not value >= 0:  # NaN compares as false
        raise _wrong(name, value, "a number that is not negative")
    return float(value)


def _positive(name: str, value: Any) -> float:
    if not _is_number(value) or not 0 < value < math.inf:
        raise _wrong(name, value, "a positive number")
    return float(value)


def _whole(value: Any) -> int | None:
    """The value as an integer; None if it is not one. 1e6 counts as one."""
    if not _is_number(value) or not math.isfinite(value) or value != int(value):
        return None
    return int(value)


def _count(name: str, value: Any) -> int:
    number = _whole(value)
    if number is None or number < 0:
        raise _wrong(name, value, "a whole number that is not negative")
    return number


def _positive_count(name: str, value: Any) -> int:
    number = _whole(value)
    if number is None or number < 1:
        raise _wrong(name, value, "a whole number of at least 1")
    return number


def _dtype(value: Any) -> str:
    try:
        name = "" if value is None else np.dtype(value).name
    except TypeError:
        name = ""
    if name not in DTYPES:
        raise _wrong("dtype", value, _choice(DTYPES))
    return name


def _target(name: str, value: Any) -> Path:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise _wrong(name, value, "the path of a file to write")
    path = Path(value)
    if path.is_dir() or not path.parent.is_dir():
        raise _wrong(name, str(value), "the path of a file in a folder that exists")
    return path
