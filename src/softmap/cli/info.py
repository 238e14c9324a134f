"""softmap info: what a model is made of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from softmap.cli.options import FormatOption, JsonOption, ModelArgument, ValuesOption
from softmap.display.console import facts_table, results

if TYPE_CHECKING:
    from softmap.model import Model

__all__ = ["info_command"]


def info_command(
    model: ModelArgument,
    values: ValuesOption = None,
    form: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Describe a model: sizes, families, structure."""
    import softmap
    from softmap.model.facts import model_facts

    loaded = softmap.read(str(model), values=values, format=form)
    if as_json:
        print(json.dumps(_object(loaded)))
        return
    facts = model_facts(loaded) | _structure(loaded)
    results().print(facts_table(facts, title=str(model)))


def _object(model: Model) -> dict[str, Any]:
    """The fields of `--json`."""
    from softmap.model.facts import arity_counts, families

    counts = model.num_labels[: model.num_visible]
    consistent = _consistent(model)
    return {
        "variables": model.num_visible,
        "edges": model.m,
        "labels_min": int(counts.min()),
        "labels_max": int(counts.max()),
        "arities": {str(arity): number for arity, number in arity_counts(model).items()},
        "families": families(model),
        "hard_constraints": model.has_forbidden,
        "shape": model.shape,
        "components": int(model.graph.components().max()) + 1,
        "colours": int(model.graph.colouring().max()) + 1,
        "bytes": int(model.nbytes),
        "arc_consistent": isinstance(consistent, int),
        "states_removed": consistent if isinstance(consistent, int) else None,
    }


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
    removed = _consistent(model)
    if isinstance(removed, str):
        return f"no labelling satisfies the hard constraints: {removed}"
    states = model.unary.size
    return f"removes {removed:,} of {states:,} states" if removed else "removes no states"


def _consistent(model: Model) -> int | str:
    """How many states arc consistency removes, or why there is no labelling."""
    import numpy as np

    from softmap.errors import InfeasibleModel
    from softmap.relaxation.consistency import arc_consistency

    try:
        allowed = arc_consistency(model)
    except InfeasibleModel as error:
        return str(error)
    return int((~allowed & ~np.isposinf(model.unary)).sum())
