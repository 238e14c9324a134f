"""`Network`: the nodes, edges and costs that loops see, and the way back to the user's variables.

A network is checked once, is immutable, and shares its arrays with those derived from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError
from softmap.model.inputs import (
    LARGEST_SUM,
    Group,
    Pairwise,
    checked_labels,
    checked_potentials,
    checked_reach,
    edge_groups,
    finite_number,
    flat_unary,
    other_unary,
)
from softmap.model.lowered_factors import required_arrays
from softmap.model.lowered_nodes import (
    NO_AUXILIARIES,
    NO_RUNNING,
    Auxiliaries,
    Running,
    check_auxiliaries,
    check_running,
)
from softmap.model.many import Many
from softmap.model.names import Names
from softmap.model.potentials import Potential, Projection
from softmap.model.potentials.base import LARGEST_COST, Costs, Ints, largest
from softmap.model.structure import PIECE, Structure
from softmap.model.sums import careful_sums


class Memberships(NamedTuple):
    """The members of all factor nodes: row k says that a variable is one of a factor node.

    Attributes
    ----------
    start : int64[factor nodes + 1]
        The first row of each factor node, and the end of the last.
    node, variable : int64[rows]
        The factor node and its member.
    stride : int64[rows]
        By how much the joint state grows if the label of the member grows by one.
    """

    start: Ints
    node: Ints
    variable: Ints
    stride: Ints

    @property
    def arity(self) -> Ints:
        """The number of members of each factor node."""
        return np.diff(self.start)


class Network(Structure):
    """What a `Model` is lowered to: a pairwise model whose last nodes may not be the user's.

    Nodes come in three kinds, in this order: the variables of the user, chain variables, which hold
    partial counts and sums of factors over many variables, and factor nodes, each of which stands
    for a factor of three or more variables. All arrays are those of `Model` with these nodes and
    their edges. Networks derived from one another share all arrays that do not change.

    Parameters
    ----------
    unary, edges, pairwise, constant
        As for `Model`.

    Attributes
    ----------
    unary : float64 array
        Costs of all nodes, flat over `node_offset`.
    num_labels : int64[n]
        Number of labels of each node.
    n, m : int
        Number of nodes and of edges.
    num_visible, num_variables : int
        Number of the user's variables, and of these and the chain variables.
    edges : int array (m, 2)
        The endpoints of each edge.
    potentials : tuple of Potential
        Costs of the edges, one potential per group of edges of one family.
    group_start : int array
        The first edge of each group.
    constant : float
        The constant of the energy.
    auxiliaries : Auxiliaries
        The factors that the factor nodes represent.
    running : Running
        The functions that determine the labels of the chain variables.
    required : tuple of Many
        Factors over many variables whose hard constraints are also checked directly.
    required_chains : tuple of (int, int)
        The first chain variable of each of these factors, and the one after its last.
    shape : tuple of int or None
        The shape of the grid, which is also the shape of labellings; None without a grid.
    names : Names or None
        Names of the variables and states of the user.
    """

    auxiliaries: Auxiliaries
    running: Running
    required: tuple[Many, ...]
    required_chains: tuple[tuple[int, int], ...]

    @property
    def network(self) -> Network:
        """This network, so that a function of a model or of a network reads it from either."""
        return self

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
        new = type(self).of_arrays(flat, num_labels, ends, potentials, group_start)
        self.__dict__.update(new.__dict__ | {"constant": finite_number(constant, "constant")})
        self._check_costs()

    @classmethod
    def of_arrays(
        cls,
        unary: Costs,
        num_labels: Ints,
        edges: NDArray[np.int32],
        potentials: tuple[Potential, ...],
        group_start: Ints,
    ) -> Self:
        """Return the network of arrays that are known to fit, all of whose nodes are variables."""
        new = cls.__new__(cls)
        new.__dict__.update(
            unary=unary,
            num_labels=num_labels,
            n=len(num_labels),
            m=len(edges),
            num_variables=len(num_labels),
            edges=edges,
            potentials=potentials,
            group_start=group_start,
            constant=0.0,
            auxiliaries=NO_AUXILIARIES,
            running=NO_RUNNING,
            required=(),
            required_chains=(),
            shape=None,
            names=None,
        )
        return new

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Network is immutable, {name} cannot be set; see replace")

    def __getstate__(self) -> dict[str, Any]:
        # Caches that other modules keep in the model are not pickled.
        return {name: value for name, value in self.__dict__.items() if name in CARRIED}

    def _check_costs(self) -> None:
        """Raise `ModelError` unless potentials fit their edges and sums of costs stay finite."""
        total = self.total()
        if not total <= LARGEST_SUM:
            raise ModelError(
                f"costs of this size and number can add up to {total:.3g}; "
                f"expected at most {LARGEST_SUM:g}"
            )

    def total(self) -> float:
        """Return an upper bound on the absolute value of all energies; check the potentials."""
        total = abs(self.constant)
        if self.n * LARGEST_COST > LARGEST_SUM:  # otherwise unary costs cannot exceed it
            total += self.n * largest(self.unary)
        for first, last, potential in self.groups():
            ends = self.end_labels(first, last)
            potential.check(*ends)
            total += (last - first) * checked_reach(potential, ends, first)
        return total

    @property
    def num_visible(self) -> int:
        """The length of a labelling: the number of variables without chain variables."""
        return self.num_variables - len(self.running)

    @property
    def visible_counts(self) -> Ints:
        """The label counts of the user's variables."""
        return self.num_labels[: self.num_visible]

    def visible(self, labels: Ints) -> Ints:
        """Return the labels of the user's variables, given those of more nodes, a row or several.

        As a prefix: other arrays with one entry per node may be cut in the same way.
        """
        return labels[..., : self.num_visible]

    @property
    def has_chains(self) -> bool:
        """Whether there are chain variables."""
        return len(self.running) > 0

    @property
    def has_factors(self) -> bool:
        """Whether there are factor nodes."""
        return len(self.auxiliaries) > 0

    @property
    def is_plain(self) -> bool:
        """Whether the nodes are the variables of the user, and no others."""
        return not self.has_chains and not self.has_factors

    # --- what the user said ---------------------------------------------------------------------

    @cached_property
    def visible_unary(self) -> Costs:
        """The costs of the user's variables, flat."""
        if self.is_plain:
            return self.unary
        return self.unary[: self.node_offset[self.num_visible]]

    @cached_property
    def visible_groups(self) -> tuple[tuple[Ints, Potential], ...]:
        """The edges between the user's variables: (numbers of edges, potential) of each group."""
        groups: list[tuple[Ints, Potential]] = []
        for first, last, potential in self.groups():
            ends = self.edges[first:last]
            between = np.flatnonzero((ends < self.num_visible).all(axis=1))
            if len(between) == last - first:
                groups.append((first + between, potential))
            elif len(between):
                groups.append((first + between, potential.take(between)))
        return tuple(groups)

    @cached_property
    def visible_edges(self) -> NDArray[np.int32]:
        """The endpoints of the edges between the user's variables."""
        if self.is_plain:
            return self.edges
        numbers = [edges for edges, _ in self.visible_groups]
        return self.edges[np.concatenate(numbers)] if numbers else self.edges[:0]

    @cached_property
    def visible_potentials(self) -> tuple[Potential, ...]:
        """One potential per group of edges between the user's variables."""
        if self.is_plain:
            return self.potentials
        return tuple(potential for _, potential in self.visible_groups)

    def factors(self) -> Iterator[tuple[tuple[int, ...], Costs]]:
        """Yield (scope, costs) for each factor node; the scope is in the order of its strides."""
        aux = self.auxiliaries
        for first, last, potential in self.groups():
            ties = (self.edges[first:last] >= self.num_variables).any()
            if ties and not isinstance(potential, Projection):
                raise ModelError(
                    "costs between an auxiliary variable and its members have no factor"
                )
        for a in range(len(aux)):
            part = slice(int(aux.start[a]), int(aux.start[a + 1]))
            order = np.argsort(-aux.stride[part], kind="stable")
            scope = tuple(aux.member[part][order].tolist())
            shape = tuple(self.num_labels[list(scope)].tolist())
            yield scope, self.unary_of(self.num_variables + a).reshape(shape)

    def with_visible(
        self,
        unary: ArrayLike | None,
        potentials: Sequence[Potential] | None,
        constant: float | None,
    ) -> Self:
        """Return a network with other costs of the user's variables and of their edges.

        Parameters
        ----------
        unary : array or list of arrays, optional
            Costs of the user's variables.
        potentials : sequence of Potential, optional
            One potential per group in `visible_groups`.
        constant : float, optional
        """
        if self.is_plain:
            return self.replace(unary=unary, potentials=potentials, constant=constant)
        if unary is not None:
            own = other_unary(unary, self.visible_counts)
            unary = np.concatenate([own, self.unary[len(self.visible_unary) :]])
        if potentials is not None:
            potentials = self._with_potentials(checked_potentials(potentials))
        return self.replace(unary=unary, potentials=potentials, constant=constant)

    def _with_potentials(self, given: Sequence[Potential]) -> list[Potential]:
        """Return the potentials of all groups, given those between the user's variables."""
        if len(given) != len(self.visible_groups):
            raise ModelError(f"{len(given)} potentials for {len(self.visible_groups)} groups")
        changed = list(self.potentials)
        for (edges, _), potential in zip(self.visible_groups, given, strict=True):
            group = int(np.searchsorted(self.group_start, edges[0], side="right")) - 1
            if len(edges) != self.group_start[group + 1] - self.group_start[group]:
                raise ModelError(
                    "a group has edges of variables and of factors; replace the network's"
                )
            changed[group] = potential
        return changed

    @cached_property
    def inner_edges(self) -> Ints:
        """The numbers of the edges between the user's variables."""
        return np.flatnonzero((self.edges < self.num_visible).all(axis=1))

    @cached_property
    def memberships(self) -> Memberships:
        """Which factor node has which variable as a member."""
        aux = self.auxiliaries
        owner = self.num_variables + np.repeat(np.arange(len(aux)), np.diff(aux.start))
        return Memberships(aux.start, owner, aux.member, aux.stride)

    def variables_of(self, node: int) -> list[int]:
        """Return the user's variables that determine the state of a node, ascending."""
        aux, running, variables = self.auxiliaries, self.running, set[int]()
        front, seen = [node], {node}
        while front:
            i = front.pop()
            if i < self.num_visible:
                variables.add(i)
                continue
            joint = i >= self.num_variables
            k = i - (self.num_variables if joint else self.num_visible)
            member, start = (aux.member, aux.start) if joint else (running.member, running.start)
            new = set(member[start[k] : start[k + 1]].tolist()) - seen
            seen |= new
            front += new
        return sorted(variables)

    def is_labelling(self, size: int) -> bool:
        """Whether a labelling has this many labels, with those of chain variables or without."""
        return size in (self.num_visible, self.num_variables)

    def has_graph_of(self, other: Network) -> bool:
        """Whether another network has the same nodes of each kind, labels and edges."""
        return (
            self.num_variables == other.num_variables
            and self.num_visible == other.num_visible
            and np.array_equal(self.num_labels, other.num_labels)
            and np.array_equal(self.edges, other.edges)
        )

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
            if self.names is None:
                raise ModelError("the variables of this model have no names; see Model.with_names")
            labels = self.names.labels(labels)
        chosen = self.lowered(labels)
        if not len(self.auxiliaries):
            return chosen
        return np.concatenate([chosen, self.auxiliaries.states(chosen)], axis=-1)

    def lowered(self, labels: ArrayLike) -> Ints:
        """Return `labels` with the labels of chain variables appended, unless they are present."""
        counts = self.num_labels[: self.num_variables]
        if not len(self.running):
            return checked_labels(labels, counts, self.shape)
        if np.shape(labels)[-1:] == counts.shape:
            return checked_labels(labels, counts)
        chosen = checked_labels(labels, counts[: self.num_visible], self.shape)
        return self.running.follow(chosen)

    def consistent(self, labels: Ints) -> Ints:
        """Return labels of variables with those of chain variables computed from the others."""
        return self.lowered(self.visible(labels)) if self.has_chains else labels

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
        >>> model.network.cost_terms([0, 1]).tolist()
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

    # --- derived networks -----------------------------------------------------------------------

    def replace(
        self,
        *,
        unary: ArrayLike | None = None,
        potentials: Sequence[Potential] | None = None,
        constant: float | None = None,
    ) -> Self:
        """Return a network with the same graph and other costs; it shares all arrays not given.

        Parameters
        ----------
        unary : array or list of arrays, optional
            Costs of all nodes: flat as in `unary`, or as the constructor takes them.
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

    def _with(self, **changed: Any) -> Self:
        # Copy only attributes that do not depend on costs, not the caches of other modules.
        new = type(self).__new__(type(self))
        new.__dict__.update({k: v for k, v in self.__dict__.items() if k in CARRIED})
        new.__dict__.update(changed)
        return new

    def condition(self, evidence: Sequence[tuple[int, int]]) -> Self:
        """Return the network with variables fixed; their other labels become forbidden.

        Parameters
        ----------
        evidence : sequence of (int, int)
            Variables and their labels.
        """
        unary = self.unary.copy()
        for i, x in evidence:
            block = unary[self.node_slice(i)]
            kept = block[x]
            block[:] = np.inf
            block[x] = kept
        return self.replace(unary=unary)

    def called(self, shape: tuple[int, ...] | None, names: Names | None) -> Self:
        """Return the network of the same model with this shape and these names."""
        if shape == self.shape and names is self.names:
            return self
        return self._with(shape=shape, names=names)

    def declared(
        self,
        running: Running,
        required: tuple[Many, ...],
        required_chains: tuple[tuple[int, int], ...],
        auxiliaries: Auxiliaries,
    ) -> Self:
        """Return the network with its last nodes declared factor nodes and chain variables.

        What is said of them is not checked.
        """
        if not len(running) and not len(auxiliaries) and not required:
            return self
        return self._with(
            running=running,
            required=required,
            required_chains=required_chains,
            auxiliaries=auxiliaries,
            num_variables=self.n - len(auxiliaries),
        )

    def check_factors(self) -> None:
        """Raise `ModelError` unless the edges at factor nodes are those to their members."""
        if self.has_factors:
            check_auxiliaries(self, self.auxiliaries)

    def with_auxiliaries(self, auxiliaries: Auxiliaries) -> Self:
        """Return the same network with its last nodes declared factor nodes.

        The state of a factor node follows from the labels of its members. Raises `ModelError`
        unless its states enumerate the joint states of the members, and its edges are the
        projections to the members.
        """
        auxiliaries = check_auxiliaries(self, auxiliaries)
        return self._with(auxiliaries=auxiliaries, num_variables=self.n - len(auxiliaries))

    def with_running_variables(self, running: Running) -> Self:
        """Return the same network with its last variables declared chain variables."""
        counts = self.num_labels[: self.num_variables]
        return self._with(running=check_running(running, counts))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that define the network by name, but those of potentials."""
        aux = self.auxiliaries
        arrays: dict[str, NDArray[Any]] = {
            "num_labels": self.num_labels,
            "unary": self.unary,
            "edges": self.edges,
            "group_start": self.group_start,
            "constant": np.array(self.constant),
            "num_variables": np.array(self.num_variables),
        }
        if self.has_factors:
            arrays |= {"aux.start": aux.start, "aux.member": aux.member, "aux.stride": aux.stride}
        if self.has_chains:
            arrays |= {f"running.{name}": array for name, array in self.running.arrays().items()}
        required = required_arrays(self.required, self.required_chains, self.num_labels)
        return arrays | {f"required.{name}": array for name, array in required.items()}

    def fingerprint(self) -> str:
        """Return a SHA-256 digest (hexadecimal) of all that defines the model, except names.

        The shape of a grid, which is that of its labellings, counts as a name.
        """
        import hashlib  # imported late: few runs need it

        digest = hashlib.sha256()
        aux = self.auxiliaries
        arrays: list[NDArray[Any]] = [self.unary, self.num_labels, self.edges, self.group_start]
        arrays += [aux.start, aux.member, aux.stride, np.array([self.constant])]
        arrays += self.running.arrays().values() if len(self.running) else []
        for potential in self.potentials:
            digest.update(potential.family.encode())
            arrays += potential.arrays().values()
        arrays += required_arrays(self.required, self.required_chains, self.num_labels).values()
        for array in arrays:
            digest.update(str((array.dtype, array.shape)).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


CARRIED = (
    frozenset(Structure.__annotations__)
    | frozenset(Network.__annotations__)
    | {"node_offset", "half_offset", "edge_offset", "graph", "is_even"}
)
"""Attributes that do not depend on other costs: `Network._with` copies them, pickles hold them."""
