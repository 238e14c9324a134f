"""Checks of numeric arguments; a wrong one raises `OptionError`."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import OptionError, shown


def seeded(seed: int) -> NDArray[np.uint64]:
    """Return the four state words of the random number generator for a non-negative seed.

    They are successive outputs of splitmix64, as is usual for xoshiro. `numpy.random` could make
    them, too, but its import takes a tenth of the time of a first solve.
    """
    words, state = [], seed & WORD
    for _ in range(4):
        state = (state + 0x9E3779B97F4A7C15) & WORD
        mixed = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & WORD
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & WORD
        words.append(mixed ^ mixed >> 31)
    return np.array(words, dtype=np.uint64)


WORD = 2**64 - 1
MOST = 2**63 - 1
MOST_THREADS = 4096


def wrong(name: str, value: object, expected: str) -> OptionError:
    """Return the error for a wrong argument; the caller raises it."""
    return OptionError(f"{name}={shown(value)}: expected {expected}")


def _number(value: object) -> float | int | None:
    """Return a real number as float or int; None for booleans, strings and arrays."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, numbers.Real) or isinstance(value, bool | np.bool_):
        return None
    try:
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    except (OverflowError, ValueError, TypeError):
        return None


def real(name: str, value: Any, expected: str = "a number") -> float:
    """Return a float, possibly infinite, but not NaN."""
    number = _number(value)
    try:
        found = math.nan if number is None else float(number)
    except OverflowError:
        found = math.nan
    if math.isnan(found):
        raise wrong(name, value, expected)
    return found


def not_negative(name: str, value: Any) -> float:
    """Return a float of at least 0, possibly +inf."""
    expected = "a number that is not negative"
    number = real(name, value, expected)
    if number < 0:
        raise wrong(name, value, expected)
    return number


def time_limit_of(value: Any) -> float:
    """Return a time limit in seconds: that of the argument `time_limit`, +inf for None."""
    return math.inf if value is None else not_negative("time_limit", value)


def positive(name: str, value: Any) -> float:
    """Return a positive finite float."""
    number = real(name, value, "a positive number")
    if not 0 < number < math.inf:
        raise wrong(name, value, "a positive number")
    return number


def flag(name: str, value: Any) -> bool:
    """Return a bool."""
    if not isinstance(value, bool | np.bool_):
        raise wrong(name, value, "True or False")
    return bool(value)


def count(name: str, value: Any, least: int = 0, most: int = MOST) -> int:
    """Return an integer within bounds; a float with an integer value, such as 1e6, is accepted."""
    number = _number(value)
    if isinstance(number, float):
        number = int(number) if math.isfinite(number) and number == int(number) else None
    if number is None or number < least:
        words = "that is not negative" if least == 0 else f"of at least {least}"
        raise wrong(name, value, f"a whole number {words}")
    if number > most:
        raise wrong(name, value, f"a whole number of at most {most}")
    return int(number)
