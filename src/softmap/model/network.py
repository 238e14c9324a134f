"""`Network`: the nodes, edges and costs that loops see, and the way back to the user's variables.

A network is checked once, is immutable, and shares its arrays with those derived from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError
from softmap.model.inputs import (
    LARGEST_SUM,
    Group,
    Pairwise,
    checked_potentials,
    checked_reach,
    edge_groups,
    finite_number,
    flat_unary,
    other_unary,
)
from softmap.model.many import Many
from softmap.model.names import Names
from softmap.model.potentials import Potential
from softmap.model.potentials.base import LARGEST_COST, largest
from softmap.model.required import check_required, required_arrays
from softmap.model.structure import (
    CARRIED,
    NO_AUXILIARIES,
    NO_RUNNING,
    Auxiliaries,
    Running,
    Structure,
    check_auxiliaries,
    check_running,
)


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
        raise AttributeError(f"a Network is immutable, {name} cannot be set; see replace")

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

    def with_required(self, factors: Sequence[Many], chained: Sequence[tuple[int, int]]) -> Self:
        """Return the same network with these factors over many variables in `required`.

        Raises `ModelError` unless the tables of the network imply the hard constraints of all.

        Parameters
        ----------
        factors : sequence of Many
            Factors over variables by number.
        chained : sequence of (int, int)
            The first chain variable of each factor, and the one after its last.
        """
        check_required(self, factors, chained)
        return self._with(required=tuple(factors), required_chains=tuple(chained))

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
        arrays += required_arrays(self).values()
        for array in arrays:
            digest.update(str((array.dtype, array.shape)).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()
