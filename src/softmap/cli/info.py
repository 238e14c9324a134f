"""softmap info: what a model is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmap.cli.console import facts_table, results
from softmap.cli.options import ModelArgument, ValuesOption

if TYPE_CHECKING:
    from softmap.model import Model

__all__ = ["info_command"]


def info_command(
    model: ModelArgument,
    values: ValuesOption = None,
) -> None:
    """Describe a model: sizes, families, structure."""
    import softmap
    from softmap.report.facts import model_facts

    loaded = softmap.read(str(model), values=values)
    facts = model_facts(loaded) | _structure(loaded)
    results().print(facts_table(facts, title=str(model)))


def _structure(model: Model) -> dict[str, str]:
    from softmap.solving.memory import memory_needed

    components = model.graph.components()
    colours = model.graph.colouring()
    return {
        "connected components": f"{int(components.max()) + 1:,}",
        "colours": f"{int(colours.max()) + 1}",
        "memory": _memory(model.nbytes),
        "memory to solve": f"about {_memory(memory_needed(model))} "
        f"({_memory(memory_needed(model, 'float32'))} in float32)",
        "arc consistency": _consistency(model),
    }


def _memory(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"


def _consistency(model: Model) -> str:
    import numpy as np

    from softmap.errors import InfeasibleModel
    from softmap.relaxation.consistency import arc_consistency

    try:
        allowed = arc_consistency(model)
    except InfeasibleModel as error:
        return f"no labelling satisfies the hard constraints: {error}"
    removed = int((~allowed & ~np.isposinf(model.unary)).sum())
    return f"removes {removed:,} of {allowed.size:,} states" if removed else "removes no states"
