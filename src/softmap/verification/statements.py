"""What a check says: statements with their verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["Report", "Statement", "Verdict"]


class Verdict(Enum):
    """What became of one statement, or of all together.

    A statement is CHECKED where it was recomputed and is true, FALSE where it is not, and STATED
    where it cannot be recomputed: it is consistent with the rest, and nobody has proved it again.
    """

    CHECKED = "checked"
    STATED = "stated"
    FALSE = "false"

    @classmethod
    def of(cls, holds: bool) -> Verdict:
        """CHECKED or FALSE."""
        return cls.CHECKED if holds else cls.FALSE


_SUMMARY = {
    Verdict.CHECKED: "every statement was recomputed",
    Verdict.STATED: "nothing is false, but not everything was recomputed",
    Verdict.FALSE: "a statement is false",
}


@dataclass(frozen=True)
class Statement:
    """One thing that a result says.

    Attributes
    ----------
    name
        What is checked, in a word: "energy", "bound", ...
    verdict
    numbers
        What was stated and what was found, in words.
    """

    name: str
    verdict: Verdict
    numbers: str


@dataclass(frozen=True)
class Report:
    """All statements of one result; true in a condition where none of them is false.

    True does not mean proved: see `checked`.

    Attributes
    ----------
    statements : tuple of statements, each with a name, a verdict and words; `report[name]` is one
    """

    statements: tuple[Statement, ...]

    @property
    def holds(self) -> bool:
        """Whether no statement is false."""
        return all(one.verdict is not Verdict.FALSE for one in self.statements)

    @property
    def verdict(self) -> Verdict:
        """FALSE where a statement is, else STATED where one could not be recomputed."""
        found = {one.verdict for one in self.statements}
        worst = (Verdict.FALSE, Verdict.STATED)
        return next((verdict for verdict in worst if verdict in found), Verdict.CHECKED)

    @property
    def checked(self) -> bool:
        """Whether every statement was recomputed and is true."""
        return self.verdict is Verdict.CHECKED

    def as_dict(self) -> dict[str, Any]:
        """The verdict and all statements, for JSON."""
        return {
            "verdict": self.verdict.value,
            "statements": [
                {"name": one.name, "verdict": one.verdict.value, "numbers": one.numbers}
                for one in self.statements
            ],
        }

    def __bool__(self) -> bool:
        return self.holds

    def __getitem__(self, name: str) -> Statement:
        for one in self.statements:
            if one.name == name:
                return one
        raise KeyError(name)

    def __str__(self) -> str:
        whole = Statement("result", self.verdict, _SUMMARY[self.verdict])
        every = (*self.statements, whole)
        width = max(len(one.name) for one in every)
        lines = [f"{one.name:{width}}  {one.verdict.value}: {one.numbers}" for one in every]
        return "\n".join(lines)
