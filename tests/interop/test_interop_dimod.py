"""dimod: conversions against its own energies, and its own tests of samplers."""

import itertools
import unittest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap

dimod = pytest.importorskip("dimod")
testing = pytest.importorskip("dimod.testing")

from softmap.interop import dimod as ours  # noqa: E402
from support.files import labellings, same_energies  # noqa: E402


@testing.load_sampler_bqm_tests(ours.Sampler)
class TestSampler(unittest.TestCase):
    """The tests that dimod has for every sampler of binary models."""

    def test_interface(self):
        testing.assert_sampler_api(ours.Sampler())


def random_bqm(rng, n, vartype):
    linear = {f"v{i}": float(rng.integers(-9, 10)) for i in range(n)}
    pairs = itertools.combinations(linear, 2)
    quadratic = {p: float(rng.integers(-9, 10)) for p in pairs if rng.random() < 0.6}
    return dimod.BinaryQuadraticModel(linear, quadratic, 2.5, vartype)


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
@pytest.mark.parametrize("seed", range(3))
def test_binary_models(vartype, seed):
    bqm = random_bqm(np.random.default_rng(seed), 6, vartype)
    converted = ours.from_bqm(bqm)
    for x in labellings(converted.model):
        assert converted.model.energy(x) == pytest.approx(bqm.energy(converted.assignment(x)))
    again = ours.from_bqm(ours.to_bqm(converted.model, list(converted.node)))
    assert same_energies(converted.model, again.model)
    found = ours.Sampler().sample(bqm)
    best = dimod.ExactSolver().sample(bqm).first.energy
    assert found.first.energy == pytest.approx(best)
    assert found.info["bound"] <= best + 1e-9
    assert found.info["gap"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_discrete_models(seed):
    rng = np.random.default_rng(seed)
    dqm = dimod.DiscreteQuadraticModel()
    for v, d in zip("abcd", (2, 3, 4, 3), strict=True):
        dqm.add_variable(d, label=v)
        dqm.set_linear(v, rng.normal(size=d))
    for u, v in ("ab", "bc", "ad", "dc"):
        dqm.set_quadratic(u, v, rng.normal(size=(dqm.num_cases(u), dqm.num_cases(v))))
    dqm.offset = 1.5
    converted = ours.from_dqm(dqm)
    for x in labellings(converted.model):
        assert converted.model.energy(x) == pytest.approx(dqm.energy(converted.assignment(x)))
    again = ours.from_dqm(ours.to_dqm(converted.model, "abcd"))
    assert same_energies(converted.model, again.model)
    found = ours.Sampler().sample_dqm(dqm)
    testing.assert_sampleset_energies_dqm(found, dqm)
    assert found.first.energy == pytest.approx(dimod.ExactDQMSolver().sample_dqm(dqm).first.energy)


def constrained(seed):
    """A discrete group, an integer, a spin, two binaries; two linear constraints."""
    rng = np.random.default_rng(seed)
    cqm = dimod.ConstrainedQuadraticModel()
    b = [dimod.Binary(f"b{i}") for i in range(5)]
    i, s = dimod.Integer("i", lower_bound=-1, upper_bound=3), dimod.Spin("s")
    terms = [*b, i, s]
    w = rng.integers(-5, 6, (7, 7))
    cqm.set_objective(
        sum(int(w[k, j]) * terms[k] * terms[j] for k in range(7) for j in range(k))
        + sum(int(w[k, k]) * terms[k] for k in range(7))
    )
    cqm.add_discrete(["b0", "b1", "b2"], label="one")
    cqm.add_constraint(b[3] + 2 * i - b[0] <= 3, label="most")
    cqm.add_constraint(s + i + b[4] == 1, label="sum")
    return cqm


@pytest.mark.parametrize("seed", range(4))
def test_constrained_models(seed):
    cqm = constrained(seed)
    found = ours.Sampler().sample_cqm(cqm)
    best = dimod.ExactCQMSolver().sample_cqm(cqm).filter(lambda d: d.is_feasible).first.energy
    assert found.first.is_feasible
    assert found.first.energy == pytest.approx(best)
    assert found.info["bound"] <= best + 1e-9


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_constrained_round_trip_keeps_hard_constraints(seed):
    rng = np.random.default_rng(seed)
    tables = rng.integers(0, 4, (2, 3, 3)).astype(float)
    tables[rng.random(tables.shape) < 0.2] = np.inf
    model = softmap.Model(rng.normal(size=(3, 3)), [[0, 1], [2, 1]], tables, constant=1.0)
    cqm = ours.to_cqm(model)
    for x in labellings(model):
        sample = {(v, k): int(x[v] == k) for v in range(3) for k in range(3)}
        energy = model.energy(x)
        assert cqm.check_feasible(sample) == np.isfinite(energy)
        if np.isfinite(energy):
            assert cqm.objective.energy(sample) == pytest.approx(energy)
    assert same_energies(model, ours.from_cqm(cqm).model) or np.isinf(tables).any()


def test_what_cannot_be_held_is_refused():
    three = softmap.Model(np.eye(3), [[0, 1]], softmap.Potts([1.0]))
    with pytest.raises(softmap.ModelError, match="two labels"):
        ours.to_bqm(three)
    with pytest.raises(softmap.ModelError, match="finite"):
        ours.to_dqm(softmap.Model(np.eye(3), [[0, 1]], softmap.Potts([np.inf])))
    with pytest.raises(softmap.ModelError, match="different names"):
        ours.to_dqm(three, ["a", "a", "b"])
    for convert in (ours.from_bqm, ours.from_dqm, ours.from_cqm):
        with pytest.raises(softmap.ModelError, match="expected a"):
            convert(3)
    wide = dimod.ConstrainedQuadraticModel()
    i, j = (dimod.Integer(name, upper_bound=99) for name in "ij")
    wide.add_constraint(i * j <= 100, label="product")
    with pytest.raises(softmap.ModelError, match="fractions or a weight, and 10000"):
        ours.from_cqm(wide)


@pytest.mark.parametrize(("sense", "rhs"), [("<=", 0.0), (">=", -0.25), ("==", 0.5)])
def test_products_and_fractions_in_constraints(sense, rhs):
    cqm = constrained(1)
    b, s = dimod.Binary("b3"), dimod.Spin("s")
    i = dimod.Integer("i", lower_bound=-1, upper_bound=3)
    cqm.add_constraint_from_model(i * s + 0.5 * b - 0.5 * i, sense, rhs=rhs, label="product")
    best = dimod.ExactCQMSolver().sample_cqm(cqm).filter(lambda d: d.is_feasible).first.energy
    found = ours.Sampler().sample_cqm(cqm, num_reads=2)
    assert found.first.is_feasible
    assert found.first.energy == pytest.approx(best)
    assert {"bound", "gap", "relative_gap", "proof"} <= set(found.info)
    testing.assert_sampleset_energies_cqm(found, cqm)


def test_reads_are_the_best_samples_in_order():
    rng = np.random.default_rng(3)
    j = {(a, b): float(rng.normal()) for a in range(6) for b in range(a)}
    bqm = dimod.BinaryQuadraticModel.from_ising({k: float(rng.normal()) for k in range(6)}, j)
    found = ours.Sampler().sample(bqm, num_reads=5)
    energies = sorted(dimod.ExactSolver().sample(bqm).record.energy)[:5]
    np.testing.assert_allclose(found.record.energy, energies, atol=1e-9)
    assert found.info["proved"] == [True] * 5
    apart = ours.Sampler().sample(bqm, num_reads=3, diversity=2).record.sample
    assert all((a != b).sum() >= 2 for a, b in itertools.combinations(apart, 2))
    with pytest.raises(softmap.OptionError, match="num_reads=3 finds the best samples: no method"):
        ours.Sampler().sample(bqm, num_reads=3, method="trws")


def test_the_answer_says_what_proves_it():
    info = ours.Sampler().sample_ising({"a": 1.0}, {("a", "b"): -1.0}).info
    assert info["proof"] in ("relaxation", "tightened", "search")
    assert info["relative_gap"] == 0


@pytest.mark.parametrize("penalty", ["linear", "quadratic"])
@pytest.mark.parametrize("seed", range(3))
def test_soft_constraints_cost_what_dimod_says(seed, penalty):
    rng = np.random.default_rng(seed)
    cqm = dimod.ConstrainedQuadraticModel()
    bits = [dimod.Binary(f"b{i}") for i in range(5)]
    cqm.set_objective(sum(int(w) * b for w, b in zip(rng.integers(-4, 5, 5), bits, strict=True)))
    senses = ("<=", ">=", "==")
    for k, sense in enumerate(senses):
        left = sum(int(w) * b for w, b in zip(rng.integers(1, 4, 5), bits, strict=True))
        comparison = {"<=": left <= 4, ">=": left >= 5, "==": left == 3}[sense]
        cqm.add_constraint(comparison, label=k, weight=1.5 + k, penalty=penalty)
    converted = ours.from_cqm(cqm)
    samples = [converted.assignment(x) for x in labellings(converted.model)]
    theirs = dimod.SampleSet.from_samples_cqm(samples, cqm, sort_labels=False)
    energies = [converted.model.energy(x) for x in labellings(converted.model)]
    assert np.allclose(energies, theirs.record.energy)
    best = ours.Sampler().sample_cqm(cqm)
    assert best.first.energy == pytest.approx(min(theirs.record.energy))


def test_an_infeasible_constrained_model_has_an_empty_sample_set():
    cqm = dimod.ConstrainedQuadraticModel()
    x, y = dimod.Binary("x"), dimod.Binary("y")
    cqm.set_objective(x + y)
    cqm.add_constraint(x + y >= 2, label="both")
    cqm.add_constraint(x + y <= 1, label="one")
    found = ours.Sampler().sample_cqm(cqm)
    assert len(found) == 0
    assert found.info["status"].startswith("infeasible")


def test_initial_states_are_honoured_and_options_of_annealers_refused():
    bqm = random_bqm(np.random.default_rng(0), 6, "SPIN")
    sampler = ours.Sampler()
    best = dimod.ExactSolver().sample(bqm).first
    start = {v: -value for v, value in best.sample.items()}
    found = sampler.sample(bqm, initial_states=start, time_limit=0)
    assert found.first.energy <= bqm.energy(start)
    kept = sampler.sample(bqm, initial_states=best.sample, time_limit=0)
    assert kept.first.energy == pytest.approx(best.energy)
    with pytest.raises(softmap.ModelError, match="no value for 'v5'"):
        sampler.sample(bqm, initial_states={f"v{i}": 1 for i in range(5)})
    with pytest.raises(softmap.ModelError, match="no valid value for 'v0': 0"):
        sampler.sample(bqm, initial_states=dict.fromkeys(bqm.variables, 0))
    with pytest.raises(softmap.OptionError, match="num_sweeps does not apply: time_limit="):
        sampler.sample(bqm, num_sweeps=100)


def test_a_model_of_any_kind_is_converted_by_one_name():
    bqm = random_bqm(np.random.default_rng(1), 4, "BINARY")
    dqm, cqm = dimod.DiscreteQuadraticModel(), dimod.ConstrainedQuadraticModel()
    dqm.add_variable(3, label="a")
    cqm.set_objective(dimod.Binary("x") * 2)
    for model, count in ((bqm, 4), (dqm, 1), (cqm, 1)):
        assert softmap.interop.from_dimod(model).model.n == count
    with pytest.raises(softmap.ModelError, match="expected a BQM, DQM or CQM"):
        softmap.interop.from_dimod({("a", "b"): 1})
