"""What the relaxation hands on from the start, and how its state is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count
from softmap.methods.base import Algorithm
from softmap.model import Network
from softmap.run.subsolver import Entry

if TYPE_CHECKING:
    from softmap.io.store import Arrays

__all__ = ["METHOD", "ROUNDED", "like_number", "put_back", "taken"]

METHOD: Entry[Algorithm] = Entry("the method of the relaxation")
ROUNDED: Entry[Callable[[], Any]] = Entry("labels that the method itself has rounded")
MAY_BE_EMPTY = ("messages.drift",)  # arrays of a state that are allocated lazily


def taken(state: Any) -> Iterator[tuple[str, Any]]:
    """Yield every array and number of the state of a method with its path."""
    for name, _, _, value in _leaves(state):
        yield name, value


def put_back(state: Any, arrays: Arrays) -> None:
    """Put arrays and numbers of a file, named by `taken`, in the place of those of a state."""
    for name, owner, attribute, value in _leaves(state):
        stored = arrays[f"state/{name}"]
        if isinstance(value, np.ndarray):
            room = value[:0] if name in MAY_BE_EMPTY and not len(stored) else value
            setattr(owner, attribute, _like(name, stored, room))
        else:
            setattr(owner, attribute, type(value)(stored.item()))
    if state.work < 0:
        raise ValueError("work is negative")


def like_number(name: str, stored: NDArray[Any]) -> Any:
    """Return a number of a file; counts must be integers of at least -1."""
    value = None if stored.shape else stored.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is not a number")
    return value if isinstance(value, float) else count(name, value, -1)


def _like(name: str, stored: NDArray[Any], value: NDArray[Any]) -> NDArray[Any]:
    """Return an array of a file, if it has the dtype and shape of the array it replaces."""
    if (stored.dtype, stored.shape) != (value.dtype, value.shape):
        raise ValueError(
            f"{name}: expected {value.dtype}{value.shape}, found {stored.dtype}{stored.shape}"
        )
    return stored


def _leaves(state: Any, prefix: str = "") -> Iterator[tuple[str, Any, str, Any]]:
    """Yield every array and number of a state as (path, owner, field, value)."""
    for f in fields(state):
        value = getattr(state, f.name)
        if isinstance(value, Network):
            continue
        if is_dataclass(value):
            yield from _leaves(value, f"{prefix}{f.name}.")
        else:
            yield f"{prefix}{f.name}", state, f.name, value
