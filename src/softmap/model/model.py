"""The model: costs of variables and edges, immutable, validated once, built in bulk from arrays."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError, OptionError
from softmap.model.auxiliaries import NO_AUXILIARIES, Auxiliaries, check_auxiliaries
from softmap.model.factors import Factor, Pieces, assemble
from softmap.model.graph import Graph
from softmap.model.inputs import (
    LARGEST_SUM,
    Group,
    Pairwise,
    checked_evidence,
    checked_labels,
    checked_number,
    checked_potentials,
    checked_reach,
    edge_groups,
    finite_number,
    flat_unary,
    offsets,
    other_unary,
)
from softmap.model.potentials import Potential
from softmap.model.potentials.base import LARGEST_COST, Costs, Ints, integers, largest
from softmap.model.running import NO_RUNNING, Running, check_running
from softmap.model.sums import careful_sums

__all__ = ["Auxiliaries", "Model", "checked_model"]


class Model:
    """A discrete Markov random field: minimise `Σ_i C_i(x_i) + Σ_e C_e(x_i, x_j) + constant`.

    Parameters
    ----------
    unary : (n, d) array, or a list of n one-dimensional arrays when label counts differ
    edges : (m, 2) array of variable numbers; None when `pairwise` is a list of pairs
    pairwise : Potential, (m, d, d') array, list of m 2-D arrays, or list of (edges, potential)
    constant : float
        Added to every energy and bound.

    Costs of `+inf` are hard constraints; all others lie within ±1e300. Arrays of the right type
    are not copied: do not change them afterwards.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.Model([[0.0, 1.0], [1.0, 0.0]], [[0, 1]], softmap.Potts([0.4]))
    >>> model.energy([0, 1])
    0.4
    """

    unary: Costs
    num_labels: Ints
    n: int
    m: int
    num_variables: int
    edges: NDArray[np.int32]
    potentials: tuple[Potential, ...]
    group_start: Ints
    constant: float
    auxiliaries: Auxiliaries
    running: Running
    shape: tuple[int, ...] | None

    def __init__(
        self,
        unary: ArrayLike | Sequence[ArrayLike],
        edges: ArrayLike | None,
        pairwise: Pairwise | Sequence[Group],
        *,
        constant: float = 0.0,
    ) -> None:
        flat, num_labels = flat_unary(unary)
        ends, potentials, group_start = edge_groups(edges, pairwise, len(num_labels))
        self.__dict__.update(
            unary=flat,
            num_labels=num_labels,
            n=len(num_labels),
            m=len(ends),
            num_variables=len(num_labels),
            edges=ends,
            potentials=potentials,
            group_start=group_start,
            constant=finite_number(constant, "constant"),
            auxiliaries=NO_AUXILIARIES,
            running=NO_RUNNING,
            shape=None,
        )
        self._check_costs()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Model is immutable: {name} stays; see Model.replace")

    def __getstate__(self) -> dict[str, Any]:
        # what others have cached with the model is made again after unpickling
        return {name: value for name, value in self.__dict__.items() if name in _CARRIED}

    def _check_costs(self) -> None:
        """Every potential fits its edges, and no sum of costs leaves the range of float64."""
        total = abs(self.constant)
        if self.n * LARGEST_COST > LARGEST_SUM:  # else no need to look at all of them again
            total += self.n * largest(self.unary)
        for first, last, potential in self.groups():
            ends = self.end_labels(first, last)
            potential.check(*ends)
            total += (last - first) * checked_reach(potential, ends, first)
        if not total <= LARGEST_SUM:
            raise ModelError(
                f"costs of this size and number can add up to {total:.3g}; "
                f"expected at most {LARGEST_SUM:g}"
            )

    # --- structure ------------------------------------------------------------------------------

    @cached_property
    def node_offset(self) -> Ints:
        """Where each node's block begins in node arrays such as `unary`; length n + 1."""
        return offsets(self.num_labels)

    @cached_property
    def half_offset(self) -> Ints:
        """Where each half-edge's block begins in λ-like arrays; length 2m + 1."""
        return offsets(self.num_labels[self.edges.reshape(-1)])

    @cached_property
    def edge_offset(self) -> Ints:
        """Where each edge's row-major block begins in edge arrays; length m + 1."""
        return offsets(self.num_labels[self.edges].prod(axis=1))

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

    @property
    def num_visible(self) -> int:
        """Variables without the running ones, which factors over many variables count with."""
        return self.num_variables - len(self.running)

    def groups(self) -> Iterator[tuple[int, int, Potential]]:
        """The groups of edges of one family: (first edge, last edge + 1, potential)."""
        for g, potential in enumerate(self.potentials):
            yield int(self.group_start[g]), int(self.group_start[g + 1]), potential

    def end_labels(self, first: int, last: int) -> tuple[Ints, Ints]:
        """Label counts at the first and the second ends of edges `first:last`."""
        if self.num_labels.min() == self.num_labels.max():  # no memory where all counts agree
            same = np.broadcast_to(self.num_labels[0], (last - first,))
            return same, same
        ends = self.edges[first:last]
        return self.num_labels[ends[:, 0]], self.num_labels[ends[:, 1]]

    def node_slice(self, i: int) -> slice:
        """Where node `i` lives in node arrays."""
        i = checked_number(i, self.n, "node")
        return slice(int(self.node_offset[i]), int(self.node_offset[i + 1]))

    def half_slice(self, h: int) -> slice:
        """Where half-edge `h` lives in λ-like arrays."""
        h = checked_number(h, 2 * self.m, "half-edge")
        return slice(int(self.half_offset[h]), int(self.half_offset[h + 1]))

    def unary_of(self, i: int) -> Costs:
        """Costs of the labels of node `i`."""
        return self.unary[self.node_slice(i)]

    def table(self, e: int) -> Costs:
        """Dense costs of edge `e`; rows are the labels of its first end."""
        e = checked_number(e, self.m, "edge")
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
        aux = f" (+{self.n - self.num_visible} auxiliary)" if self.n > self.num_visible else ""
        return f"Model({self.num_visible} variables{aux}, {self.m} edges, {families})"

    # --- energies -------------------------------------------------------------------------------

    def complete(self, labels: ArrayLike) -> Ints:
        """Labels of all nodes: the given ones, then those that follow from them."""
        chosen = self.with_running(labels)
        if not len(self.auxiliaries):
            return chosen
        return np.concatenate([chosen, self.auxiliaries.states(chosen)], axis=-1)

    def with_running(self, labels: ArrayLike) -> Ints:
        """Labels of all variables, those of running ones included; they may be there already."""
        counts = self.num_labels[: self.num_variables]
        if not len(self.running) or np.shape(labels)[-1:] == counts.shape:
            return checked_labels(labels, counts)
        return self.running.follow(checked_labels(labels, counts[: self.num_visible]))

    def energy(self, labels: ArrayLike) -> Any:
        """Cost of a labelling, or of each of a batch; +inf where a hard constraint is broken.

        Rounding errors of the sum are carried along, so that it is as good as rounded once.
        """
        x = self.complete(labels)
        terms = [self.unary[self.node_offset[:-1] + x]]
        for first, last, potential in self.groups():
            ends = self.edges[first:last]
            each = np.arange(last - first)
            terms.append(potential.value(each, x[..., ends[:, 0]], x[..., ends[:, 1]]))
        terms.append(np.full((*x.shape[:-1], 1), self.constant))
        return careful_sums(np.concatenate(terms, axis=-1))

    # --- derived models -------------------------------------------------------------------------

    def replace(
        self,
        *,
        unary: ArrayLike | None = None,
        potentials: Sequence[Potential] | None = None,
        constant: float | None = None,
    ) -> Model:
        """The same graph with other costs; what is not given is shared.

        `unary` holds the costs of all nodes, flat as in `Model.unary` or as the constructor takes
        them; `potentials` has one entry per group.
        """
        changed: dict[str, Any] = {}
        if unary is not None:
            changed["unary"] = other_unary(unary, self.num_labels)
        if potentials is not None:
            changed["potentials"] = checked_potentials(potentials)
            if len(changed["potentials"]) != len(self.potentials):
                raise ModelError(
                    f"{len(changed['potentials'])} potentials for {len(self.potentials)} groups"
                )
        if constant is not None:
            changed["constant"] = finite_number(constant, "constant")
        new = self._with(**changed)
        new._check_costs()
        if potentials is not None and len(self.auxiliaries):
            check_auxiliaries(new, self.auxiliaries)
        return new

    def _with(self, **changed: Any) -> Model:
        # only what costs cannot change is carried over: caches of other modules stay behind
        new = Model.__new__(Model)
        new.__dict__.update({k: v for k, v in self.__dict__.items() if k in _CARRIED})
        new.__dict__.update(changed)
        return new

    def condition(self, evidence: Mapping[int, int]) -> Model:
        """The model with variables fixed: every other label of theirs is forbidden."""
        unary = self.unary.copy()
        for i, x in checked_evidence(evidence, self.num_labels[: self.num_visible]):
            block = unary[self.node_slice(i)]
            kept = block[x]
            block[:] = np.inf
            block[x] = kept
        return self.replace(unary=unary)

    def with_shape(self, shape: Sequence[int]) -> Model:
        """The same model, known to be a grid of this shape (for pictures)."""
        sides = tuple(integers(shape, "shape").reshape(-1).tolist())
        if min(sides, default=0) < 1 or math.prod(sides) != self.num_visible:
            raise ModelError(f"a grid of shape {sides} has not {self.num_visible} variables")
        return self._with(shape=sides)

    def with_auxiliaries(self, auxiliaries: Auxiliaries) -> Model:
        """The same model, whose last nodes are auxiliary: their states follow from the others.

        Raises `ModelError` unless the states of each auxiliary node number the joint states of its
        members and its edges are the projections to them.
        """
        auxiliaries = check_auxiliaries(self, auxiliaries)
        return self._with(auxiliaries=auxiliaries, num_variables=self.n - len(auxiliaries))

    def with_running_variables(self, running: Running) -> Model:
        """The same model, whose last variables are running: their labels follow from the others."""
        counts = self.num_labels[: self.num_variables]
        return self._with(running=check_running(running, counts))

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
        factors : iterable of (scope, costs), or of factors over many variables
            `costs` has one axis per variable of the scope. Arity 0 adds to the constant, 1 to the
            unary costs, 2 to the edge of that pair; 3 and more become an auxiliary variable.
            Labellings do not show what `AtMostOne` and its like count with.
        groups : list of (edges, potential) kept as they are, for structured potentials
        """
        pieces = assemble(num_labels, factors, groups, constant)
        model = cls.from_pieces(pieces)
        if len(pieces.auxiliaries) and groups:  # their edges must not lead to auxiliary nodes
            check_auxiliaries(model, pieces.auxiliaries)
        return model

    @classmethod
    def from_pieces(cls, pieces: Pieces) -> Model:
        """A model of parts whose auxiliary nodes fit by construction: they are not checked."""
        model = cls(pieces.unary, None, pieces.groups, constant=pieces.constant)
        model = model._with(running=pieces.running)
        auxiliaries = pieces.auxiliaries
        if not len(auxiliaries):
            return model
        return model._with(auxiliaries=auxiliaries, num_variables=model.n - len(auxiliaries))

    def fingerprint(self) -> str:
        """Digest of everything that defines the model."""
        digest = hashlib.sha256()
        aux = self.auxiliaries
        arrays: list[NDArray[Any]] = [self.unary, self.num_labels, self.edges, self.group_start]
        arrays += [aux.start, aux.member, aux.stride, np.array([self.constant])]
        arrays += self.running.arrays().values() if len(self.running) else []
        for potential in self.potentials:
            digest.update(potential.family.encode())
            arrays += potential.arrays().values()
        for array in arrays:
            digest.update(str((array.dtype, array.shape)).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def checked_model(model: Any) -> Model:
    """The model, or an `OptionError` if it is something else."""
    if not isinstance(model, Model):
        raise OptionError(f"expected a softmap.Model, not {type(model).__name__}")
    return model


_CARRIED = frozenset(Model.__annotations__) | {"node_offset", "half_offset", "edge_offset", "graph"}
