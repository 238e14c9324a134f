"""`Failures`: a subsolver whose code raises an exception ends alone, and the run continues."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from softmap.errors import (
    InfeasibleModel,
    MissingExtra,
    NotEnoughMemory,
    StageWarning,
    debugging,
)

__all__ = ["Failures", "StageFailure"]

LOG = logging.getLogger("softmap")
ANSWERS = (InfeasibleModel, MissingExtra, NotEnoughMemory)
"""Exceptions that are no failure of a subsolver: they answer the user."""

Value = TypeVar("Value")


class StageFailure(NamedTuple):
    """A subsolver that has ended with an exception: its name in the trace, and the exception."""

    stage: str
    error: str


class _Attempted(Protocol):
    """A subsolver, as `Failures` knows it."""

    @property
    def name(self) -> str: ...

    def abandon(self) -> None:
        """Let go of what the failure has left incomplete."""


class Failures:
    """The subsolvers of a run that have failed; it catches what their code raises.

    An exception that answers the user (`InfeasibleModel`) is not caught, nor is anything if
    `SOFTMAP_DEBUG` is set. KeyboardInterrupt and SystemExit are no `Exception`.

    Parameters
    ----------
    answers : type
        Further exceptions that answer the user.
    """

    def __init__(self, *answers: type[Exception]) -> None:
        self._answers: tuple[type[Exception], ...] = (*ANSWERS, *answers)
        self._noted: list[StageFailure] = []
        self._ended: list[_Attempted] = []

    def __len__(self) -> int:
        return len(self._noted)

    def __contains__(self, subsolver: object) -> bool:
        return subsolver in self._ended

    @property
    def noted(self) -> tuple[StageFailure, ...]:
        """All failures, in order."""
        return tuple(self._noted)

    def attempt(
        self, subsolver: _Attempted, action: Callable[[], Value], otherwise: Value
    ) -> Value:
        """Return what code of a subsolver returns; `otherwise` if it fails, or has failed before.

        Parameters
        ----------
        subsolver : Subsolver
            The subsolver, which ends if its code raises an exception.
        action : function
            Calls its code.
        otherwise : object
            What is returned instead.
        """
        if subsolver in self:
            return otherwise

        def end() -> None:
            self._ended.append(subsolver)
            subsolver.abandon()

        return self.attempt_part(subsolver.name, action, otherwise, end)

    def attempt_part(
        self,
        name: str,
        action: Callable[[], Value],
        otherwise: Value,
        end: Callable[[], object] = lambda: None,
    ) -> Value:
        """Return what code returns that belongs to no subsolver yet; `otherwise` if it fails.

        Parameters
        ----------
        name : str
            The name of the subsolver that the code belongs to.
        action : function
            Calls the code.
        otherwise : object
            What is returned instead.
        end : function, optional
            Called after a failure, before the warning.
        """
        try:
            return action()
        except self._answers:
            raise
        except Exception as error:  # of any type: of numpy, scipy, the core, or a user's potentials
            if debugging():
                raise
            failure = StageFailure(name, _words(error))
            LOG.info("the subsolver %s has failed", failure.stage, exc_info=True)
        self._noted.append(failure)
        end()
        warnings.warn(StageWarning(*failure), stacklevel=4)  # outside of `except`: may be raised
        return otherwise


def _words(error: Exception) -> str:
    """Return type and message of an exception in one line."""
    message = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
