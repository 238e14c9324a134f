"""Methods that settle: momentum first, plain updates last."""

import numpy as np
import pytest

from softmap import generators
from softmap.errors import OptionError
from softmap.paper import BCD, EMP, SMP, AccelBCD, AccelEMP, AccelEMPPrinted, AccelSMP, Settled
from softmap.paper.settled import plain_method
from softmap.relaxation.bounds import projected_cost
from softmap.relaxation.dual import SmoothedDual

MODEL = generators.erdos_renyi(15, 3, seed=2)
ETA = 200.0


@pytest.mark.parametrize("kind", [AccelEMP, AccelEMPPrinted, AccelSMP, AccelBCD])
def test_the_first_updates_have_momentum_and_the_last_are_plain(kind):
    """Step by step, the run is that of the accelerated method, then of the plain one from there."""
    method = Settled(kind(ETA), updates=200)
    state = method.init(MODEL.network, None, 7)
    for count in (3, 150, 40, 7):  # the third step changes over, at update 180
        method.step(state, count)
    fast = kind(ETA)
    first = fast.init(MODEL.network, None, 7)
    fast.step(first, 180)
    plain = plain_method(fast)
    second = plain.init(MODEL.network, fast.propose(first).lam, 0)
    second.rng = first.rng
    plain.step(second, 20)
    assert (state.updates, state.plain) == (200, True)
    assert state.work == first.work + second.work
    np.testing.assert_array_equal(method.propose(state).lam, second.current())


def test_before_it_settles_it_is_the_accelerated_method():
    method, fast = Settled(AccelSMP(ETA), updates=1000), AccelSMP(ETA)
    state, other = method.init(MODEL.network, None, 1), fast.init(MODEL.network, None, 1)
    method.step(state, 900)
    fast.step(other, 900)
    assert not state.plain
    np.testing.assert_array_equal(method.propose(state).lam, fast.propose(other).lam)


def test_it_settles_to_the_method_without_momentum():
    assert isinstance(plain_method(AccelEMP(ETA)), EMP)
    assert isinstance(plain_method(AccelSMP(ETA)), SMP)
    assert isinstance(plain_method(AccelBCD(ETA)), BCD)


def test_settling_removes_slack_and_lowers_the_cost():
    model, eta, updates = generators.erdos_renyi(60, 3, seed=1), 1000.0, 20_000
    dual = SmoothedDual(model, eta)
    slack, cost = [], []
    for method in (AccelSMP(eta), Settled(AccelSMP(eta), updates)):
        state = method.init(model.network, None, 0)
        method.step(state, updates)
        lam = method.propose(state).lam
        slack.append(np.abs(dual.slack(lam)).sum())
        cost.append(projected_cost(dual, lam, dual.node_marginals(lam)))
    assert slack[1] < 0.5 * slack[0]
    assert cost[1] < cost[0] - 1.0


@pytest.mark.parametrize("wrong", [{"updates": 0}, {"updates": 10, "share": 1.5}])
def test_options_are_checked(wrong):
    with pytest.raises(OptionError):
        Settled(AccelEMP(ETA), **wrong)
