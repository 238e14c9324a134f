"""`Model`: the costs of variables and edges, and the ways to make one from other things."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError, OptionError
from softmap.hints import missing, suggesting
from softmap.later import display
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
    finite_number,
)
from softmap.model.many import NO_CONSTRAINTS, AllDifferent, Constraints
from softmap.model.names import Names, checked_names, named_counts
from softmap.model.network import Network
from softmap.model.potentials import Potential
from softmap.model.potentials.base import Costs, Ints, integers, largest
from softmap.model.quadratic import quadratic_parts, terms_of
from softmap.model.structure import Auxiliaries, Structure, check_auxiliaries

LOWERED = frozenset(name for name in dir(Network) if not name.startswith("_")) | frozenset(
    Structure.__annotations__
)
"""Attributes of the network, which a model passes on."""


class Model:
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
    network : Network
        The pairwise form that methods work on, made when it is first asked for. Its attributes are
        those of the model, too.
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
    constraints : sequence of Many
        The factors over many variables, such as `Linear`, that are not written as a table.
    constant : float
        The constant of the energy.
    shape : tuple of int or None
        The shape of the grid, which is also the shape of labellings; None without a grid.
    names : Names or None
        Names of the variables and states.

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
    shape: tuple[int, ...] | None
    names: Names | None
    constraints: Constraints
    _lower: Callable[[], Network]  # of a linear assignment
    _plain: Network  # its variables, without the constraint

    def __init__(
        self,
        unary: ArrayLike | Sequence[ArrayLike],
        edges: ArrayLike | None = None,
        pairwise: Pairwise | Sequence[Group] | None = None,
        *,
        constant: float = 0.0,
    ) -> None:
        self._hold(Network(unary, edges, pairwise, constant=constant), NO_CONSTRAINTS)

    def _hold(self, network: Network, constraints: Constraints) -> None:
        """Store a network, and the factors that its chain variables stand for."""
        self.__dict__.update(
            constant=network.constant,
            shape=network.shape,
            names=network.names,
            constraints=constraints,
            network=network,
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Model is immutable, {name} cannot be set; see Model.replace")

    def __getstate__(self) -> dict[str, Any]:
        state = {"network": self.network, "constraints": self.constraints}
        plain = self.__dict__.get("_plain")
        return state if plain is None else state | {"_plain": plain}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._hold(state["network"], state["constraints"])
        self.__dict__.update(state)

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
            if name in LOWERED:
                return getattr(self.network, name)
            names = (*dir(type(self)), *LOWERED)
            raise AttributeError(missing(f"{type(self).__name__!r} object", name, _INSTEAD, names))

    def _repr_html_(self) -> str:
        html: str = display("drawn.model_html")(self.network)
        return html

    # --- what the user said ---------------------------------------------------------------------

    @cached_property
    def network(self) -> Network:
        """The pairwise form that methods work on, made when it is first asked for."""
        lowered: Network = self._lower()
        return lowered.called(self.shape, self.names)

    @property
    def num_visible(self) -> int:
        """The length of a labelling."""
        plain = self.__dict__.get("_plain")
        return self.network.num_visible if plain is None else plain.n

    # --- energies, fingerprints -----------------------------------------------------------------

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
        return self.network.energy(labels)

    def fingerprint(self) -> str:
        """Return a SHA-256 digest (hexadecimal) of all that defines the model, except names.

        The shape of a grid, which is that of its labellings, counts as a name.
        """
        return self.network.fingerprint()

    # --- derived models -------------------------------------------------------------------------

    def _derived(self, network: Network) -> Model:
        """Return the model of a network derived from this model's."""
        return raised(network, self.constraints)

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
        network = self.network.replace(unary=unary, potentials=potentials, constant=constant)
        return self._derived(network)

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
        counts = self.num_labels[: self.num_visible]
        return self._derived(self.network.condition(checked_evidence(evidence, counts)))

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
        return self._called(sides, self.names)

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
        plain = self.__dict__.get("_plain", self)
        counts = plain.num_labels[: self.num_visible]
        return self._called(self.shape, checked_names(names, states, counts))

    def _called(self, shape: tuple[int, ...] | None, names: Names | None) -> Model:
        """Return the same model with this shape and these names; it is not lowered for that."""
        new = Model.__new__(Model)
        new.__dict__.update(self.__dict__ | {"shape": shape, "names": names})
        if "network" in new.__dict__:
            new.__dict__["network"] = self.network.called(shape, names)
        return new

    def with_auxiliaries(self, auxiliaries: Auxiliaries) -> Model:
        """Return the same model with its last nodes declared auxiliary.

        The state of an auxiliary node follows from the labels of its members. Raises `ModelError`
        unless its states enumerate the joint states of the members, and its edges are the
        projections to the members.
        """
        return self._derived(self.network.with_auxiliaries(auxiliaries))

    # --- other ways to make a model -------------------------------------------------------------

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
        model = assembled(pieces)
        if len(pieces.auxiliaries) and groups:  # edges of users must not lead to auxiliary nodes
            check_auxiliaries(model.network, pieces.auxiliaries)
        return model if called is None else model._called(None, called)

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


def raised(network: Network, constraints: Constraints = NO_CONSTRAINTS) -> Model:
    """Return the model whose lowered form is this network.

    Parameters
    ----------
    network : Network
        The network; its arrays are shared.
    constraints : Constraints, optional
        The factors over many variables that its chain variables stand for.
    """
    model = Model.__new__(Model)
    model._hold(network, constraints)
    return model


def assembled(pieces: Pieces) -> Model:
    """Return the model made of these parts; factor nodes are not checked."""
    return raised(lowered(pieces), Constraints(pieces.constraints))


def lowered(pieces: Pieces) -> Network:
    """Return the network made of these parts; factor nodes are not checked."""
    network = Network(pieces.unary, None, pieces.groups, constant=pieces.constant)
    return network.declared(
        pieces.running, pieces.required, pieces.required_chains, pieces.auxiliaries
    )


def _lazy(
    counts: ArrayLike,
    factors: list[Any],
    constant: float,
    names: Names | None,
    different: AllDifferent,
) -> Model:
    """Return the model of a linear assignment, lowered later unless its costs are very large.

    As chains, n variables with d labels have about 4nd edges. An optimal labelling and its proof
    need none of them.
    """

    def lower() -> Network:
        return lowered(assemble(counts, factors, (), constant, names))

    constraints = Constraints(((different, np.array([different.variables])),))
    nothing = (), 0.0  # keeps the numbers of the other factors in error messages
    unary = [nothing if isinstance(factor, AllDifferent) else factor for factor in factors]
    plain = assembled(assemble(counts, unary, (), constant, names))._called(None, names)
    different.require(
        list(np.isfinite(plain.unary.reshape(plain.n, -1))),
        None if names is None else names.variables,
    )
    if largest(plain.unary) > LARGEST_SUM / (8 * plain.unary.size):
        return raised(lower(), constraints)._called(None, names)
    model = Model.__new__(Model)
    model.__dict__.update(
        constant=plain.constant,
        shape=None,
        names=names,
        constraints=constraints,
        _lower=lower,
        _plain=plain.network,
    )
    return model


def lone_constraint(model: Model) -> tuple[AllDifferent, Costs] | None:
    """Return the constraint of a linear assignment and the costs (n, d) of the labels.

    None for models that were not made as one, or have other costs by now.
    """
    plain = model.__dict__.get("_plain")
    if plain is None or not isinstance(model.constraints[0], AllDifferent):
        return None
    return model.constraints[0], plain.unary.reshape(plain.n, -1)


def checked_model(model: Any, what: str = "this") -> Model:
    """Return `model` if it is a `Model`, else raise an `OptionError` that says `what` needs one."""
    if not isinstance(model, Model):
        kind = type(model).__name__
        article = "an" if kind[:1] in "aeioun" and kind != "numpy" else "a"
        raise OptionError(f"{what} needs a Model, got {article} {kind}{_advice(model)}")
    return model


def checked_network(model: Any, what: str = "this") -> Network:
    """Return the network of a model, or a network itself; raise an `OptionError` for others."""
    return model if isinstance(model, Network) else checked_model(model, what).network


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
    "softmap.write(model, path)": "save dump to_file write to_uai",
    "softmap.read(path)": "from_file load read from_uai",
    "softmap.solve(model)": "solve Solve minimize optimize infer inference map decode",
    "num_visible": "variables num_vars n_vars n_variables nvars num_nodes",
    "Model.from_factors, which takes all factors at once": "add_factor add_factors AddFunction "
    "addFactor add_edge add_node AddVariable addVariable",
    "condition({variable: label})": "evidence set_evidence observe assign fix Assign",
    "energy(labels)": "cost evaluate score",
    "num_labels": "n_labels nlabels labels cardinality cardinalities card n_states num_states",
    "m": "num_edges n_edges nedges",
}
