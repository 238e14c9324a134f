"""Annealing over single labels: a numpy twin, and laws that hold whatever the limits of calls."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from softmap import core, generators
from softmap.arguments import seeded
from softmap.labels.annealing import LabelAnnealing
from softmap.relaxation.flat import FlatModel, flatten
from support.numpy_twins import MASK, Xoshiro
from support.oracles import brute_force, energy_by_hand
from support.strategies import models, seeds

LIMIT = 2**60


def native(flat: FlatModel, seed: int = 0) -> core.Annealing:
    return core.Annealing(flat.native, seeded(seed))


class Twin:
    """The algorithm in plain numpy: all costs anew at each look, nothing incremental."""

    def __init__(self, flat: FlatModel, seed: int) -> None:
        self.counts = [int(k) for k in flat.num_labels]
        self.n, ends = len(self.counts), np.cumsum(self.counts)
        self.unary = np.split(flat.unary, ends[:-1])
        starts, at, self.factors = flat.scope_start.tolist(), 0, []
        for first, last in itertools.pairwise(starts):
            scope = flat.scope[first:last].tolist()
            shape = [self.counts[i] for i in scope]
            size = math.prod(shape)
            self.factors.append((scope, flat.tables[at : at + size].reshape(shape)))
            at += size
        self.seed = [int(word) for word in seeded(seed)]
        self.hard = any(np.isinf(block).any() for block in self._blocks())
        ranges = [len(scope) * _range(table) for scope, table in self.factors]
        total = sum(map(_range, self.unary)) + sum(ranges)
        self.penalty = total / self.n if total > 0 else 1.0
        self.margin = 1e-12 * self.penalty
        noise, words = [-math.log((k + 0.5) / 4096) for k in range(4096)], Xoshiro([1, 2, 3, 4])
        for k in range(4095, 0, -1):
            other = words.below(k + 1)
            noise[k], noise[other] = noise[other], noise[k]
        self.noise = noise
        self.best: list[int] | None = None
        self.least, self.hot, self.cold = math.inf, 1.0, 1.0

    def _blocks(self):
        return [*self.unary, *(table for _, table in self.factors)]

    def terms(self, x):
        yield from (self.unary[i][x[i]] for i in range(self.n))
        yield from (table[tuple(x[i] for i in scope)] for scope, table in self.factors)

    def energy(self, x):
        return sum(self.penalty if math.isinf(term) else term for term in self.terms(x))

    def costs(self, x, i):
        """The cost of each label of a variable, given the other labels."""
        out = np.where(np.isinf(self.unary[i]), self.penalty, self.unary[i])
        for scope, table in self.factors:
            if i in scope:
                line = table[tuple(slice(None) if j == i else x[j] for j in scope)]
                out = out + np.where(np.isinf(line), self.penalty, line)
        return out

    def run(self, number: int, *, first: int = 16, again: int = 6, reheat: float = 0.65) -> None:
        words = Xoshiro([_mixed(self.seed[k] + 4 * number + k) for k in range(4)])
        level, turn = divmod(number - 1, 1 + again) if number else (0, 0)
        sweeps, start = (first << level if number else 0), self.hot
        fresh = turn == 0 or self.best is None
        if fresh:
            x = [words.below(count) for count in self.counts]
        else:
            assert self.best is not None
            sweeps = max(sweeps // again, first)
            start, x = max(self.hot * reheat**turn, self.cold), list(self.best)
        for sweep in range(sweeps):
            self._sweep(x, start * (self.cold / start) ** (sweep / max(sweeps - 1, 1)), words)
        while self._sweep(x, 0.0, words):
            pass
        if fresh:
            self._set_temperatures(x)
        self._combine(x)
        if self.hard:
            self.penalty *= 2.0 if any(map(math.isinf, self.terms(x))) else 0.8

    def _sweep(self, x, temperature, words) -> bool:
        changed = False
        for i in range(self.n):
            before = x[i]
            x[i] = self._drawn(self.costs(x, i), x[i], temperature, words)
            changed |= x[i] != before
        self._keep(x)
        return changed

    def _drawn(self, cost, now, temperature, words) -> int:
        if temperature == 0.0 or len(cost) == 1:
            best = int(np.argmin(cost))
            return best if cost[best] < cost[now] - self.margin else now
        if len(cost) == 2:
            rise = cost[1 - now] - cost[now]
            if not rise < 9.02 * temperature:
                return now
            return 1 - now if rise < temperature * self.noise[words.word() >> 52] else now
        at = words.word() >> 52
        gumbel = [-math.log(self.noise[(at + x) % 4096]) for x in range(len(cost))]
        return int(np.argmin([c - temperature * g for c, g in zip(cost, gumbel, strict=True)]))

    def _keep(self, x) -> None:
        energy = sum(self.terms(x))
        if energy < self.least - self.margin:
            self.least, self.best = energy, list(x)

    def _set_temperatures(self, x) -> None:
        rises = [[r for r in self.costs(x, i) - self.costs(x, i)[x[i]] if r > self.margin]
                 for i in range(self.n)]  # fmt: skip
        least = sorted(min(own) for own in rises if own)
        every = sorted(rise for own in rises for rise in own)
        self.hot = _quantile(least, 0.75)
        cold = 0.12 * min(_quantile(least, 0.1), _quantile(every, 0.1))
        self.cold = min(max(cold, self.hot / 300.0), self.hot)

    def _combine(self, x) -> None:
        if self.best is None:
            return
        best, met = list(self.best), set()
        for root in range(self.n):
            if x[root] == best[root] or root in met:
                continue
            part = {root}
            while True:
                ties = (set(scope) for scope, _ in self.factors if part & set(scope))
                more = {j for tie in ties for j in tie if x[j] != best[j]} | part
                if more == part:
                    break
                part = more
            met |= part
            other = [best[i] if i in part else x[i] for i in range(self.n)]
            if self.energy(other) <= self.energy(x):
                x[:] = other
        self._keep(x)


def _range(block) -> float:
    finite = block[np.isfinite(block)]
    return float(np.ptp(finite)) if finite.size else 0.0


def _quantile(values, share) -> float:
    return values[int(share * (len(values) - 1))] if values else 1.0


def _mixed(word: int) -> int:
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def _whole(flat: FlatModel) -> FlatModel:
    """Costs rounded to integers: sums are then the same in every order."""
    return FlatModel(
        flat.num_labels, np.round(4 * flat.unary), flat.scope_start, flat.scope,
        np.round(4 * flat.tables), 0.0,
    )  # fmt: skip


BINARY = {"hard": False, "max_d": 2, "families": ("tables", "potts")}  # stored as flips


@given(models(max_n=5) | models(max_n=5, **BINARY), seeds)
def test_runs_are_those_of_the_twin(model, seed):
    flat = _whole(flatten(model.network))
    compiled, twin = native(flat, seed), Twin(flat, seed)
    labels = np.zeros(len(flat.num_labels), np.int64)
    for number in range(9):
        while compiled.runs <= number:
            compiled.run(1)  # at most one sweep
        twin.run(number)
        assert compiled.best(labels) == (twin.best is not None)
        assert compiled.least == twin.least
        if twin.best is not None:
            assert labels.tolist() == twin.best


@given(
    models(max_n=6) | models(max_n=6, **BINARY),
    seeds,
    st.lists(st.integers(1, 400), min_size=1, max_size=5),
)
def test_costs_are_those_of_the_current_labels(model, seed, works):
    flat = flatten(model.network)
    search, twin = native(flat, seed), Twin(flat, seed)
    labels, costs = np.zeros(twin.n, np.int64), np.zeros(len(flat.unary))
    for work in works:
        twin.penalty, runs = search.penalty, search.runs
        search.run(work)
        energy, violated = search.state(labels, costs)
        if search.runs != runs:  # the penalty may have changed on the way
            continue
        x = labels.tolist()
        expected = np.concatenate([twin.costs(x, i) for i in range(twin.n)])
        np.testing.assert_allclose(costs, expected, atol=1e-9 * max(1.0, twin.penalty))
        assert energy == pytest.approx(twin.energy(x), abs=1e-9 * max(1.0, twin.penalty))
        assert violated == sum(map(math.isinf, twin.terms(x)))


@given(models(max_n=6), seeds)
def test_labels_never_cost_more_and_obey_hard_constraints(model, seed):
    start = np.asarray(brute_force(model)[1])[: model.network.num_variables]
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, model.network.num_labels[: model.network.num_variables])
    start = drawn if np.isfinite(model.energy(drawn)) else start
    found = LabelAnnealing(flatten(model.network), seed).improve(start, work=3000)
    assert model.energy(found) <= model.energy(start) + 1e-9
    assert np.isfinite(energy_by_hand(model, model.network.complete(found)))


@example(generators.random_tree(1, 2, seed=0).replace(constant=-9.0), 0)
@given(models(max_n=6), seeds)
def test_small_models_are_solved(model, seed):
    found = LabelAnnealing(flatten(model.network), seed).improve(
        np.zeros(model.network.num_variables, np.int64), work=100_000
    )
    assert model.energy(found) == pytest.approx(brute_force(model)[0], abs=1e-9)


@given(seeds, st.lists(st.integers(1, 60_000), max_size=6))
def test_slices_do_not_matter(seed, works):
    flat = flatten(generators.random_grid(5, 5, 3, seed=seed % 100).network)
    once, often = native(flat, seed), native(flat, seed)
    done = sum(often.run(work) for work in works) + often.run(100_000)
    assert once.run(done) == done
    states = []
    for search in (once, often):
        labels, best, costs = np.zeros(25, np.int64), np.zeros(25, np.int64), np.zeros(75)
        energy = search.state(labels, costs)
        search.best(best)
        states.append((energy, search.runs, labels.tolist(), best.tolist(), costs.tolist()))
    assert states[0] == states[1]


def test_short_slices_of_time_do_not_matter():
    flat = flatten(generators.random_grid(20, 20, 3, seed=1).network)
    one, two = native(flat), native(flat)
    while two.runs < 12:
        two.run(LIMIT, core.Deadline(1e-4))
    while one.runs < two.runs:
        one.run(1)  # at most one sweep
    assert two.least <= one.least  # the slice of time may have ended later in the next run
    while one.least > two.least and one.runs == two.runs:
        one.run(1)
    assert one.least == two.least


def test_labels_from_elsewhere_are_taken_over():
    model = generators.random_grid(3, 3, 2, seed=5)
    least, best = brute_force(model)
    search = native(flatten(model.network))
    search.offer(np.asarray(best, np.int64))
    assert search.least == pytest.approx(least, abs=1e-9)
    search.offer(1 - np.asarray(best, np.int64))
    labels = np.zeros(9, np.int64)
    assert search.best(labels)
    np.testing.assert_array_equal(labels, best)


def test_limits_are_kept():
    flat = flatten(generators.random_grid(6, 6, 4, seed=3).network)
    start = np.zeros(36, dtype=np.int64)
    np.testing.assert_array_equal(
        LabelAnnealing(flat).improve(start, deadline=core.Deadline(0.0)), start
    )
    stopped = core.Deadline()
    stopped.stop()
    np.testing.assert_array_equal(LabelAnnealing(flat).improve(start, deadline=stopped), start)
    np.testing.assert_array_equal(LabelAnnealing(flat).improve(start, work=0), start)


def test_models_without_variables_or_choice_end():
    empty = np.zeros(0)
    nothing = FlatModel(*(np.zeros(0, np.int64), empty, np.zeros(1, np.int64)),
                        np.zeros(0, np.int64), empty, 0.0)  # fmt: skip
    assert native(nothing).run(1000) == 0
    one = FlatModel(np.array([1]), np.array([2.0]), *(np.zeros(1, np.int64),),
                    np.zeros(0, np.int64), empty, 0.0)  # fmt: skip
    assert LabelAnnealing(one).improve(np.zeros(1, np.int64), work=1000).tolist() == [0]


def test_wrong_arrays_are_named():
    flat = flatten(generators.random_grid(2, 2, 2, seed=0).network)
    with pytest.raises(ValueError, match="variable 0 has no label 2"):
        native(flat).offer(np.array([2, 0, 0, 0]))
    with pytest.raises(ValueError, match="labels"):
        native(flat).best(np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="costs"):
        native(flat).state(np.zeros(4, np.int64), np.zeros(3))
