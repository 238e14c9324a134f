"""Every family of the registry against every verb and every part that takes potentials.

Messages, passes, bounds and couplings of the kernels are crossed with the registry where they are
tested.
"""

from __future__ import annotations

import io
from functools import partial

import numpy as np
import pytest

import softmap
from softmap import labels, lp
from softmap.errors import ModelError
from softmap.io.formats import FORMATS
from softmap.methods.base import METHODS, Proposal
from softmap.model import Model
from softmap.model.potentials import Potential
from softmap.relaxation.consistency import arc_consistency, tighten
from softmap.run.certificate import certificate
from softmap.run.judge import Judge
from softmap.subsolvers.clusters.regions import build
from support.families import FAMILIES, Ends, Numbers
from support.files import same_energies
from support.methods import UPDATES
from support.numpy_twins import hard_message, soft_message
from support.oracles import brute_force, dense_lp, energy_by_hand
from support.strategies import dense, random_lam

# Linear programs are written for other solvers: their columns are not the variables of the model.
PROGRAMS = ("lp", "mps")
BOTH = [name for name, form in FORMATS.items() if form.reader and form.writer and not form.only]
WRITABLE = [name for name in BOTH if name not in PROGRAMS]
EDGES = np.array([[0, 1], [2, 1], [2, 3], [3, 0], [1, 0], [4, 2], [4, 3]])
FAMILY = pytest.mark.parametrize("name", FAMILIES)
SEED = pytest.mark.parametrize("seed", range(6))


def example(name: str, seed: int, whole: bool = False) -> Model:
    """Five variables, seven edges, hard constraints; a hidden labelling is allowed."""
    numbers = Numbers(np.random.default_rng(seed), hard=True, whole=whole)
    counts = np.array([3, 4, 2, 3, 3]) if seed % 2 else np.full(5, 3)
    hidden = numbers.rng.integers(0, counts)
    keep = [(int(x), int(y)) for x, y in hidden[EDGES]]
    group = FAMILIES[name].make(numbers, Ends(*counts[EDGES].T.tolist(), keep))
    return Model([numbers.costs(int(d)) for d in counts], EDGES, group, constant=1000.0)


def group(name: str, seed: int) -> tuple[Potential, np.ndarray, np.ndarray]:
    """The potential of the example, and the labels of both ends of its edges."""
    model = example(name, seed)
    (_, _, potential), *_ = model.network.groups()
    return potential, *model.num_labels[model.edges].T


@SEED
@FAMILY
def test_five_verbs_agree_with_the_tables(name, seed):
    potential, rows, cols = group(name, seed)
    tables = [potential.as_table(k, int(rows[k]), int(cols[k])) for k in range(len(potential))]
    assert len(potential) == len(EDGES)
    for k, table in enumerate(tables):
        x, y = np.ogrid[: rows[k], : cols[k]]
        np.testing.assert_array_equal(potential.value(k, x, y), table)
        assert len(potential.arrays()) > 0
        doubled = potential.scaled(2.0).as_table(k, *table.shape)
        np.testing.assert_array_equal(doubled, 2.0 * table)
    for index in ([4, 0, 4], [-1], np.arange(7) % 2 == 0, np.zeros(7, dtype=bool)):
        part, kept = potential.take(index), np.arange(7)[index]
        assert len(part) == len(kept)
        for j, k in enumerate(kept):
            np.testing.assert_array_equal(part.as_table(j, *tables[k].shape), tables[k])
    with pytest.raises(ModelError):
        potential.take([7])


@SEED
@FAMILY
def test_verbs_with_a_default_agree_with_the_tables(name, seed):
    potential, rows, cols = group(name, seed)
    tables = [potential.as_table(k, int(rows[k]), int(cols[k])) for k in range(len(potential))]
    potential.check(rows, cols)
    with pytest.raises(ModelError):
        potential.check(rows[:-1], cols[:-1])
    assert len(potential.tile_key(rows, cols)) == len(potential)
    assert potential.has_forbidden() >= any(np.isinf(t).any() for t in tables)
    low, high = potential.extremes(rows, cols)
    finite = [t[np.isfinite(t)] for t in tables]
    assert all(low[k] <= t.min() and high[k] >= t.max() for k, t in enumerate(finite))
    assert potential.largest(rows, cols) >= max(np.abs(t).max() for t in finite)
    for k, table in enumerate(tables):
        shape = table.shape
        weight, stack = potential.factors(np.array([k]), *shape)
        np.testing.assert_array_equal(weight[0] * stack[0], table)
        np.testing.assert_array_equal(potential.stack([k], *shape)[0], table)
        for spread in range(2):
            np.testing.assert_array_equal(
                potential.take([k]).spread(2).as_table(spread, *shape), table
            )
        for side, far in enumerate((table, table.T)):
            a = np.linspace(0.0, 1.0, far.shape[1])
            hard = hard_message(potential, k, side, a, len(far))
            np.testing.assert_allclose(hard, (far + a).min(axis=1), atol=1e-12)
            soft = soft_message(potential, k, side, a, 1e6, len(far))
            np.testing.assert_allclose(soft, hard, atol=1e-5)
        distinct = np.unique(table[np.isfinite(table)])
        if len(distinct) > 1:
            assert 0.0 < potential.steps(rows, cols)[k] <= distinct[-1] - distinct[0] + 1e-12


@SEED
@FAMILY
def test_clusters_and_conditions_keep_every_energy(name, seed):
    model = example(name, seed)
    tight = build(model.network, [(0, 1, 2)])
    best, labels = brute_force(model)
    assert tight.model.energy(labels) == pytest.approx(best)
    relaxed = lp.solve(tight.model).value
    assert dense_lp(model) - 1e-7 <= relaxed <= best + 1e-7
    fixed = model.condition({0: int(labels[0])})
    assert brute_force(fixed)[0] == pytest.approx(best)


@SEED
@FAMILY
@pytest.mark.parametrize("form", WRITABLE)
def test_files_keep_every_energy(name, form, seed):
    if form == "opengm":
        pytest.importorskip("h5py")
    model, file = example(name, seed, whole=form == "wcsp"), io.BytesIO()
    costs = np.concatenate([t.ravel() for t in model.network.tables()])
    costs = costs[np.isfinite(costs)]
    if form == "wcsp" and (costs != np.round(costs)).any():
        with pytest.raises(ModelError, match="whole"):
            softmap.write(model, file, format=form)
        return
    softmap.write(model, file, format=form)
    file.seek(0)
    again = softmap.read(file, format=form)
    assert same_energies(model, again)
    if form == "npz":
        assert again.fingerprint() == model.fingerprint()


@SEED
@FAMILY
def test_the_lp_is_that_of_the_tables(name, seed):
    model = example(name, seed)
    assert lp.solve(model).value == pytest.approx(dense_lp(model), abs=1e-7)


@SEED
@FAMILY
def test_consistency_is_that_of_the_tables(name, seed):
    model = example(name, seed).condition({0: 0} if seed == 1 else {})
    try:
        allowed = arc_consistency(model)
    except softmap.InfeasibleModel:
        with pytest.raises(softmap.InfeasibleModel):
            arc_consistency(dense(model))
    else:
        np.testing.assert_array_equal(allowed, arc_consistency(dense(model)))


@SEED
@FAMILY
def test_the_judge_says_what_the_plain_account_says(name, seed):
    model = tighten(example(name, seed))
    lam = np.where(np.isfinite(model.unary)[half_states(model)], random_lam(model, seed), 0.0)
    judge, proof = Judge.of(model), certificate(model, lam, 20.0)
    verdict = judge.look(Proposal(lam, 20.0))
    assert verdict.bound == pytest.approx(proof.bound, abs=1e-9)
    assert judge.best.bound <= dense_lp(model) + 1e-7
    assert judge.best.primal >= dense_lp(model) - 1e-7


def half_states(model: Model) -> np.ndarray:
    """The node state of every entry of λ."""
    nodes = model.edges.reshape(-1)
    return np.concatenate([np.r_[model.network.node_slice(int(i))] for i in nodes])


@SEED
@FAMILY
def test_searches_for_labels_only_improve(name, seed):
    model = tighten(example(name, seed))
    best, optimum = brute_force(model)
    given = labels.decode(model, random_lam(model, seed))
    energy = energy_by_hand(model, model.complete(given))
    for search in (labels.icm, partial(labels.forests, rounds=3)):
        found = search(model, given)
        assert best - 1e-9 <= energy_by_hand(model, model.complete(found)) <= energy + 1e-9
        kept = search(model, optimum)
        assert energy_by_hand(model, model.complete(kept)) == pytest.approx(best)


@FAMILY
@pytest.mark.parametrize("method", METHODS)
def test_every_method_proves_bounds(name, method):
    model = example(name, 3)
    fixed = {"eta": 30.0} if method in UPDATES or METHODS[method].fixed_eta else {}
    result = softmap.paper.solve(
        model, method=method, max_work=2 * model.m * 40, threads=2, **fixed
    )
    best, _ = brute_force(model)
    assert result.bound <= best + 1e-9
    assert best <= result.energy + 1e-9
    assert result.energy == pytest.approx(model.energy(result.labels))


@SEED
@FAMILY
def test_solve_reaches_the_lp_of_the_tables(name, seed):
    model = example(name, seed)
    best, relaxed = brute_force(model)[0], dense_lp(model)
    result = softmap.solve(model, goal="lp", lp_gap=1e-6, gap=0.0)
    assert result.bound == pytest.approx(relaxed, abs=2e-6 * relaxed)
    assert result.energy >= best - 1e-9
    if relaxed > best - 1e-6:  # a tight relaxation leaves nothing to search for
        assert result.energy == pytest.approx(best)
