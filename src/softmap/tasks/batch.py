"""`solve_batch`: many models in parallel, one per thread or process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

from softmap import core
from softmap.arguments import MOST_THREADS, count, flag, wrong
from softmap.drive.solve import solve
from softmap.errors import OptionError
from softmap.hints import instead
from softmap.later import unmade
from softmap.machine import usable_cores
from softmap.model import Model, checked_model
from softmap.model.joining import Joined
from softmap.run.failures import Failures, StageFailure
from softmap.run.options import PAPER, Options
from softmap.run.result import Result
from softmap.run.trace import RELAXATION, Status
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

Value = TypeVar("Value")

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
    answers = Answers(len(models))
    device = None
    if models and each[0].get("backend") == "cuda":
        device = _OnDevice(models, _parsed(each), answers)
        device.relax()
        each = [device.on_cpu(k, given) for k, given in enumerate(each)]
    rest = answers.missing()
    solved = _solved([models[k] for k in rest], [each[k] for k in rest], workers, processes)
    for k, answer in zip(rest, solved, strict=True):
        answers.put(k, answer if device is None else device.noted(k, answer))
    return answers


class _OnDevice:
    """The relaxations of models on a device; one that fails there is solved on the CPU.

    Parameters
    ----------
    models : list of Model
        The models.
    options : list of Options
        The options of each model.
    answers : Answers
        Gets the results that need no more work.
    """

    def __init__(self, models: list[Model], options: list[Options], answers: Answers) -> None:
        self._models, self._options, self._answers = models, options, answers
        # whether there is a device is known by trying
        self._failures = Failures(OptionError, core.OutOfTime)
        self._more: dict[int, dict[str, Any]] = {}
        self._failed: dict[int, StageFailure] = {}

    def relax(self) -> None:
        """Solve the relaxations of all models that fit into a batch."""
        began, every = time.perf_counter(), range(len(self._models))
        networks = [model.network for model in self._models]
        groups = self._attempt(every, partial(buckets, networks))
        for chosen, whole in groups or ():
            try:
                self._relax(chosen, whole, began)
            except core.OutOfTime:  # the device was not ready
                for k in chosen:
                    first = partial(_first_answer, self._models[k], self._options[k])
                    self._answers.later(k, first)
            began = time.perf_counter()

    def on_cpu(self, k: int, given: dict[str, Any]) -> dict[str, Any]:
        """Return the options with which model `k` is solved on the CPU."""
        return given | {"backend": "cpu", "dtype": None} | self._more.get(k, {})

    def noted(self, k: int, answer: Answer) -> Answer:
        """Return the answer for model `k` from the CPU, with the failure on the device if any."""
        failure = self._failed.get(k)
        if failure is None or not isinstance(answer, Result):
            return answer
        large = {name: unmade(answer, name) for name in ("lam", "messages")}
        return replace(answer, failures=(failure, *answer.failures), **large)

    def _relax(self, chosen: list[int], whole: Joined, began: float) -> None:
        """Solve the relaxations of a group; time limits count from `began`."""
        models = [self._models[k] for k in chosen]
        options = [self._options[k] for k in chosen]
        found = self._attempt(chosen, partial(relax_batch, models, options, whole, began))
        for at, (k, given) in enumerate(zip(chosen, options, strict=True)):
            self._more[k] = {}
            if found is None:
                continue
            result = partial(found.result, at)
            if given.goal == "lp" or found.status(at) in FINAL:
                self._answers.later(k, partial(self._result, k, result))
            elif (warm := self._attempt([k], result)) is not None:
                self._more[k] = {"warm_start": warm}
        spent = time.perf_counter() - began
        for k in chosen:
            self._more[k]["time_limit"] = max(0.0, self._options[k].seconds - spent)

    def _result(self, k: int, made: Callable[[], Result]) -> Answer:
        """Return the result of model `k`, which is computed lazily."""
        result = self._attempt([k], made)
        if result is not None:
            return result
        named = {f.name: getattr(self._options[k], f.name) for f in fields(Options)}
        shared = {name: value for name, value in named.items() if name not in (*OWN, *PAPER)}
        return self.noted(k, solve(self._models[k], threads=1, **self.on_cpu(k, shared)))

    def _attempt(self, chosen: Iterable[int], action: Callable[[], Value]) -> Value | None:
        """Return what is computed for some models; None if the code raises an exception."""
        before = len(self._failures)
        value = self._failures.attempt_part(RELAXATION, action, None)
        if len(self._failures) > before:
            self._failed |= dict.fromkeys(chosen, self._failures.noted[-1])
        return value


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
