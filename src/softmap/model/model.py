"""`Model`: the costs of variables and edges. It is immutable and checked once, when it is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError, OptionError
from softmap.hints import missing, suggesting
from softmap.model.factors import (
    Factor,
    Pieces,
    assemble,
    checked_counts,
    listed_factors,
    lone_all_different,
)
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
from softmap.model.many import AllDifferent
from softmap.model.names import Names, checked_names, named_counts
from softmap.model.potentials import Potential
from softmap.model.potentials.base import LARGEST_COST, Costs, Ints, integers, largest
from softmap.model.quadratic import quadratic_parts, terms_of
from softmap.model.structure import (
    CARRIED,
    NO_AUXILIARIES,
    NO_RUNNING,
    PIECE,
    Auxiliaries,
    Running,
    Structure,
    check_auxiliaries,
    check_running,
)
from softmap.model.sums import careful_sums

BUILT = frozenset(Structure.__annotations__) - {"constant", "shape", "names"}
"""The attributes of a `LazyAssignment` that need its chains."""


class Model(Structure):
    """A discrete Markov random field: minimise `Σ_i C_i(x_i) + Σ_e C_e(x_i, x_j) + constant`.

    Parameters
    ----------
    unary : array (n, d) or list of n arrays
        Costs of the labels of each variable; a list if the numbers of labels differ.
    edges : int array (m, 2), optional
        The variables of each edge; None if `pairwise` is a list of (edges, potential).
    pairwise : Potential, float, array or list, optional
        Costs of the edges: a potential, an array (m, d, d'), a list of m tables, or a list of
        (edges, potential). One table, or a potential with one weight such as `Potts(0.5)`, is used
        for all edges. A number is the weight of a `Potts`. No edges by default.
    constant : float, default 0
        Added to every energy and bound.

    Costs of `+inf` are hard constraints; all other costs lie within ±1e300. Arrays of the right
    type are not copied and must not be changed afterwards. Arrays of pandas, xarray, PyTorch and
    JAX are accepted. `Model.grid` builds models of images, and `Model.from_factors` models with
    factors of any arity and with names.

    Attributes
    ----------
    unary : float64 array
        Costs of all nodes, flat over `node_offset`.
    num_labels : int64[n]
        Number of labels of each node.
    n, num_variables : int
        Number of nodes with and without auxiliary nodes, each of which represents a larger factor.
    m : int
        Number of edges.
    edges : int array (m, 2)
        The endpoints of each edge.
    potentials : tuple of Potential
        Costs of the edges, one potential per group of edges of one family.
    group_start : int array
        The first edge of each group.
    constant : float
        The constant of the energy.
    shape : tuple of int or None
        The shape of the grid, which is also the shape of labellings; None without a grid.
    names : Names or None
        Names of the variables and states.
    auxiliaries : Auxiliaries
        The factors that the auxiliary nodes represent.
    running : Running
        The functions that determine the labels of the chain variables, which come last and are not
        part of labellings.
    required : tuple of Many
        Factors over many variables whose hard constraints are also checked directly.
    required_chains : tuple of (int, int)
        The first chain variable of each of these factors, and the one after its last.

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
            required_chains=(),
            shape=None,
            names=None,
        )
        self._check_costs()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Model is immutable, {name} cannot be set; see Model.replace")

    def __getstate__(self) -> dict[str, Any]:
        # Caches that other modules keep in the model are not pickled.
        return {name: value for name, value in self.__dict__.items() if name in CARRIED}

    def _check_costs(self) -> None:
        """Raise `ModelError` unless potentials fit their edges and sums of costs stay finite."""
        total = abs(self.constant)
        if self.n * LARGEST_COST > LARGEST_SUM:  # otherwise unary costs cannot exceed it
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
        counts = self.num_labels[: self.num_visible]
        low, high = int(counts.min()), int(counts.max())
        labels = f"{low} labels" if low == high else f"{low} to {high} labels"
        size = " × ".join(map(str, self.shape or (self.num_visible,)))
        edges = f"{self.m} edge{'s' * (self.m != 1)}"
        return f"Model({size} variables{aux}, {labels}, {edges}, {families})"

    if not TYPE_CHECKING:  # type checkers know the attributes

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                missing(f"{type(self).__name__!r} object", name, _INSTEAD, dir(type(self)))
            )

    def _repr_html_(self) -> str:
        from softmap.model.drawn import model_html  # only notebooks need it

        return model_html(self)

    # --- energies -------------------------------------------------------------------------------

    def complete(self, labels: ArrayLike) -> Ints:
        """Return the labels of all nodes, given those of the variables.

        The labels of chain variables and auxiliary nodes follow from the given ones.

        Parameters
        ----------
        labels : int array or mapping
            A labelling, a batch of labellings, or a mapping from names to states.
        """
        if isinstance(labels, Mapping):
            labels = self._names().labels(labels)
        chosen = self.with_running(labels)
        if not len(self.auxiliaries):
            return chosen
        return np.concatenate([chosen, self.auxiliaries.states(chosen)], axis=-1)

    def with_running(self, labels: ArrayLike) -> Ints:
        """Return `labels` with the labels of chain variables appended, unless they are present."""
        counts = self.num_labels[: self.num_variables]
        if not len(self.running):
            return checked_labels(labels, counts, self.shape)
        if np.shape(labels)[-1:] == counts.shape:
            return checked_labels(labels, counts)
        chosen = checked_labels(labels, counts[: self.num_visible], self.shape)
        return self.running.follow(chosen)

    def energy(self, labels: ArrayLike) -> Any:
        """Return the energy (total cost) of a labelling, or of each labelling of a batch.

        Parameters
        ----------
        labels : int array or mapping
            One label per variable, flat or in the shape of the grid; an array (batch, variables);
            or, in a model with names, a mapping from names to states.

        Returns
        -------
        float or float64[batch]
            The exact sum of the costs, rounded once; `+inf` if a hard constraint is violated.

        Examples
        --------
        >>> import softmap
        >>> model = softmap.Model([[0, 1], [1, 0]], [[0, 1]], softmap.Potts(0.4))
        >>> model.energy([[0, 0], [0, 1]])
        array([1. , 0.4])
        """
        return careful_sums(self.cost_terms(labels))

    def cost_terms(self, labels: ArrayLike) -> NDArray[np.float64]:
        """Return the terms of the energy: costs of nodes and edges, and the constant.

        Parameters
        ----------
        labels : int array or mapping
            A labelling or a batch of them, as for `energy`.

        Returns
        -------
        float64[..., n + m + 1]
            The terms; their exact sum, rounded once, is the energy.

        Examples
        --------
        >>> import softmap
        >>> model = softmap.Model([[0, 1], [1, 0]], [[0, 1]], softmap.Potts(0.4))
        >>> model.cost_terms([0, 1]).tolist()
        [0.0, 0.0, 0.4, 0.0]
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
        return terms

    # --- derived models -------------------------------------------------------------------------

    def replace(
        self,
        *,
        unary: ArrayLike | None = None,
        potentials: Sequence[Potential] | None = None,
        constant: float | None = None,
    ) -> Model:
        """Return a model with the same graph and other costs; it shares all arrays not given.

        Parameters
        ----------
        unary : array or list of arrays, optional
            Costs of all nodes: flat as in `Model.unary`, or as the constructor takes them.
        potentials : sequence of Potential, optional
            One potential per group of edges.
        constant : float, optional
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
            changed |= {"required": (), "required_chains": ()}
        new = self._with(graph=self.graph, **changed)
        new._check_costs()
        if potentials is not None and len(self.auxiliaries):
            check_auxiliaries(new, self.auxiliaries)
        return new

    def _still_required(self, changed: dict[str, Any]) -> bool:
        """Whether the new costs keep every hard constraint of larger factors unchanged."""
        if "potentials" in changed:
            return False
        first = int(self.node_offset[self.num_visible])
        before, after = self.unary[first:], changed.get("unary", self.unary)[first:]
        return bool(np.isposinf(after[np.isposinf(before)]).all())

    def _with(self, **changed: Any) -> Model:
        # Copy only attributes that do not depend on costs, not the caches of other modules.
        new = Model.__new__(Model)
        new.__dict__.update({k: v for k, v in self.__dict__.items() if k in CARRIED})
        new.__dict__.update(changed)
        return new

    def condition(self, evidence: Mapping[Any, Any]) -> Model:
        """Return the model with some variables fixed; their other labels become forbidden.

        Parameters
        ----------
        evidence : mapping from variable to label
            By number, or by name in a model with names.

        Examples
        --------
        >>> import softmap
        >>> model = softmap.Model([[0, 1], [0, 1]], [[0, 1]], softmap.Potts(2.0))
        >>> softmap.solve(model.condition({0: 1})).labels.tolist()
        [1, 1]
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
        """Return the same model as a grid: its labellings have this shape.

        Parameters
        ----------
        shape : sequence of int
            Its product is the number of variables, which are numbered row by row.
        """
        sides = tuple(integers(shape, "shape").reshape(-1).tolist())
        if min(sides, default=0) < 1 or math.prod(sides) != self.num_visible:
            raise ModelError(
                f"shape {sides} does not fit the {self.num_visible} variables of the model"
            )
        return self._with(shape=sides)

    def with_names(self, names: Any, states: Any = None) -> Model:
        """Return the same model with names for its variables and, optionally, their states.

        Parameters
        ----------
        names : list of hashable, or mapping
            One name per variable; or a mapping from names to lists of state names.
        states : list or mapping, optional
            One list of state names for all variables, one list per variable, or a mapping from
            names of variables to lists. By default states are numbers.

        Examples
        --------
        >>> import softmap
        >>> model = softmap.Model([[0.2, 0.1], [0.0, 0.3]])
        >>> named = model.with_names(["sky", "sea"], ["grey", "blue"])
        >>> softmap.solve(named).as_dict()
        {'sky': 'blue', 'sea': 'grey'}
        """
        counts = self.num_labels[: self.num_visible]
        return self._with(names=checked_names(names, states, counts))

    def _names(self) -> Names:
        if self.names is None:
            raise ModelError("the variables of this model have no names; see Model.with_names")
        return self.names

    def with_auxiliaries(self, auxiliaries: Auxiliaries) -> Model:
        """Return the same model with its last nodes declared auxiliary.

        The state of an auxiliary node follows from the labels of its members. Raises `ModelError`
        unless its states enumerate the joint states of the members, and its edges are the
        projections to the members.
        """
        auxiliaries = check_auxiliaries(self, auxiliaries)
        return self._with(auxiliaries=auxiliaries, num_variables=self.n - len(auxiliaries))

    def with_running_variables(self, running: Running) -> Model:
        """Return the same model with its last variables declared chain variables."""
        counts = self.num_labels[: self.num_variables]
        return self._with(running=check_running(running, counts))

    @classmethod
    @suggesting
    def grid(
        cls,
        unary: ArrayLike,
        pairwise: Pairwise | None = None,
        *,
        connectivity: int | None = None,
        constant: float = 0.0,
    ) -> Model:
        """Return the model of an image: a grid of pixels with edges between neighbours.

        Parameters
        ----------
        unary : array (height, width, labels)
            Costs of the labels of each pixel; a volume has one more axis.
        pairwise : Potential, array or float
            A potential, one table, or tables (m, d, d') in the order of `generators.grid_edges`. A
            number is the Potts weight.
        connectivity : int, optional
            Number of neighbours of a pixel, 4 or 8 (6 or 26 in a volume); the smaller by default.
        constant : float, default 0
            Constant added to the energy.

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
        """Return a model made from factors of any arity.

        Parameters
        ----------
        num_labels : int array or mapping
            Number of labels of each variable; or a mapping from names of variables to lists of
            states, or to numbers of labels.
        factors : iterable of (scope, costs), or of factors over many variables
            `scope` is a tuple of variables, by number or by name; `costs` has one axis per variable
            of the scope. Arity 0 adds to the constant, arity 1 to the unary costs, arity 2 to the
            edge of the pair. A factor of arity 3 or more becomes an auxiliary node. Factors over
            many variables are `AtMostOne`, `Linear`, `Parity` and their like. Costs of factors over
            the same variables are added as float64, rounded to nearest: energies and bounds are
            those of the sums, and may differ from those of the given numbers in the last digit.
        names : list or mapping, optional
            See `with_names`.
        states : list or mapping, optional
            See `with_names`.
        groups : list of (edges, potential), optional
            Further edges, whose potentials keep their family.
        constant : float, default 0
            Added to every energy and bound.

        Examples
        --------
        >>> import numpy as np, softmap
        >>> even = np.fromfunction(lambda x, y, z: (x + y + z) % 2, (2, 2, 2))
        >>> factors = [((0,), [0, 0.3]), ((1,), [0.9, 0]), ((2,), [0, 0.5]), ((0, 1, 2), even)]
        >>> softmap.solve(softmap.Model.from_factors([2, 2, 2], factors)).labels.tolist()
        [1, 1, 0]
        """
        counts, given = named_counts(num_labels)
        called = None
        if (names := given if names is None else names) is not None:
            called = checked_names(names, states, checked_counts(counts))
        every = listed_factors(factors)
        if isinstance(groups, tuple | list) and not groups:
            different = lone_all_different(counts, every, called)
            if different is not None:
                return _lazy(counts, every, constant, called, different)
        pieces = assemble(counts, every, groups, constant, called)
        model = cls.from_pieces(pieces)
        if len(pieces.auxiliaries) and groups:  # edges of users must not lead to auxiliary nodes
            check_auxiliaries(model, pieces.auxiliaries)
        return model if called is None else model._with(names=called)

    @classmethod
    def from_qubo(cls, qubo: Any, *, constant: float = 0.0) -> Model:
        """Return the model of a QUBO: minimise `Σ q[i, j] x_i x_j` over x in {0, 1}.

        Parameters
        ----------
        qubo : mapping, array (n, n) or scipy sparse array (n, n)
            A mapping has pairs (u, v) of names as keys; (u, u) is the linear term of u. Every entry
            of an array counts: a symmetric matrix counts each pair twice, as in `x @ q @ x`.
        constant : float, default 0
            Constant added to the energy.

        Examples
        --------
        >>> import softmap
        >>> model = softmap.Model.from_qubo({("a", "a"): -1, ("b", "b"): -2, ("a", "b"): 3})
        >>> softmap.solve(model).as_dict()
        {'a': 0, 'b': 1}
        """
        terms = terms_of(None, qubo, "qubo")
        unary, groups, more = quadratic_parts(terms.linear, terms.pairs, terms.weight, (0.0, 1.0))
        model = cls(unary, None, groups, constant=finite_number(constant, "constant") + more)
        return model if terms.names is None else model.with_names(list(terms.names))

    @classmethod
    def from_ising(cls, h: Any, J: Any, *, constant: float = 0.0) -> Model:
        """Return the Ising model: minimise `Σ h[i] s_i + Σ J[i, j] s_i s_j` over s in {-1, 1}.

        Label 0 is the spin -1, label 1 the spin 1; the states have these names.

        Parameters
        ----------
        h : mapping or array (n,), or None
            The fields; None for none.
        J : mapping, array (n, n) or scipy sparse array (n, n)
            The couplings. A mapping has pairs (u, v) of names as keys. Every entry of an array
            counts: a symmetric matrix counts each pair twice.
        constant : float, default 0
            Constant added to the energy.

        Examples
        --------
        >>> import softmap
        >>> model = softmap.Model.from_ising({"a": 0.5}, {("a", "b"): -1.0, ("b", "c"): 1.0})
        >>> result = softmap.solve(model)
        >>> result.as_dict(), result.energy
        ({'a': -1, 'b': -1, 'c': 1}, -2.5)
        """
        terms = terms_of(h, J, "J")
        unary, groups, more = quadratic_parts(terms.linear, terms.pairs, terms.weight, (-1.0, 1.0))
        model = cls(unary, None, groups, constant=finite_number(constant, "constant") + more)
        return model.with_names(list(terms.names or range(len(terms.linear))), [-1, 1])

    @classmethod
    def from_pieces(cls, pieces: Pieces) -> Model:
        """Return the model made of these parts; auxiliary nodes are not checked."""
        model = cls(pieces.unary, None, pieces.groups, constant=pieces.constant)
        model = model._with(
            running=pieces.running,
            required=pieces.required,
            required_chains=pieces.required_chains,
        )
        auxiliaries = pieces.auxiliaries
        if not len(auxiliaries):
            return model
        return model._with(auxiliaries=auxiliaries, num_variables=model.n - len(auxiliaries))

    def fingerprint(self) -> str:
        """Return a SHA-256 digest (hexadecimal) of all that defines the model, except names."""
        import hashlib  # imported late: few runs need it

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


class LazyAssignment(Model):
    """Unary costs and one `AllDifferent` over all variables, which have equally many labels.

    As chains, n variables with d labels have about 4nd edges. An optimal labelling and its proof
    need none of them, so the chains are built at the first access to an array of the model.

    Parameters
    ----------
    plain : Model
        The variables with their unary costs, names and the constant, without edges.
    factor : AllDifferent
        The constraint.
    build : function
        Returns the whole model.

    Attributes
    ----------
    factor : AllDifferent
        The constraint.
    costs : float64[n, d]
        The costs of the labels of each variable.
    """

    factor: AllDifferent
    costs: Costs

    def __init__(self, plain: Model, factor: AllDifferent, build: Callable[[], Model]) -> None:
        self.__dict__.update(
            constant=plain.constant,
            shape=plain.shape,
            names=plain.names,
            factor=factor,
            costs=plain.unary.reshape(plain.n, -1),
            _build=build,
        )

    def __getattr__(self, name: str) -> Any:
        """Build the chains at the first access to one of their arrays."""
        if name not in BUILT or "_build" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        whole = self._build().__dict__
        self.__dict__.update({key: whole[key] for key in BUILT})
        return whole[name]

    def __getstate__(self) -> dict[str, Any]:
        state = {key: getattr(self, key) for key in BUILT}  # a function cannot be pickled
        return super().__getstate__() | state | {"factor": self.factor, "costs": self.costs}

    @property
    def num_visible(self) -> int:
        """The length of a labelling."""
        return len(self.costs)

    def _with(self, **changed: Any) -> Model:
        if not changed.keys() <= {"shape", "names"}:
            self.__getstate__()  # other costs: the result is a model with chains
            return super()._with(**changed)
        new = LazyAssignment.__new__(LazyAssignment)
        new.__dict__.update(self.__dict__ | changed)
        return new


def _lazy(
    counts: ArrayLike,
    factors: list[Any],
    constant: float,
    names: Names | None,
    different: AllDifferent,
) -> Model:
    """Return the model of a linear assignment, with chains only if its costs are very large."""

    def build() -> Model:
        model = Model.from_pieces(assemble(counts, factors, (), constant, names))
        return model._with(names=names)

    nothing = (), 0.0  # keeps the numbers of the other factors in error messages
    unary = [nothing if isinstance(factor, AllDifferent) else factor for factor in factors]
    plain = Model.from_pieces(assemble(counts, unary, (), constant, names))._with(names=names)
    different.require(
        list(np.isfinite(plain.unary.reshape(plain.n, -1))),
        None if names is None else names.variables,
    )
    if largest(plain.unary) > LARGEST_SUM / (8 * plain.unary.size):
        return build()
    return LazyAssignment(plain, different, build)


def checked_model(model: Any, what: str = "this") -> Model:
    """Return `model` if it is a `Model`, else raise an `OptionError` that says `what` needs one."""
    if not isinstance(model, Model):
        kind = type(model).__name__
        article = "an" if kind[:1] in "aeioun" and kind != "numpy" else "a"
        raise OptionError(f"{what} needs a Model, got {article} {kind}{_advice(model)}")
    return model


# The package of an object of another library: what converts it.
_CONVERSIONS = {
    "dimod": "dimod.from_bqm(bqm).model, or the sampler softmap.interop.dimod.Sampler()",
    "networkx": "from_networkx(graph)",
    "pgmpy": "from_pgmpy(network)",
    "pyagrum": "from_pyagrum(network)",
    "pytoulbar2": "from_toulbar2(cfn)",
}


def _advice(given: Any) -> str:
    if call := _CONVERSIONS.get(type(given).__module__.partition(".")[0].lower()):
        return f"; see softmap.interop.{call}"
    if isinstance(getattr(given, "__dict__", {}).get("model"), Model):
        return "; pass its attribute `model`"
    if hasattr(given, "shape") or isinstance(given, list | tuple):
        return "; see Model.grid for images and Model(unary, edges, pairwise) for other arrays"
    if isinstance(given, str | bytes) or hasattr(given, "__fspath__"):
        return "; see softmap.read for files"
    return ""


# What to use, and what users of other libraries look for.
_INSTEAD = {
    "softmap.solve(model)": "solve Solve minimize optimize infer inference map decode",
    "num_visible": "variables num_vars n_vars n_variables nvars num_nodes",
    "Model.from_factors, which takes all factors at once": "add_factor add_factors AddFunction "
    "addFactor add_edge add_node AddVariable addVariable",
    "condition({variable: label})": "evidence set_evidence observe assign fix Assign",
    "energy(labels)": "cost evaluate score",
    "num_labels": "n_labels nlabels labels cardinality cardinalities card n_states num_states",
    "m": "num_edges n_edges nedges",
}
