"""The page: a template filled with what a result proves, and with the script that shows it."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np

from softmap import __version__
from softmap.errors import MissingExtra
from softmap.io.atomic import replacing
from softmap.relaxation.gaps import relative_gap
from softmap.report.facts import model_facts
from softmap.report.payload import payload
from softmap.report.picture import data_uri, palette
from softmap.report.subject import Subject
from softmap.report.words import certificate_sentences

__all__ = ["render", "write"]


def write(result: Subject, path: Path | str, title: str = "softmap run") -> None:
    """Write one self-contained HTML page about a result."""
    page = render(result, title)
    with replacing(path) as file:
        file.write(page.encode())


def render(result: Subject, title: str = "softmap run") -> str:
    """The page as text; it needs nothing from the network."""
    fields = {
        "title": escape(title),
        "style": _asset("page.css"),
        "status": escape(str(result.status)),
        "certificate": escape(" ".join(certificate_sentences(result))),
        "numbers": _definitions(_numbers(result) | _proof(result)),
        "facts": _definitions(model_facts(result.model)),
        "picture": _picture(result),
        "footer": _footer(result),
        "data": _json(payload(result)),
        "plotly": _plotly(),
        "script": _asset("page.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: fields[place[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return (files("softmap.report") / "assets" / name).read_text("utf-8")


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingExtra("A report page", "report") from error
    script: str = get_plotlyjs()
    return script


def _json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _numbers(result: Subject) -> dict[str, str]:
    return {
        "energy": f"{result.energy:.10g}",
        "bound": f"{result.bound:.10g}",
        "primal": f"{result.primal:.10g}",
        "relative gap": f"{relative_gap(result.gap, result.unit):.2g}",
        "relative LP gap": f"{relative_gap(result.lp_gap, result.unit):.2g}",
        "seconds": f"{result.seconds:.2f}",
    }


def _proof(result: Subject) -> dict[str, str]:
    """What the bound rests on, and how much of it there is."""
    proof = result.proof
    facts = {"bound by": str(proof.kind)}
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


def _picture(result: Subject) -> str:
    """The labelling as an image, where the model is a grid."""
    shape = result.model.shape
    if shape is None or len(shape) != 2:
        return ""
    labels = np.asarray(result.labels).reshape(shape)
    count = int(result.model.num_labels[: result.model.num_visible].max())
    colours = ",".join(f"rgb({r},{g},{b})" for r, g, b in palette(min(count, 32)).tolist())
    return (
        '<section aria-labelledby="h-labelling"><h2 id="h-labelling">Labelling</h2>'
        f'<figure class="labelling"><img alt="The labelling, {shape[0]} rows by {shape[1]} columns"'
        f' width="{shape[1]}" height="{shape[0]}" src="{data_uri(labels, count)}">'
        '<figcaption class="scale"><span>label 0</span>'
        f'<span class="bar" style="background:linear-gradient(to right,{colours})"></span>'
        f"<span>{count - 1}</span></figcaption></figure></section>"
    )
