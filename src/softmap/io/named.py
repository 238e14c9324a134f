"""A model whose variables and labels have names."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError, shown
from softmap.model import Model
from softmap.model.inputs import checked_labels


@dataclass(frozen=True)
class Named:
    """A model, the names of its variables, and the names of each variable's labels.

    Attributes
    ----------
    model : Model
    variables : tuple
        The name of each variable.
    states : tuple of tuples
        The names of each variable's labels.
    """

    model: Model
    variables: tuple[Hashable, ...]
    states: tuple[tuple[Hashable, ...], ...]

    def assignment(self, labels: ArrayLike) -> dict[Hashable, Hashable]:
        """Return a labelling as a mapping from names of variables to names of states."""
        counts = np.array([len(states) for states in self.states], dtype=np.int64)
        chosen = checked_labels(labels, counts)
        if chosen.ndim != 1:
            raise ModelError("expected one labelling, not a batch of them")
        numbers: Sequence[int] = chosen.tolist()
        named = zip(self.variables, self.states, numbers, strict=True)
        return {name: states[x] for name, states, x in named}

    def labels(self, assignment: Mapping[Any, Any]) -> NDArray[np.int64]:
        """Return the labelling of a mapping from names of variables to names of states."""
        _require_mapping(assignment, "assignment")
        found = []
        for name, states in zip(self.variables, self.states, strict=True):
            if name not in assignment:
                raise ModelError(f"the assignment names no state of {name!r}")
            if assignment[name] not in states:
                raise ModelError(f"{assignment[name]!r} is not a state of {name!r}")
            found.append(states.index(assignment[name]))
        return np.array(found, dtype=np.int64)

    def evidence(self, observed: Mapping[Any, Any]) -> dict[int, int]:
        """Return observed states as numbers, for `Model.condition`."""
        _require_mapping(observed, "observed")
        place = {name: i for i, name in enumerate(self.variables)}
        unknown = [name for name in observed if name not in place]
        if unknown:
            raise ModelError(f"{unknown[0]!r} is not a variable of the model")
        found = {}
        for name, state in observed.items():
            if state not in self.states[place[name]]:
                raise ModelError(f"{state!r} is not a state of {name!r}")
            found[place[name]] = self.states[place[name]].index(state)
        return found


def _require_mapping(given: object, name: str) -> None:
    if not isinstance(given, Mapping):
        raise ModelError(f"{name} must map names of variables to states, not {shown(given)}")
