"""Names of variables and of their states, and the numbers they map to."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ModelError, shown

States = tuple[Hashable, ...]


@dataclass(frozen=True)
class Names:
    """Names of the variables of a model and of their states.

    Attributes
    ----------
    variables : tuple of hashable
        One name per variable.
    states : tuple
        For each variable, a tuple with the names of its states, or None if they have only numbers.
    """

    variables: tuple[Hashable, ...]
    states: tuple[States | None, ...]

    @cached_property
    def place(self) -> dict[Hashable, int]:
        """The number of each variable, as a mapping from names."""
        return {name: i for i, name in enumerate(self.variables)}

    def number(self, name: Any) -> int:
        """Return the number of the variable with this name."""
        if _hashable(name) and name in self.place:
            return self.place[name]
        known = ", ".join(shown(v) for v in self.variables[:6])
        more = ", …" if len(self.variables) > 6 else ""
        raise ModelError(f"there is no variable {shown(name)}; there are {known}{more}")

    def label(self, i: int, state: Any) -> Any:
        """Return the number of a state of variable `i`, given its name (its number if unnamed)."""
        states = self.states[i]
        if states is None:
            return state
        try:
            return states.index(state)
        except ValueError:
            known = ", ".join(shown(s) for s in states[:8])
            raise ModelError(
                f"{shown(state)} is no state of {shown(self.variables[i])}; there are {known}"
            ) from None

    def state(self, i: int, label: int) -> Any:
        """Return the name of a state of variable `i`, or its number if its states are unnamed."""
        states = self.states[i]
        return int(label) if states is None else states[int(label)]

    def labels(self, assignment: Mapping[Any, Any]) -> list[Any]:
        """Return the labels that a mapping from variables to states describes."""
        for name in assignment:
            self.number(name)
        missing = [name for name in self.variables if name not in assignment]
        if missing:
            raise ModelError(f"the assignment names no state of {shown(missing[0])}")
        return [self.label(i, assignment[name]) for i, name in enumerate(self.variables)]

    def evidence(self, observed: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return the observed states as a mapping between numbers; keys may be names or numbers."""
        found: dict[Any, Any] = {}
        for name, state in observed.items():
            numbered = name not in self.place and isinstance(name, int | np.integer)
            if numbered:  # a variable given by number has its label given by number
                found[int(name)] = state
            else:
                i = self.number(name)
                found[i] = self.label(i, state)
        return found

    def as_dict(self, labels: NDArray[np.int64]) -> dict[Hashable, Any]:
        """Return a labelling as a mapping from variables to states."""
        flat = labels.reshape(-1).tolist()
        return {name: self.state(i, flat[i]) for i, name in enumerate(self.variables)}


def checked_names(names: Any, states: Any, counts: NDArray[np.int64]) -> Names:
    """Return the names, checked against the label counts of the variables."""
    if isinstance(names, Mapping):
        if states is not None:
            raise ModelError("names already maps variables to their states: leave out states")
        names, states = list(names), dict(names)
    called = _listed(names, "names")
    if len(called) != len(counts) or len(set(called)) != len(called):
        raise ModelError(f"names must be {len(counts)} different names, not {shown(names)}")
    if states is None:
        return Names(called, (None,) * len(called))
    if isinstance(states, Mapping):
        unknown = [name for name in states if name not in called]
        if unknown:
            raise ModelError(f"states: there is no variable {shown(unknown[0])}")
        rows = [states.get(name) for name in called]
    else:
        rows = list(_listed(states, "states", hashed=False))
        if not any(row is None or isinstance(row, list | tuple) for row in rows):
            rows = [tuple(rows)] * len(called)  # one list of states for all variables
    if len(rows) != len(called):
        raise ModelError(f"states must be {len(called)} lists of names, not {len(rows)}")
    pairs = zip(called, rows, counts.tolist(), strict=True)
    return Names(called, tuple(_states(name, row, count) for name, row, count in pairs))


def _states(name: Hashable, row: Any, count: int) -> States | None:
    if row is None or isinstance(row, int | np.integer):
        return None
    states = _listed(row, f"states of {shown(name)}")
    if len(states) != count or len(set(states)) != count:
        raise ModelError(f"{shown(name)} needs {count} different names of states, not {shown(row)}")
    return states


def _listed(given: Any, what: str, *, hashed: bool = True) -> tuple[Any, ...]:
    listable = isinstance(given, Sequence) or (isinstance(given, np.ndarray) and given.ndim > 0)
    if isinstance(given, str | bytes) or not listable:
        raise ModelError(f"{what} must be a list of names, not {shown(given)}")
    listed = tuple(given.tolist() if isinstance(given, np.ndarray) else given)
    if hashed and not all(_hashable(name) for name in listed):
        raise ModelError(f"{what} must be hashable, such as strings")
    return listed


def _hashable(name: Any) -> bool:
    try:
        hash(name)
    except Exception:  # the value's __hash__ may raise any error
        return False
    return True


def named_counts(given: Any) -> tuple[Any, Any]:
    """Return the label counts, and the names if a mapping to states (or counts) was given."""
    if not isinstance(given, Mapping):
        return given, None
    counts = [
        s if isinstance(s, int | np.integer) else len(_listed(s, f"states of {shown(name)}"))
        for name, s in given.items()
    ]
    return counts, given
