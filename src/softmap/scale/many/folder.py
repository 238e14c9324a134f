"""A folder of results: what is in it already, and what is added, each file whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import OptionError, WriteError
from softmap.io.atomic import write_text
from softmap.io.results import write_labels
from softmap.scale.many.items import Item

__all__ = ["Answer", "Folder"]

SUMMARY = "summary.csv"
COLUMNS = (
    "name", "state", "status", "energy", "bound", "primal", "gap", "lp_gap", "relative_gap",
    "seconds", "error",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Answer:
    """What is kept of a result: the facts of its JSON file, and the labels if there are any."""

    facts: dict[str, Any]
    labels: NDArray[np.int64] | None


@dataclass
class Folder:
    """`NAME.json` and `NAME.MPE` for each model, and `summary.csv` over all of them.

    The JSON file is written last: where it is, the result is whole. It names the model by its
    fingerprint and the options of the run, so that another run solves only what has changed.
    """

    path: Path
    options: dict[str, Any]
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError(self.path, error) from error

    def with_known(self, items: list[Item]) -> list[Item]:
        """The items, with the fingerprint of the model that each stored result belongs to."""
        return [replace(item, known=self._known(item.name)) for item in items]

    def _known(self, name: str) -> str | None:
        facts = self._stored(name)
        whole = facts.get("found") is False or self._labels(name).is_file()
        return facts.get("model") if facts.get("options") == self.options and whole else None

    def _stored(self, name: str) -> dict[str, Any]:
        try:
            facts = json.loads(self._facts(name).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return facts if isinstance(facts, dict) else {}

    def _facts(self, name: str) -> Path:
        return self._file(name, ".json")

    def _labels(self, name: str) -> Path:
        return self._file(name, ".MPE")

    def _file(self, name: str, suffix: str) -> Path:
        if Path(name).name != name:
            raise OptionError(f"{name!r} cannot be the name of a file in {self.path}")
        return self.path / f"{name}{suffix}"

    def keep(self, name: str, fingerprint: str, answer: Answer) -> None:
        """Store a result."""
        if answer.labels is not None:
            write_labels(answer.labels, self._labels(name))
        else:
            self._labels(name).unlink(missing_ok=True)
        facts = {"name": name, "model": fingerprint, "options": self.options} | answer.facts
        write_text(self._facts(name), [json.dumps(facts, indent=1), "\n"])
        self._note(name, "solved", facts)

    def keep_old(self, name: str) -> None:
        """Note a result that was there and still holds."""
        self._note(name, "unchanged", self._stored(name))

    def keep_error(self, name: str, error: Exception) -> None:
        """Note that there is no result."""
        words = " ".join(str(error).split()) or type(error).__name__
        self._note(name, "failed", {"error": words})

    def _note(self, name: str, state: str, facts: dict[str, Any]) -> None:
        self.rows[name] = facts | {"name": name, "state": state}

    def summarise(self) -> None:
        """Write `summary.csv`, the models in the order of their names.

        Rows of models that are no part of this run stay as they were.
        """
        rows = self._earlier() | self.rows
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, COLUMNS, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows[name] for name in sorted(rows))
        write_text(self.path / SUMMARY, [text.getvalue()])

    def _earlier(self) -> dict[str, dict[str, Any]]:
        """Rows of the summary that is there; none where it cannot be read."""
        try:
            with (self.path / SUMMARY).open(newline="", encoding="utf-8") as file:
                return {row["name"]: row for row in csv.DictReader(file, restval="")}
        except (OSError, ValueError, KeyError, csv.Error):
            return {}
