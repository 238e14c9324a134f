"""softmap solve --mbest: the best labellings of a model, one row each."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from softmap.app.cli.targets import STANDARD, Targets
from softmap.errors import OptionError
from softmap.views.console import number, results

if TYPE_CHECKING:
    from rich.table import Table

    from softmap.model import Model
    from softmap.solving.mbest import RankedLabelling

__all__ = ["solve_ranked"]

TAKEN = ("gap", "time_limit", "threads", "seed", "diversity")


def solve_ranked(
    model: Model, most: int, options: dict[str, Any], targets: Targets, as_json: bool
) -> int:
    """Find, print and write the best labellings of a model; return the exit code."""
    import softmap

    given = {name: value for name, value in options.items() if value is not None}
    names = {
        name: "--initial" if name == "labels" else f"--{name.replace('_', '-')}" for name in given
    }
    if other := [names[name] for name in given if name not in TAKEN]:
        raise OptionError(f"--mbest searches until each labelling is proved: no {', '.join(other)}")
    found = softmap.solve_mbest(model, most, **given)
    from softmap.io.results import format_labellings, write_labellings

    labellings = [entry.labels for entry in found]
    alone = targets.path("--output") == STANDARD
    with targets.printing():
        if alone and found:
            print(format_labellings(labellings), end="")
        elif as_json:
            print(json.dumps([_as_object(entry, model) for entry in found], default=str))
        else:
            results().print(_table(found))
    if found and not alone:
        targets.write("--output", partial(write_labellings, labellings, model=model))
    return targets.exit_code()


def _as_object(entry: RankedLabelling, model: Model) -> dict[str, Any]:
    """The JSON fields of one labelling; a bound that is not finite is null."""
    from softmap.io.results import labelling_object

    return {
        **labelling_object(entry.labels.reshape(-1).tolist(), model),
        "energy": entry.energy,
        "bound": entry.bound if math.isfinite(entry.bound) else None,
        "proved": entry.proved,
    }


def _table(found: list[RankedLabelling]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("rank", "energy", "bound", "proved"):
        table.add_column(name, justify="right", header_style="dim")
    for rank, entry in enumerate(found, 1):
        proved = "yes" if entry.proved else "no"
        table.add_row(str(rank), number(entry.energy), number(entry.bound), proved)
    return table
