"""One self-contained HTML page per run: a template, what a result proves, and its data."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import __version__
from softmap.errors import OptionError, shown
from softmap.io.atomic import replacing
from softmap.model.drawn import is_image
from softmap.model.facts import model_facts
from softmap.relaxation.gaps import relative_gap
from softmap.views.curves import cost_range
from softmap.views.pictures import clusters, pictures
from softmap.views.subject import STAGES, Subject
from softmap.views.words import certificate_sentences, headline, percent, standing

__all__ = ["likeliest", "payload", "render", "write"]


def write(result: Subject, path: Path | str, name: str | None = None, picture: Any = None) -> None:
    """Write one self-contained HTML page about a result."""
    page = render(result, name, picture)
    with replacing(path) as file:
        file.write(page.encode())


def render(result: Subject, name: str | None = None, picture: Any = None) -> str:
    """The page as text; it needs nothing from the network.

    Parameters
    ----------
    result : Result
    name : str, optional
        What was solved, the first half of the title. By default the sizes of the model.
    picture : array, optional
        The image that was given, shown beside the labelling.
    """
    if name is not None and not isinstance(name, str):
        raise OptionError(f"title must be text, not {shown(name)}")
    fields = {
        "title": escape(f"{_subject(result) if name is None else name}: {headline(result)}"),
        "style": _asset("page.css"),
        "status": escape(str(result.status)),
        "certificate": escape(" ".join(certificate_sentences(result))),
        "numbers": _definitions(_numbers(result)),
        "proof": _definitions(_proof(result)),
        "facts": _definitions(model_facts(result.model)),
        "picture": pictures(result, picture),
        "clusters": clusters(result),
        "footer": _footer(result),
        "data": _json(payload(result)),
        "chart": _asset("chart.js"),
        "script": _asset("page.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: fields[place[1]], _asset("page.html"))


def _subject(result: Subject) -> str:
    """What was solved: an image or a graph, and its size."""
    model = result.model
    counts = model.num_labels[: model.num_visible]
    labels = (
        f"{counts.max()} labels" if counts.min() == counts.max() else f"up to {counts.max()} labels"
    )
    if is_image(model):
        assert model.shape is not None
        return f"{model.shape[0]} × {model.shape[1]} pixels, {labels}"
    return f"{model.num_visible:,} variables, {labels}"


def _asset(name: str) -> str:
    return (files("softmap.views") / "assets" / name).read_text("utf-8")


def _json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _numbers(result: Subject) -> dict[str, str]:
    return {
        "energy": f"{result.energy:.10g}",
        "bound": f"{result.bound:.10g}",
        "primal": f"{result.primal:.10g}",
        "relative gap": percent(relative_gap(result.gap, result.unit)),
        "relative LP gap": percent(relative_gap(result.lp_gap, result.unit)),
        "seconds": f"{result.seconds:.2f}",
    }


def _proof(result: Subject) -> dict[str, str]:
    """What the bound rests on, and how much of it there is."""
    proof = result.proof
    facts = {"the bound rests on": f"{proof.kind} ({standing(result)})"}
    if proof.clusters:
        facts["clusters"] = f"{len(proof.clusters):,}"
    if proof.nodes:
        facts["nodes of the search tree"] = f"{proof.nodes:,}"
    return facts


def _definitions(facts: dict[str, str]) -> str:
    return "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in facts.items()
    )


def _footer(result: Subject) -> str:
    return escape(
        f"softmap {__version__}, method {result.method}, {result.sweeps:,.0f} sweeps, "
        f"{result.work:,} messages, {result.threads} threads, "
        f"set-up {result.setup_seconds:.2f} s, η at the end {result.eta:.4g}."
    )


@dataclass(frozen=True)
class PageLimits:
    """How much of a run a page holds."""

    states: int = 8
    """States listed per variable; the rest is summed up as "others"."""
    rows: int = 1000
    """Rows of the trace that a chart can show."""
    full: int = 65535
    """LP values are stored as multiples of 1 / full."""


LIMITS = PageLimits()


def payload(result: Subject) -> dict[str, Any]:
    """Everything that the script reads, ready for JSON."""
    trace = _thinned(result.trace.columns())
    return {
        "trace": {name: _plain(column) for name, column in trace.items()},
        "window": cost_range([trace]),
        "unit": float(result.unit) if 0 < result.unit < np.inf else 1.0,
        "stages": _stages(result.trace.columns()),
        "variables": _variables(result),
    }


def likeliest(
    marginals: NDArray[np.float64], offset: NDArray[np.int64], kept: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The `kept` states of largest LP value of each variable and those values, padded with 0."""
    sizes = np.diff(offset)
    state = np.zeros((len(sizes), kept), dtype=np.int64)
    mass = np.zeros((len(sizes), kept))
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        block = marginals[offset[rows][:, None] + np.arange(size)]
        best = np.argsort(-block, axis=1, kind="stable")[:, :kept]
        state[rows, : best.shape[1]] = best
        mass[rows, : best.shape[1]] = np.take_along_axis(block, best, axis=1)
    return state, mass


def _variables(result: Subject) -> dict[str, Any]:
    model = result.model
    count = model.num_visible
    kept = int(min(LIMITS.states, model.num_labels[:count].max()))
    state, mass = likeliest(result.node_marginals, model.node_offset[: count + 1], kept)
    grid = model.shape if model.shape is not None and len(model.shape) == 2 else None
    return {
        "count": count,
        "kept": kept,
        "shape": grid,
        **_names(result),
        "label": _packed(result.labels, "<u4"),
        "state": _packed(state, "<u4"),
        "mass": _packed(np.round(np.clip(mass, 0, 1) * LIMITS.full), "<u2"),
    }


def _names(result: Subject) -> dict[str, Any]:
    """Names of variables and states, where there are any."""
    names = result.model.names
    if names is None:
        return {}
    states = [None if row is None else [str(state) for state in row] for row in names.states]
    return {"names": [str(name) for name in names.variables], "states": states}


def _packed(array: NDArray[Any], dtype: str) -> str:
    """Unsigned integers, deflated, as text."""
    return base64.b64encode(zlib.compress(array.astype(dtype).tobytes(), 6)).decode()


def _thinned(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    length = len(columns["bound"])
    rows = np.unique(np.linspace(0, length - 1, min(length, LIMITS.rows)).round().astype(int))
    return {name: column[rows] for name, column in columns.items()}


def _plain(column: NDArray[Any]) -> list[float | int | None]:
    """Numbers as JSON knows them: eleven digits, no NaN, no infinity."""
    if column.dtype.kind in "iu":
        return [int(v) for v in column]
    return [float(f"{v:.11g}") if np.isfinite(v) else None for v in column]


def _stages(columns: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Spells of one stage, from the check before its first one to its last.

    Short spells of the same stage that are next to each other at this resolution stay apart; a run
    in turns has a few dozen of them.
    """
    stage = columns["stage"]
    first = np.flatnonzero(np.diff(stage, prepend=-1))
    last = np.append(first[1:], len(stage)) - 1
    before = np.maximum(first - 1, 0)
    spells: list[dict[str, Any]] = []
    for a, b in zip(before.tolist(), last.tolist(), strict=True):
        ends = {
            axis: [float(columns[axis][a]) if spells else 0.0, float(columns[axis][b])]
            for axis in ("seconds", "work")
        }
        spells.append({"name": STAGES[int(stage[b])], **ends})
    return spells
