"""Parts of a model with the kernels of a device: certificates hold, and the order decides alone."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import softmap
from oracles import brute_force
from softmap import InfeasibleModel, OptionError, distributed, generators
from softmap.cuda import HostDevice, finding
from softmap.distributed.chains import PartChains
from softmap.distributed.device import DevicePart, device_order
from softmap.distributed.partition import partition
from softmap.distributed.parts import cut_model
from softmap.distributed.passes import Passes
from softmap.distributed.team import Team
from softmap.errors import CheckpointError, MissingExtra
from strategies import models
from whole_runs import check, lam_of, numbers

DEVICE = {"backend": "cuda", "threads": 1}
MODELS = {
    "tables": lambda: generators.random_grid(9, 9, 3, seed=1),
    "potts": lambda: generators.potts_grid(9, 10, 3, seed=1),
    "random": lambda: generators.erdos_renyi(24, 3, seed=2),
    "constrained": lambda: generators.ragged_constrained(30, max_labels=4, seed=2),
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(models(), st.integers(1, 4), st.sampled_from(["float32", "float64"]))
def test_certificates_hold(host, monkeypatch, model, parts, dtype):
    monkeypatch.setenv("SOFTMAP_CUDA", "host")
    if len(model.auxiliaries):
        return
    options = DEVICE | {"parts": parts, "partition": "own", "max_passes": 25, "dtype": dtype}
    try:
        best = softmap.lp.solve(model).value
    except InfeasibleModel:
        with pytest.raises(InfeasibleModel):
            distributed.solve(model, **options)
        return
    found = distributed.solve(model, **options)
    check(model, found)
    scale = 1e-6 * (1 + abs(best))
    assert found.bound <= best + scale <= found.primal + 2 * scale
    assert found.energy >= found.bound - scale


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "float32") for name in MODELS), ("random", "float64")]
)
def test_a_run_in_parts_closes_the_gap_as_on_the_processor(name, dtype, place):
    model = MODELS[name]()
    found = distributed.solve(model, parts=4, lp_gap=1e-3, dtype=dtype, **DEVICE)
    check(model, found)
    proved = softmap.certificate(model, lam_of(model, [found.lam]), 1.0).bound
    value = softmap.lp.solve(model).value
    assert found.bound <= value + 1e-9 <= found.primal + 2e-9
    assert found.bound <= proved + 1e-12 * abs(proved)  # the judge of the processor finds no less
    assert found.relative_lp_gap <= 1e-3


def test_no_bound_lies_above_the_optimum(place):
    for seed in range(2):
        model = generators.random_grid(3, 3, 2, seed=seed)
        found = distributed.solve(model, parts=3, max_passes=20, lp_gap=0.0, gap=0.0, **DEVICE)
        best = brute_force(model)[0]
        assert found.bound <= best + 1e-12
        assert found.energy >= best - 1e-12


def test_the_processor_makes_the_same_passes_where_the_order_is_the_same(place):
    """Parts that all touch each other go by colours, on a device as on the processor."""
    model = generators.erdos_renyi(24, 3, seed=2)
    options = {"parts": 4, "threads": 1, "max_passes": 60, "lp_gap": 0.0, "gap": 0.0}
    here = distributed.solve(model, **options)
    there = distributed.solve(model, backend="cuda", dtype="float64", **options)
    assert there.bound == pytest.approx(here.bound, abs=1e-9)
    assert there.primal == pytest.approx(here.primal, abs=1e-9)
    assert there.eta == here.eta
    assert np.allclose(lam_of(model, [there.lam]), lam_of(model, [here.lam]), atol=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_every_copy_of_a_message_is_the_same(name, place):
    """Both parts of a cut edge hold its messages, and what momentum remembers of them."""
    model = MODELS[name]()
    device = finding.device_number(0)
    whole, parts = cut_model(model, partition(model, 4))
    passes = Passes(
        Team(None, 4), whole, parts, lambda part: DevicePart(part, device, "float32", False, 1)
    )
    passes.run(7, 50.0)
    passes.settle()
    seen: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    counted = np.zeros(model.m, dtype=int)
    for part in parts:
        engine = passes.chains[part.number].engine
        counted[part.edges[passes.chains[part.number].owned]] += 1
        both = [engine.lam(array, 0) for array in (engine.msg, engine.prev)]
        for e, half in ((e, 2 * e + side) for e in range(part.model.m) for side in (0, 1)):
            number = 2 * int(part.edges[e]) + half % 2
            at = slice(part.model.half_offset[half], part.model.half_offset[half + 1])
            early = device_order(part).rank[part.model.edges[e]]
            into_early = early[half % 2] < early[1 - half % 2]
            values = both[0][at], both[1][at] if into_early else both[0][at]
            if number in seen:
                assert np.array_equal(seen[number][0], values[0])
                assert np.allclose(seen[number][1], values[1], rtol=1e-5, atol=1e-6)
            seen[number] = values
    assert (counted == 1).all()


def test_a_resumed_run_goes_on_as_if_never_stopped(place, tmp_path):
    model = MODELS["tables"]()
    options = {"lp_gap": 0.0, "gap": 0.0, "threads": 1}
    whole = distributed.solve(model, parts=4, max_passes=60, backend="cuda", **options)
    folder = tmp_path / "run"
    distributed.solve(model, parts=4, max_passes=27, backend="cuda", checkpoint=folder, **options)
    again = distributed.resume(folder, model, max_passes=60, **options)
    assert numbers(again) == numbers(whole)
    facts = json.loads((folder / "checkpoint.json").read_text())
    assert facts["backend"] == "cuda float32"


def test_a_checkpoint_of_an_unknown_backend_is_refused(tmp_path, monkeypatch):
    model = MODELS["potts"]()
    distributed.solve(model, parts=2, max_passes=5, checkpoint=tmp_path / "run")
    monkeypatch.setattr("softmap.distributed.checkpoint.Manifest.backend", "abacus float64")
    with pytest.raises(CheckpointError, match="abacus"):
        distributed.resume(tmp_path / "run", model)


def test_grids_go_by_wide_levels_on_a_device():
    model = generators.potts_grid(40, 40, 2)
    _, parts = cut_model(model, partition(model, 4))
    for part in parts:
        order = device_order(part)
        assert order.own_levels <= 16
        edges = part.model.edges
        inside = (edges < part.own).all(axis=1)
        assert (order.level[edges[inside, 0]] != order.level[edges[inside, 1]]).all()
        between = ~inside  # who is early there is the same for all parts, and on the processor
        rank = PartChains(part, 1).rank
        for ranks in (order.rank[edges[between]], rank[edges[between]]):
            early = part.phase[edges[between, 0]] < part.phase[edges[between, 1]]
            assert np.array_equal(ranks[:, 0] < ranks[:, 1], early)


def test_wrong_backends_are_named(monkeypatch):
    model = MODELS["potts"]()
    for options, words in (
        ({"backend": "opencl"}, "'cpu' or 'cuda'"),
        ({"dtype": "float32"}, "expected float64 with backend='cpu'"),
        ({"backend": "cuda", "dtype": "int8"}, "float32 or float64"),
    ):
        with pytest.raises(OptionError, match=words):
            distributed.solve(model, **options)
    monkeypatch.delenv("SOFTMAP_CUDA", raising=False)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingExtra, match="cuda13"):
        distributed.solve(model, backend="cuda")


class _Runtime:
    """Stands for CuPy on a machine with some devices."""

    def __init__(self, count: int) -> None:
        self.taken: list[int] = []
        self.count = count
        self.cuda = self.runtime = self

    def getDeviceCount(self) -> int:
        return self.count

    def Device(self, number: int):
        runtime = self

        class Chosen:
            def use(self) -> None:
                runtime.taken.append(number)

        return Chosen()


@pytest.mark.parametrize(("devices", "taken"), [(4, [0, 1, 2, 3, 0]), (1, [0] * 5), (0, [])])
def test_each_process_of_a_machine_takes_a_device(devices, taken, host, monkeypatch):
    monkeypatch.setenv("SOFTMAP_CUDA", "host")
    runtime = _Runtime(devices)
    monkeypatch.setattr(finding, "cupy_or_none", lambda: runtime)
    for number in range(5):
        assert isinstance(finding.device_number(number), HostDevice)
    assert runtime.taken == taken
