"""Many models in one launch: each result is that of a single solve, up to rounding."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import softmap
from softmap.model.joining import joined
from softmap.relaxation.gaps import cost_scale
from softmap.run.options import Options
from softmap.tasks.device_batch import buckets, relax_batch
from support.small_models import random_model


def several():
    g = softmap.generators
    return [
        *(g.erdos_renyi(n, 3, seed=n) for n in (12, 20, 30)),
        g.potts_grid(4, 5, 3, seed=1),
        g.potts_grid(5, 4, 3, seed=2),
        g.ragged_constrained(12, seed=1),
        g.random_tree(10, 3, seed=1),
    ]


@pytest.mark.parametrize("goal", ["lp", "map"])
def test_every_result_is_proved_and_as_good_as_a_single_one(goal, place):
    models = several()
    options = {"goal": goal, "lp_gap": 1e-3, "gap": 0.0 if goal == "lp" else 1e-6}
    for model, result in zip(
        models, softmap.solve_batch(models, backend="cuda", **options), strict=True
    ):
        report = softmap.verify(result)
        assert report.holds, str(report)
        assert result.model is model
        single = softmap.solve(model, **options)
        assert abs(result.bound - single.bound) <= 2e-3 * (1 + abs(single.bound))


def test_models_of_any_label_counts_share_a_launch(place):
    """The shape of all families and label counts, which takes the most registers."""
    rng = np.random.default_rng(1)
    models = []
    for n in (3, 4):
        counts = [2, 40, *rng.integers(2, 6, n - 2)]
        unary = [rng.normal(size=d) for d in counts]
        path = [(k, k + 1) for k in range(n - 1)]
        models.append(softmap.Model(unary, path, softmap.Potts(rng.random(n - 1))))
    for model, result in zip(
        models, softmap.solve_batch(models, backend="cuda", goal="lp", lp_gap=1e-4), strict=True
    ):
        assert softmap.verify(result).holds
        assert result.bound == pytest.approx(softmap.solve(model).energy, rel=1e-3)


def test_what_single_precision_cannot_hold_is_solved_apart(place):
    """Among models that look alike, and with the same answers as alone."""
    rng, edges = np.random.default_rng(1), softmap.generators.grid_edges(3, 4)
    models = []
    for size, least in ((1.0, 0.0), (2.0**60, 0.0), (1.0, 0.0), (1.0, np.inf)):
        unary = size * rng.random((12, 3))
        unary[0, 0] += least
        models.append(softmap.Model(unary, edges, softmap.Potts(size * rng.random(len(edges)))))
    found = [chosen for chosen, _ in buckets([model.network for model in models])]
    assert found == [[0, 2]]
    for model, result in zip(
        models, softmap.solve_batch(models, backend="cuda", goal="lp", lp_gap=1e-4), strict=True
    ):
        assert softmap.verify(result).holds
        assert result.model is model


def test_limits_hold_for_each_model(place):
    models = several()[:3]
    limits = [2 * model.m * passes for model, passes in zip(models, (3, 7, 11), strict=True)]
    results = softmap.solve_batch(
        models, backend="cuda", goal="lp", lp_gap=0.0, gap=0.0, max_work=limits
    )
    assert [result.sweeps for result in results] == [3, 7, 11]
    assert {result.status.name for result in results} == {"WORK_LIMIT"}


def test_memory_on_the_device_is_free_once_results_are_asked_for(place):
    models = several()[:2]
    found = relax_batch(models, [Options(backend="cuda", goal="lp")] * 2)
    batch = weakref.ref(found._batch)
    results = [found.result(k) for k in range(2)]
    gc.collect()
    assert batch() is None
    for model, result in zip(models, results, strict=True):
        last = result.trace[-1]
        assert (last.bound, last.primal, last.energy) == (
            result.bound, result.primal, result.energy,
        )  # fmt: skip
        assert result.energy == model.energy(result.labels)


@pytest.mark.parametrize("family", ["potts", "truncated-linear", "tables", "shared"])
def test_a_joint_model_costs_the_sum_of_its_parts(family):
    models = [random_model(family, seed, hard=False) for seed in (2, 3, 6)]
    whole = joined(models)
    labels = [np.zeros(model.n, dtype=np.int64) for model in models]
    for x in (0, 1):
        labels = [np.minimum(x, model.num_labels - 1) for model in models]
        total = sum(m.energy(y) - m.constant for m, y in zip(models, labels, strict=True))
        assert whole.model.energy(np.concatenate(labels)) == pytest.approx(total)
    assert whole.half_state[-1] == sum(int(model.network.half_offset[-1]) for model in models)


def test_scales_of_all_models_are_those_of_each():
    from softmap.methods.cuda.batch import _scales

    models = several()[:5]
    found = _scales(models, joined(models))
    assert found == pytest.approx([cost_scale(model.network) for model in models])
