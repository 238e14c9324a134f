"""The exceptions of softmap; every error that a user can cause derives from `SoftmapError`."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

DEBUG = "SOFTMAP_DEBUG"
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def shown(value: object) -> str:
    """Return a shortened `repr` of a value for an error message; it never raises."""
    try:
        return _SHORT.repr(value)
    except Exception:  # for example an integer with too many digits, or a broken __repr__
        return f"a {type(value).__name__}"


def listed(names: Sequence[object], between: str = ", ", most: int = 12) -> str:
    """Return the first of some names in one line, for an error message."""
    return between.join(map(str, names[:most])) + (f"{between}…" if len(names) > most else "")


def debugging() -> bool:
    """Whether SOFTMAP_DEBUG is set: exceptions inside softmap are raised, with their traceback."""
    return bool(os.environ.get(DEBUG))


class SoftmapError(Exception):
    """The base class of all errors that softmap raises on purpose."""


class ModelError(SoftmapError, ValueError):
    """The given arrays do not describe a model; the message names the wrong entry."""


class OptionError(SoftmapError, ValueError):
    """An argument of a function or command is invalid."""


class CheckpointError(SoftmapError):
    """A checkpoint cannot be used: wrong model, wrong method, or not a checkpoint."""


class CheckpointWarning(RuntimeWarning):
    """A checkpoint could not be written; the run continues without it."""


class ProofWarning(RuntimeWarning):
    """The requested proof could not be written, or it proves less than the stated bound.

    Attributes
    ----------
    written : bool
        Whether the file was written; if not, an earlier file at that path is unchanged.
    """

    def __init__(self, message: str, *, written: bool) -> None:
        super().__init__(message)
        self.written = written

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(ProofWarning, written=self.written), self.args


class StageWarning(RuntimeWarning):
    """A subsolver of a run has failed; the run continues without it, and its answer holds.

    With `SOFTMAP_DEBUG=1` in the environment, the exception is raised instead.

    Attributes
    ----------
    stage : str
        The name of the subsolver, as in the trace.
    error : str
        Type and message of the exception that ended it.
    """

    def __init__(self, stage: str, error: str) -> None:
        said = f"the subsolver '{stage}' has failed ({error}); the run continues without it"
        super().__init__(said)
        self.stage, self.error = stage, error

    def __reduce__(self) -> tuple[type[StageWarning], tuple[str, str]]:
        return StageWarning, (self.stage, self.error)


class ConvergenceWarning(RuntimeWarning):
    """Marginals, a gradient or a transport plan are less accurate than requested."""


@dataclass(frozen=True)
class HardConstraint:
    """A hard constraint that a proof of infeasibility uses.

    Attributes
    ----------
    kind : str
        "labels" (the allowed labels of one variable), "pair", "factor", or the name of a factor
        over many variables, such as "AllDifferent".
    variables : tuple of int
        Its variables.
    """

    kind: str
    variables: tuple[int, ...]

    def called(self, names: Sequence[object] | None = None) -> str:
        """Return words for the constraint; `names` are those of all variables of the model."""
        shown = [str(v if names is None else names[v]) for v in self.variables[:12]]
        words = ", ".join(shown) + (", …" if len(self.variables) > len(shown) else "")
        if self.kind == "labels":
            return f"the allowed labels of variable {words}"
        if len(self.variables) == 1:
            return f"the factor of variable {words}"
        return f"the {self.kind} over variables {words}"


class InfeasibleModel(SoftmapError):
    """No labelling has finite cost: the hard constraints contradict each other.

    Attributes
    ----------
    variable : int or None
        A variable without an allowed state, if one is known.
    constraints : tuple of HardConstraint
        Constraints that no labelling obeys together, if a proof has named them.
    """

    def __init__(
        self,
        message: str,
        variable: int | None = None,
        constraints: tuple[HardConstraint, ...] = (),
    ) -> None:
        super().__init__(message)
        self.variable = variable
        self.constraints = constraints


class FormatError(SoftmapError, ValueError):
    """A file does not follow its format.

    Attributes
    ----------
    path : str or None
        The file.
    line : int or None
        The line number (text formats), counted from 1.
    expected : str or None
        What was expected there.
    """

    def __init__(
        self,
        message: str,
        path: object = None,
        line: int | None = None,
        expected: str | None = None,
    ) -> None:
        place = "" if path is None else f"{path}: "
        if line is not None:
            place += f"line {line}: "
        super().__init__(place + message)
        self.path = None if path is None else str(path)
        self.line = line
        self.expected = expected


class FormatWarning(UserWarning):
    """A file lacks something of the model, or something in it was not used."""


class WriteError(SoftmapError, OSError):
    """A file cannot be written; an existing file at that path is unchanged.

    Attributes
    ----------
    filename : str
        The file.
    errno : int or None
        Error number of the operating system, if there is one.
    """

    def __init__(self, path: object, reason: Exception | str) -> None:
        self.reason: str = getattr(reason, "strerror", None) or str(reason)
        super().__init__(f"{path}: cannot be written: {self.reason}")
        self.filename = str(path)
        self.errno = getattr(reason, "errno", None)

    def __str__(self) -> str:
        return f"{self.filename}: cannot be written: {self.reason}"

    def __reduce__(self) -> tuple[Any, ...]:
        return WriteError, (self.filename, self.reason), {"errno": self.errno}


class NotEnoughMemory(SoftmapError, MemoryError):
    """A run would need more memory than there is, or than was allowed; nothing was allocated.

    Attributes
    ----------
    needed, available : int
        Bytes.
    advice : str
        What would fit.
    """

    def __init__(self, needed: int, available: int, advice: str) -> None:
        super().__init__(
            f"solving this model takes about {needed:,} bytes of memory; {available:,} are "
            f"available ({advice})"
        )
        self.needed, self.available, self.advice = needed, available, advice

    def __reduce__(self) -> tuple[type[NotEnoughMemory], tuple[int, int, str]]:
        return NotEnoughMemory, (self.needed, self.available, self.advice)


class MissingExtra(SoftmapError, ImportError):
    """A feature needs an optional dependency that is not installed.

    Attributes
    ----------
    feature : str
        What needs it.
    extra : str
        The extra that installs it.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the extra '{extra}': run pip install '.[{extra}]' in the folder of "
            "softmap's sources"
        )
        self.feature, self.extra = feature, extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        return MissingExtra, (self.feature, self.extra)


@contextmanager
def needs_extra(feature: str, extra: str) -> Iterator[None]:
    """Raise `MissingExtra` if an import inside this context fails.

    Parameters
    ----------
    feature : str
        What needs the import, for the message.
    extra : str
        The extra that installs the module.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtra(feature, extra) from error


def human(size: float) -> str:
    """Return a number of bytes as text, such as "1.5 GB"."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} PB"
