"""What has to be known of the whole model before a run: the size of its costs, ruled-out states."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import InfeasibleModel, ModelError
from softmap.methods.sweeps.anneal import easily_coupled
from softmap.model.layout import layout
from softmap.model.potentials.base import least_steps
from softmap.scale.distributed.halo import Boundary
from softmap.scale.distributed.parts import Part
from softmap.scale.distributed.team import Team

__all__ = ["Survey", "survey", "tightened"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Survey:
    """Sizes of the costs of the whole model.

    Attributes
    ----------
    scale
        Mean range of costs within one table, as `softmap.relaxation.dual.cost_scale` has it.
    step
        A typical step of the costs, as `softmap.relaxation.gaps.cost_step` has it.
    averaging
        Whether averaged marginals are worth a look.
    """

    scale: float
    step: float
    averaging: bool


def survey(team: Team, parts: list[Part]) -> Survey:
    """Look at the costs of all parts."""
    table = team.table([_row(part) for part in parts], 7)
    widths, count, largest = table[:, 0].sum(), table[:, 1].sum(), table[:, 2].max()
    inverse, steps = table[:, 3].sum(), table[:, 4].sum()
    scale = float(widths / count) if count else float(largest) or 1.0
    # costs of other sizes are scaled on one machine only
    if not 2.0**-40 < scale < 2.0**40 or largest > 2.0**600:
        raise ModelError(
            f"costs of a typical range of {scale:.3g} and up to {largest:.3g}: multiply all costs "
            "by a number that brings them near 1 before the model is cut into parts"
        )
    easy = bool((table[:, 5] <= table[:, 6]).all() and (table[:, 6] > 0).any())
    return Survey(scale, float(steps / inverse) if inverse else 0.0, easy)


def _row(part: Part) -> list[float]:
    """Ranges and steps of the tables that count as this part's, and whether edges are easy."""
    model, own = part.model, part.own
    states = int(model.node_offset[own])
    start, unary = model.node_offset[:own], model.unary[:states]
    finite = np.where(np.isfinite(unary), unary, np.nan)
    low, high = np.fmin.reduceat(finite, start), np.fmax.reduceat(finite, start)
    widths, sizes = [np.nan_to_num(high - low)], [np.nan_to_num(np.maximum(abs(low), abs(high)))]
    steps = [least_steps(unary, start)]
    counted = part.ends[0] < own
    for first, last, potential in model.groups():
        mine, ends = counted[first:last], model.end_labels(first, last)
        least, greatest = potential.extremes(*ends)
        widths.append((greatest - least)[mine])
        sizes.append(np.maximum(np.abs(least), np.abs(greatest))[mine])
        steps.append(potential.steps(*ends)[mine])
    width, step = np.concatenate(widths), np.concatenate(steps)
    width, step = width[width > 0], step[(step > 0) & np.isfinite(step)]
    edges = float(model.m > 0)
    return [
        float(width.sum()), float(len(width)), float(np.concatenate(sizes).max()),
        float((1 / step).sum()), float(len(step)), edges, edges * easily_coupled(model),
    ]  # fmt: skip


def tightened(team: Team, parts: list[Part]) -> list[Part]:
    """The parts with +inf on every state that arc consistency rules out anywhere.

    Parts cross out states on their own and tell each other, until nobody has anything to tell.
    """
    if not team.table([[part.model.has_forbidden] for part in parts], 1).any():
        return parts
    boundary = Boundary(team, parts)
    allowed = {part.number: np.isfinite(part.model.unary) for part in parts}
    changed = True
    while changed:
        rows = []
        for part in parts:
            empty = _empty(part, allowed[part.number])
            if empty < 0:
                empty = core.arc_consistency(layout(part.model), allowed[part.number])
            node = int(part.nodes[empty]) if empty >= 0 else -1
            rows.append([node])
        if (stuck := int(team.table(rows, 1).max())) >= 0:
            raise InfeasibleModel(
                "no labelling has finite cost: hard constraints leave variable "
                f"{stuck} without a state; look at the +inf costs around it",
                stuck,
            )
        earlier = {number: mask.copy() for number, mask in allowed.items()}
        masks = {number: mask.astype(np.float64) for number, mask in allowed.items()}
        boundary.states(masks)
        for number, mask in masks.items():
            allowed[number] &= mask > 0
        news = [[not np.array_equal(earlier[n], allowed[n])] for n in allowed]
        changed = bool(team.table(news, 1).any())
    return [_with(part, allowed[part.number]) for part in parts]


def _empty(part: Part, allowed: NDArray[np.bool_]) -> int:
    """A node without states, or -1."""
    kept = np.logical_or.reduceat(allowed, part.model.node_offset[:-1])
    return -1 if kept.all() else int(np.argmin(kept))


def _with(part: Part, allowed: NDArray[np.bool_]) -> Part:
    unary = np.where(allowed, part.model.unary, np.inf)
    return replace(part, model=part.model.replace(unary=unary))
