"""Results on their way between processes: without their models, which whoever asked has."""

from __future__ import annotations

from dataclasses import replace

from softmap.model import Model
from softmap.relaxation.consistency import tighten
from softmap.relaxation.scaling import scaled
from softmap.solving.result import Result

__all__ = ["attached", "detached"]


def detached(result: Result) -> Result:
    """A result without its model."""
    point = replace(result.point, model=None)  # type: ignore[arg-type]
    return replace(result, model=None, point=point)  # type: ignore[arg-type]


def attached(result: Result, model: Model) -> Result:
    """A result that came without its model, with it."""
    point = replace(result.point, model=tighten(scaled(model).model))
    return replace(result, model=model, point=point)
