"""Many small models at once: one model per thread, each run as `softmap.solve` would run it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields
from typing import Any

from softmap.arguments import count, wrong
from softmap.errors import OptionError
from softmap.machine import usable_cores
from softmap.model import Model, checked_model
from softmap.solving.device_batch import batchable, relax_batch
from softmap.solving.options import MOST_THREADS, Options
from softmap.solving.result import Result
from softmap.solving.solve import solve
from softmap.solving.trace import Status

__all__ = ["Answer", "checked_options", "solve_batch"]

OWN = ("warm_start", "checkpoint", "on_snapshot", "threads")  # of one run, not of many
LIMITS = ("time_limit", "max_work")  # may be one number for all, or one per model

FINAL = (Status.OPTIMAL, Status.GAP, Status.WORK_LIMIT, Status.TIME_LIMIT)

Answer = Result | Exception


def solve_batch(
    models: Iterable[Model], *, threads: int | None = None, errors: str = "raise", **options: Any
) -> list[Any]:
    """Solve models side by side, one per thread, to the results that `solve` gives for each.

    Parameters
    ----------
    models : iterable of Model
    threads : int
        Models that are solved at the same time; all available threads if left out.
    errors : "raise" or "return"
        What becomes of a model that cannot be solved, such as an infeasible one: the first such
        exception is raised when all models are done, or stands in the list in place of a result.
    **options
        Those of `solve` that may hold for many models. Limits hold for each model by itself;
        `time_limit` and `max_work` may be lists with one entry per model.

    Returns
    -------
    list of Result, in the order of the models

    Examples
    --------
    >>> import softmap
    >>> models = [softmap.generators.random_tree(20, seed=seed) for seed in range(3)]
    >>> [result.bound <= result.energy for result in softmap.solve_batch(models)]
    [True, True, True]
    """
    listed = [checked_model(model) for model in _iterated(models)]
    if not isinstance(errors, str) or errors not in ("raise", "return"):
        raise wrong("errors", errors, "'raise' or 'return'")
    workers = usable_cores() if threads is None else count("threads", threads, 1, MOST_THREADS)
    each = _per_model(options, len(listed))
    for given in each[:1] if not _listed_limits(options) else each:
        checked_options("solve_batch", given)
    answers = _answers(listed, each, workers)
    if errors == "raise":
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
    return answers


def checked_options(caller: str, options: Mapping[str, Any]) -> None:
    """Refuse what `solve` would refuse, and what belongs to a single run."""
    known = {field.name for field in fields(Options)} - set(OWN)
    for name in options:
        if name in OWN:
            raise OptionError(f"{caller} takes no {name}: it belongs to the run of one model")
        if name not in known:
            raise OptionError(f"{caller} has no option {name!r}; expected {', '.join(known)}")
    Options(**options)


def _iterated(models: Any) -> list[Any]:
    if isinstance(models, Model):
        raise OptionError("expected a list of models, not a single one; see softmap.solve")
    try:
        return list(models)
    except Exception as error:
        raise OptionError(f"expected a list of models, not {type(models).__name__}") from error


def _listed_limits(options: Mapping[str, Any]) -> list[str]:
    return [name for name in LIMITS if isinstance(options.get(name), Sequence)]


def _per_model(options: dict[str, Any], size: int) -> list[dict[str, Any]]:
    """The options of each model."""
    listed = _listed_limits(options)
    for name in listed:
        if isinstance(options[name], str | bytes) or len(options[name]) != size:
            raise wrong(name, options[name], f"a number, or {size} of them")
    if not listed:
        return [options] * max(size, 1)
    return [options | {name: options[name][k] for name in listed} for k in range(size)]


def _answers(models: list[Model], each: list[dict[str, Any]], workers: int) -> list[Answer]:
    """Relaxations on a device where that was asked for, everything else by `solve`."""
    answers: list[Answer | None] = [None] * len(models)
    if models and each[0].get("backend") == "cuda":
        each = [options | {"backend": "cpu"} for options in each]
        for chosen in _buckets(models):
            options = [Options(**(each[k] | {"backend": "cuda"})) for k in chosen]
            found = relax_batch([models[k] for k in chosen], options)
            for k, result in zip(chosen, found, strict=True):
                done = each[k].get("goal", "map") == "lp" or result.status in FINAL
                answers[k] = result if done else None
                each[k] = each[k] | {"warm_start": result}
    rest = [k for k, answer in enumerate(answers) if answer is None]
    solved = _solved([models[k] for k in rest], [each[k] for k in rest], workers)
    for k, answer in zip(rest, solved, strict=True):
        answers[k] = answer
    return [answer for answer in answers if answer is not None]


def _buckets(models: list[Model]) -> list[list[int]]:
    """Models that may lie in one launch: those with the same families and label counts."""
    buckets: dict[Any, list[int]] = {}
    for k, model in enumerate(models):
        if batchable(model):
            families = tuple(sorted({p.family for p in model.potentials}))
            labels = int(model.num_labels.max()), int(model.num_labels.min())
            buckets.setdefault((families, labels), []).append(k)
    return list(buckets.values())


def _solved(models: list[Model], each: list[dict[str, Any]], workers: int) -> list[Answer]:
    """A result or an exception per model; Ctrl-C ends the runs at a check."""
    stop = threading.Event()

    def one(model: Model, options: dict[str, Any]) -> Answer:
        try:
            return solve(model, threads=1, on_snapshot=lambda _: not stop.is_set(), **options)
        except Exception as error:
            return error

    if min(workers, len(models)) <= 1:
        return [one(model, options) for model, options in zip(models, each, strict=False)]
    with ThreadPoolExecutor(workers, "softmap") as pool:
        runs: list[Future[Answer]] = [pool.submit(one, *pair) for pair in zip(models, each)]  # noqa: B905
        try:
            return [run.result() for run in runs]
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
