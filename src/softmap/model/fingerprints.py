"""The digest by which results and checkpoints know their model again."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from softmap.model.model import Model

__all__ = ["fingerprint"]


def fingerprint(model: Model) -> str:
    """Digest of everything that defines a model: costs, edges, auxiliary variables."""
    digest = hashlib.sha256()
    aux = model.auxiliaries
    arrays: list[NDArray[Any]] = [model.unary, model.num_labels, model.edges, model.group_start]
    arrays += [aux.start, aux.member, aux.stride, np.array([model.constant])]
    arrays += model.running.arrays().values() if len(model.running) else []
    for potential in model.potentials:
        digest.update(potential.family.encode())
        arrays += potential.arrays().values()
    for array in arrays:
        digest.update(str((array.dtype, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
