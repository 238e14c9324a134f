"""What users of other libraries ask for first, and its name in softmap; for error messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

# Arguments of softmap, and the names that other libraries have for them.
ARGUMENTS = {
    "time_limit": "timeout timer timelimit time seconds max_time max_seconds",
    "updates": "max_iter maxiter n_iter num_iter iterations max_iterations num_sweeps",
    "upper_bound": "ub cutoff incumbent",
    "workers": "n_jobs num_workers processes n_workers",
    "threads": "n_jobs num_threads nthreads n_threads num_workers",
    "on_snapshot": "callback callbacks on_step on_check on_moment",
    "gap": "tol tolerance mip_gap rel_gap rtol stopThr",
    "initial": "init initial_labels initial_states x0",
    "tolerance": "tol atol eps",
    "seed": "random_state rng",
    "backend": "device",
    "method": "algorithm solver inference",
    "verbose": "verbosity log debug",
    "connectivity": "neighbors neighbours n_neighbors neighborhood",
    "probabilities": "p error_rate error_rates error_probability channel_probs priors",
    "ratios": "weights llr llrs",
    "pairwise": "potential binary weights smoothness table tables",
    "format": "fmt type filetype file_format",
    "m": "k n count num n_best nbest num_solutions",
}

# Those of the functions for images.
OF_IMAGES = {
    "num_labels": "k n_segments n_labels labels n_clusters",
    "markers": "scribbles seeds marks mask annotations",
    "smoothness": "weight lam lambda_ alpha smooth",
    "noise": "sigma std strength",
    "disparities": "max_disparity max_disp numDisparities num_disparities ndisp labels",
}

_COLDER = "is the inverse temperature of soft_map, exact_marginals and log_partition_bounds"
_RANKS = "softmap.solve_mbest(model, m) returns the m best labellings"
_COSTS = "costs are minimised: to maximise scores, give their negatives"
_SHARP = "a run anneals to the problem without regularisation; gap= says how closely"
_ENDS = "gap= and time_limit= end a run"

# What is an argument elsewhere, but done otherwise here.
INSTEAD = {
    "evidence": "model.condition({variable: label}) fixes variables",
    "temperature": f"eta = 1 / temperature {_COLDER}",
    "beta": f"eta {_COLDER}",
    **dict.fromkeys(("num_reads", "n_best", "nbest", "mbest"), _RANKS),
    **dict.fromkeys(("maximize", "maximise", "sense", "minimize", "minimise"), _COSTS),
    **dict.fromkeys(("reg", "epsilon"), _SHARP),
    **dict.fromkeys(("numItermax", "max_iter", "max_iterations", "num_iter"), _ENDS),
}

# Options of other solvers on the command line, and those of softmap.
OPTIONS = {
    "--time-limit": "-timer --timeout --time --timer --timelimit",
    "--output": "-w --out --solution",
    "--evidence": "-evid --evid -e",
    "--threads": "-nbthr --jobs --num-threads -p",
    "--mbest": "-a --nbest -all",
    "--method": "--solver --algorithm -a",
    "--labels": "-k",
    "--goal optimal": "--optimal --exact",
    "--proof": "-certificate --certificate --cert",
    "--no-progress": "-q --quiet --silent",
    "progress is shown by default": "-v --verbose --progress",
}

Keywords = ParamSpec("Keywords")
Outcome = TypeVar("Outcome")


def suggesting(function: Callable[Keywords, Outcome]) -> Callable[Keywords, Outcome]:
    """Decorate a function without `**options`: `unexpected` answers an unknown keyword."""
    names = inspect.signature(function).parameters

    @wraps(function)
    def called(*given: Keywords.args, **options: Keywords.kwargs) -> Outcome:
        for name in options:
            if name not in names:
                raise TypeError(unexpected(function.__qualname__, name, names))
        return function(*given, **options)

    return called


def unexpected(
    function: str, name: str, names: Collection[str], also: Mapping[str, str] | None = None
) -> str:
    """Return Python's message for an unknown keyword, with a suggestion.

    Parameters
    ----------
    function : str
        The function.
    name : str
        The keyword that it does not have.
    names : collection of str
        The keywords that it has.
    also : mapping, optional
        More names of other libraries for its arguments, as `ARGUMENTS`, which they override.
    """
    return f"{function}() got an unexpected keyword argument {name!r}{instead(name, names, also)}"


def instead(name: str, names: Collection[str], also: Mapping[str, str] | None = None) -> str:
    """Return what `unexpected` adds for an unknown keyword; empty if nothing is known."""
    if near := _meant(name, names, ARGUMENTS | dict(also or {})):
        return f"; did you mean {near!r}?"
    return f"; {INSTEAD[name]}" if name in INSTEAD else ""


def _meant(name: str, names: Collection[str], table: Mapping[str, str]) -> str | None:
    """Return which of some arguments an unknown name stands for; None or empty if unknown."""
    for ours, theirs in table.items():
        if ours in names and name in theirs.split():
            return ours
    return None if name in INSTEAD else _near(name, names)


def option_meant(word: str) -> str | None:
    """Return what to do instead of an option of another solver, for the command line, or None."""
    name = word.partition("=")[0]
    for ours, theirs in OPTIONS.items():
        if name in theirs.split():
            return f"use {ours}" if ours.startswith("-") else ours
    return None


def missing(owner: str, name: str, instead: Mapping[str, str], names: Iterable[str] = ()) -> str:
    """Return Python's message for an unknown attribute, with what to use instead, if known.

    Parameters
    ----------
    owner : str
        The object, as Python names it: "module 'softmap'".
    name : str
        The attribute.
    instead : mapping of str
        What to use, and names for it in other libraries, separated by blanks.
    names : iterable of str, optional
        The attributes that exist, of which one with a similar name is suggested.
    """
    said = f"{owner} has no attribute {name!r}"
    for ours, theirs in instead.items():
        if name in theirs.split():
            return f"{said}; use {ours}"
    near = "" if name.startswith("_") else _near(name, names)
    return f"{said}; did you mean {near!r}?" if near else said


def _near(name: str, names: Iterable[str]) -> str:
    """Return the name most similar to one that does not exist, or an empty string."""
    from difflib import get_close_matches  # imported late: only errors need it

    plain = {_plain(known): known for known in names if not known.startswith("_")}
    near = get_close_matches(_plain(name), plain, 1)
    return plain[near[0]] if near else ""


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
