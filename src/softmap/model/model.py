"""`Model`: the costs of variables and edges, and the ways to make one from other things."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from softmap.errors import OptionError
from softmap.hints import missing, suggesting
from softmap.model.base import BaseModel
from softmap.model.factors import (
    Factor,
    Pieces,
    assemble,
    checked_counts,
    listed_factors,
    lone_all_different,
)
from softmap.model.graph import grid_costs, neighbours
from softmap.model.inputs import LARGEST_SUM, Group, Pairwise, finite_number
from softmap.model.many import AllDifferent
from softmap.model.names import Names, checked_names, named_counts
from softmap.model.potentials.base import Costs, largest
from softmap.model.quadratic import quadratic_parts, terms_of
from softmap.model.structure import Structure, check_auxiliaries

BUILT = frozenset(Structure.__annotations__) - {"constant", "shape", "names"}
"""The attributes of a `LazyAssignment` that need its chains."""


class Model(BaseModel):
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

    def _with(self, **changed: Any) -> Any:
        if changed.keys() <= {"shape", "names"}:
            new: Model = LazyAssignment.__new__(LazyAssignment)
            new.__dict__.update(self.__dict__ | changed)
            return new
        whole = Model.__new__(Model)  # other costs: the result is a model with chains
        whole.__dict__.update(self.__getstate__())
        return whole._with(**changed)


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
