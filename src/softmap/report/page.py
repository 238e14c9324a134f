"""The page: a template filled with what a result proves, and with the script that shows it."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from softmap import __version__
from softmap.errors import OptionError, shown
from softmap.io.atomic import replacing
from softmap.model.facts import model_facts
from softmap.relaxation.gaps import relative_gap
from softmap.report.payload import payload
from softmap.report.pictures import clusters, pictures
from softmap.report.subject import Subject
from softmap.report.words import certificate_sentences

__all__ = ["render", "write"]


def write(
    result: Subject, path: Path | str, title: str = "softmap run", picture: Any = None
) -> None:
    """Write one self-contained HTML page about a result."""
    page = render(result, title, picture)
    with replacing(path) as file:
        file.write(page.encode())


def render(result: Subject, title: str = "softmap run", picture: Any = None) -> str:
    """The page as text; it needs nothing from the network."""
    if not isinstance(title, str):
        raise OptionError(f"title must be text, not {shown(title)}")
    fields = {
        "title": escape(title),
        "style": _asset("page.css"),
        "status": escape(str(result.status)),
        "certificate": escape(" ".join(certificate_sentences(result))),
        "numbers": _definitions(_numbers(result) | _proof(result)),
        "facts": _definitions(model_facts(result.model)),
        "picture": pictures(result, picture),
        "clusters": clusters(result),
        "footer": _footer(result),
        "data": _json(payload(result)),
        "chart": _asset("chart.js"),
        "script": _asset("page.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: fields[place[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return (files("softmap.report") / "assets" / name).read_text("utf-8")


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
