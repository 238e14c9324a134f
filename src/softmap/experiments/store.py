"""Results of finished trials on disk, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import softmap
from softmap.experiments.unit import Point, Unit
from softmap.io.atomic import write_text

__all__ = ["Store", "code_digest"]


def code_digest() -> str:
    """A digest of the sources that numbers depend on; results of other code are not reused."""
    root = Path(softmap.__file__).parent
    skipped = {"cli", "demos", "interop", "io", "plotting", "report"}
    told = {
        "methods.py",
        "truth.py",
        "unit.py",
    }  # modules that results depend on
    digest = hashlib.sha256()
    for source in sorted(root.rglob("*.py")):
        place = source.relative_to(root)
        ours = place.parts[0] == "experiments" and source.name not in told
        if place.parts[0] not in skipped and not ours:
            digest.update(place.as_posix().encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()


class Store:
    """A folder with one small file per finished trial."""

    def __init__(self, folder: Path, code: str | None = None) -> None:
        self.folder = folder
        self.code = code_digest() if code is None else code
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, unit: Unit) -> Path:
        """Where the result of a trial is, or will be."""
        return self.folder / f"{unit.key(self.code)}.json"

    def load(self, unit: Unit) -> list[Point] | None:
        """The stored result; None if there is none, or none that can be read."""
        try:
            rows = json.loads(self.path(unit).read_text(encoding="utf-8"))
            points = [Point(*row) for row in rows]
        except (OSError, ValueError, TypeError):
            return None
        return points if [p.updates for p in points] == list(unit.checks) else None

    def save(self, unit: Unit, points: list[Point]) -> None:
        """Store a result, whole or not at all."""
        write_text(self.path(unit), [json.dumps(points)])
