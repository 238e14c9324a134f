"""The readings of the paper: all combinations, what each changes, and the control."""

import numpy as np
import pytest

from benchmarks import readings
from softmap import generators
from softmap.app.experiments.evaluation import Evaluator
from softmap.app.experiments.trials import current
from softmap.paper import methods as paper


def test_every_combination_is_read_once():
    every = readings.readings()
    assert len(set(every)) == len(every) == 2 * 2 * 7 * 2


@pytest.mark.parametrize("family", readings.FAMILIES)
def test_the_printed_reading_is_the_printed_method(family):
    model = generators.erdos_renyi(12, 3, seed=1)
    method, state = readings.Reading(family, "λ", "printed", "1").begin(model, 5)
    kind = paper.AccelSMPPrinted if family == "smp" else paper.AccelEMPPrinted
    other = kind(readings.ETA)
    usual = other.init(model.network, None, 5)
    method.step(state, 50)
    other.step(usual, 50)
    np.testing.assert_array_equal(method.propose(state).lam, other.propose(usual).lam)


def test_readings_differ_in_what_they_say():
    model = generators.erdos_renyi(12, 3, seed=1)
    seen = set()
    for reading in readings.readings():
        method, state = reading.begin(model, 5)
        method.step(state, 40)
        seen.add(method.propose(state).lam.tobytes())
    # the printed step of edges is the sharpest one that is proved
    assert len(seen) == len(readings.readings()) - 4


@pytest.mark.parametrize("off", readings.KEPT)
@pytest.mark.parametrize("family", readings.FAMILIES)
def test_the_control_has_no_momentum(family, off):
    """v stays 0, whereas λ does not; with λ kept, one update is plain but for y = (1 - θ) λ."""
    model = generators.erdos_renyi(12, 3, seed=1)
    method, state = readings.Reading(family, off, readings.CONTROL, "1").begin(model, 5)
    method.step(state, 60)
    assert (state.v == 0).all()
    assert np.abs(method.propose(state).lam).max() > 0


@pytest.mark.parametrize("family", readings.FAMILIES)
def test_costs_are_those_of_projections(family):
    model = generators.erdos_renyi(12, 3, seed=1)
    evaluator, method = Evaluator(model.network), readings.plain(family)
    rows = readings.run(method, method.init(model.network, None, 3), evaluator, (20, 40))
    state = method.init(model.network, None, 3)
    method.step(state, 40)
    assert rows[1][0] == evaluator.projected(current(method, state), readings.ETA)
    assert rows[0][0] == rows[0][2]  # the average of one iterate


def test_a_small_run_has_every_reading_on_every_graph(tmp_path):
    path = readings.write(tmp_path, size=9, graphs=2, updates=30, points=2)
    with np.load(path) as stored:
        costs = stored["costs"]
    methods = len(readings.FAMILIES) + len(readings.readings())
    assert costs.shape == (len(readings.KINDS), 2, methods, len(readings.ITERATES), 2)
    assert np.isfinite(costs).all()
