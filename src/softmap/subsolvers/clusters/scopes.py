"""Sets of variables as rows of one array, as clusters are chosen and built by the thousand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ModelError
from softmap.model.potentials.base import Ints

__all__ = ["Scope", "Scopes"]

Scope = tuple[int, ...]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scopes:
    """Sets of variables, in an order.

    Attributes
    ----------
    n : int
        Number of variables of the model.
    rows : int64[sets, widest]
        The variables of each set, ascending, then `n` up to the size of the largest set.
    """

    n: int
    rows: Ints

    @classmethod
    def of(cls, sets: Iterable[Iterable[int]], n: int) -> Scopes:
        """Return clusters, each once; raise `ModelError` if one has fewer than three variables."""
        scopes = tuple(dict.fromkeys(tuple(sorted(int(i) for i in each)) for each in sets))
        for scope in scopes:
            if len(scope) < 3 or len(set(scope)) != len(scope):
                raise ModelError(f"cluster {scope} must have three or more different variables")
            if scope[0] < 0 or scope[-1] >= n:
                raise ModelError(f"cluster {scope} is not within 0..{n - 1}")
        widest = max(map(len, scopes), default=3)
        padded = [scope + (n,) * (widest - len(scope)) for scope in scopes]
        return cls(n, np.array(padded, dtype=np.int64).reshape(-1, widest))

    @classmethod
    def ascending(cls, n: int, rows: Ints) -> Scopes:
        """Return the sets of the entries of each row that are less than n."""
        rows = np.sort(rows, axis=1)
        return cls(n, rows[:, : max(3, int((rows < n).any(axis=0).sum()))])

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Scope]:
        return iter(self.listed)

    def __getitem__(self, which: slice | Bools | Ints) -> Scopes:
        return Scopes(self.n, self.rows[which])

    @cached_property
    def listed(self) -> tuple[Scope, ...]:
        """The sets as tuples."""
        return tuple(
            tuple(row[:k]) for row, k in zip(self.rows.tolist(), self.arity.tolist(), strict=True)
        )

    @cached_property
    def arity(self) -> Ints:
        """The number of variables of each set."""
        return np.asarray(self.inside.sum(axis=1))

    @property
    def inside(self) -> Bools:
        """Which entries of `rows` are variables."""
        return np.asarray(self.rows < self.n)

    def labels(self, num_labels: Ints) -> Ints:
        """Return the number of labels of each variable; 1 where a row has none."""
        return np.append(num_labels[: self.n], 1).astype(np.int64)[self.rows]

    def joined(self, other: Scopes) -> Scopes:
        """Return these sets, then others."""
        widest = max(self.rows.shape[1], other.rows.shape[1])
        both = np.full((len(self) + len(other), widest), self.n, dtype=np.int64)
        both[: len(self), : self.rows.shape[1]] = self.rows
        both[len(self) :, : other.rows.shape[1]] = other.rows
        return Scopes(self.n, both)

    def find(self, wanted: Scopes) -> Ints:
        """Return the index of each wanted set; -1 if it is not one of these."""
        first = self.joined(wanted)._first()[len(self) :]
        return np.where(first < len(self), first, -1)

    def fresh(self, more: Scopes) -> Scopes:
        """Return the sets of `more` that are not among these, each once."""
        both = self.joined(more)
        return both[len(self) :][(both._first() == np.arange(len(both)))[len(self) :]]

    def _first(self) -> Ints:
        """Return the index of the first set that is equal to each set."""
        per_key = int(62 // np.log2(self.n + 1.0)) if self.n else 1  # columns in one integer
        keys = [np.zeros(len(self), dtype=np.int64)]
        for k, column in enumerate(self.rows.T):
            if k and k % per_key == 0:
                keys.append(np.zeros(len(self), dtype=np.int64))
            keys[-1] = keys[-1] * (self.n + 1) + column
        order = np.argsort(keys[0]) if len(keys) == 1 else np.lexsort(keys)
        change = np.ones(len(self), dtype=bool)
        change[1:] = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
        least = np.minimum.reduceat(order, np.flatnonzero(change)) if len(order) else order
        first = np.empty(len(self), dtype=np.int64)
        first[order] = least[np.cumsum(change) - 1]
        return first
