"""Whether what was handed over is a model, and what to do where it is not."""

from __future__ import annotations

from typing import Any

from softmap.errors import OptionError
from softmap.model.model import Model

__all__ = ["checked_model"]


def checked_model(model: Any, what: str = "this") -> Model:
    """The model, or an `OptionError` if it is something else; `what` is what needs it."""
    if not isinstance(model, Model):
        kind = type(model).__name__
        article = "an" if kind[:1] in "aeioun" and kind != "numpy" else "a"
        raise OptionError(f"{what} needs a Model, got {article} {kind}{_advice(model)}")
    return model


def _advice(given: Any) -> str:
    if isinstance(getattr(given, "__dict__", {}).get("model"), Model):
        return "; pass its attribute `model`"
    if hasattr(given, "shape") or isinstance(given, list | tuple):
        return "; see Model.grid for pictures and Model(unary, edges, pairwise) for other arrays"
    if isinstance(given, str | bytes) or hasattr(given, "__fspath__"):
        return "; see softmap.read for files"
    return ""
