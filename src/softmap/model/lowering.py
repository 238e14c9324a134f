"""Lowering: from the factors of a model to the nodes and edges of a `Network`.

A factor of three or more variables becomes a factor node with one state per joint state. A factor
over many variables becomes the small tables of `softmap.model.chains`, and chain variables, which
are numbered after all variables.
"""

from __future__ import annotations

import numpy as np

from softmap.model.inputs import within
from softmap.model.lowered_nodes import NO_RUNNING, running_of
from softmap.model.many import Many, kept_whole
from softmap.model.network import Network
from softmap.model.pieces import Copies, Parities, Pieces, Single, is_required
from softmap.model.potentials.base import Costs, Ints
from softmap.model.tables import Counts, FactorTables, Parts, Scope

__all__ = ["lowered", "unchained"]


def unchained(pieces: Pieces) -> Network:
    """Return the network of all factors but those over many variables."""
    parts = pieces.tables.parts(pieces.groups)
    return _network(parts).declared(NO_RUNNING, (), (), parts.nodes)


def lowered(pieces: Pieces) -> Network:
    """Return the network of all factors; factor nodes are not checked."""
    chained = _Chained(pieces)
    parts = chained.parts(pieces.groups, chained.costs)
    return _network(parts).declared(
        running_of(chained.follow),
        tuple(chained.required),
        tuple(chained.required_chains),
        parts.nodes,
    )


def _network(parts: Parts) -> Network:
    return Network(parts.unary, None, parts.groups, constant=parts.constant)


class _Chained(FactorTables):
    """The tables of a model, with those of its chains among them in the order of the factors.

    Attributes
    ----------
    costs : list of float64 arrays
        Costs of the chain variables.
    follow : list of (scope, labels)
        The maps to their labels.
    required : list of Many
        Factors whose feasibility arc consistency does not decide.
    required_chains : list of (int, int)
        The first chain variable of each of these factors, and the one after its last.
    """

    def __init__(self, pieces: Pieces) -> None:
        tables = pieces.tables
        super().__init__(tables.num_labels)
        self._unary, self._constant = tables.unary.copy(), tables.constant
        self.costs: list[Costs] = []
        self.follow: list[tuple[Scope, Ints]] = []
        self.required: list[Many] = []
        self.required_chains: list[tuple[int, int]] = []
        larger, place = tables.larger(), Counts(0, 0, 0, 0)
        for placed in pieces.many:
            self.take(tables, larger, place, placed.before)
            place = placed.before
            if isinstance(placed, Single):
                self._add_single(placed)
            elif isinstance(placed, Copies):
                self._add_copies(placed)
            else:
                self._add_parities(placed)
        self.take(tables, larger, place, tables.counts)
        self.take_potentials(tables)

    def add_unary(self, variable: int, costs: Costs) -> None:
        """Add the costs of the labels of a variable or chain variable."""
        own = variable - len(self.num_labels)
        if own >= 0:
            self.costs[own] += costs
        else:
            super().add_unary(variable, costs)

    @property
    def _free(self) -> int:
        """The number of the next chain variable."""
        return len(self.num_labels) + len(self.costs)

    def _add_single(self, placed: Single) -> None:
        chain = placed.made(self.num_labels).at(self._free)
        if is_required(placed.factor, chain):
            self.required.append(placed.factor)
            self.required_chains.append((chain.free, chain.free + len(chain.num_labels)))
        self.costs += [np.zeros(d) for d in chain.num_labels]
        self.follow += chain.follows
        for scope, costs in chain.factors:
            self.add_factor(scope, costs)

    def _add_copies(self, placed: Copies) -> None:
        factor, scopes, chain = placed.factor, placed.scopes, placed.chain
        k, free, more = scopes.shape[1], self._free, len(chain.num_labels)
        added = free + np.arange(len(scopes) * more).reshape(len(scopes), more)
        every = np.concatenate([scopes, added], axis=1)
        if not chain.tree and kept_whole(factor):
            self.required += [factor.over(tuple(row)) for row in scopes.tolist()]
            self.required_chains += [
                (a, a + more) for a in (free + more * np.arange(len(scopes))).tolist()
            ]
        columns = [
            [(tuple(scope), labels) for scope in every[:, list(own)].tolist()]
            for own, labels in chain.follows
        ]
        self.follow += [pair for row in zip(*columns, strict=True) for pair in row]
        zeros = [list(np.zeros((len(every), d))) for d in chain.num_labels]
        self.costs += [own for row in zip(*zeros, strict=True) for own in row]
        for scope, costs in chain.factors:
            self.add_repeated(every[:, list(scope)], costs, bulk=max(scope, default=-1) >= k)

    def _add_parities(self, placed: Parities) -> None:
        members, start, odd = placed.members, placed.start, placed.odd
        count = np.diff(start)
        tables = count - 2  # of each chain; one fewer are its chain variables
        owner = np.repeat(np.arange(len(count)), tables)
        place = within(tables)
        chained = self._free + np.arange(len(owner)) - np.repeat(np.arange(len(count)), tables)
        begins, ends = place == 0, place == count[owner] - 3
        scopes = np.column_stack([
            np.where(begins, members[start[owner]], chained - 1),
            members[start[owner] + place + 1],
            np.where(ends, members[start[owner + 1] - 1], chained),
        ])  # fmt: skip
        total = np.add.outer(np.add.outer(np.arange(2), np.arange(2)), np.arange(2)) % 2
        even = np.where(total == 0, 0.0, np.inf)
        self.add_alike(scopes, np.stack([even, even[::-1]])[ends * odd[owner]])
        follows = (np.arange(2)[:, None] + np.arange(2)) % 2
        before = scopes[~ends, :2].tolist()
        self.follow += [(tuple(scope), follows) for scope in before]
        self.costs += list(np.zeros((len(before), 2)))
