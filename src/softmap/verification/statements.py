"""What a check says: statements with their verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Report", "Statement", "Verdict"]


class Verdict(Enum):
    """What became of one statement."""

    TRUE = "true"
    FALSE = "false"
    STATED = "stated, not proved again"

    @classmethod
    def of(cls, holds: bool) -> Verdict:
        """TRUE or FALSE."""
        return cls.TRUE if holds else cls.FALSE


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

    Attributes
    ----------
    statements : tuple of statements, each with a name, a verdict and words; `report[name]` is one
    """

    statements: tuple[Statement, ...]

    @property
    def holds(self) -> bool:
        """Whether no statement is false."""
        return all(one.verdict is not Verdict.FALSE for one in self.statements)

    def __bool__(self) -> bool:
        return self.holds

    def __getitem__(self, name: str) -> Statement:
        for one in self.statements:
            if one.name == name:
                return one
        raise KeyError(name)

    def __str__(self) -> str:
        width = max(len(one.name) for one in self.statements)
        lines = [
            f"{one.name:{width}}  {one.verdict.value}: {one.numbers}" for one in self.statements
        ]
        return "\n".join(lines)
