"""One figure about a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from softmap.io.atomic import replacing
from softmap.model import Model
from softmap.plotting.charts import draw_convergence
from softmap.plotting.figure import empty_figure
from softmap.plotting.images import draw_labelling

__all__ = ["result_figure"]


class Drawn(Protocol):
    """What is drawn of a run; `softmap.Result` has it."""

    @property
    def model(self) -> Model: ...
    @property
    def labels(self) -> NDArray[np.int64]: ...
    @property
    def trace(self) -> Any: ...


def result_figure(result: Drawn, path: Path | None = None) -> Any:
    """The labelling where the model is a picture, energy and bound, and the gaps."""
    shape = result.model.shape
    picture = shape is not None and len(shape) == 2
    figure = empty_figure(12.0 if picture else 8.5, 3.6)
    axes = list(figure.subplots(1, 3 if picture else 2))
    if picture:
        count = int(result.model.num_labels[: result.model.num_visible].max())
        draw_labelling(np.asarray(result.labels).reshape(shape), count, axes.pop(0))
    draw_convergence(result.trace.columns(), *axes)
    if path is not None:
        with replacing(path) as file:
            figure.savefig(file, format=path.suffix.lstrip(".") or "png")
    return figure
