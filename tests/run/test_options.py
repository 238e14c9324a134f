"""Options: what is refused, by name, and what is taken."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest

import softmap
from softmap import generators
from softmap.errors import OptionError
from softmap.run.options import PAPER, Options
from support.relaxed_runs import solve

NUMBERS = ("lp_gap", "gap", "time_limit", "max_work", "updates", "threads", "seed", "eta")
NO_NUMBERS = ("2", "x", [1.0], np.array([1.0, 2.0]), True, np.False_, float("nan"), -1, 1j)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_an_option_that_is_no_number_is_named(name, value):
    with pytest.raises(OptionError, match=f"{name}=.*expected a"):
        Options(**{name: value})


def test_the_precision_is_that_of_the_backend_unless_given():
    assert Options().precision == "float64"
    assert Options(backend="cuda").precision == "float32"
    assert Options(backend="cuda", dtype="float64").precision == "float64"


def test_single_precision_is_for_a_gpu():
    with pytest.raises(OptionError, match=r"^dtype='float32' needs backend='cuda'[^.]*$"):
        Options(dtype=np.float32)
    with pytest.raises(OptionError, match="dtype='float16': expected 'float32' or 'float64'"):
        Options(dtype="float16")


@pytest.mark.parametrize("name", ["lp_gap", "gap", "seed", "method", "backend"])
def test_an_option_that_must_be_given_is_not_none(name):
    with pytest.raises(OptionError, match=f"{name}=None: expected"):
        Options(**{name: None})


def test_numbers_of_any_type_are_taken():
    options = Options(gap=np.float32(0.5), threads=np.int64(2), max_work=1e6, dtype=np.float64)
    assert (options.gap, options.threads, options.max_work) == (0.5, 2, 1_000_000)
    assert (type(options.max_work), options.dtype) == (int, "float64")


USERS = [f.name for f in dataclasses.fields(Options) if f.name not in PAPER]


def test_solve_and_iterate_take_every_option_with_its_default():
    every = {f.name: f.default for f in dataclasses.fields(Options)}
    users = {name: every[name] for name in USERS}
    for function, expected in (
        (softmap.solve, users),
        (softmap.iterate, users),
        (softmap.paper.solve, every),
        (softmap.paper.snapshots, every),
    ):
        parameters = dict(inspect.signature(function).parameters)
        del parameters["model"]
        assert {name: p.default for name, p in parameters.items()} == expected
        assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())


def test_a_typo_is_named_after_solve():
    with pytest.raises(
        TypeError, match=r"solve\(\) got an unexpected keyword argument 'timelimit'"
    ):
        solve(generators.potts_grid(2, 2, 2), timelimit=1.0)


def test_the_keyword_that_was_meant_is_named():
    with pytest.raises(TypeError, match=r"iterate\(\) got an .*; did you mean 'time_limit'\?"):
        softmap.iterate(generators.potts_grid(2, 2, 2), timelimit=1.0)


def test_options_are_no_positions():
    with pytest.raises(TypeError, match=r"solve\(\) takes options by keyword only"):
        softmap.solve(generators.potts_grid(2, 2, 2), "anneal")


def test_a_docstring_has_one_entry_per_option():
    lines = inspect.getdoc(softmap.solve).splitlines()
    entries = [line.partition(" : ")[0] for line in lines if " : " in line and line[0] != " "]
    assert entries == ["model", *USERS]


def test_an_option_of_the_papers_experiments_is_answered():
    with pytest.raises(TypeError, match=r"eta is an option of softmap\.paper\.solve"):
        softmap.solve(generators.potts_grid(2, 2, 2), eta=3.0)
    with pytest.raises(OptionError, match=r"give eta=.*to softmap\.paper\.solve"):
        softmap.solve(generators.potts_grid(2, 2, 2), method="smp")


def test_an_option_under_its_old_name_warns_and_works():
    model = generators.potts_grid(3, 3, 2, seed=1)
    labels = np.ones((3, 3), int)
    with pytest.deprecated_call(match="called initial="):
        old = softmap.solve(model, labels=labels, max_work=0, threads=1)
    assert old.energy <= model.energy(labels)
    with pytest.raises(TypeError, match="both 'initial' and 'labels'"):
        softmap.solve(model, labels=labels, initial=labels)


def test_what_is_no_model_is_refused():
    with pytest.raises(OptionError, match=r"needs a Model, got an ndarray; see Model\.grid"):
        solve(np.zeros((3, 2)))


@pytest.mark.parametrize("name", [".", "missing/run.npz"])
def test_a_checkpoint_that_cannot_be_written_is_refused_at_once(name, tmp_path):
    with pytest.raises(OptionError, match=r"checkpoint=.*folder that exists"):
        Options(checkpoint=tmp_path / name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "magic"},
        {"on_snapshot": 3},
        {"checkpoint": 7},
        {"checkpoint": ""},
        {"lp_gap": -1.0},
        {"gap": float("nan")},
        {"time_limit": -1},
        {"max_work": -5},
        {"updates": -1},
        {"threads": -1},
        {"threads": 0},
        {"dtype": "float16"},
        {"seed": -1},
        {"backend": "abacus"},
        {"eta": 0.0},
        {"eta": -2.0},
        {"eta": float("inf")},
        {"method": "emp"},
        {"warm_start": np.zeros(3)},
        {"warm_start": np.full(54, np.nan)},
    ],
)
def test_wrong_options_are_refused(wrong):
    model = generators.potts_grid(2, 3, 3, seed=1)
    with pytest.raises(OptionError):
        solve(model, **wrong)
