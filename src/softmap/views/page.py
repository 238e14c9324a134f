"""The report page: one self-contained HTML file with the certificate and the data of a run."""

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
from softmap.extend import model_facts, relative_gap
from softmap.extend.store import replacing
from softmap.views.curves import STYLES, Chart, gaps_chart, smoothing_chart, values_chart
from softmap.views.drawn import is_image
from softmap.views.pictures import clusters, pictures
from softmap.views.subject import Subject
from softmap.views.words import certificate_sentences, headline, percent, standing


def write(
    result: Subject,
    path: Path | str,
    name: str | None = None,
    picture: Any = None,
    answer: Any = None,
) -> None:
    """Write the report page of a result.

    Parameters
    ----------
    result : Result
        The result.
    path : str or Path
        File to write.
    name : str, optional
        Name of what was solved, the first half of the title. By default the sizes of the model.
    picture : array, optional
        The input image of a grid model, grey (rows, columns) or colour (rows, columns, 3).
    answer : array, optional
        The image that the labels represent, if the model is not a grid itself.
    """
    page = render(result, name, picture, answer)
    with replacing(path) as file:
        file.write(page.encode())


def render(
    result: Subject, name: str | None = None, picture: Any = None, answer: Any = None
) -> str:
    """Return the HTML text of the page, which is self-contained.

    Parameters
    ----------
    result : Result
        The result.
    name : str, optional
        Name of what was solved, the first half of the title. By default the sizes of the model.
    picture : array, optional
        The input image of a grid model, shown beside the labelling.
    answer : array, optional
        The image that the labels represent, if the model is not a grid itself.
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
        "facts": _definitions(model_facts(result.model.network)),
        "picture": pictures(result, picture, answer),
        "clusters": clusters(result),
        "footer": _footer(result),
        "data": _json(payload(result)),
        "chart": _asset("chart.js"),
        "script": _asset("page.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: fields[place[1]], _asset("page.html"))


def _subject(result: Subject) -> str:
    """Return a description of the model: an image or a graph, and its size."""
    model = result.model
    counts = model.num_labels
    labels = (
        f"{counts.max()} labels" if counts.min() == counts.max() else f"up to {counts.max()} labels"
    )
    if is_image(model.network):
        assert model.shape is not None
        return f"{model.shape[0]} × {model.shape[1]} pixels, {labels}"
    return f"{model.n:,} variables, {labels}"


def _asset(name: str) -> str:
    return (files("softmap.views") / "assets" / name).read_text("utf-8")


def _json(data: object) -> str:
    """Return JSON that cannot close the script element around it."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _numbers(result: Subject) -> dict[str, str]:
    return {
        "energy": f"{result.energy:.10g}",
        "bound": f"{result.bound:.10g}",
        "primal": f"{result.primal:.10g}",
        "relative gap": percent(relative_gap(result.gap, result.gap_unit)),
        "relative LP gap": percent(relative_gap(result.lp_gap, result.gap_unit)),
        "seconds": f"{result.seconds:.2f}",
    }


def _proof(result: Subject) -> dict[str, str]:
    """Return the kind and size of the proof of the bound."""
    proof = result.proof
    return {"the bound rests on": f"{proof.text} ({standing(result)})", **proof.facts}


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
    """Limits of the data of a run in the page."""

    states: int = 8
    """Number of states listed per variable; the others are summed up as "others"."""
    rows: int = 1000
    """Largest number of rows of the trace in a chart."""
    full: int = 65535
    """LP values are stored as multiples of 1 / full."""


LIMITS = PageLimits()


def payload(result: Subject) -> dict[str, Any]:
    """Return the data that the page's script reads, ready for JSON."""
    trace = _thinned(result.trace.columns())
    return {
        "trace": {name: _plain(column) for name, column in trace.items()},
        "charts": _charts(result, trace),
        "stages": _stages(result.trace.columns()),
        "variables": _variables(result),
    }


def _charts(result: Subject, trace: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the charts of a run, by the element that shows each."""
    unit = float(result.gap_unit) if 0 < result.gap_unit < np.inf else 1.0
    charts = {
        "chart-values": values_chart(trace),
        "chart-gaps": gaps_chart(trace, unit),
        "chart-eta": smoothing_chart(trace),
    }
    return {name: _chart(chart) for name, chart in charts.items()}


def _chart(chart: Chart) -> dict[str, Any]:
    """Return a chart as JSON; the style sheet has a colour for dark pages for each colour here."""
    names = {style.colour: f"--{name}" for name, style in STYLES.items()}
    lines = [
        {"name": line.name, "y": _plain(line.y), "ink": names[line.drawn.colour],
         "dash": line.drawn.dash, "mark": line.drawn.mark}
        for line in chart.lines
    ]  # fmt: skip
    return {
        "lines": lines, "window": chart.window, "log": chart.logs[1], "percent": chart.percent,
    }  # fmt: skip


def likeliest(
    marginals: NDArray[np.float64], offset: NDArray[np.int64], kept: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the `kept` states of largest LP value of each variable, and the values (0-padded)."""
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
    count = model.n
    kept = int(min(LIMITS.states, model.num_labels[:count].max()))
    state, mass = likeliest(result.node_marginals, model.network.node_offset[: count + 1], kept)
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
    """Return the names of variables and states, if the model has them."""
    names = result.model.names
    if names is None:
        return {}
    states = [None if row is None else [str(state) for state in row] for row in names.states]
    return {"names": [str(name) for name in names.variables], "states": states}


def _packed(array: NDArray[Any], dtype: str) -> str:
    """Return unsigned integers, compressed by deflate, as base64 text."""
    return base64.b64encode(zlib.compress(array.astype(dtype).tobytes(), 6)).decode()


def _thinned(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    length = len(columns["bound"])
    rows = np.unique(np.linspace(0, length - 1, min(length, LIMITS.rows)).round().astype(int))
    return {name: column[rows] for name, column in columns.items()}


def _plain(column: NDArray[Any]) -> list[float | int | str | None]:
    """Return numbers for JSON: eleven digits, None for NaN and infinity; words as they are."""
    if column.dtype.kind == "U":
        return [str(word) for word in column]
    if column.dtype.kind in "iu":
        return [int(v) for v in column]
    return [float(f"{v:.11g}") if np.isfinite(v) else None for v in column]


def _stages(columns: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Return the time spans of the subsolvers, in the order of the run.

    A span reaches from the last check before it to its own last check.
    """
    stage = columns["stage"]
    first = np.append(0, 1 + np.flatnonzero(stage[1:] != stage[:-1]))
    last = np.append(first[1:], len(stage)) - 1
    before = np.maximum(first - 1, 0)
    spells: list[dict[str, Any]] = []
    for a, b in zip(before.tolist(), last.tolist(), strict=True):
        ends = {
            axis: [float(columns[axis][a]) if spells else 0.0, float(columns[axis][b])]
            for axis in ("seconds", "work")
        }
        spells.append({"name": str(stage[b]), **ends})
    return spells
