"""The options of a run: types, defaults and checks.

This is the only list of options; `with_options` makes them keywords of a function.
"""

from __future__ import annotations

import inspect
import math
import os
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import wraps
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from softmap.arguments import MOST_THREADS, count, flag, not_negative, positive, real, wrong
from softmap.errors import OptionError
from softmap.hints import unexpected
from softmap.io.store import same_file
from softmap.methods.base import MethodName, find
from softmap.tuning import TUNING, Tuning

if TYPE_CHECKING:
    from softmap.model import Model
    from softmap.run.result import Result
    from softmap.run.trace import Snapshot

__all__ = ["BACKENDS", "GOALS", "PAPER", "Options", "apart", "with_options"]

# The precisions of the messages on each backend, the default first.
BACKENDS = {"cpu": ("float64",), "cuda": ("float32", "float64")}
GOALS = ("map", "lp", "labels", "optimal")
PAPER = ("updates", "every", "eta")
"""Options of `softmap.paper.solve` alone."""
RENAMED = {"labels": "initial"}
"""Options under their names before version 0.3, and their present ones."""

Keywords = ParamSpec("Keywords")
Outcome = TypeVar("Outcome")
Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """What `softmap.solve` may be told; its docstring says what each option means.

    Wrong values raise an `OptionError` that names the option, the value and what was expected.
    Numbers are stored as plain floats and integers, `checkpoint` and `proof` as paths.
    """

    method: MethodName = "anneal"
    goal: Literal["map", "lp", "labels", "optimal"] = "map"
    lp_gap: float = 1e-4
    gap: float = 1e-6
    time_limit: float | None = None
    memory_limit: int | None = None
    max_work: int | None = None
    updates: int | None = None
    every: int | None = None
    threads: int | None = None
    dtype: str | None = None
    seed: int = 0
    warm_start: ArrayLike | Mapping[Any, Any] | Result | None = None
    initial: ArrayLike | Mapping[Any, Any] | None = None
    upper_bound: float | None = None
    checkpoint: str | Path | None = None
    proof: str | Path | None = None
    on_snapshot: Callable[[Snapshot], Any] | None = None
    backend: Literal["cpu", "cuda"] = "cpu"
    eta: float | None = None
    tuning: Tuning = TUNING
    verbose: bool = False
    progress: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.backend, str) or self.backend not in BACKENDS:
            raise wrong("backend", self.backend, _choice(tuple(BACKENDS)))
        checked = {
            "lp_gap": not_negative("lp_gap", self.lp_gap),
            "gap": not_negative("gap", self.gap),
            "time_limit": _optional(not_negative, "time_limit", self.time_limit),
            "memory_limit": _optional(count, "memory_limit", self.memory_limit),
            "max_work": _optional(count, "max_work", self.max_work),
            "updates": _optional(count, "updates", self.updates),
            "every": _optional(count, "every", self.every, 1),
            "threads": _optional(count, "threads", self.threads, 1, MOST_THREADS),
            "seed": count("seed", self.seed, 0, 2**128),
            "dtype": _dtype(self.dtype, self.backend),
            "eta": _optional(positive, "eta", self.eta),
            "upper_bound": _optional(real, "upper_bound", self.upper_bound),
            "checkpoint": _optional(_target, "checkpoint", self.checkpoint),
            "proof": _optional(_target, "proof", self.proof),
            "verbose": flag("verbose", self.verbose),
            "progress": flag("progress", self.progress),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.proof is not None and self.checkpoint is not None:
            apart(proof=Path(self.proof), checkpoint=Path(self.checkpoint))
        self._check_method()
        if not isinstance(self.goal, str) or self.goal not in GOALS:
            raise wrong("goal", self.goal, _choice(GOALS))
        if not isinstance(self.tuning, Tuning):
            raise wrong("tuning", self.tuning, "softmap.tuning.Tuning, or nothing")
        if self.on_snapshot is not None and not callable(self.on_snapshot):
            raise wrong("on_snapshot", self.on_snapshot, "a function of one snapshot, or None")

    @property
    def precision(self) -> str:
        """The precision of the messages: the requested one, or that of the backend."""
        return str(self.dtype)

    @property
    def seconds(self) -> float:
        """The time limit; +inf without one."""
        return math.inf if self.time_limit is None else self.time_limit

    @property
    def ends(self) -> bool:
        """Whether a default effort ends the run, not a limit or a proof."""
        return self.seconds == math.inf and self.max_work is None and self.goal != "optimal"

    @property
    def proving(self) -> bool:
        """Whether an effort is made for proofs beside that of the relaxation."""
        return self.goal != "labels" or self.seconds < math.inf

    def either(self, *, timed: Value, counted: Value) -> Value:
        """The value for runs with a time limit, or for those that count work.

        Parameters
        ----------
        timed : object
            The value if the time of the run is limited.
        counted : object
            The value if nothing may depend on timing.
        """
        return counted if self.seconds == math.inf else timed

    def racing(self, threads: int) -> int:
        """The number of threads for work whose result depends on timing, out of `threads`."""
        return self.either(timed=threads, counted=1)

    @property
    def whole_run(self) -> bool:
        """Whether a method that was asked for by name makes all updates, whatever the gaps."""
        return self.updates is not None and self.method != "anneal"

    def _check_method(self) -> None:
        if not isinstance(self.method, str):
            raise wrong("method", self.method, "the name of a method")
        if self.backend != "cpu" and self.method != "anneal":
            raise OptionError(f"backend={self.backend!r} runs method 'anneal' only")
        if find(self.method).fixed_eta and self.eta is None:
            raise OptionError(
                f"method {self.method!r} works at a fixed η: give eta=..., for example 1000.0, "
                "to softmap.paper.solve"
            )


def with_options(
    kind: Callable[Keywords, Options],
    *,
    without: Collection[str] = (),
    moved: Mapping[str, Callable[[Model, dict[str, Any]], Any]] | None = None,
) -> Callable[
    [Callable[[Model, Options], Outcome]], Callable[Concatenate[Model, Keywords], Outcome]
]:
    """Decorate a function of a model and `Options` so that it takes each option as a keyword.

    Its signature then lists these options, for `help` and type checkers.

    Parameters
    ----------
    kind : type
        `Options`.
    without : collection of str
        Options that the function does not take.
    moved : mapping, optional
        For deprecated keywords that are functions of their own now: the function of the model and
        all keywords that answers such a call.
    """
    options = inspect.signature(kind).parameters
    keywords = {name: option for name, option in options.items() if name not in without}

    def decorated(
        function: Callable[[Model, Options], Outcome],
    ) -> Callable[Concatenate[Model, Keywords], Outcome]:
        @wraps(function)
        def called(model: Model, *none: Keywords.args, **given: Keywords.kwargs) -> Outcome:
            if none:
                raise TypeError(f"{function.__name__}() takes options by keyword only")
            for name, answer in (moved or {}).items():
                if name in given:
                    return answer(model, given)
            for name in [name for name in given if name in RENAMED]:
                given[RENAMED[name]] = _renamed(function.__name__, name, given)
            for name in given:
                if name in without:
                    raise TypeError(f"{name} is an option of softmap.paper.solve")
                if name not in keywords:
                    raise TypeError(unexpected(function.__name__, name, keywords))
            return function(model, kind(*none, **given))

        plain = inspect.signature(function)
        parameters = [plain.parameters["model"], *keywords.values()]
        called.__signature__ = plain.replace(parameters=parameters)  # type: ignore[attr-defined]
        return called  # type: ignore[return-value] # which takes the model by name, too

    return decorated


def _renamed(function: str, name: str, given: dict[str, Any]) -> Any:
    """Take an option under its old name from the keywords of a call; warn."""
    new = RENAMED[name]
    if new in given:
        raise TypeError(f"{function}() got both {new!r} and {name!r}, its old name")
    said = f"the option {name}= of softmap.{function} is called {new}="
    warnings.warn(said, DeprecationWarning, stacklevel=3)
    return given.pop(name)


def apart(**files: Path) -> None:
    """Raise `OptionError` if two files of a run, by the name of the option, are the same file."""
    for (name, path), (other, earlier) in combinations(files.items(), 2):
        if same_file(path, earlier):
            raise OptionError(f"{name}={str(path)!r}: {other} names the same file; name another")


def _choice(names: tuple[str, ...]) -> str:
    return " or ".join(repr(name) for name in names)


def _optional(check: Callable[..., Any], name: str, value: Any, *limits: int) -> Any:
    return None if value is None else check(name, value, *limits)


def _dtype(value: Any, backend: str) -> str:
    """Return the name of the precision, by default that of the backend."""
    if value is None:
        return BACKENDS[backend][0]
    try:
        name = np.dtype(value).name
    except Exception:  # of any type: numpy calls methods of the value
        name = ""
    if name not in BACKENDS["cuda"]:
        raise wrong("dtype", value, _choice(BACKENDS["cuda"]))
    if name not in BACKENDS[backend]:
        raise OptionError(f"dtype={name!r} needs backend='cuda': the CPU computes in float64")
    return name


def _target(name: str, value: Any) -> Path:
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise wrong(name, value, "the path of a file to write")
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise wrong(name, str(value), "the path of a file in a folder that exists")
    return path
