"""`solve_batch`: many models in parallel, one per thread or process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields
from functools import partial
from typing import Any

from softmap import core
from softmap.arguments import MOST_THREADS, count, flag, wrong
from softmap.drive.solve import solve
from softmap.errors import OptionError
from softmap.hints import instead
from softmap.machine import usable_cores
from softmap.model import Model, checked_model
from softmap.model.joining import Joined
from softmap.run.options import PAPER, Options
from softmap.run.trace import Status
from softmap.tasks.answers import Answer, Answers
from softmap.tasks.device_batch import buckets, relax_batch
from softmap.tasks.workers import Workers

__all__ = ["Answer", "checked_options", "solve_batch"]

OWN = (
    "warm_start",
    "initial",
    "upper_bound",
    "checkpoint",
    "proof",
    "on_snapshot",
    "threads",
)  # of one run, not of many
LIMITS = ("time_limit", "max_work")  # may be one number for all, or one per model

FINAL = (Status.OPTIMAL, Status.GAP, Status.WORK_LIMIT, Status.TIME_LIMIT)


def solve_batch(
    models: Iterable[Model],
    *,
    threads: int | None = None,
    processes: bool = True,
    errors: str = "raise",
    **options: Any,
) -> Sequence[Any]:
    """Solve models in parallel, one per thread; each result is that of `solve`.

    Parameters
    ----------
    models : iterable of Model
    threads : int, optional
        Number of models that are solved at the same time; all available threads by default.
    processes : bool, default True
        Whether small models may be solved in worker processes. They are started if more than a
        second of work per thread is left, and end with the call.
    errors : {"raise", "return"}, default "raise"
        What to do if a model cannot be solved (an infeasible one, for example): raise the first
        exception after all models are done, or return exceptions in place of results.
    **options
        Options of `solve`. Limits apply to each model separately; `time_limit` and `max_work` may
        be lists with one entry per model.

    Returns
    -------
    sequence of Result
        In the order of the models: a list, or, with `backend="cuda"`, a sequence of lazily computed
        results.

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
    allowed = flag("processes", processes)
    each = _per_model(options, len(listed))
    for given in each[:1] if not _listed_limits(options) else each:
        checked_options("solve_batch", given)
    answers = _answers(listed, each, workers, allowed)
    error = answers.first_error()
    if errors == "raise" and error is not None:
        raise error
    return answers if answers.pending else list(answers)


def checked_options(caller: str, options: Mapping[str, Any]) -> None:
    """Raise `OptionError` for unknown options, and for options of a single run."""
    known = {field.name for field in fields(Options)} - {*OWN, *PAPER}
    for name in options:
        if name in OWN:
            raise OptionError(f"{caller} takes no {name}: that option is for runs of one model")
        if name not in known:
            hint = instead(name, known | {"threads", "workers"}) or f"; expected {', '.join(known)}"
            raise OptionError(f"{caller} has no option {name!r}{hint}")
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
    """Return the options of each model."""
    listed = _listed_limits(options)
    for name in listed:
        if isinstance(options[name], str | bytes) or len(options[name]) != size:
            raise wrong(name, options[name], f"a number, or a list of {size} numbers")
    if not listed:
        return [options] * max(size, 1)
    return [options | {name: options[name][k] for name in listed} for k in range(size)]


def _answers(
    models: list[Model], each: list[dict[str, Any]], workers: int, processes: bool
) -> Answers:
    """Solve relaxations on a device if requested, and everything else by `solve`."""
    answers, began = Answers(len(models)), time.perf_counter()
    warm: dict[int, dict[str, Any]] = {}
    if models and each[0].get("backend") == "cuda":
        options = _parsed(each)
        for chosen, whole in buckets([model.network for model in models]):
            warm |= _relaxed(answers, models, options, chosen, whole, began)
            began = time.perf_counter()
    rest = answers.missing()
    left = [each[k] | ({"backend": "cpu"} | warm.get(k, {})) for k in rest]
    solved = _solved([models[k] for k in rest], left, workers, processes)
    for k, answer in zip(rest, solved, strict=True):
        answers.put(k, answer)
    return answers


def _relaxed(
    answers: Answers, models: list[Model], options: list[Options], chosen: list[int],
    whole: Joined, began: float,
) -> dict[int, dict[str, Any]]:  # fmt: skip
    """Solve the relaxations of a group on a device; return options for what is left to `solve`.

    Time limits count from `began` (`time.perf_counter`).
    """
    given = [options[k] for k in chosen]
    try:
        found = relax_batch([models[k] for k in chosen], given, whole, began)
    except core.OutOfTime:  # the device was not ready
        for k in chosen:
            answers.later(k, partial(_first_answer, models[k], options[k]))
        return {}
    left: dict[int, dict[str, Any]] = {}
    for at, k in enumerate(chosen):
        if options[k].goal == "lp" or found.status(at) in FINAL:
            answers.later(k, partial(found.result, at))
        else:
            left[k] = {"warm_start": found.result(at)}
    spent = time.perf_counter() - began
    for k in left:
        left[k]["time_limit"] = max(0.0, options[k].seconds - spent)
    return left


def _first_answer(model: Model, options: Options) -> Answer:
    """Return what is known of a model without any time: the bound of λ = 0, and first labels."""
    return solve(
        model, goal=options.goal, gap=options.gap, lp_gap=options.lp_gap, time_limit=0.0,
        threads=1, tuning=options.tuning,
    )  # fmt: skip


def _parsed(each: list[dict[str, Any]]) -> list[Options]:
    """Return the checked options of each model; shared ones are checked once."""
    made = {id(given): Options(**given) for given in {id(one): one for one in each}.values()}
    return [made[id(given)] for given in each]


def _solved(
    models: list[Model], each: list[dict[str, Any]], workers: int, processes: bool
) -> list[Answer]:
    """Return a result or an exception per model; Ctrl-C ends the runs at a check."""
    stop = threading.Event()

    def alone(model: Model, options: dict[str, Any]) -> Answer:
        try:
            return solve(model, threads=1, on_snapshot=lambda _: not stop.is_set(), **options)
        except Exception as error:
            return error

    def helped(model: Model, options: dict[str, Any]) -> Answer:
        began = time.perf_counter()
        answer = pool.solve(model, options) or alone(model, options)
        pool.note(model, began)
        return answer

    pairs = list(zip(models, each, strict=True))
    workers = min(workers, len(models))
    if workers <= 1:
        return [alone(*pair) for pair in pairs]
    with (
        Workers(models, each, workers, processes) as pool,
        ThreadPoolExecutor(workers, "softmap") as threads,
    ):
        runs: list[Future[Answer]] = [threads.submit(helped, *pair) for pair in pairs]
        try:
            return [run.result() for run in runs]
        except BaseException:
            stop.set()
            pool.kill()
            threads.shutdown(wait=False, cancel_futures=True)
            raise
