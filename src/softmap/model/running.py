"""Chain variables: auxiliary variables that hold the partial count or sum of a factor.

Their labels follow from those of other variables. In code they are called `running`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softmap.errors import ModelError
from softmap.model.potentials.base import Ints, frozen, integers

__all__ = ["NO_RUNNING", "Running", "check_running", "running_of"]


@dataclass(frozen=True)
class Running:
    """How the label of each chain variable follows from the labels of variables before it.

    Chain variable `r` has label `maps[offset[r] + Σ stride[k] * label[member[k]]]`, summed over `k`
    in `start[r]:start[r + 1]`. Chain variables are the last variables of a model.
    """

    start: Ints
    member: Ints
    stride: Ints
    offset: Ints
    maps: Ints

    def __len__(self) -> int:
        return len(self.offset)

    def follow(self, labels: Ints) -> Ints:
        """Return the labels of all variables, given those without chain variables.

        Both arrays have shape (..., variables).
        """
        count = labels.shape[-1]
        every = np.concatenate([labels, np.zeros((*labels.shape[:-1], len(self)), np.int64)], -1)
        columns = every.reshape(-1, count + len(self)).T.copy()
        if columns.shape[1] == 1:
            columns[count:, 0] = self._follow_one(columns[:count, 0].tolist())
        else:
            for r in range(len(self)):
                own = slice(self.start[r], self.start[r + 1])
                place = self.offset[r] + self.stride[own] @ columns[self.member[own]]
                columns[count + r] = self.maps[place]
        return columns.T.reshape(every.shape)

    def _follow_one(self, labels: list[int]) -> list[int]:
        """Return the labels of the chain variables for one labelling, without numpy calls."""
        count = len(labels)
        member, stride, maps = self.member.tolist(), self.stride.tolist(), self.maps.tolist()
        start, k = self.start.tolist(), 0
        for r, place in enumerate(self.offset.tolist()):
            while k < start[r + 1]:
                place += stride[k] * labels[member[k]]
                k += 1
            labels.append(maps[place])
        return labels[count:]

    def arrays(self) -> dict[str, Ints]:
        """All arrays by name."""
        names = ("start", "member", "stride", "offset", "maps")
        return {name: getattr(self, name) for name in names}


_NONE = np.zeros(0, np.int64)
NO_RUNNING = Running(np.zeros(1, np.int64), _NONE, _NONE, _NONE, _NONE)


def running_of(parts: Sequence[tuple[tuple[int, ...], Ints]]) -> Running:
    """Make a `Running` from pairs (scope, labels); `labels` has one axis per variable of the scope.

    Equal arrays of labels are stored once.
    """
    if not parts:
        return NO_RUNNING
    known: dict[tuple[tuple[int, ...], bytes], int] = {}
    seen: dict[int, tuple[int, list[int]]] = {}  # arrays seen before, by id
    maps: list[Ints] = []
    start, size = [0], 0
    member: list[int] = []
    stride: list[int] = []
    offset: list[int] = []
    for scope, labels in parts:
        if id(labels) not in seen:
            key = labels.shape, labels.tobytes()
            if key not in known:
                known[key] = size
                maps.append(labels.ravel())
                size += labels.size
            steps = [s // labels.itemsize for s in np.ascontiguousarray(labels).strides]
            seen[id(labels)] = known[key], steps
        place, steps = seen[id(labels)]
        member += scope
        stride += steps
        start.append(len(member))
        offset.append(place)
    arrays = (start, member, stride, offset, np.concatenate(maps))
    return Running(*(frozen(a, np.int64) for a in arrays))


def check_running(given: Running, num_labels: Ints) -> Running:
    """Return `given` with read-only arrays; raise `ModelError` if a label would be out of range."""
    parts = [integers(a, "chain variables") for a in given.arrays().values()]
    running = Running(*(frozen(a, np.int64) for a in parts))
    visible = len(num_labels) - len(running)
    start, member, stride, offset, maps = parts
    sound = all(a.ndim == 1 for a in parts) and visible > 0 and len(start) == len(offset) + 1
    sound = sound and start[0] == 0 and start[-1] == len(member) == len(stride)
    sound = bool(sound and (np.diff(start) > 0).all())
    if sound:
        owner = np.repeat(np.arange(len(running)), np.diff(start))
        sound = bool(((member >= 0) & (member < visible + owner) & (stride >= 0)).all())
    if sound:
        reach = np.add.reduceat(stride * (num_labels[member] - 1.0), start[:-1])
        sound = bool(((offset >= 0) & (offset + reach < len(maps))).all())
    if sound:
        ends = (offset + reach).astype(np.int64) + 1
        counts = num_labels[visible:]
        sound = all(
            0 <= maps[a:b].min() and maps[a:b].max() < count
            for a, b, count in zip(offset.tolist(), ends.tolist(), counts.tolist(), strict=True)
        )
    if not sound:
        raise ModelError("the chain variables do not fit the model")
    return running
