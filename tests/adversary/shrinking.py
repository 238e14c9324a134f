"""Smaller models that break the same promise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from adversary.making import Trial
from adversary.promises import broken
from adversary.specs import Edge, Spec


def shrunk(trial: Trial, problem: str, tries: int = 400) -> Trial:
    """The smallest trial found that breaks the same promise."""
    progress = True
    while progress and tries > 0:
        progress = False
        for smaller in _smaller(trial.spec):
            tries -= 1
            candidate = replace(trial, spec=smaller)
            if _alike(broken(candidate), problem):
                trial, progress = candidate, True
                break
            if tries <= 0:
                break
    return trial


def _alike(found: str | None, problem: str) -> bool:
    return found is not None and found.split(":")[:2] == problem.split(":")[:2]


def _smaller(spec: Spec) -> Iterator[Spec]:
    for k in range(len(spec.edges)):
        yield replace(spec, edges=spec.edges[:k] + spec.edges[k + 1 :])
    for i in range(len(spec.unary)):
        if len(spec.unary) > 1 and all(i not in e.ends for e in spec.edges):
            yield _without_variable(spec, i)
    for i, costs in enumerate(spec.unary):
        for x in range(len(costs)):
            if len(costs) > 1:
                yield _without_label(spec, i, x)
    if spec.constant:
        yield replace(spec, constant=0.0)
    for i, costs in enumerate(spec.unary):
        for x, cost in enumerate(costs):
            for simple in _simpler(cost):
                changed = [list(u) for u in spec.unary]
                changed[i][x] = simple
                yield replace(spec, unary=changed)
    for k, edge in enumerate(spec.edges):
        for simple in _simpler_edges(edge):
            yield replace(spec, edges=[*spec.edges[:k], simple, *spec.edges[k + 1 :]])


def _simpler(cost: float) -> list[float]:
    if cost == 0 or math.isinf(cost):
        return []
    short = float(f"{cost:.1g}")
    return [0.0] if short == cost else [0.0, short]


def _simpler_edges(edge: Edge) -> Iterator[Edge]:
    for x, row in enumerate(edge.table):
        for y, cost in enumerate(row):
            for simple in _simpler(cost):
                table = [list(r) for r in edge.table]
                table[x][y] = simple
                yield replace(edge, table=table)
    if edge.family not in ("tables", "projection", "shared"):
        for simple in _simpler(edge.weight):
            yield replace(edge, weight=simple)


def _without_variable(spec: Spec, i: int) -> Spec:
    def moved(end: int) -> int:
        return end - (end > i)

    edges = [replace(e, ends=(moved(e.ends[0]), moved(e.ends[1]))) for e in spec.edges]
    return replace(spec, unary=spec.unary[:i] + spec.unary[i + 1 :], edges=edges)


def _without_label(spec: Spec, i: int, x: int) -> Spec:
    def cut(edge: Edge) -> Edge:
        table, maps = [list(r) for r in edge.table], list(edge.maps)
        if edge.ends[0] == i:
            table, maps = table[:x] + table[x + 1 :], maps[:x] + maps[x + 1 :]
        if edge.ends[1] == i:
            table = [r[:x] + r[x + 1 :] for r in table]
            maps = [min(y - (y > x), len(spec.unary[i]) - 2) for y in maps]
        return replace(edge, table=table, maps=tuple(maps))

    unary = [u[:x] + u[x + 1 :] if k == i else u for k, u in enumerate(spec.unary)]
    return replace(spec, unary=unary, edges=[cut(e) for e in spec.edges])
