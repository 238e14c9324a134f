"""What a demo is: a story, a model, and two pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.model import Model

__all__ = ["Demo", "DemoOptions", "accuracy"]

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class DemoOptions:
    """What a user may change about a demo; None leaves it to the demo."""

    size: int | None = None
    labels: int | None = None
    seed: int = 0
    image: Path | None = None
    left: Path | None = None
    right: Path | None = None
    truth: Path | None = None
    truth_scale: float | None = None


@dataclass(frozen=True)
class Demo:
    """A model with a story, ready to be solved and drawn."""

    story: str
    model: Model
    draw_input: Callable[[Path], None]
    draw_labelling: Callable[[Labels, Path], None]
    score: Callable[[Labels], str] | None = None
    picture: NDArray[Any] | None = None  # what was given, where it is a picture


def accuracy(truth: Labels, what: str) -> Callable[[Labels], str]:
    """A score: the share of labels that equal the truth."""

    def score(labels: Labels) -> str:
        right = float((labels == truth.ravel()).mean())
        return f"{100 * right:.1f} % of the {what} are right"

    return score
