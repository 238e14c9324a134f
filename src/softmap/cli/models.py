"""Reading the model that a command names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softmap.model import Model

__all__ = ["load"]


def load(path: Path, *, values: str | None = None, evidence: Path | None = None) -> Model:
    """Read a model (`-` is standard input) and fix the variables of an evidence file."""
    import softmap
    from softmap.io import read_evidence

    options: dict[str, Any] = {} if values is None else {"values": values}
    source = sys.stdin.buffer if str(path) == "-" else path
    model = softmap.read(source, **options)
    return model if evidence is None else model.condition(read_evidence(evidence))
