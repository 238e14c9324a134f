"""What a check says: a verdict on each statement of a result, and on all of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from html import escape
from typing import Any

from softmap.later import display


class Verdict(Enum):
    """The verdict on one statement, or on all statements of a result.

    A statement is CHECKED if it was recomputed and is true, FALSE if it was recomputed and is not
    true, and STATED if it cannot be recomputed but is consistent with the other statements.
    """

    CHECKED = "checked"
    STATED = "stated"
    FALSE = "false"

    @classmethod
    def of(cls, holds: bool) -> Verdict:
        """Return CHECKED if `holds`, else FALSE."""
        return cls.CHECKED if holds else cls.FALSE


_SUMMARY = {
    Verdict.CHECKED: "every statement was recomputed",
    Verdict.STATED: "nothing is false, but not everything was recomputed",
    Verdict.FALSE: "a statement is false",
}


@dataclass(frozen=True)
class Statement:
    """One statement of a result.

    Attributes
    ----------
    name : str
        The quantity checked: "energy", "bound", ...
    verdict : Verdict
        Whether the statement was recomputed and is true.
    numbers : str
        The stated and the recomputed values, as text.
    """

    name: str
    verdict: Verdict
    numbers: str


@dataclass(frozen=True)
class Report:
    """All statements of one result; `bool(report)` is true if every one was recomputed and is true.

    A report with a statement that was not recomputed is false in a condition, even if no statement
    is false (`holds`): the exit codes of `softmap verify` make the same difference.

    Attributes
    ----------
    statements : tuple of Statement
        Each has a name, a verdict and a text; `report[name]` returns one of them.
    """

    statements: tuple[Statement, ...]

    @property
    def holds(self) -> bool:
        """Whether no statement is false."""
        return all(one.verdict is not Verdict.FALSE for one in self.statements)

    @property
    def verdict(self) -> Verdict:
        """FALSE if any statement is false, else STATED if any is stated, else CHECKED."""
        found = {one.verdict for one in self.statements}
        worst = (Verdict.FALSE, Verdict.STATED)
        return next((verdict for verdict in worst if verdict in found), Verdict.CHECKED)

    @property
    def checked(self) -> bool:
        """Whether every statement was recomputed and is true."""
        return self.verdict is Verdict.CHECKED

    def as_dict(self) -> dict[str, Any]:
        """The verdict and all statements, for JSON."""
        every = [vars(one) | {"verdict": one.verdict.value} for one in self.statements]
        return {"verdict": self.verdict.value, "statements": every}

    def __bool__(self) -> bool:
        return self.checked

    def __getitem__(self, name: str) -> Statement:
        for one in self.statements:
            if one.name == name:
                return one
        raise KeyError(name)

    def __repr__(self) -> str:
        said = ", ".join(f"{one.name} {one.verdict.value}" for one in self.statements)
        return f"Report({self.verdict.value}: {said})"

    def __str__(self) -> str:
        whole = Statement("result", self.verdict, _SUMMARY[self.verdict])
        every = (*self.statements, whole)
        width = max(len(one.name) for one in every)
        lines = [f"{one.name:{width}}  {one.verdict.value}: {one.numbers}" for one in every]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = {one.name: f"{one.verdict.value}: {one.numbers}" for one in self.statements}
        words = f"{self.verdict.value}: {_SUMMARY[self.verdict]}"
        return (
            f"<div><b>softmap.verify: {escape(words)}</b>{display('drawn.html_table')(rows)}</div>"
        )
