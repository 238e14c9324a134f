"""Many models in one call: each result as if it had been solved alone."""

import os
import signal
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import InfeasibleModel, Model, OptionError, Status, generators, solve, solve_batch
from softmap.verification import Verdict
from support.strategies import models


def same(found, expected) -> bool:
    """Equal in all but the time that it took."""
    names = ("energy", "bound", "primal", "status", "work", "labels", "lam", "messages")
    return all(np.array_equal(getattr(found, n), getattr(expected, n)) for n in names)


@given(st.lists(models(), max_size=4), st.integers(1, 3))
def test_results_are_those_of_single_runs(listed, threads):
    expected = []
    for model in listed:
        try:
            expected.append(solve(model, threads=1, max_work=20_000))
        except InfeasibleModel as error:
            expected.append(error)
    found = solve_batch(listed, threads=threads, errors="return", max_work=20_000)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, InfeasibleModel):
            assert isinstance(one, InfeasibleModel)
        else:
            assert same(one, other)


def test_limits_hold_for_each_model_by_itself():
    listed = [generators.random_grid(8, 8, 4, seed=seed) for seed in range(3)]
    limits = [2 * model.m * passes for model, passes in zip(listed, (5, 20, 40), strict=True)]
    found = solve_batch(listed, max_work=limits, lp_gap=0.0, gap=0.0, goal="lp")
    assert [result.work for result in found] == limits
    assert {result.status for result in found} == {Status.WORK_LIMIT}
    with pytest.raises(OptionError, match="or a list of 3 numbers"):
        solve_batch(listed, max_work=[1])


def test_one_bad_model_is_an_error_or_stands_in_the_list():
    tree = generators.random_tree(5)
    bad = Model([[0.0, np.inf], [np.inf, 0.0]], [[0, 1]], np.array([[[0.0, np.inf]] * 2]))
    with pytest.raises(InfeasibleModel):
        solve_batch([tree, bad, tree])
    found = solve_batch([tree, bad, tree], errors="return")
    assert [type(answer).__name__ for answer in found] == ["Result", "InfeasibleModel", "Result"]
    assert solve_batch([]) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"errors": "hide"}, "errors='hide'"),
        ({"threads": 0}, "threads=0"),
        ({"on_snapshot": print}, "takes no on_snapshot"),
        ({"gaps": 1}, "no option 'gaps'"),
        ({"gap": -1.0}, "gap=-1.0"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(OptionError, match=words):
        solve_batch([generators.random_tree(5)], **options)
    with pytest.raises(OptionError, match="not a single one"):
        solve_batch(generators.random_tree(5))


def test_ctrl_c_ends_all_runs():
    hard = generators.erdos_renyi(400, 4, seed=1)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        softmap.solve_batch([hard] * 4, threads=2, lp_gap=0.0, gap=0.0, goal="lp")
    # the runs stop at their next check
    left = [t for t in threading.enumerate() if t.name.startswith("softmap")]
    for thread in left:
        thread.join(60)
        assert not thread.is_alive()


def test_random_graphs_of_the_paper_are_proved_in_one_search_each():
    """The results do not depend on the number of threads, and the checker accepts them."""
    listed = [generators.erdos_renyi(60, 3, seed=seed) for seed in range(8)]
    one, three = (solve_batch(listed, threads=threads) for threads in (1, 3))
    for model, first, second in zip(listed, one, three, strict=True):
        assert same(first, second)
        assert first.status is Status.OPTIMAL
        assert first.sweeps <= 20.0
        assert softmap.verify(first, model).verdict is not Verdict.FALSE
