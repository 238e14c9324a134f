"""The model: costs of variables and edges, immutable, validated once, built in bulk from arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError
from softmap.graph import Graph
from softmap.potentials import Potential, Tables
from softmap.potentials.base import Costs, Ints, frozen

__all__ = ["Auxiliaries", "Model"]

Pairwise = Potential | ArrayLike | Sequence[ArrayLike]
Group = tuple[ArrayLike, Potential]
Factor = tuple[Sequence[int], ArrayLike]


@dataclass(frozen=True)
class Auxiliaries:
    """How the joint state of each auxiliary node follows from the labels of its members.

    Auxiliary `a` has state `Σ stride[k] * label[member[k]]` over `k` in `start[a]:start[a + 1]`.
    """

    start: Ints
    member: Ints
    stride: Ints

    def __len__(self) -> int:
        return len(self.start) - 1

    def states(self, labels: Ints) -> Ints:
        """Joint states for labellings of shape (..., variables)."""
        terms = labels[..., self.member] * self.stride
        total: Ints = np.add.reduceat(terms, self.start[:-1], axis=-1)
        return total


NO_AUXILIARIES = Auxiliaries(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


class Model:
    """A discrete Markov random field: minimise `Σ_i C_i(x_i) + Σ_e C_e(x_i, x_j) + constant`.

    Parameters
    ----------
    unary : (n, d) array, or a list of n one-dimensional arrays when label counts differ
    edges : (m, 2) array of variable numbers; None when `pairwise` is a list of pairs
    pairwise : Potential, (m, d, d') array, list of m 2-D arrays, or list of (edges, potential)
    constant : float
        Added to every energy and bound.

    Costs of `+inf` are hard constraints. Arrays of the right type are not copied: do not change
    them afterwards.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.Model([[0.0, 1.0], [1.0, 0.0]], [[0, 1]], softmap.Potts([0.4]))
    >>> model.energy([0, 1])
    0.4
    """

    def __init__(
        self,
        unary: ArrayLike | Sequence[ArrayLike],
        edges: ArrayLike | None,
        pairwise: Pairwise | Sequence[Group],
        *,
        constant: float = 0.0,
    ) -> None:
        self.unary, self.num_labels = _flat_unary(unary)
        self.n: int = len(self.num_labels)
        self.num_variables: int = self.n
        self.auxiliaries = NO_AUXILIARIES
        self.shape: tuple[int, ...] | None = None
        self.constant = float(constant)
        if not np.isfinite(self.constant):
            raise ModelError(f"constant must be finite, not {constant}")
        self.edges, self.potentials, self.group_start = _groups(edges, pairwise, self.n)
        self.m: int = len(self.edges)
        for g, potential in enumerate(self.potentials):
            ends = self.num_labels[self.edges[self.group_start[g] : self.group_start[g + 1]]]
            potential.check(ends[:, 0], ends[:, 1])

    # --- structure ------------------------------------------------------------------------------

    @cached_property
    def node_offset(self) -> Ints:
        """Where each node's block begins in node arrays such as `unary`; length n + 1."""
        return _offsets(self.num_labels)

    @cached_property
    def half_offset(self) -> Ints:
        """Where each half-edge's block begins in λ-like arrays; length 2m + 1."""
        return _offsets(self.num_labels[self.edges.reshape(-1)])

    @cached_property
    def edge_offset(self) -> Ints:
        """Where each edge's row-major block begins in edge arrays; length m + 1."""
        return _offsets(self.num_labels[self.edges].prod(axis=1))

    @cached_property
    def graph(self) -> Graph:
        """Half-edge incidence."""
        return Graph.from_edges(self.edges, self.n)

    @cached_property
    def has_forbidden(self) -> bool:
        """Whether any cost is +inf (the ties of auxiliary nodes not counted)."""
        return bool(np.isposinf(self.unary).any()) or any(
            p.has_forbidden() for p in self.potentials
        )

    def groups(self) -> Iterator[tuple[int, int, Potential]]:
        """The groups of edges of one family: (first edge, last edge + 1, potential)."""
        for g, potential in enumerate(self.potentials):
            yield int(self.group_start[g]), int(self.group_start[g + 1]), potential

    def node_slice(self, i: int) -> slice:
        """Where node `i` lives in node arrays."""
        return slice(int(self.node_offset[i]), int(self.node_offset[i + 1]))

    def half_slice(self, h: int) -> slice:
        """Where half-edge `h` lives in λ-like arrays."""
        return slice(int(self.half_offset[h]), int(self.half_offset[h + 1]))

    def unary_of(self, i: int) -> Costs:
        """Costs of the labels of node `i`."""
        return self.unary[self.node_slice(i)]

    def table(self, e: int) -> Costs:
        """Dense costs of edge `e`; rows are the labels of its first end."""
        g = int(np.searchsorted(self.group_start, e, side="right")) - 1
        i, j = self.edges[e]
        rows, cols = int(self.num_labels[i]), int(self.num_labels[j])
        return self.potentials[g].as_table(int(e - self.group_start[g]), rows, cols)

    def tables(self) -> Iterator[Costs]:
        """Dense costs of all edges, one by one."""
        return (self.table(e) for e in range(self.m))

    @property
    def nbytes(self) -> int:
        """Memory of the arrays that define the model."""
        arrays = [a for p in self.potentials for a in p.arrays().values()]
        return self.unary.nbytes + self.edges.nbytes + sum(a.nbytes for a in arrays)

    def __repr__(self) -> str:
        families = "+".join(dict.fromkeys(p.family for p in self.potentials)) or "no edges"
        aux = f" (+{self.n - self.num_variables} auxiliary)" if len(self.auxiliaries) else ""
        return f"Model({self.num_variables} variables{aux}, {self.m} edges, {families})"

    # --- energies -------------------------------------------------------------------------------

    def complete(self, labels: ArrayLike) -> Ints:
        """Labels of all nodes: the given ones, then the states of auxiliary nodes."""
        given = np.asarray(labels)
        if given.shape[-1:] != (self.num_variables,) or given.ndim > 2:
            raise ModelError(
                f"labels must have shape ({self.num_variables},) or (batch, {self.num_variables}), "
                f"not {given.shape}"
            )
        if given.dtype.kind not in "iu":
            raise ModelError(f"labels must be integers, not {given.dtype}")
        chosen = given.astype(np.int64)
        bad = (chosen < 0) | (chosen >= self.num_labels[: self.num_variables])
        if bad.any():
            i = int(np.argwhere(bad)[0][-1])
            raise ModelError(f"label of variable {i} is outside 0..{self.num_labels[i] - 1}")
        if not len(self.auxiliaries):
            return chosen
        return np.concatenate([chosen, self.auxiliaries.states(chosen)], axis=-1)

    def energy(self, labels: ArrayLike) -> Any:
        """Cost of a labelling, or of each of a batch; +inf where a hard constraint is broken."""
        x = self.complete(labels)
        total = self.unary[self.node_offset[:-1] + x].sum(axis=-1) + self.constant
        for first, last, potential in self.groups():
            ends = self.edges[first:last]
            costs = potential.value(np.arange(last - first), x[..., ends[:, 0]], x[..., ends[:, 1]])
            total = total + costs.sum(axis=-1)
        return float(total) if np.ndim(total) == 0 else total

    # --- derived models -------------------------------------------------------------------------

    def replace(
        self,
        *,
        unary: ArrayLike | None = None,
        potentials: Sequence[Potential] | None = None,
        constant: float | None = None,
    ) -> Model:
        """The same graph with other costs; what is not given is shared."""
        new = Model.__new__(Model)
        new.__dict__.update(
            {k: v for k, v in self.__dict__.items() if k not in ("has_forbidden", "_layouts")}
        )
        if unary is not None:
            flat = np.asarray(unary, dtype=np.float64).reshape(-1)
            if flat.shape != self.unary.shape:
                raise ModelError(f"unary must hold {self.unary.size} costs, not {flat.size}")
            _reject_bad_unary(flat, self.node_offset)
            new.unary = frozen(flat)
        if potentials is not None:
            new.potentials = tuple(potentials)
            for g, p in enumerate(new.potentials):
                ends = self.num_labels[self.edges[self.group_start[g] : self.group_start[g + 1]]]
                p.check(ends[:, 0], ends[:, 1])
        if constant is not None:
            new.constant = float(constant)
        return new

    def condition(self, evidence: Mapping[int, int]) -> Model:
        """The model with variables fixed: every other label of theirs is forbidden."""
        unary = self.unary.copy()
        for i, x in evidence.items():
            if not 0 <= i < self.num_variables:
                raise ModelError(f"evidence: variable {i} is outside 0..{self.num_variables - 1}")
            if not 0 <= x < self.num_labels[i]:
                raise ModelError(
                    f"evidence: label {x} of variable {i} is outside 0..{self.num_labels[i] - 1}"
                )
            block = unary[self.node_slice(i)]
            kept = block[x]
            block[:] = np.inf
            block[x] = kept
        return self.replace(unary=unary)

    def with_shape(self, shape: Sequence[int]) -> Model:
        """The same model, known to be a grid of this shape (for pictures)."""
        if int(np.prod(shape)) != self.num_variables:
            raise ModelError(
                f"a grid of shape {tuple(shape)} has not {self.num_variables} variables"
            )
        new = self.replace()
        new.shape = tuple(int(s) for s in shape)
        return new

    @classmethod
    def from_factors(
        cls,
        num_labels: ArrayLike,
        factors: Iterable[Factor],
        *,
        groups: Sequence[Group] = (),
        constant: float = 0.0,
    ) -> Model:
        """A model from factors of any arity.

        Parameters
        ----------
        num_labels : int array, labels of each variable
        factors : iterable of (scope, costs)
            `costs` has one axis per variable of the scope. Arity 0 adds to the constant, 1 to the
            unary costs, 2 to the edge of that pair; 3 and more become an auxiliary variable.
        groups : list of (edges, potential) kept as they are, for structured potentials
        """
        from softmap.factors import assemble

        return assemble(num_labels, factors, groups, constant)

    def fingerprint(self) -> str:
        """Digest of everything that defines the model."""
        digest = hashlib.sha256()
        aux = self.auxiliaries
        arrays: list[NDArray[Any]] = [self.unary, self.num_labels, self.edges, self.group_start]
        arrays += [aux.start, aux.member, aux.stride, np.array([self.constant])]
        for potential in self.potentials:
            digest.update(potential.family.encode())
            arrays += potential.arrays().values()
        for array in arrays:
            digest.update(str((array.dtype, array.shape)).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def _offsets(sizes: Ints) -> Ints:
    offset = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offset[1:])
    return offset


def _flat_unary(unary: ArrayLike | Sequence[ArrayLike]) -> tuple[Costs, Ints]:
    if isinstance(unary, np.ndarray) and unary.dtype != object:
        rows: Any = unary
    else:
        rows = [np.asarray(row, dtype=np.float64) for row in unary]  # type: ignore[union-attr]
        if rows and all(r.shape == rows[0].shape for r in rows):
            rows = np.array(rows)
    if len(rows) == 0:
        raise ModelError("a model needs at least one variable")
    if isinstance(rows, np.ndarray):
        if rows.ndim != 2:
            raise ModelError(f"unary must have shape (variables, labels), not {rows.shape}")
        num_labels = np.full(len(rows), rows.shape[1], dtype=np.int64)
        flat = frozen(rows).reshape(-1)
    else:
        if bad := [i for i, r in enumerate(rows) if r.ndim != 1]:
            raise ModelError(f"unary[{bad[0]}] must be a list of costs, one per label")
        num_labels = np.array([len(r) for r in rows], dtype=np.int64)
        flat = frozen(np.concatenate(rows))
    if num_labels.min() < 1:
        raise ModelError(f"variable {int(np.argmin(num_labels))} has no labels")
    _reject_bad_unary(flat, _offsets(num_labels))
    return flat, frozen(num_labels, np.int64)


def _reject_bad_unary(flat: Costs, offset: Ints) -> None:
    low = flat.min()
    if not np.isnan(low) and low != -np.inf:
        return
    place = int(np.argmax(np.isnan(flat) | (flat == -np.inf)))
    i = int(np.searchsorted(offset, place, side="right")) - 1
    raise ModelError(
        f"unary cost of variable {i}, label {place - offset[i]}, is {flat[place]}; "
        "expected a number or +inf (forbidden)"
    )


def _groups(
    edges: ArrayLike | None, pairwise: Any, n: int
) -> tuple[NDArray[np.int32], tuple[Potential, ...], Ints]:
    if isinstance(pairwise, Potential) or edges is not None:
        potential = pairwise if isinstance(pairwise, Potential) else Tables(pairwise)
        parts: list[Group] = [(np.zeros((0, 2)) if edges is None else edges, potential)]
    else:
        parts = list(pairwise)
    arrays = [_checked_edges(e, n) for e, _ in parts]
    for array, (_, potential) in zip(arrays, parts, strict=True):
        if len(array) != len(potential):
            raise ModelError(f"{len(array)} edges were given for {potential!r}")
    kept = [(a, p) for a, (_, p) in zip(arrays, parts, strict=True) if len(a)]
    joined = (
        kept[0][0]
        if len(kept) == 1
        else np.concatenate([a for a, _ in kept] or [np.zeros((0, 2), np.int32)])
    )
    start = _offsets(np.array([len(a) for a, _ in kept], dtype=np.int64))
    return frozen(joined, np.int32), tuple(p for _, p in kept), frozen(start, np.int64)


def _checked_edges(edges: ArrayLike, n: int) -> NDArray[np.int32]:
    array = np.asarray(edges)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int32)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ModelError(f"edges must have shape (edges, 2), not {array.shape}")
    if array.dtype.kind not in "iu":
        raise ModelError(f"edges must be integers, not {array.dtype}")
    if array.min() < 0 or array.max() >= n:
        e = int(np.argmax(((array < 0) | (array >= n)).any(axis=1)))
        raise ModelError(f"edge {e} is {tuple(array[e].tolist())}; variables are 0..{n - 1}")
    loops = array[:, 0] == array[:, 1]
    if loops.any():
        e = int(np.argmax(loops))
        raise ModelError(
            f"edge {e} joins variable {array[e, 0]} to itself; add its diagonal costs to the "
            "unary costs of that variable instead"
        )
    return array.astype(np.int32, copy=False)
