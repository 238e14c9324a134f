"""The model: costs of variables and edges, immutable, validated once, built in bulk from arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError, OptionError
from softmap.model.auxiliaries import check_auxiliaries
from softmap.model.factors import Factor, Pieces, assemble, checked_counts
from softmap.model.graph import grid_costs, neighbours
from softmap.model.inputs import (
    LARGEST_SUM,
    Group,
    Pairwise,
    checked_evidence,
    checked_labels,
    checked_potentials,
    checked_reach,
    edge_groups,
    finite_number,
    flat_unary,
    other_unary,
)
from softmap.model.names import Names, checked_names, named_counts
from softmap.model.potentials import Potential
from softmap.model.potentials.base import LARGEST_COST, Ints, integers, largest
from softmap.model.running import NO_RUNNING, Running, check_running
from softmap.model.structure import CARRIED, NO_AUXILIARIES, PIECE, Auxiliaries, Structure
from softmap.model.sums import careful_sums

__all__ = ["Auxiliaries", "Model", "checked_model"]


class Model(Structure):
    """A discrete Markov random field: minimise `Σ_i C_i(x_i) + Σ_e C_e(x_i, x_j) + constant`.

    Parameters
    ----------
    unary : (n, d) array, or a list of n one-dimensional arrays when label counts differ
    edges : (m, 2) array of variable numbers; None when `pairwise` is a list of pairs
    pairwise : Potential, number, (m, d, d') array, list of m 2-D arrays, or list of
        (edges, potential). One table, or a potential of one number such as `Potts(0.5)`, stands for
        all edges; a number alone is that of a `Potts`. Left out, there are no edges.
    constant : float
        Added to every energy and bound.

    Costs of `+inf` are hard constraints; all others lie within ±1e300. Arrays of the right type
    are not copied: do not change them afterwards. Those of pandas, xarray, PyTorch and JAX will do.
    Pictures have `Model.grid`, factors of any arity and names `Model.from_factors`.

    Attributes
    ----------
    unary, num_labels : flat costs of all nodes, and the number of labels of each
    n, num_variables : nodes with and without auxiliary ones, which stand for larger factors
    m, edges, potentials, group_start : edges, and their costs by groups of one family
    constant : float
    shape : of the grid that the variables are, or None; labellings have it
    names : `Names` of the variables and states, or None
    auxiliaries : what the auxiliary nodes stand for
    running : how the last variables, which labellings do not show, follow from the others
    required : factors over many variables whose hard constraints are looked at as a whole, too

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
        edges: ArrayLike | None = None,
        pairwise: Pairwise | Sequence[Group] | None = None,
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
            required=(),
            shape=None,
            names=None,
        )
        self._check_costs()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Model is immutable: {name} stays; see Model.replace")

    def __getstate__(self) -> dict[str, Any]:
        # what others have cached with the model is made again after unpickling
        return {name: value for name, value in self.__dict__.items() if name in CARRIED}

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

    def __repr__(self) -> str:
        families = "+".join(dict.fromkeys(p.family for p in self.potentials)) or "no edges"
        aux = f" (+{self.n - self.num_visible} auxiliary)" if self.n > self.num_visible else ""
        return f"Model({self.num_visible} variables{aux}, {self.m} edges, {families})"

    def _repr_html_(self) -> str:
        from softmap.model.drawn import model_html  # only notebooks need it

        return model_html(self)

    # --- energies -------------------------------------------------------------------------------

    def complete(self, labels: ArrayLike) -> Ints:
        """Labels of all nodes: the given ones, then those that follow from them."""
        if isinstance(labels, Mapping):
            labels = self._names().labels(labels)
        chosen = self.with_running(labels)
        if not len(self.auxiliaries):
            return chosen
        return np.concatenate([chosen, self.auxiliaries.states(chosen)], axis=-1)

    def with_running(self, labels: ArrayLike) -> Ints:
        """Labels of all variables, those of running ones included; they may be there already."""
        counts = self.num_labels[: self.num_variables]
        if not len(self.running):
            return checked_labels(labels, counts, self.shape)
        if np.shape(labels)[-1:] == counts.shape:
            return checked_labels(labels, counts)
        chosen = checked_labels(labels, counts[: self.num_visible], self.shape)
        return self.running.follow(chosen)

    def energy(self, labels: ArrayLike) -> Any:
        """Cost of a labelling, or of each of a batch; +inf where a hard constraint is broken.

        Labellings are flat, or have the shape of the grid; where variables have names, a mapping
        from names to states is one. Rounding errors of the sum are carried along, so that it is as
        good as rounded once.
        """
        x = self.complete(labels)
        terms = np.empty((*x.shape[:-1], self.n + self.m + 1))
        terms[..., : self.n] = self.unary[self.node_offset[:-1] + x]
        for first, last, potential in self.groups():
            for begin in range(first, last, PIECE):
                end = min(begin + PIECE, last)
                early, late = self.edges[begin:end].T
                each = np.arange(begin - first, end - first)
                values = potential.value(each, x[..., early], x[..., late])
                terms[..., self.n + begin : self.n + end] = values
        terms[..., -1] = self.constant
        return careful_sums(terms)

    # --- derived models -------------------------------------------------------------------------

    def replace(
        self,
        *,
        unary: ArrayLike | None = None,
        potentials: Sequence[Potential] | None = None,
        constant: float | None = None,
    ) -> Model:
        """The same graph with other costs; what is not given is shared, as is the graph.

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
        if self.required and not self._still_required(changed):
            changed["required"] = ()
        new = self._with(graph=self.graph, **changed)
        new._check_costs()
        if potentials is not None and len(self.auxiliaries):
            check_auxiliaries(new, self.auxiliaries)
        return new

    def _still_required(self, changed: dict[str, Any]) -> bool:
        """Whether other costs leave every hard constraint of larger factors as it was."""
        if "potentials" in changed:
            return False
        first = int(self.node_offset[self.num_visible])
        before, after = self.unary[first:], changed.get("unary", self.unary)[first:]
        return bool(np.isposinf(after[np.isposinf(before)]).all())

    def _with(self, **changed: Any) -> Model:
        # only what costs cannot change is carried over: caches of other modules stay behind
        new = Model.__new__(Model)
        new.__dict__.update({k: v for k, v in self.__dict__.items() if k in CARRIED})
        new.__dict__.update(changed)
        return new

    def condition(self, evidence: Mapping[Any, Any]) -> Model:
        """The model with variables fixed: every other label of theirs is forbidden.

        `evidence` maps variables to labels, by number or by name.
        """
        if self.names is not None and isinstance(evidence, Mapping):
            evidence = self.names.evidence(evidence)
        unary = self.unary.copy()
        for i, x in checked_evidence(evidence, self.num_labels[: self.num_visible]):
            block = unary[self.node_slice(i)]
            kept = block[x]
            block[:] = np.inf
            block[x] = kept
        return self.replace(unary=unary)

    def with_shape(self, shape: Sequence[int]) -> Model:
        """The same model, known to be a grid of this shape: labellings have it."""
        sides = tuple(integers(shape, "shape").reshape(-1).tolist())
        if min(sides, default=0) < 1 or math.prod(sides) != self.num_visible:
            raise ModelError(f"a grid of shape {sides} has not {self.num_visible} variables")
        return self._with(shape=sides)

    def with_names(self, names: Any, states: Any = None) -> Model:
        """The same model, whose variables have names, and their states, too, unless left out.

        `names` is a list, or maps names to lists of states; `states` holds one list for all
        variables, one for each, or maps names to lists.
        """
        counts = self.num_labels[: self.num_visible]
        return self._with(names=checked_names(names, states, counts))

    def _names(self) -> Names:
        if self.names is None:
            raise ModelError("the variables of this model have no names; see Model.with_names")
        return self.names

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
    def grid(
        cls,
        unary: ArrayLike,
        pairwise: Pairwise | None = None,
        *,
        connectivity: int | None = None,
        constant: float = 0.0,
    ) -> Model:
        """A model of a picture: neighbouring pixels are joined, and labellings are pictures.

        Parameters
        ----------
        unary : (height, width, labels) array; a volume has one axis more
        pairwise : Potential, table, or (m, d, d') array in the order of `generators.grid_edges`;
            a number is what neighbours with different labels cost (`Potts`)
        connectivity : 4 or 8 neighbours of a pixel (6 or 26 in a volume); the smaller if left out

        Examples
        --------
        >>> import numpy as np, softmap
        >>> noisy = np.array([[0.1, 0.9, 0.2], [0.2, 0.1, 0.8], [0.9, 0.1, 0.9]])
        >>> model = softmap.Model.grid(np.stack([noisy, 1 - noisy], axis=2), softmap.Potts(0.3))
        >>> softmap.solve(model).labels.shape
        (3, 3)
        """
        shape, rows = grid_costs(unary)
        edges = neighbours(shape, connectivity)
        ends = None if pairwise is None else edges
        return cls(rows, ends, pairwise, constant=constant).with_shape(shape)

    @classmethod
    def from_factors(
        cls,
        num_labels: ArrayLike | Mapping[Any, Any],
        factors: Iterable[Factor],
        *,
        names: Any = None,
        states: Any = None,
        groups: Sequence[Group] = (),
        constant: float = 0.0,
    ) -> Model:
        """A model from factors of any arity.

        Parameters
        ----------
        num_labels : int array, labels of each variable; or mapping from names to states or counts
        factors : iterable of (scope, costs), or of factors over many variables
            `costs` has one axis per variable of the scope. Arity 0 adds to the constant, 1 to the
            unary costs, 2 to the edge of that pair; 3 and more become an auxiliary variable, where
            variables with a single label do not count. Scopes are numbers, or names where there are
            any. Labellings do not show what `AtMostOne` and its like count with.
        names, states : see `with_names`
        groups : list of (edges, potential) kept as they are, for structured potentials
        """
        counts, given = named_counts(num_labels)
        called = None
        if (names := given if names is None else names) is not None:
            called = checked_names(names, states, checked_counts(counts))
        pieces = assemble(counts, factors, groups, constant, called)
        model = cls.from_pieces(pieces)
        if len(pieces.auxiliaries) and groups:  # their edges must not lead to auxiliary nodes
            check_auxiliaries(model, pieces.auxiliaries)
        return model if called is None else model._with(names=called)

    @classmethod
    def from_pieces(cls, pieces: Pieces) -> Model:
        """A model of parts whose auxiliary nodes fit by construction: they are not checked."""
        model = cls(pieces.unary, None, pieces.groups, constant=pieces.constant)
        model = model._with(running=pieces.running, required=pieces.required)
        auxiliaries = pieces.auxiliaries
        if not len(auxiliaries):
            return model
        return model._with(auxiliaries=auxiliaries, num_variables=model.n - len(auxiliaries))

    def fingerprint(self) -> str:
        """Digest of everything that defines the model: costs, edges, auxiliary variables."""
        import hashlib  # few runs need one

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


def checked_model(model: Any, what: str = "this") -> Model:
    """The model, or an `OptionError` if it is something else; `what` is what needs it."""
    if not isinstance(model, Model):
        kind = type(model).__name__
        article = "an" if kind[:1] in "aeioun" and kind != "numpy" else "a"
        raise OptionError(f"{what} needs a Model, got {article} {kind}{_advice(model)}")
    return model


def _advice(given: Any) -> str:
    if isinstance(getattr(given, "__dict__", {}).get("model"), Model):
        return "; pass its attribute `model`"
    if hasattr(given, "shape") or isinstance(given, list | tuple):
        return "; see Model.grid for pictures and Model(unary, edges, pairwise) for other arrays"
    if isinstance(given, str | bytes) or hasattr(given, "__fspath__"):
        return "; see softmap.read for files"
    return ""
