"""Hard constraints of a model, and a search for labels that obey them all.

The compiled search (`src/core/feasibility`) propagates pairs, tables, different labels and sums,
learns a clause from each conflict, and restarts. It ends with labels, or with a proof that there
are none; the proof names the constraints that it uses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import HardConstraint, InfeasibleModel, listed
from softmap.model import Network
from softmap.model.inputs import within
from softmap.model.many import AllDifferent, Cardinality, Linear, Many
from softmap.model.potentials.base import Ints, offsets
from softmap.relaxation.flat import lower_tables
from softmap.tuning import TUNING, Numbers

__all__ = [
    "FeasibilityNumbers", "FeasibleSearch", "HardConstraints", "completed", "find_feasible",
    "infeasibility", "small_core",
]  # fmt: skip

Bools = NDArray[np.bool_]
NONE, FOUND, UNKNOWN = 0, 1, 2
FAR = 1 << 61  # stands for an infinite bound of a sum
BLOCK = 1 << 20  # table entries between two looks at the deadline
NO_LIST = np.zeros(0, dtype=bool)


@dataclass(frozen=True)
class FeasibilityNumbers(Numbers):
    """Which hard constraints are searched, and how long infeasibility is explained and proved."""

    entries: int = 60_000_000  # most table entries of pairs and node states; D51
    clique_edges: int = 100_000  # most edges in which sets of different labels are looked for; D33
    core_seconds: float = 2.0  # s, to name fewer constraints of an infeasible model; D59
    proof_seconds: float = 60.0  # s, most time of a search that proves infeasibility; D59


@dataclass(frozen=True, eq=False)
class HardConstraints:
    """The hard constraints of a model over its variables, chain variables included.

    Attributes
    ----------
    num_labels : int64[n]
        Label counts.
    allowed : bool array
        Labels that are allowed, flat.
    edges : int64[m, 2]
        Edges with a forbidden pair.
    tables : list of bool arrays
        Allowed pairs of each of these edges, flat.
    larger : list of (int64 array, bool array)
        Variables and allowed joint states of larger factors, flat.
    cliques : list of int64 array
        Variables whose pairs all forbid equal labels.
    many : list of Many
        Factors over many variables that propagate as a whole.
    """

    num_labels: Ints
    allowed: Bools
    edges: Ints
    tables: list[Bools]
    larger: list[tuple[Ints, Bools]]
    cliques: list[Ints]
    many: list[Many]

    @classmethod
    def of(
        cls,
        model: Network,
        given: Network | None = None,
        barrier: float = math.inf,
        deadline: core.Deadline | None = None,
        numbers: FeasibilityNumbers | None = None,
    ) -> HardConstraints | None:
        """Return the hard constraints of a model; None if their tables are too large.

        Parameters
        ----------
        model : Network
        given : Network, optional
            The model that `model` was made from; it may know more factors over many variables.
        barrier : float, default +inf
            Costs that exceed the least cost of their table by this much or more are forbidden.
        deadline : core.Deadline, optional
            When to stop: `core.OutOfTime` is raised.
        numbers : FeasibilityNumbers, optional
            The numbers of the run.
        """
        numbers = numbers or TUNING.of(FeasibilityNumbers)
        given = model if given is None else given
        n, split = model.num_variables, int(model.node_offset[model.num_variables])
        many = [factor for factor in given.required if _only_forbids(factor, barrier)]
        covered = np.zeros(n, dtype=bool)  # chain variables whose factor propagates as a whole
        for factor, (first, last) in zip(given.required, given.required_chains, strict=True):
            covered[first:last] = _only_forbids(factor, barrier)
        pairs = _pairs(model, barrier, numbers.entries)
        if pairs is None:
            return None
        pairs = pairs[~covered[model.edges[pairs]].any(axis=1)]
        edges, tables = _tables(model, pairs, barrier, deadline or core.Deadline())
        allowed = _light(model.unary[:split], model.node_offset[: n + 1], barrier)
        starts = model.node_offset[:-1][:n][covered]
        for i in np.flatnonzero(covered).tolist():
            allowed[model.node_slice(i)] = False
        allowed[starts] = True  # one label, so that nothing is to be decided
        larger = _larger(model, covered, barrier)
        num_labels = model.num_labels[:n].astype(np.int64)
        cliques = _cliques(num_labels, edges, tables, numbers.clique_edges)
        return cls(num_labels, allowed, edges, tables, larger, cliques, many)

    @property
    def count(self) -> int:
        """The number of constraints, in the order of the attributes."""
        return len(self.num_labels) + sum(map(len, self._parts()))

    def _parts(self) -> tuple[Sized, ...]:
        return self.edges, self.larger, self.cliques, self.many

    def restricted(self, kept: Bools) -> HardConstraints:
        """Return the constraints of a mask over all of them (see `count`)."""
        n = len(self.num_labels)
        ends = np.cumsum([n, *map(len, self._parts())])[:-1]
        labels, *parts = np.split(kept, ends)
        edges, larger, cliques, many = (np.flatnonzero(part).tolist() for part in parts)
        return replace(
            self,
            allowed=self.allowed | ~np.repeat(labels, self.num_labels),
            edges=self.edges[edges],
            tables=[self.tables[k] for k in edges],
            larger=[self.larger[k] for k in larger],
            cliques=[self.cliques[k] for k in cliques],
            many=[self.many[k] for k in many],
        )

    def describe(self, number: int) -> tuple[str, list[int]]:
        """Return the kind of a constraint and its variables."""
        n = len(self.num_labels)
        if number < n:
            return "labels", [number]
        if (k := number - n) < len(self.edges):
            return "pair", self.edges[k].tolist()
        if (k := k - len(self.edges)) < len(self.larger):
            return "factor", self.larger[k][0].tolist()
        if (k := k - len(self.larger)) < len(self.cliques):
            return "pairs", self.cliques[k].tolist()
        factor = self.many[k - len(self.cliques)]
        return type(factor).__name__, list(factor.variables)


class FeasibleSearch:
    """A search for labels that obey hard constraints; each call of `run` continues it.

    Parameters
    ----------
    constraints : HardConstraints
    preference : float array, optional
        Labels of larger preference are tried first.
    """

    def __init__(
        self, constraints: HardConstraints, preference: NDArray[np.float64] | None = None
    ) -> None:
        self.constraints = constraints
        size = len(constraints.allowed)
        wish = np.zeros(size) if preference is None else preference[:size]
        self._wish = np.ascontiguousarray(wish, dtype=np.float64)
        self._native = core.FeasibleSearch(constraints.num_labels, constraints.allowed)
        if len(constraints.edges):
            tables = np.concatenate(constraints.tables)
            self._native.add_pairs(np.ascontiguousarray(constraints.edges), tables)
        if constraints.larger:
            scopes, parts = zip(*constraints.larger, strict=True)
            start = np.cumsum([0, *map(len, scopes)])
            self._native.add_tables(start, np.concatenate(scopes), np.concatenate(parts))
        for scope in constraints.cliques:
            self._native.add_different(scope)
        for factor in constraints.many:
            _add_many(self._native, factor, constraints.num_labels)
        self.labels: Ints = np.zeros(len(constraints.num_labels), dtype=np.int64)
        self.verdict = UNKNOWN

    @property
    def found(self) -> bool:
        """Whether `labels` obey all constraints."""
        return self.verdict == FOUND

    @property
    def infeasible(self) -> bool:
        """Whether the search has proved that no labels obey all constraints."""
        return self.verdict == NONE

    @property
    def conflicts(self) -> int:
        """The number of conflicts so far."""
        return int(self._native.conflicts)

    def run(self, *, deadline: core.Deadline | None = None, conflicts: int = 1 << 62) -> bool:
        """Continue until there is an answer or a limit is reached; return whether there is one.

        Parameters
        ----------
        deadline : core.Deadline, optional
            When to stop.
        conflicts : int
            Number of conflicts of this call.
        """
        if self.verdict == UNKNOWN:
            self.verdict = self._native.run(self._wish, conflicts, self.labels, deadline)
        return self.verdict != UNKNOWN

    def core(self) -> Ints:
        """The numbers of the constraints that the proof of infeasibility uses; all if unknown."""
        found = np.array(self._native.core(), dtype=np.int64)
        return found if len(found) else np.arange(self.constraints.count)


def find_feasible(
    model: Network,
    preference: NDArray[np.float64] | None,
    *,
    given: Network | None = None,
    deadline: core.Deadline | None = None,
    conflicts: int = 1 << 62,
    numbers: FeasibilityNumbers | None = None,
) -> Ints | None:
    """Find a labelling of finite cost.

    Parameters
    ----------
    model : Network
    preference : float64 array or None
        Labels of larger preference are tried first (node marginals, for example).
    given : Network, optional
        The model that `model` was made from; it may know more factors over many variables.
    deadline : core.Deadline, optional
        When to stop.
    conflicts : int
        Limit on the number of conflicts.
    numbers : FeasibilityNumbers, optional
        The numbers of the run.

    Returns
    -------
    int64 array or None
        The labels; None if a limit ended the search.

    Raises
    ------
    InfeasibleModel
        If the search proved that no such labelling exists.
    """
    constraints = HardConstraints.of(model, given, numbers=numbers)
    if constraints is None:
        return None
    search = FeasibleSearch(constraints, preference)
    search.run(deadline=deadline, conflicts=conflicts)
    if search.infeasible:
        raise infeasibility(model if given is None else given, deadline, numbers)
    return completed(model, search.labels) if search.found else None


def completed(model: Network, labels: Ints) -> Ints | None:
    """Return labels with those of chain variables; None if their cost is infinite after all.

    The tables between auxiliary nodes and their members may forbid more than the search knows.
    """
    found = model.consistent(labels)
    return found if math.isfinite(model.energy(found)) else None


def small_core(search: FeasibleSearch, deadline: core.Deadline | None, seconds: float) -> Ints:
    """Return constraints that no labels obey together, few of them.

    Blocks of constraints are left out, ever smaller ones, as long as the rest is still proved
    infeasible; each proof may leave out others, too.

    Parameters
    ----------
    search : FeasibleSearch
        A search that has proved infeasibility.
    deadline : core.Deadline or None
        When to stop.
    seconds : float
        Most seconds in any case.
    """
    end = (deadline or core.Deadline()).within(seconds)
    whole, numbers = search.constraints, search.core()
    enough = 2 * (search.conflicts + len(numbers))  # a constraint is kept if this proves nothing
    needed: set[int] = set()
    block = len(numbers)
    while rest := [c for c in numbers.tolist() if c not in needed]:
        if end.passed:
            break
        block = max(1, min(block, len(rest) // 2))
        kept = np.zeros(whole.count, dtype=bool)
        kept[numbers] = True
        kept[rest[:block]] = False  # the larger constraints come last, and say more
        trial = FeasibleSearch(whole.restricted(kept))
        trial.run(deadline=end, conflicts=enough)
        if trial.infeasible:
            numbers = _numbered(whole, kept)[trial.core()]
        elif block == 1:
            needed.add(rest[0])
        else:
            block //= 2
    return numbers


def _numbered(whole: HardConstraints, kept: Bools) -> Ints:
    """The numbers in `whole` of the constraints of its restriction, which keeps all variables."""
    n = len(whole.num_labels)
    return np.concatenate([np.arange(n), n + np.flatnonzero(kept[n:])])


def infeasibility(
    model: Network,
    deadline: core.Deadline | None = None,
    numbers: FeasibilityNumbers | None = None,
) -> InfeasibleModel:
    """Return the error that says that no labels have finite cost, and names constraints, if known.

    The constraints of the model itself are searched once more. Those of a model that was made arc
    consistent may forbid what others forbid, and would be named without them.

    Parameters
    ----------
    model : Network
        The model as given, which has been proved infeasible.
    deadline : core.Deadline, optional
        When to stop looking for constraints, and making the list of them shorter.
    numbers : FeasibilityNumbers, optional
        The numbers of the run.
    """
    numbers = numbers or TUNING.of(FeasibilityNumbers)
    constraints = HardConstraints.of(model, numbers=numbers)
    search = None if constraints is None else FeasibleSearch(constraints)
    if search is None or not search.run(deadline=deadline) or not search.infeasible:
        return InfeasibleModel("no labelling has finite cost: a search found none")
    few = small_core(search, deadline, numbers.core_seconds)
    parts = [search.constraints.describe(k) for k in few.tolist()]
    seen = (HardConstraint(kind, _visible(model, own)) for kind, own in parts)
    found = tuple(dict.fromkeys(seen))
    names = None if model.names is None else model.names.variables
    said = listed([c.called(names) for c in found], "; ")
    return InfeasibleModel(
        f"no labelling has finite cost: {said} contradict each other"
        if len(found) > 1
        else f"no labelling has finite cost: {said} cannot all be satisfied",
        found[0].variables[0] if found and found[0].variables else None,
        found,
    )


def _visible(model: Network, nodes: Sequence[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(v for i in nodes for v in model.variables_of(i)))


def _only_forbids(factor: Many, barrier: float) -> bool:
    """Whether a factor propagates as a whole: it forbids, and has no finite costs that matter."""
    if isinstance(factor, Cardinality):
        finite = factor.costs[np.isfinite(factor.costs)]
        plain = barrier == math.inf or not len(finite) or np.ptp(finite) == 0.0
        return len(finite) < len(factor.costs) and bool(plain)
    if isinstance(factor, Linear):
        return factor.penalty == math.inf
    return isinstance(factor, AllDifferent)


def _add_many(native: core.FeasibleSearch, factor: Many, num_labels: Ints) -> None:
    scope = np.array(factor.variables, dtype=np.int64)
    sizes = num_labels[scope].tolist()
    if isinstance(factor, AllDifferent):
        native.add_different(scope)
    elif isinstance(factor, Cardinality):
        native.add_sum(scope, factor.all_ones(sizes), 0, len(scope), np.isfinite(factor.costs))
    elif isinstance(factor, Linear):
        rows, least = factor.shifted(sizes)
        low, high = (min(max(b - least, -FAR), FAR) for b in (factor.low, factor.high))
        native.add_sum(scope, np.concatenate(rows), int(low), int(high), NO_LIST)


def _light(costs: NDArray[np.float64], offset: Ints, barrier: float) -> Bools:
    """Which entries of tables are allowed: finite, and less than the barrier above the least."""
    if barrier == math.inf:
        return np.isfinite(costs)
    least = np.minimum.reduceat(costs, offset[:-1])
    least = np.where(np.isfinite(least), least, 0.0)
    return costs - np.repeat(least, np.diff(offset)) < barrier


def _pairs(model: Network, barrier: float, most: int) -> Ints | None:
    """The edges between variables that may have forbidden pairs; None if they are too large."""
    found = [np.zeros(0, dtype=np.int64)]
    for first, last, potential in model.groups():
        if barrier < math.inf or potential.has_forbidden():
            found.append(np.arange(first, last))
    edges = np.concatenate(found)
    edges = edges[(model.edges[edges] < model.num_variables).all(axis=1)]
    entries = int(np.diff(model.edge_offset)[edges].sum()) if len(edges) else 0
    return edges if entries + model.unary.size <= most else None


def _tables(
    model: Network, edges: Ints, barrier: float, deadline: core.Deadline
) -> tuple[Ints, list[Bools]]:
    """The edges with forbidden pairs, and their tables."""
    sizes = np.diff(model.edge_offset)[edges]
    hard, parts = [np.zeros(0, dtype=np.int64)], list[Bools]()
    for some in np.split(np.arange(len(edges)), _blocks(sizes)):
        deadline.require()
        if not len(some):
            continue
        offset = np.concatenate([[0], np.cumsum(sizes[some])])
        allowed = _light(lower_tables(model, edges[some]), offset, barrier)
        found = np.flatnonzero(~np.logical_and.reduceat(allowed, offset[:-1]))
        parts += [allowed[offset[k] : offset[k + 1]] for k in found.tolist()]
        hard.append(edges[some[found]])
    return model.edges[np.concatenate(hard)].astype(np.int64), parts


def _blocks(sizes: Ints) -> Ints:
    """Where to split tables of these sizes: parts have about `BLOCK` entries, or one table."""
    ends = np.cumsum(sizes)
    return np.flatnonzero(np.diff(ends // BLOCK)) + 1


def _larger(model: Network, covered: Bools, barrier: float) -> list[tuple[Ints, Bools]]:
    """The larger factors with forbidden joint states, in the order of their tables."""
    held, offset = model.memberships, model.node_offset[model.num_variables :]
    if not model.has_factors:
        return []
    offset = offset - offset[0]
    allowed = _light(model.unary[-int(offset[-1]) :], offset, barrier)
    hard = ~np.logical_and.reduceat(allowed, offset[:-1])
    hard &= ~np.logical_or.reduceat(covered[held.variable], held.start[:-1])
    members = held.variable[
        np.lexsort((-held.stride, held.node))
    ]  # the largest stride first: row-major
    which = np.flatnonzero(hard).tolist()
    start, begin = held.start.tolist(), offset.tolist()
    return [(members[start[a] : start[a + 1]], allowed[begin[a] : begin[a + 1]]) for a in which]


def _cliques(num_labels: Ints, edges: Ints, tables: list[Bools], most: int) -> list[Ints]:
    """Sets of variables whose pairs all forbid equal labels, where labels are scarce.

    Each set is grown from an edge that no earlier set has. A matching sees what pairs do not if
    the variables have few more labels than there are of them.
    """
    if len(edges) > most:
        return []
    near: dict[int, set[int]] = {}
    differ = list(map(tuple, edges[_all_different(num_labels[edges], tables)].tolist()))
    for i, j in differ:
        near.setdefault(i, set()).add(j)
        near.setdefault(j, set()).add(i)
    found, covered = [], set[tuple[int, int]]()
    for i, j in differ:
        if (i, j) in covered:
            continue
        clique, common = [i, j], near[i] & near[j]
        while common:
            best = max(common, key=lambda v: (len(near[v] & common), -v))
            clique.append(best)
            common = common & near[best]
        clique.sort()
        covered.update((a, b) for k, a in enumerate(clique) for b in clique[k + 1 :])
        covered.update((b, a) for k, a in enumerate(clique) for b in clique[k + 1 :])
        if len(clique) > 2 and int(num_labels[clique].max()) < 2 * len(clique):
            found.append(np.array(clique, dtype=np.int64))
    return found


def _all_different(labels: Ints, tables: list[Bools]) -> Bools:
    """Which tables allow no equal labels; `labels` has the numbers of their rows and columns."""
    if not tables:
        return np.zeros(0, dtype=bool)
    sizes, equal = labels.prod(axis=1), labels.min(axis=1)
    start = np.cumsum(sizes) - sizes
    diagonal = within(equal) * np.repeat(labels[:, 1] + 1, equal)
    places = np.repeat(start, equal) + diagonal
    return ~np.logical_or.reduceat(np.concatenate(tables)[places], offsets(equal)[:-1])
