"""One family of exceptions: every error a user can cause derives from `SoftmapError`."""

from __future__ import annotations

import reprlib

__all__ = [
    "CheckpointError",
    "CheckpointWarning",
    "ConvergenceWarning",
    "FormatError",
    "InfeasibleModel",
    "MissingExtra",
    "ModelError",
    "NotEnoughMemory",
    "OptionError",
    "ProofWarning",
    "SoftmapError",
    "WriteError",
    "shown",
]

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def shown(value: object) -> str:
    """A value for an error message: its `repr`, shortened; never an error itself."""
    try:
        return _SHORT.repr(value)
    except Exception:  # such as an integer of too many digits, or a broken __repr__
        return f"a {type(value).__name__}"


class SoftmapError(Exception):
    """Base of all errors raised on purpose by softmap."""


class ModelError(SoftmapError, ValueError):
    """The arrays handed over do not describe a model; the message names the entry."""


class OptionError(SoftmapError, ValueError):
    """An argument of a solver or command is out of its range."""


class CheckpointError(SoftmapError):
    """A checkpoint cannot be used: another model, another method, or not a checkpoint."""


class CheckpointWarning(RuntimeWarning):
    """A checkpoint could not be written; the run goes on without it."""


class ProofWarning(RuntimeWarning):
    """The proof that was asked for proves less than the bound: that is stated only."""


class ConvergenceWarning(RuntimeWarning):
    """Marginals or a gradient are less accurate than they should be."""


class InfeasibleModel(SoftmapError):
    """Hard constraints leave a variable without a state.

    Attributes
    ----------
    variable : int or None
        The variable that ran out of states, where one is known.
    """

    def __init__(self, message: str, variable: int | None = None) -> None:
        super().__init__(message)
        self.variable = variable


class FormatError(SoftmapError, ValueError):
    """A file does not follow its format.

    Attributes
    ----------
    path : str or None
        The file.
    line : int or None
        The line (text formats), counted from 1.
    expected : str or None
        What should have been there.
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


class WriteError(SoftmapError, OSError):
    """A file cannot be written; what stood there before is untouched.

    Attributes
    ----------
    filename : str
        The file.
    errno : int or None
        The system's number of the reason, where it gave one.
    """

    def __init__(self, path: object, reason: Exception | str) -> None:
        self.reason: str = getattr(reason, "strerror", None) or str(reason)
        super().__init__(f"{path}: cannot be written: {self.reason}")
        self.filename = str(path)
        self.errno = getattr(reason, "errno", None)

    def __str__(self) -> str:
        return f"{self.filename}: cannot be written: {self.reason}"

    def __reduce__(self) -> tuple[type[WriteError], tuple[str, str]]:
        return WriteError, (self.filename, self.reason)


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
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the extra '{extra}': run pip install '.[{extra}]' in the folder of "
            "softmap's sources"
        )
        self.extra = extra
