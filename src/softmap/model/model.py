"""`Model`: the costs of variables and edges, and the ways to make one from other things."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError, OptionError
from softmap.hints import missing, suggesting
from softmap.later import display
from softmap.model.factors import (
    Factor,
    assemble,
    checked_counts,
    listed_factors,
)
from softmap.model.graph import grid_costs, neighbours
from softmap.model.inputs import (
    LARGEST_SUM,
    Group,
    Pairwise,
    checked_evidence,
    finite_number,
)
from softmap.model.lowering import lowered, unchained
from softmap.model.many import NO_CONSTRAINTS, Constraints
from softmap.model.names import Names, checked_names, named_counts
from softmap.model.network import Network
from softmap.model.pieces import Pieces
from softmap.model.potentials import Potential
from softmap.model.potentials.base import Costs, Ints, integers, largest
from softmap.model.quadratic import quadratic_parts, terms_of
from softmap.model.stored import is_storable, pieces_digest
from softmap.model.structure import Structure


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

    All attributes are about what was said: your variables, and the costs that you gave. A factor of
    three or more variables is one entry of `factors`, a factor over many variables one of
    `constraints`; neither adds variables or edges. `network` is what the model is lowered to.

    Attributes
    ----------
    n : int
        Number of variables, which is the length of a labelling.
    num_labels : int64[n]
        Number of labels of each variable.
    unary : float64 array
        Costs of the labels of all variables, flat: those of variable 0 first.
    m : int
        Number of edges: of pairs of variables with a cost of their own.
    edges : int array (m, 2)
        The variables of each edge.
    potentials : tuple of Potential
        Costs of the edges, one potential per group of edges of one family; the groups follow each
        other in `edges`.
    factors : tuple of (scope, costs)
        The factors of three or more variables; `costs` has one axis per variable of the scope.
    constraints : sequence of Many
        The factors over many variables, such as `Linear`, that are not one table.
    constant : float
        The constant of the energy.
    shape : tuple of int or None
        The shape of the grid, which is also the shape of labellings; None without a grid.
    names : Names or None
        Names of the variables and states.
    network : Network
        The pairwise form that methods work on, made when it is first asked for. It has nodes for
        factors and chain variables for constraints.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.Model([[0.0, 1.0], [1.0, 0.0]], [[0, 1]], softmap.Potts([0.4]))
    >>> model.energy([0, 1])
    0.4
    """

    constant: float
    shape: tuple[int, ...] | None
    names: Names | None
    constraints: Constraints
    _pieces: Pieces  # of a model with constraints
    _unchained: Network  # its network without the constraints

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
        return {name: value for name, value in self.__dict__.items() if name in _CARRIED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        low, high = int(self.num_labels.min()), int(self.num_labels.max())
        size = " × ".join(map(str, self.shape or (self.n,)))
        families = "+".join(dict.fromkeys(p.family for p in self.potentials))
        parts = [
            f"{size} variables",
            f"{low} labels" if low == high else f"{low} to {high} labels",
            f"{self.m} edge{'s' * (self.m != 1)}",
            families or "no edges",
        ]
        counts = {"factor": len(self.factors), "constraint": len(self.constraints)}
        parts += [f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items() if count]
        return f"Model({', '.join(parts)})"

    if not TYPE_CHECKING:  # type checkers know the attributes

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            advice = missing(f"{type(self).__name__!r} object", name, _INSTEAD, dir(type(self)))
            if (
                hasattr(Network, name)
                or name in Network.__annotations__ | Structure.__annotations__
            ):
                advice += f"; model.network.{name} is about nodes and edges"
            raise AttributeError(advice)

    def _repr_html_(self) -> str:
        html: str = display("drawn.model_html")(self.network)
        return html

    # --- what was said --------------------------------------------------------------------------

    @cached_property
    def network(self) -> Network:
        """The pairwise form that methods work on, made when it is first asked for."""
        return lowered(self._pieces).called(self.shape, self.names)

    @property
    def _said(self) -> Network:
        """A network whose variables and edges are those of the user, with factor nodes."""
        return self._unchained if "_pieces" in self.__dict__ else self.network

    @property
    def n(self) -> int:
        """The number of variables, which is the length of a labelling."""
        return len(self.num_labels)

    @property
    def num_labels(self) -> Ints:
        """The number of labels of each variable."""
        return self._said.visible_counts

    @property
    def unary(self) -> Costs:
        """The costs of the labels of all variables, flat."""
        return self._said.visible_unary

    @property
    def m(self) -> int:
        """The number of edges."""
        return len(self.edges)

    @property
    def edges(self) -> NDArray[np.int32]:
        """The variables of each edge."""
        return self._said.visible_edges

    @property
    def potentials(self) -> tuple[Potential, ...]:
        """Costs of the edges, one potential per group of edges of one family."""
        return self._said.visible_potentials

    @cached_property
    def factors(self) -> tuple[tuple[tuple[int, ...], Costs], ...]:
        """The factors of three or more variables: (scope, costs) of each."""
        said, n = self._said, self.n
        return tuple([pair for pair in said.factors() if max(pair[0]) < n])

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
        if "_pieces" in self.__dict__ and is_storable(self._pieces):
            return pieces_digest(self._pieces)
        return self.network.fingerprint()

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
            Costs of all variables: flat as in `Model.unary`, or as the constructor takes them.
        potentials : sequence of Potential, optional
            One potential per group of edges, as in `Model.potentials`.
        constant : float, optional
        """
        said = self._said.with_visible(unary, potentials, constant)
        if "_pieces" not in self.__dict__:
            return raised(said, self.constraints)
        pieces = self._pieces.with_costs(said.visible_unary, said.constant)
        if potentials is not None:
            pieces = pieces.with_pairs(_edge_groups(said))
        return self._of(pieces, said, keep_chains=potentials is None)

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
        pairs = checked_evidence(evidence, self.num_labels)
        return self.replace(unary=self._said.condition(pairs).visible_unary)

    def with_shape(self, shape: Sequence[int]) -> Model:
        """Return the same model as a grid: its labellings have this shape.

        Parameters
        ----------
        shape : sequence of int
            Its product is the number of variables, which are numbered row by row.
        """
        sides = tuple(integers(shape, "shape").reshape(-1).tolist())
        if min(sides, default=0) < 1 or math.prod(sides) != self.n:
            raise ModelError(f"shape {sides} does not fit the {self.n} variables of the model")
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
        return self._called(self.shape, checked_names(names, states, self.num_labels))

    def _called(self, shape: tuple[int, ...] | None, names: Names | None) -> Model:
        """Return the same model with this shape and these names; it is not lowered for that."""
        new = Model.__new__(Model)
        new.__dict__.update(self.__dict__ | {"shape": shape, "names": names})
        if "network" in new.__dict__:
            new.__dict__["network"] = self.network.called(shape, names)
        return new

    def _of(self, pieces: Pieces, said: Network, *, keep_chains: bool) -> Model:
        """Return the model of these pieces, whose costs differ from those of this model.

        Parameters
        ----------
        pieces : Pieces
            All factors.
        said : Network
            The network without the constraints.
        keep_chains : bool
            Whether only costs of variables and the constant differ: then a network that is made is
            changed, unless the chains have costs for variables of a single label.
        """
        new = made(pieces, said)._called(self.shape, self.names)
        if "network" in self.__dict__ and keep_chains:
            network = self.network
            if np.array_equal(network.visible_unary, self.unary):
                unary, constant = pieces.tables.unary, pieces.tables.constant
                new.__dict__["network"] = network.with_visible(unary, None, constant)
        return new

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
        pieces = assemble(counts, every, groups, constant, called)
        model = assembled(pieces)
        if pieces.groups:  # edges of users must not lead to nodes that are not theirs
            model._said.check_factors()
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
    """Return the model made of these pieces; it is lowered later if it has constraints."""
    network = unchained(pieces)
    return made(pieces, network) if pieces.many else raised(network)


def made(pieces: Pieces, said: Network) -> Model:
    """Return the model of pieces with constraints; it is lowered at once if costs are very large.

    Parameters
    ----------
    pieces : Pieces
        All factors.
    said : Network
        The network of all factors but the constraints.
    """
    model = Model.__new__(Model)
    model.__dict__.update(
        constant=said.constant,
        shape=None,
        names=None,
        constraints=pieces.constraints,
        _pieces=pieces,
        _unchained=said,
    )
    reach, tables = pieces.reach()
    nodes = 8 * said.unary.size + tables  # chains of n variables with d labels have some 4nd nodes
    if said.total() + max(reach, largest(said.unary)) * nodes > LARGEST_SUM:
        model.network  # noqa: B018 - its costs are checked
    return model


def has_fingerprint(model: Model, digest: object) -> bool:
    """Whether a file with this fingerprint is about the model.

    Earlier versions took the fingerprint of the network.
    """
    if digest == model.fingerprint():
        return True
    return pieces_of(model) is not None and digest == model.network.fingerprint()


def pieces_of(model: Model) -> Pieces | None:
    """Return all factors of a model with constraints; None for others, which are networks."""
    return model.__dict__.get("_pieces")


def _edge_groups(network: Network) -> list[tuple[Ints, Potential]]:
    """Return the edges between the user's variables with their potentials."""
    return [
        (network.edges[numbers].astype(np.int64), potential)
        for numbers, potential in network.visible_groups
    ]


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


_CARRIED = {"constant", "shape", "names", "constraints", "network", "_pieces", "_unchained"}

# What to use, and what users of other libraries look for.
_INSTEAD = {
    "softmap.write(model, path)": "save dump to_file write to_uai",
    "softmap.read(path)": "from_file load read from_uai",
    "softmap.solve(model)": "solve Solve minimize optimize infer inference map decode",
    "n": "variables num_vars n_vars num_variables n_variables nvars num_nodes",
    "Model.from_factors, which takes all factors at once": "add_factor add_factors AddFunction "
    "addFactor add_edge add_node AddVariable addVariable",
    "condition({variable: label})": "evidence set_evidence observe assign fix Assign",
    "energy(labels)": "cost evaluate score",
    "num_labels": "n_labels nlabels labels cardinality cardinalities card n_states num_states",
    "m": "num_edges n_edges nedges",
}
