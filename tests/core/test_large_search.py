"""Exact search over large models, whose set-up threads share, against dynamic programming."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from softmap.labels.exact import ExactResult, solve_exact
from softmap.relaxation.flat import FlatModel, elimination_order

ROWS, COLUMNS = 3, 3_000  # more variables than one thread sets up alone
STATES = np.array(list(itertools.product(range(2), repeat=ROWS)))
THREADS = (1, 2, 5)

pytestmark = pytest.mark.threads


@dataclass
class Ladder:
    """A grid of three rows and two labels, with integer costs."""

    unary: np.ndarray  # (columns, rows, 2)
    down: np.ndarray  # (columns, rows - 1, 2, 2)
    along: np.ndarray  # (columns - 1, rows, 2, 2)

    @classmethod
    def drawn(cls, seed: int, forbidden: float = 0.0) -> Ladder:
        rng = np.random.default_rng(seed)

        def costs(*shape: int) -> np.ndarray:
            drawn = rng.integers(-9, 10, shape).astype(float)
            excluded = rng.random(shape) < forbidden
            excluded[..., 0] &= len(shape) == 4  # label 0 of all variables is possible
            excluded[..., 0, 0] &= len(shape) == 3
            return np.where(excluded, np.inf, drawn)

        return cls(
            costs(COLUMNS, ROWS, 2),
            costs(COLUMNS, ROWS - 1, 2, 2),
            costs(COLUMNS - 1, ROWS, 2, 2),
        )

    def optimum(self) -> float:
        """Dynamic programming over the states of a column."""
        rows = np.arange(ROWS)
        own = self.unary[:, rows, STATES].sum(axis=2)
        own += self.down[:, rows[:-1], STATES[:, :-1], STATES[:, 1:]].sum(axis=2)
        best = own[0]
        for column in range(1, COLUMNS):
            steps = self.along[column - 1][rows, STATES[:, None], STATES[None]].sum(axis=2)
            best = (best[:, None] + steps).min(axis=0) + own[column]
        return float(best.min())

    def flat(self, seed: int) -> FlatModel:
        """The model with some scopes reversed, and some tables as the sum of two factors."""
        rng = np.random.default_rng(seed)
        place = np.arange(ROWS * COLUMNS).reshape(COLUMNS, ROWS)
        scopes = [*_pairs(place[:, :-1], place[:, 1:]), *_pairs(place[:-1], place[1:])]
        tables = [*self.down.reshape(-1, 2, 2), *self.along.reshape(-1, 2, 2)]
        for k in rng.permutation(len(scopes))[:500].tolist():
            part = rng.integers(-9, 10, (2, 2)).astype(float)
            scopes.append(scopes[k])
            tables[k], extra = tables[k] - part, part
            tables.append(extra)
        for k in rng.permutation(len(scopes))[:3000].tolist():
            scopes[k], tables[k] = scopes[k][::-1], tables[k].T
        return FlatModel(
            np.full(place.size, 2),
            self.unary.ravel(),
            2 * np.arange(len(scopes) + 1),
            np.concatenate(scopes),
            np.concatenate([table.ravel() for table in tables]),
            0.0,
        )


def _pairs(first: np.ndarray, second: np.ndarray) -> list[np.ndarray]:
    return list(np.stack([first.ravel(), second.ravel()], axis=1))


def _answer(found: ExactResult) -> tuple[object, ...]:
    labels = None if found.labels is None else found.labels.tolist()
    counts = found.nodes, found.backtracks, found.counts["eliminated"], found.counts["searched"]
    return found.energy, found.lower_bound, found.root_bound, labels, *counts


@pytest.mark.parametrize("forbidden", [0.0, 0.02])
@pytest.mark.parametrize("with_lam", [False, True])
def test_the_optimum_is_that_of_dynamic_programming(forbidden, with_lam):
    ladder = Ladder.drawn(1, forbidden)
    flat, best = ladder.flat(2), ladder.optimum()
    lam = np.random.default_rng(3).normal(size=2 * len(flat.scope)) if with_lam else None
    assert np.isfinite(best)
    answers = set()
    for threads in THREADS:
        found = solve_exact(flat, lam=lam, threads=threads)
        assert found.complete
        assert found.energy == best
        assert found.lower_bound == best
        answers.add(str(_answer(found)))
    assert len(answers) == 1


@pytest.mark.parametrize("forbidden", [0.0, 0.02])
def test_a_search_that_a_limit_ends_is_the_same_with_any_number_of_threads(forbidden):
    ladder = Ladder.drawn(4, forbidden)
    flat, best = ladder.flat(5), ladder.optimum()
    lam = np.random.default_rng(6).normal(size=2 * len(flat.scope))

    def search(threads: int, *, ascent: bool) -> ExactResult:
        return solve_exact(
            flat, lam=lam, threads=threads, ascent=ascent,
            presolve=False, dp_limit=0.0, backtrack_limit=2,
        )  # fmt: skip

    found = [search(threads, ascent=True) for threads in THREADS]
    assert len({str(_answer(one)) for one in found}) == 1
    assert found[0].lower_bound <= best <= found[0].energy
    assert found[0].root_bound > search(1, ascent=False).root_bound - 1e-9


def test_no_labelling_is_found_out_by_all_numbers_of_threads():
    ladder = Ladder.drawn(7)
    ladder.along[COLUMNS // 2] = np.inf
    flat = ladder.flat(8)
    for threads in THREADS:
        assert solve_exact(flat, threads=threads).infeasible


def _entries(flat: FlatModel, order: np.ndarray) -> float:
    """The table entries of an elimination order, by plain sets."""
    near: list[set[int]] = [set() for _ in flat.num_labels]
    for a, b in flat.scope.reshape(-1, 2).tolist():
        near[a].add(b)
        near[b].add(a)
    total = 0.0
    for v in order.tolist():
        around = near[v]
        total += float(np.prod(flat.num_labels[[v, *around]].astype(float)))
        for u in around:
            near[u] |= around - {u}
            near[u].discard(v)
        near[v] = set()
    return total


def test_orders_of_many_variables_have_the_entries_that_they_claim():
    flat = Ladder.drawn(9).flat(10)
    found = elimination_order(flat, 1e9)
    assert found.found
    assert sorted(found.variables.tolist()) == list(range(ROWS * COLUMNS))
    assert found.entries == _entries(flat, found.variables)
    assert found.entries <= COLUMNS * ROWS * 2 ** (ROWS + 1)


def test_a_large_grid_has_no_order_within_the_limit():
    side = 80
    place = np.arange(side * side).reshape(side, side)
    scope = np.concatenate([*_pairs(place[:, :-1], place[:, 1:]), *_pairs(place[:-1], place[1:])])
    pairs = len(scope) // 2
    flat = FlatModel(
        np.full(side * side, 4), np.zeros(4 * side * side), 2 * np.arange(pairs + 1), scope,
        np.zeros(16 * pairs), 0.0,
    )  # fmt: skip
    assert not elimination_order(flat, 1e9).found
