"""Readers of the commands' input: a model with its evidence, and its labellings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmap.errors import OptionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from softmap.model import Model

__all__ = ["best_labels", "evidence_file", "labellings", "read_model"]


def read_model(
    path: Path,
    *,
    values: str | None = None,
    form: str | None = None,
    block: int | None = None,
    evidence: str | None = None,
) -> Model:
    """Read a model and apply its evidence, given as a file or as text such as `0=3,x7=1`."""
    import softmap

    options: dict[str, Any] = {} if block is None else {"block": block}
    return softmap.read(str(path), values=values, format=form, evidence=evidence, **options)


def evidence_file(evidence: str | None) -> Path | None:
    """The file of `--evidence`, or None if evidence is given as text or not at all."""
    if evidence is None or ("=" in evidence and not Path(evidence).exists()):
        return None
    return Path(evidence)


def labellings(path: Path, model: Model) -> list[NDArray[np.int64]]:
    """All labellings of a file: `.MPE`, `.sol`, JSON, or a result written by `--save`."""
    from softmap.io.results import parse_labellings
    from softmap.io.streams import load

    content = load(str(path))
    if content.data[:4] == b"PK\x03\x04":
        import softmap

        return [softmap.load_result(path, model).labels.reshape(-1)]
    return parse_labellings(content, model)


def best_labels(path: Path, model: Model) -> NDArray[np.int64]:
    """The labelling of lowest cost in a file, or the first one if all costs are infinite."""
    found = labellings(path, model)
    if not found:
        raise OptionError(f"{path}: there is no labelling in it")
    return min(found, key=lambda labels: float(model.energy(labels)))
