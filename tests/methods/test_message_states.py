"""The states of messages: those that the module draws are all there are, and none is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import core, generators
from softmap.methods.sweeps.chains import ChainNumbers, Chains
from softmap.methods.sweeps.loops import Messages
from support.other_numbers import by_default

WHOLE, BOUND, HALF = "whole", "bound", "half"
AFTER = {
    "pass": dict.fromkeys((WHOLE, BOUND, HALF), WHOLE),
    "stopped": dict.fromkeys((WHOLE, BOUND, HALF), HALF),
    "prove": dict.fromkeys((WHOLE, BOUND, HALF), BOUND),
    "stopped bound": dict.fromkeys((WHOLE, BOUND, HALF), HALF),
    "undo": {WHOLE: WHOLE, BOUND: HALF, HALF: HALF},
    "resend": dict.fromkeys((WHOLE, BOUND, HALF), WHOLE),
    "last lam": {WHOLE: WHOLE, BOUND: BOUND, HALF: HALF},
    "earlier lam": {WHOLE: WHOLE, BOUND: HALF, HALF: HALF},
}
ACTIONS = st.lists(st.sampled_from(sorted(AFTER)), max_size=12)
ETA = 20.0


def state_of(messages: Messages) -> str:
    flags = len(messages.aside) > 0, messages.overwritten
    return {(False, False): WHOLE, (True, True): BOUND, (False, True): HALF}[flags]


def begun() -> tuple[Chains, Messages]:
    chains = Chains(generators.random_grid(5, 5, 3, seed=3).network, 1)
    return chains, chains.start(None)


def stopped_bound(chains: Chains, messages: Messages) -> None:
    with pytest.raises(core.OutOfTime):
        chains.prove(messages, 0, limit=core.Deadline(0.0))


@given(ACTIONS)
def test_messages_are_in_the_states_that_are_drawn_and_return_to_those_of_the_run(actions):
    chains, messages = begun()
    plain, twin = begun()  # does nothing but passes
    found, expected, size = [], WHOLE, chains.plan.back_size
    for action in actions:
        if action in ("pass", "stopped"):
            end = core.Deadline(0.0) if action == "stopped" else None
            for engine, state in ((chains, messages), (plain, twin)):
                engine.passes(state, 1, ETA, momentum=True, deadline=end)
        elif action == "prove":
            found.append(chains.prove(messages, 1))
        elif action == "stopped bound":
            stopped_bound(chains, messages)
        elif action == "undo":
            chains.undo_proposal(messages)
        elif action == "resend":
            chains.resend(messages, ETA)
        elif found and (action == "last lam" or len(found) > 1):
            (found[-1] if action == "last lam" else found[-2]).lam()
        else:
            continue
        expected = AFTER[action][expected]
        assert state_of(messages) == expected
        if expected != BOUND:
            np.testing.assert_array_equal(messages.msg[:size], twin.msg[:size])
    chains.undo_proposal(messages)
    np.testing.assert_array_equal(messages.msg[:size], twin.msg[:size])


@pytest.mark.parametrize("spare", [0, 1 << 23])
def test_every_action_starts_in_every_state(spare):
    """On large models, too, where messages return up to rounding."""
    with by_default(ChainNumbers(spare=spare)):
        for start, leading in ((WHOLE, ()), (BOUND, ("prove",)), (HALF, ("prove", "undo"))):
            for action in ("pass", "stopped", "prove", "stopped bound", "undo", "resend"):
                chains, messages = begun()
                run = {
                    "pass": lambda c, m: c.passes(m, 1, ETA, momentum=True),
                    "stopped": lambda c, m: c.passes(
                        m, 1, ETA, momentum=True, deadline=core.Deadline(0.0)
                    ),
                    "prove": lambda c, m: c.prove(m, 1),
                    "stopped bound": stopped_bound,
                    "undo": lambda c, m: c.undo_proposal(m),
                    "resend": lambda c, m: c.resend(m, ETA),
                }
                kept = [run[name](chains, messages) for name in ("pass", *leading)]
                assert state_of(messages) == start
                kept.append(run[action](chains, messages))
                assert state_of(messages) == AFTER[action][start]


def test_messages_of_a_coarser_model_are_half():
    """Forward messages are not set: λ without a pass recomputes them."""
    chains, messages = begun()
    lam = np.random.default_rng(1).normal(size=chains.model.network.half_size)
    halves = 2 * chains.model.m
    chains.begin_with(messages, lam, np.arange(halves), np.ones(halves))
    assert state_of(messages) == HALF
    chains.current_lam(messages, ETA)
    assert state_of(messages) == WHOLE
