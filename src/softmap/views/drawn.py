"""Displays of a model: the image of a grid, the graph of a small model, a table of sizes."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from softmap.extend import Network, model_facts
from softmap.views.drawing import Colours, Dot, graph_svg, image_uri, nominal, palette, reduced

Labels = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DrawnLimits:
    """Limits of the drawing of a model."""

    nodes: int = 150
    """Largest number of variables and factors of a graph that is drawn completely."""
    edges: int = 600
    """Largest number of edges of a graph that is drawn completely."""
    part: int = 60
    """Number of nodes drawn of a larger graph, around the least decided variable."""
    side: int = 320
    """Longer side of an image in a notebook, in pixels."""
    text: int = 4
    """Largest number of characters of a label that fits into a dot."""


LIMITS = DrawnLimits()


def is_image(model: Network) -> bool:
    """Whether the variables are the pixels of an image: a grid of two dimensions."""
    return model.shape is not None and len(model.shape) == 2


def label_colours(model: Network) -> Colours:
    """One colour per label: from dark to bright if labels are ordered, else distinct hues."""
    count = int(model.visible_counts.max())
    ordered = any(p.family.startswith("truncated") for p in model.potentials)
    return palette(count) if ordered or count > 256 else nominal(count)


def label_image(model: Network, labels: Labels) -> Colours:
    """The labelling of a grid as an image: uint8[rows, columns, 3]."""
    assert model.shape is not None
    return label_colours(model)[np.asarray(labels).reshape(model.shape)]


def variable_name(model: Network, i: int) -> str:
    """The name of a variable, or its number."""
    return str(i) if model.names is None else str(model.names.variables[i])


def state_name(model: Network, i: int, label: int) -> str:
    """The name of a state, or its number."""
    return str(label) if model.names is None else str(model.names.state(i, label))


def graph_drawing(
    model: Network, labels: Labels | None = None, doubt: Floats | None = None
) -> tuple[str, str] | None:
    """Return the graph as SVG and its caption; None if it is too large to be read.

    Parameters
    ----------
    model : Model
        The model.
    labels : int array (variables,), optional
        Labels, which determine the colours of the dots and the text in them.
    doubt : float array (variables,), optional
        Between 0 and 1: 0 if the relaxation decides the variable. Of a large graph, only the part
        around the variable of largest doubt is drawn.
    """
    if model.n <= LIMITS.nodes and model.m <= LIMITS.edges:
        shown, words = np.arange(model.n), "The graph of the model"
    elif doubt is not None and (doubt > 0).any():
        shown = _around(model, int(doubt.argmax()))
        words = f"The variable with the most doubt and its neighbours, {len(shown)} of {model.n:,}"
    else:
        return None
    dots = [_dot(model, int(i), labels, doubt) for i in shown]
    if labels is not None:
        words += "; colours are labels"
    if doubt is not None and (doubt[shown[shown < len(doubt)]] > 0).any():
        words += "; red rings mark where the relaxation is fractional"
    return graph_svg(dots, _between(model, shown), words), words


def _around(model: Network, centre: int) -> NDArray[np.int64]:
    """The nodes nearest to a variable by graph distance, the variable first."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    ends = (model.edges[:, 0], model.edges[:, 1])
    graph = coo_array((np.ones(model.m), ends), shape=(model.n, model.n)).tocsr()
    order = breadth_first_order(graph, centre, directed=False, return_predecessors=False)
    nearest: NDArray[np.int64] = order[: LIMITS.part].astype(np.int64)
    return nearest


def _between(model: Network, shown: NDArray[np.int64]) -> NDArray[np.int64]:
    """Edges between the nodes shown, as positions in `shown`."""
    place = np.full(model.n, -1)
    place[shown] = np.arange(len(shown))
    inside = place[model.edges]
    return inside[(inside >= 0).all(axis=1)]


def _dot(model: Network, i: int, labels: Labels | None, doubt: Floats | None) -> Dot:
    if i >= len(model.visible_counts):
        return Dot((90, 90, 90), factor=True, title="a factor over three or more variables")
    name = variable_name(model, i)
    unsure = 0.0 if doubt is None else float(doubt[i])
    if labels is None:
        title = f"variable {name}, {model.num_labels[i]} labels"
        inside, above = (name, "") if len(name) <= LIMITS.text else ("", name)
        return Dot((222, 230, 240), inside, above, title)
    label = int(labels[i])
    state = state_name(model, i, label)
    red, green, blue = label_colours(model)[label].tolist()
    title = f"variable {name}: label {state}" + (f", doubt {unsure:.2g}" if unsure > 0 else "")
    above = "" if model.names is None else name
    return Dot((red, green, blue), _short(state), above, title, unsure)


def _short(text: str) -> str:
    return text if len(text) <= LIMITS.text else text[: LIMITS.text - 1] + "…"


def figure(source: str, words: str, width: int = LIMITS.side) -> str:
    """Return HTML of an image with a caption; `source` is a data URI or SVG text."""
    import base64

    if source.startswith("<svg"):
        source = "data:image/svg+xml;base64," + base64.b64encode(source.encode()).decode()
    style = f"width:{width}px;max-width:100%;image-rendering:pixelated;background:#fff"
    return (
        '<figure style="margin:.5em 1em .5em 0;display:inline-block;vertical-align:top">'
        f'<img alt="{escape(words)}" src="{source}" style="{style}">'
        f'<figcaption style="max-width:{width}px;font-size:90%">{escape(words)}</figcaption>'
        "</figure>"
    )


def html_table(facts: dict[str, str]) -> str:
    """Return an HTML table of names and values."""
    rows = "".join(
        f'<tr><td style="text-align:left">{escape(name)}</td>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f"<table>{rows}</table>"


def model_html(model: Network) -> str:
    """Return the HTML display of a model: its image or graph, and its sizes."""
    sizes = html_table(model_facts(model))
    return f"<div><b>softmap.Model</b><div>{_picture(model)}</div>{sizes}</div>"


def _picture(model: Network) -> str:
    if is_image(model):
        cheapest = label_image(model, _cheapest(model))
        words = "The label of lowest unary cost at each pixel, before neighbours are considered"
        return figure(image_uri(reduced(cheapest, LIMITS.side)), words)
    drawing = graph_drawing(model)
    return "" if drawing is None else figure(*drawing, width=2 * LIMITS.side)


def _cheapest(model: Network) -> Labels:
    """The label of lowest unary cost of each variable."""
    begin = model.node_offset[: len(model.visible_counts)]
    counts = model.visible_counts
    found = np.zeros(len(counts), dtype=np.int64)
    for size in np.unique(counts):
        rows = np.flatnonzero(counts == size)
        found[rows] = model.unary[begin[rows][:, None] + np.arange(size)].argmin(axis=1)
    return found
