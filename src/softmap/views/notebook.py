"""The display of a result in a notebook: labelling, energy and bound over time, certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.views.charts import SIZES as CHART
from softmap.views.charts import chart_image
from softmap.views.curves import values_chart
from softmap.views.drawing import as_bytes, image_uri, reduced
from softmap.views.drawn import (
    figure,
    graph_drawing,
    html_table,
    is_image,
    label_image,
    state_name,
    variable_name,
)
from softmap.views.pictures import doubt, doubt_image
from softmap.views.subject import Subject
from softmap.views.words import certificate_sentences, headline, result_facts


@dataclass(frozen=True)
class NotebookSizes:
    """Limits of the display of a result in a notebook."""

    side: int = 320
    """Longer side of an image, in pixels."""
    listed: int = 24
    """Largest number of variables whose states are listed by name."""


SIZES = NotebookSizes()


def result_html(result: Subject) -> str:
    """Return the HTML display of a result: labelling, curves and certificate."""
    figures = "".join([*_labelling(result), _curves(result)])
    sentences = escape(" ".join(certificate_sentences(result)))
    return (
        f"<div><b>softmap.Result: {escape(headline(result))}</b><div>{figures}</div>"
        f"<p>{sentences}</p><details><summary>Numbers</summary>"
        f"{html_table(result_facts(result))}</details></div>"
    )


def picture_html(result: Subject, images: Mapping[str, NDArray[Any]], sentence: str) -> str:
    """Return the HTML display of a labelled image: images, certificate, numbers.

    Parameters
    ----------
    result : Result
        The result.
    images : mapping
        Images with values in 0..255, by their captions.
    sentence : str
        Why the run stopped.
    """
    figures = "".join(_image(as_bytes(image), words) for words, image in images.items())
    facts = result_facts(result)
    numbers = html_table({name: facts[name] for name in ("energy", "bound", "gap")})
    return (
        f"<div><b>softmap.Picture: {escape(headline(result))}</b><div>{figures}</div>"
        f"<p>{escape(sentence)}</p>{numbers}</div>"
    )


def _labelling(result: Subject) -> list[str]:
    if not np.isfinite(result.energy):
        return []  # no feasible labelling was found
    model, labels = result.model, np.asarray(result.labels).reshape(-1)
    unsure = doubt(result)
    if is_image(model.network):
        shown = [_image(label_image(model.network, labels), "The labelling")]
        if unsure.any():
            words = f"Red: the relaxation is fractional at {int((unsure > 0).sum()):,} pixels"
            shown.append(_image(doubt_image(result, unsure), words))
        return shown
    drawing = graph_drawing(model.network, labels, unsure)
    shown = [] if drawing is None else [figure(*drawing, width=2 * SIZES.side)]
    if len(labels) <= SIZES.listed:
        states = {
            variable_name(model.network, i): state_name(model.network, i, int(x))
            for i, x in enumerate(labels)
        }
        shown.append(f'<div style="display:inline-block">{html_table(states)}</div>')
    return shown


def _image(colours: np.ndarray, words: str) -> str:
    return figure(image_uri(reduced(colours, SIZES.side)), words)


def _curves(result: Subject) -> str:
    chart = values_chart(result.trace.columns())
    if chart.window is None:
        return ""
    words = "Energy and bound: the optimum lies between them"
    return figure(image_uri(chart_image(chart)), words, width=CHART.width)
