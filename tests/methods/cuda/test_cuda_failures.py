"""An exception in the device's part of a batch: its models are solved on the CPU."""

from __future__ import annotations

import inspect
import warnings
from functools import wraps

import numpy as np
import pytest

import softmap
from softmap.methods.cuda import HostDevice
from softmap.methods.cuda.batch import Batch
from softmap.run.options import Options
from softmap.tasks import batch, device_batch
from support.oracles import brute_force

ERRORS = (RuntimeError, ValueError, np.linalg.LinAlgError, FloatingPointError)


def several() -> list[softmap.Model]:
    """Small models of two shapes, and one that no batch takes."""
    g = softmap.generators
    first = [g.potts_grid(2, 3, 2, seed=1), g.potts_grid(3, 2, 2, seed=2)]
    return [*first, g.ragged_constrained(5, seed=1), g.random_tree(5, 3, seed=1)]


class Failing:
    """Every call of the device, of a batch and of their helpers is counted; the k-th one fails."""

    def __init__(self, monkeypatch) -> None:
        self.calls, self.at = 0, -1
        for kind in (HostDevice, Batch):
            for name, function in vars(kind).items():
                if inspect.isfunction(function) and name not in ("__init__", "address"):
                    monkeypatch.setattr(kind, name, self.wrapped(function))
        for module, name in ((batch, "buckets"), (batch, "relax_batch"), (device_batch, "Judge")):
            monkeypatch.setattr(module, name, self.wrapped(getattr(module, name)))

    def wrapped(self, function):
        @wraps(function)
        def called(*given, **named):
            self.calls += 1
            if self.calls == self.at:
                raise ERRORS[self.at % len(ERRORS)]("thrown on the device")
            return function(*given, **named)

        return called

    def run(self, at: int, **options) -> tuple[list, list[warnings.WarningMessage]]:
        """Solve all models with the call `at` failing; results, also lazy ones, and warnings."""
        self.calls, self.at = 0, at
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            results = list(softmap.solve_batch(several(), backend="cuda", threads=1, **options))
        return results, said


OPTIONS = {"lp": {"goal": "lp"}, "map": {}, "limited": {"time_limit": 60.0, "dtype": "float32"}}


@pytest.mark.parametrize("kind", OPTIONS)
def test_no_failure_on_the_device_loses_a_model(host, monkeypatch, kind):
    """Any exception lost the results of all models of the batch."""
    monkeypatch.setenv("SOFTMAP_CUDA", "host")
    failing, models = Failing(monkeypatch), several()
    least = [brute_force(model)[0] for model in models]
    whole, said = failing.run(-1, **OPTIONS[kind])
    assert not said
    assert not any(result.failures for result in whole)
    count = failing.calls
    assert count > 50
    rng, failed = np.random.default_rng(0), 0
    chosen = {1, 2, 3, count, *rng.integers(1, count, 25).tolist()}
    for at in sorted(chosen):
        results, said = failing.run(at, **OPTIONS[kind])
        assert [result.model.n for result in results] == [model.n for model in models], at
        assert {w.category for w in said} == {softmap.StageWarning}, (at, said)
        (warning,) = {(w.message.stage, w.message.error) for w in said}
        assert warning[0] == "relaxation"
        assert "thrown on the device" in warning[1]
        noted = [result.failures for result in results if result.failures]
        assert noted, at
        assert all(one == (warning,) for one in noted), at
        failed += len(noted)
        for result, best in zip(results, least, strict=True):
            assert result.bound <= best + 1e-9 <= result.energy + 2e-9, at
            assert result.energy == result.model.energy(result.labels)
            assert softmap.verify(result).holds
    assert failed >= len(chosen)


def test_a_failure_is_raised_for_those_who_look_for_it(host, monkeypatch):
    monkeypatch.setenv("SOFTMAP_CUDA", "host")
    monkeypatch.setenv("SOFTMAP_DEBUG", "1")
    with pytest.raises(ERRORS, match="thrown on the device"):
        Failing(monkeypatch).run(9, goal="lp")


def test_a_lazy_result_that_fails_keeps_the_limits_of_its_model(host, monkeypatch):
    monkeypatch.setenv("SOFTMAP_CUDA", "host")
    models = several()[:2]
    work = [2 * model.m * 3 for model in models]
    limits = {"goal": "lp", "lp_gap": 0.0, "gap": 0.0, "max_work": work}
    answers = softmap.solve_batch(models, backend="cuda", **limits)
    assert answers.pending
    monkeypatch.setattr(Batch, "relaxed", lambda batch: 1 / 0)
    with pytest.warns(softmap.StageWarning, match="ZeroDivisionError"):
        results = list(answers)
    assert [result.work for result in results] == work
    assert all(result.failures[0].error.startswith("ZeroDivisionError") for result in results)


def test_what_a_batch_does_not_take_is_solved_in_double_precision(host, monkeypatch):
    """With `dtype` given, these models raised an error."""
    monkeypatch.setenv("SOFTMAP_CUDA", "host")
    results = softmap.solve_batch(several(), backend="cuda", dtype="float32")
    assert [result.bound <= brute_force(result.model)[0] + 1e-9 for result in results] == [True] * 4
    assert Options(backend="cuda", dtype="float32").precision == "float32"
