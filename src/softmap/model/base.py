"""`BaseModel`: a model is checked once, is immutable, and shares its arrays with derived ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError
from softmap.model.inputs import (
    LARGEST_SUM,
    Group,
    Pairwise,
    checked_evidence,
    checked_potentials,
    checked_reach,
    edge_groups,
    finite_number,
    flat_unary,
    other_unary,
)
from softmap.model.many import Many
from softmap.model.names import checked_names
from softmap.model.potentials import Potential
from softmap.model.potentials.base import LARGEST_COST, integers, largest
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


class BaseModel(Structure):
    """A model whose costs were checked when it was made, and the models derived from it.

    `Model` documents the parameters. Derived models share all arrays that do not change.
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

    # --- derived models -------------------------------------------------------------------------

    def replace(
        self,
        *,
        unary: ArrayLike | None = None,
        potentials: Sequence[Potential] | None = None,
        constant: float | None = None,
    ) -> Self:
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

    def _with(self, **changed: Any) -> Self:
        # Copy only attributes that do not depend on costs, not the caches of other modules.
        new = type(self).__new__(type(self))
        new.__dict__.update({k: v for k, v in self.__dict__.items() if k in CARRIED})
        new.__dict__.update(changed)
        return new

    def condition(self, evidence: Mapping[Any, Any]) -> Self:
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

    def with_shape(self, shape: Sequence[int]) -> Self:
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

    def with_names(self, names: Any, states: Any = None) -> Self:
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

    def with_auxiliaries(self, auxiliaries: Auxiliaries) -> Self:
        """Return the same model with its last nodes declared auxiliary.

        The state of an auxiliary node follows from the labels of its members. Raises `ModelError`
        unless its states enumerate the joint states of the members, and its edges are the
        projections to the members.
        """
        auxiliaries = check_auxiliaries(self, auxiliaries)
        return self._with(auxiliaries=auxiliaries, num_variables=self.n - len(auxiliaries))

    def with_running_variables(self, running: Running) -> Self:
        """Return the same model with its last variables declared chain variables."""
        counts = self.num_labels[: self.num_variables]
        return self._with(running=check_running(running, counts))

    def with_required(self, factors: Sequence[Many], chained: Sequence[tuple[int, int]]) -> Self:
        """Return the same model with these factors over many variables in `required`.

        Raises `ModelError` unless the tables of the model imply the hard constraints of all.

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
