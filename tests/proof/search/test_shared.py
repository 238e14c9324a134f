"""A search on several processes proves what one proves, whatever they exchange and when."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import Model, SoftmapError, core
from softmap.proof.search.exact import ExactSearch
from softmap.proof.search.shared import Move, SharedSearch, Sharing, moves
from support.oracles import brute_force
from support.ranks import together
from support.strategies import models

# exchanges after each backtrack, and nodes that move as often as possible
OFTEN = Sharing(first=1, backtracks=1, uneven=1)
PLAIN = {"presolve": False, "ascent": False, "dp_limit": 0.0}


def searched(model, size, *, limit=math.inf, sharing=OFTEN, change=None, **options):
    """What each of `size` processes returns; `change` alters the search of each before it runs."""

    def work(comm):
        search = ExactSearch(model, **options)
        if change is not None:
            change(search, comm.rank)
        return SharedSearch(comm, search, sharing=sharing).run(limit)

    return together(size, work)


def result(model, size, **options):
    """The one result of all processes."""
    every = searched(model, size, **options)
    for found in every:
        if isinstance(found, BaseException):
            raise found
        assert (found.energy, found.lower_bound) == (every[0].energy, every[0].lower_bound)
        assert (found.complete, found.nodes) == (every[0].complete, every[0].nodes)
        assert np.array_equal(found.labels, every[0].labels) or found.labels is None
    return every[0]


def clique(seed, n=9, labels=3):
    """A model whose search has hundreds of nodes: all pairs, normal costs."""
    rng = np.random.default_rng(seed)
    edges = [(i, j) for i in range(n) for j in range(i)]
    return Model(rng.normal(size=(n, labels)), edges, rng.normal(size=(len(edges), labels, labels)))


def spins(seed, n=26, edges=110):
    """Two labels, couplings from -5 to 5: dives end far from the optimum."""
    rng = np.random.default_rng(seed)
    pairs = np.array([(i, j) for i in range(n) for j in range(i)])
    some = pairs[rng.choice(len(pairs), edges, replace=False)]
    weights = rng.integers(-5, 6, edges)[:, None, None]
    return Model(np.zeros((n, 2)), some, weights * np.array([[1.0, -1.0], [-1.0, 1.0]]))


@given(models(), st.integers(2, 4), st.booleans(), st.integers(-1, 3))
def test_the_optimum_is_that_of_brute_force(model, size, plain, seed):
    least = brute_force(model)[0]
    known = None
    if seed >= 0:
        known = np.random.default_rng(seed).integers(0, model.num_labels[: model.num_variables])
        known = known if np.isfinite(model.energy(known)) else None
    found = result(model, size, incumbent=known, **(PLAIN if plain else {}))
    assert found.complete
    if not math.isfinite(least):
        assert found.infeasible
        return
    assert found.energy == pytest.approx(least, rel=1e-9, abs=1e-9)
    assert found.energy == pytest.approx(model.energy(found.labels), rel=1e-9, abs=1e-9)
    assert found.lower_bound <= least + 1e-12 * abs(least)


def constrained(seed, n, labels, forbidden):
    """All pairs, costs 0 to 10 or forbidden; the model and the energies of all its labellings."""
    rng = np.random.default_rng(seed)
    edges = [(j, i) for i in range(n) for j in range(i)]
    shape = len(edges), labels, labels
    tables = np.where(rng.random(shape) < 0.4, rng.integers(1, 11, shape), 0).astype(float)
    tables[rng.random(shape) < forbidden] = np.inf
    energies = np.zeros((labels,) * n)
    for (i, j), table in zip(edges, tables, strict=True):
        energies = energies + table.reshape([labels if k in (i, j) else 1 for k in range(n)])
    return Model(np.zeros((n, labels)), edges, tables), energies


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(5, 8), st.sampled_from([0, 0.2, 0.35]))
def test_hard_constraints_against_all_labellings(seed, size, n, forbidden):
    model, energies = constrained(seed, n, 3, forbidden)
    found = result(model, size, **PLAIN)
    least = energies.min()
    assert found.complete
    assert found.infeasible == math.isinf(least)
    if math.isfinite(least):
        assert found.energy == found.lower_bound == least == energies[tuple(found.labels)]


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(0, 12), st.booleans())
def test_bounds_hold_wherever_a_search_is_cut_off(seed, size, exchanges, known):
    """After some exchanges every process stops: no bound of any process exceeds the optimum."""
    model, energies = constrained(seed, 8, 3, 0.0)
    least = energies.min()
    labels = np.zeros(model.n, np.int64) if known else None
    left = [exchanges] * size

    def work(comm):
        def enough(energy, bound):
            left[comm.rank] -= 1
            return left[comm.rank] < 0

        search = ExactSearch(model, incumbent=labels, **PLAIN)
        told = SharedSearch(comm, search, enough=enough, sharing=OFTEN).run()
        return told, search.run(backtrack_limit=1)

    for told, own in together(size, work):
        for found in (told, own):  # what this process says alone is true of the whole model, too
            assert found.lower_bound <= least <= found.energy
            if found.complete:
                assert found.energy == least


@pytest.mark.parametrize("size", [2, 3, 4])
def test_nodes_move_from_the_process_that_has_them_all(size):
    for model in (clique(0, 14), clique(1, 14), spins(0), spins(1)):
        alone = ExactSearch(model, **PLAIN).run()
        found = result(model, size, **PLAIN)
        assert found.complete
        assert found.energy == pytest.approx(alone.energy, rel=1e-9)
        assert found.lower_bound == pytest.approx(alone.lower_bound, rel=1e-9)
        assert min(found.counts["nodes"]) > 0


@pytest.mark.threads
def test_processes_with_several_threads_each():
    model = spins(3, 40, 200)
    alone = ExactSearch(model, **PLAIN).run()
    brief = Sharing(first=20, shortest=0.003, longest=0.003)
    found = result(model, 2, sharing=brief, threads=2, split_work=0, **PLAIN)
    assert found.complete
    assert found.energy == found.lower_bound == alone.energy
    assert min(found.counts["nodes"]) > 0


def test_forgetting_nodes_that_move_would_be_seen():
    """The tests above can fail: a search that loses what it receives misses optimal labellings."""

    class Forgetful:
        def __init__(self, native):
            self._native = native

        def __getattr__(self, name):
            return getattr(self._native, name)

        def receive(self, parcel):
            pass

    def forget(search, rank):
        search.native = Forgetful(search.native)

    wrong = 0
    for seed in range(8):
        least = ExactSearch(spins(seed), **PLAIN).run().energy
        assert result(spins(seed), 2, **PLAIN).lower_bound == least
        wrong += result(spins(seed), 2, change=forget, **PLAIN).lower_bound > least
    assert wrong >= 4


def test_a_search_whose_nodes_are_elsewhere_is_not_complete():
    """Nodes that were given away count with their bounds until others say more."""
    model = spins(1)
    alone = ExactSearch(model, **PLAIN).run()
    search = ExactSearch(model, **PLAIN)
    search.run(backtrack_limit=30)
    parcel = search.native.give(1, 1)
    for _ in range(3):
        found = search.run()
        assert not found.complete
        assert found.lower_bound < alone.energy
    search.native.receive(parcel)
    search.native.set_elsewhere(1 << 61)
    found = search.run()
    assert found.complete
    assert found.energy == pytest.approx(alone.energy)


@pytest.mark.parametrize("seed", [0, 5, 9])  # with these, an exchange of nodes would be seen
def test_processes_whose_models_differ_exchange_nothing(seed):
    """One process has presolved the model and the others have not: they search alone."""
    model = spins(seed)
    least = ExactSearch(model).run().energy

    def work(comm):
        search = ExactSearch(model, **(PLAIN | {"presolve": comm.rank == 1}))
        return SharedSearch(comm, search, sharing=OFTEN).run()

    for found in together(3, work):
        assert found.complete
        assert found.energy == found.lower_bound == least


def test_hard_constraints_that_contradict_each_other():
    """Four variables that must differ and three labels: no labelling, and a tree to see that."""
    edges = [(i, j) for i in range(4) for j in range(i)]
    differ = np.where(np.eye(3), np.inf, np.arange(9).reshape(3, 3) * 0.1)
    model = Model(np.zeros((4, 3)), edges, [differ] * len(edges))
    for size in (1, 2, 3):
        found = result(model, size, **PLAIN)
        assert found.complete
        assert found.infeasible
        assert found.labels is None


def test_a_time_limit_leaves_a_valid_bound_in_all_processes():
    model = clique(0, 24, 6)
    found = result(model, 2, limit=0.3, sharing=Sharing(), **PLAIN)
    assert not found.complete
    assert found.counts["nodes"][1] > 0
    assert found.lower_bound <= found.energy == pytest.approx(model.energy(found.labels))


def test_a_search_that_fails_fails_in_all_processes():
    def fail(search, rank):
        usual, calls = search.run, iter(range(10**6))

        def run(**limits):
            if rank == 1 and next(calls) == 2:
                raise KeyboardInterrupt
            return usual(**limits)

        search.run = run

    found = searched(spins(0), 3, change=fail, **PLAIN)
    assert isinstance(found[1], KeyboardInterrupt)
    for error in (found[0], found[2]):
        assert isinstance(error, SoftmapError)
        assert str(error) == "the search of process 1 failed: KeyboardInterrupt"


def test_a_stop_flag_of_one_process_stops_all():
    def work(comm):
        stop = core.Deadline()
        if comm.rank == 1:
            stop.stop()
        return SharedSearch(comm, ExactSearch(clique(0, 24, 6), **PLAIN), stop=stop).run()

    every = together(2, work)
    assert not any(found.complete for found in every)


@pytest.mark.parametrize(
    ("word", "why"),
    [((5, 1, 99 << 32), "variable"), ((5, 1, (1 << 32) | (2 << 2)), "label"), ((5, 2, 0), "short")],
)
def test_parcels_that_are_no_nodes_are_refused(word, why):
    search = ExactSearch(spins(1), **PLAIN)
    search.run(backtrack_limit=30)
    with pytest.raises(ValueError, match="not open nodes"):
        search.native.receive(np.array(word, np.int64).tobytes())
    with pytest.raises(ValueError, match="not labels"):
        search.native.take(np.full(26, 2), 0)
    with pytest.raises(ValueError, match="no search"):
        ExactSearch(spins(1)).native.set_elsewhere(0)


def test_moves_go_from_the_richest_to_the_poorest():
    usual = Sharing()
    assert moves([10, 0, 0, 0], usual) == [Move(0, 1, 5)]
    assert moves([1, 0], usual) == []
    assert moves([0, 2, 40, 9], usual) == [Move(2, 0, 20), Move(3, 1, 3)]
    assert moves([5, 9, 7], usual) == []
    assert moves([0, 10**6], replace(usual, most=100)) == [Move(1, 0, 100)]
    assert moves([7], usual) == []
