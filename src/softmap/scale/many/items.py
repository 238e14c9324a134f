"""The models or files to solve, by name, the batches they are sent in, the folder of results."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from softmap import Model, io
from softmap.errors import OptionError, WriteError, shown
from softmap.extend.store import uncompressed, write_text


@dataclass(frozen=True)
class Batching:
    """Which models are sent in one batch.

    Attributes
    ----------
    small : int
        Largest size, in bytes, of a model that is sent with others; a fourth of it for a file, as
        text and compressed files grow when they are read.
    most : int
        Largest number of models of a batch.
    turns : int
        Smallest number of batches per thread, so that no thread is idle for long at the end.
    """

    small: int = 256 << 10
    most: int = 64
    turns: int = 4


@dataclass(frozen=True, eq=False)
class Item:
    """An item to solve: a model, or the path of a file that the workers can read.

    `known` is the fingerprint of the model of a stored result: a model with the same fingerprint is
    not solved again. `evidence` is the file of its observed labels.
    """

    name: str
    source: Model | str
    known: str | None = None
    evidence: str | None = None
    batching: ClassVar[Batching] = Batching()

    @property
    def small(self) -> bool:
        """Whether the item is sent in a batch with others."""
        if isinstance(self.source, Model):
            return self.source.network.nbytes <= self.batching.small
        try:
            return os.path.getsize(self.source) <= self.batching.small // 4
        except OSError:  # only workers can see it, or it is missing: they report that
            return False


def files_in(paths: Iterable[Path]) -> list[Path]:
    """Return the given files, and all model files (by suffix) of the given folders."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(p for p in path.iterdir() if p.is_file() and _has_model_suffix(p))
        if not inside:
            raise OptionError(f"{path}: there is no model file in this folder")
        found += inside
    if found and not any(
        path.exists() for path in found
    ):  # one of many is reported with its result
        raise OptionError(f"{found[0]}: there is no such file or folder")
    return found


def evidence_beside(path: str) -> str | None:
    """Return the evidence file of a model, `X.uai.evid` for X.uai as in toulbar2, if it exists."""
    unpacked = uncompressed(Path(path))
    for stem in (path, str(unpacked)):
        if os.path.isfile(f"{stem}.evid"):
            return f"{stem}.evid"
    return None


def listed(given: Any, *, evidence: bool = False) -> list[Item]:
    """Return items for a list of models and paths, or for a mapping from names to them."""
    if isinstance(given, Model | str | bytes | os.PathLike):
        raise OptionError(f"expected a list of models or paths, not a {type(given).__name__}")
    try:
        pairs = list(given.items()) if isinstance(given, Mapping) else None
        sources = [source for _, source in pairs] if pairs is not None else list(given)
    except Exception as error:
        raise OptionError(f"expected a list of models or paths, not {shown(given)}") from error
    for place, source in enumerate(sources):
        if not isinstance(source, Model) and not _is_path(source):
            raise OptionError(f"entry {place}: expected a Model or a path, not {shown(source)}")
    if pairs is not None:
        names = [name for name, _ in pairs]
        if not all(isinstance(name, str) and name for name in names):
            raise OptionError("expected names of models as text")
    else:
        names = names_of(sources)
    items = []
    for name, source in zip(names, sources, strict=True):
        path = None if isinstance(source, Model) else os.fspath(source)
        observed = evidence_beside(path) if evidence and path is not None else None
        items.append(Item(name, source if path is None else path, evidence=observed))
    return items


def _is_path(source: Any) -> bool:
    if not isinstance(source, str | os.PathLike):
        return False
    text = os.fspath(source)
    return isinstance(text, str) and bool(text) and "\0" not in text


def names_of(sources: Iterable[Any]) -> list[str]:
    """Return names: the index of a model, the file name (without suffixes if unique) of a path."""
    known = list(sources)
    names = [
        str(place) if isinstance(source, Model) else _stem(source)
        for place, source in enumerate(known)
    ]
    for longer in (lambda path: path.name, lambda path: "-".join(_parts(path))):
        names = [
            longer(Path(source)) if many and not isinstance(source, Model) else name
            for name, source, many in zip(names, known, _repeated(names), strict=True)
        ]
    for name, many in zip(names, _repeated(names), strict=True):
        if many:
            raise OptionError(f"two models have the name {name!r}")
    return names


def _repeated(names: list[str]) -> list[bool]:
    """Return which names occur more than once, ignoring case (as some file systems do)."""
    folded = [name.casefold() for name in names]
    counts: dict[str, int] = {}
    for name in folded:
        counts[name] = counts.get(name, 0) + 1
    return [counts[name] > 1 for name in folded]


def _stem(source: str | os.PathLike[str]) -> str:
    """Return a file name without the suffixes of compression and of its format."""
    path = uncompressed(Path(source))
    return path.stem if _has_model_suffix(path) else path.name


def _has_model_suffix(path: Path) -> bool:
    """Whether a file name has a suffix of a model format, possibly compressed."""
    known = {suffix for form in io.FORMATS.values() if form.reader for suffix in form.suffixes}
    return uncompressed(path).suffix.lower() in known


def _parts(path: Path) -> list[str]:
    return [part for part in path.parts if part not in ("/", ".", "..")]


def batches(items: list[Item], threads: int) -> list[list[Item]]:
    """Return batches: large items alone and first, because they take longest; then small ones."""
    rule = Item.batching
    small = [item for item in items if item.small]
    large = [item for item in items if not item.small]
    size = max(1, min(rule.most, len(small) // max(1, rule.turns * threads)))
    together = [small[k : k + size] for k in range(0, len(small), size)]
    return [[item] for item in large] + together


SUMMARY = "summary.csv"
COLUMNS = (
    "name", "state", "status", "energy", "bound", "primal", "gap", "lp_gap", "relative_gap",
    "seconds", "error",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Answer:
    """The stored part of a result: the content of its JSON file, and its labels if any."""

    facts: dict[str, Any]
    labels: NDArray[np.int64] | None


@dataclass
class Folder:
    """A folder with `NAME.json` and `NAME.MPE` for each model, and `summary.csv` over all.

    The JSON file is written last: if it exists, the result is complete. It holds the fingerprint of
    the model and the options of the run, so that another run solves only what has changed.
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
        """Return the items, each with the fingerprint of its stored result, if any."""
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
            io.write_labels(answer.labels, self._labels(name))
        else:
            self._labels(name).unlink(missing_ok=True)
        facts = {"name": name, "model": fingerprint, "options": self.options} | answer.facts
        write_text(self._facts(name), [json.dumps(facts, indent=1), "\n"])
        self._note(name, "solved", facts)

    def keep_old(self, name: str) -> None:
        """Record that a stored result is still valid."""
        self._note(name, "unchanged", self._stored(name))

    def keep_error(self, name: str, error: Exception) -> None:
        """Record an error in place of a result."""
        words = " ".join(str(error).split()) or type(error).__name__
        self._note(name, "failed", {"error": words})

    def _note(self, name: str, state: str, facts: dict[str, Any]) -> None:
        self.rows[name] = facts | {"name": name, "state": state}

    @property
    def summary(self) -> Path:
        """The table over all models."""
        return self.path / SUMMARY

    def summarise(self) -> None:
        """Write `summary.csv`, sorted by the names of models.

        Rows of models that are not part of this run do not change.
        """
        rows = self._earlier() | self.rows
        text = StringIO(newline="")
        writer = csv.DictWriter(text, COLUMNS, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows[name] for name in sorted(rows))
        write_text(self.summary, [text.getvalue()])

    def _earlier(self) -> dict[str, dict[str, Any]]:
        """Return the rows of the existing summary; none if it is damaged."""
        try:
            with self.summary.open(newline="", encoding="utf-8") as file:
                return {row["name"]: row for row in csv.DictReader(file, restval="")}
        except (FileNotFoundError, ValueError, KeyError, csv.Error):
            return {}
        except OSError as error:  # its rows would be lost
            raise WriteError(self.summary, error) from error
