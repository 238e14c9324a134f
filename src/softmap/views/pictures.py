"""The figures of a report: the labelling as images or a graph, and undecided variables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ModelError
from softmap.extend import numbers
from softmap.views.drawing import Colours, as_bytes, image_uri, reduced, tinted, washed
from softmap.views.drawn import graph_drawing, is_image, label_colours, label_image
from softmap.views.subject import Subject

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PictureLimits:
    """Limits of the images and lists of a page."""

    fractional: float = 1e-3
    """A variable counts as fractional if its largest LP value differs from 1 by more than this."""
    listed: int = 12
    """Largest number of clusters listed on the page."""
    named: int = 24
    """Largest number of labels in the legend."""
    side: int = 640
    """Longer side of a photograph in the page, in pixels."""


SHOWN = PictureLimits()


def pictures(result: Subject, given: Any = None, answer: Any = None) -> str:
    """Return HTML of the input image, the labelling, and the undecided variables.

    Parameters
    ----------
    result : Result
        The result.
    given : array, optional
        The input image.
    answer : array, optional
        The image that the labels represent, shown if the model is not an image itself (the colour
        channels of an image are three grids).
    """
    photo = None if given is None else _photo(given)
    figures = [] if photo is None else [_figure(_image(photo), "The image that was given")]
    if is_image(result.model.network):
        figures += [_labelling(result), _doubtful(result, photo)]
    elif answer is not None:
        figures.append(_figure(_image(_photo(answer)), "The image that the labels represent"))
    else:
        figures.append(_graph(result))
    shown = [figure for figure in figures if figure]
    return _section(shown) if shown else ""


def doubt(result: Subject) -> Floats:
    """1 minus the largest LP value of each variable; 0 if the relaxation decides it."""
    model = result.model
    begin = model.network.node_offset[: model.n + 1]
    largest = np.maximum.reduceat(result.node_marginals[: begin[-1]], begin[:-1])
    unsure = np.clip(1.0 - largest, 0.0, 1.0)
    return np.where(unsure > SHOWN.fractional, unsure, 0.0)


def doubt_image(result: Subject, unsure: Floats, photo: Colours | None = None) -> Colours:
    """Return the image in pale grey, with undecided pixels in red."""
    base = label_image(result.model.network, result.labels)
    if photo is not None and photo.shape[:2] == base.shape[:2]:
        base = photo
    return tinted(washed(base), np.sqrt(unsure).reshape(base.shape[:2]))


def _section(figures: list[str]) -> str:
    return (
        '<section aria-labelledby="h-labelling"><h2 id="h-labelling">Labelling</h2>'
        f'<div class="pictures">{"".join(figures)}</div></section>'
    )


def _figure(body: str, words: str, below: str = "", kind: str = "labelling") -> str:
    return f'<figure class="{kind}">{body}<figcaption>{escape(words)}{below}</figcaption></figure>'


def _image(colours: Colours) -> str:
    # no alternative text: the caption describes the image
    return f'<img alt="" src="{image_uri(colours)}">'


def _photo(given: Any) -> Colours:
    picture = numbers(given, "picture")
    if (
        picture.ndim not in (2, 3)
        or not picture.size
        or picture.shape[2:] not in ((), (1,), (3,), (4,))
    ):
        raise ModelError(
            f"picture must have shape (rows, columns) or (rows, columns, 3), not {picture.shape}"
        )
    if not np.isfinite(picture).all():
        raise ModelError("picture must be finite numbers")
    return as_bytes(reduced(picture, SHOWN.side))


def _labelling(result: Subject) -> str:
    """Labels without an order have swatches; others a scale from dark to bright."""
    model = result.model
    assert model.shape is not None
    rows, columns = model.shape
    inks = label_colours(model.network).tolist()
    words = f"The labelling, {rows} rows by {columns} columns"
    ordered = any(p.family.startswith("truncated") for p in model.potentials) or len(inks) > 256
    below = _scale(inks) if ordered else _swatches(inks)
    return _figure(_image(label_image(model.network, result.labels)), words, below)


def _scale(inks: list[list[int]]) -> str:
    every = max(1, len(inks) // 32)
    colours = ",".join(f"rgb({r},{g},{b})" for r, g, b in inks[::every])
    return (
        '<span class="scale"><span>label 0</span><span class="bar" '
        f'style="background:linear-gradient(to right,{colours})"></span>'
        f"<span>{len(inks) - 1}</span></span>"
    )


def _swatches(inks: list[list[int]]) -> str:
    each = "".join(
        f'<span><i style="background:rgb({r},{g},{b})"></i>{k}</span>'
        for k, (r, g, b) in enumerate(inks[: SHOWN.named])
    )
    return f'<span class="swatches">{each}</span>'


def _doubtful(result: Subject, photo: Colours | None) -> str:
    unsure = doubt(result)
    if not unsure.any():
        return ""
    words = (
        "Red: where the doubt is. The relaxation is fractional at "
        f"{int((unsure > 0).sum()):,} of {unsure.size:,} pixels"
    )
    return _figure(_image(doubt_image(result, unsure, photo)), words)


def _graph(result: Subject) -> str:
    drawing = graph_drawing(
        result.model.network, np.asarray(result.labels).reshape(-1), doubt(result)
    )
    return "" if drawing is None else _figure(*drawing, kind="graph")


def clusters(result: Subject) -> str:
    """Return HTML of the clusters of a tightened bound, drawn on the image of a grid."""
    scopes = result.proof.scopes
    if not scopes:
        return ""
    sizes = Counter(len(scope) for scope in scopes)
    kinds = ", ".join(f"{number:,} of {size}" for size, number in sorted(sizes.items()))
    listed = "; ".join(", ".join(map(str, scope)) for scope in scopes[: SHOWN.listed])
    more = "; …" if len(scopes) > SHOWN.listed else ""
    return (
        '<section aria-labelledby="h-clusters"><h2 id="h-clusters">Clusters</h2>'
        f"<p>The bound is proved by the LP relaxation tightened by {len(scopes):,} clusters of "
        f"variables ({kinds}). The first of them: {listed}{more}.</p>"
        f"{_cover(result, scopes)}</section>"
    )


def _cover(result: Subject, scopes: tuple[tuple[int, ...], ...]) -> str:
    model = result.model
    if not is_image(model.network):
        return ""
    members = np.concatenate([np.asarray(scope, dtype=np.int64) for scope in scopes])
    held: NDArray[np.int64] = np.bincount(members, minlength=model.n)
    covered = held[: model.n].reshape(model.shape)
    most = int(covered.max())
    pale = washed(label_image(model.network, result.labels))
    image = tinted(pale, np.sqrt(covered / max(1, most)))
    words = f"Where the clusters lie: up to {most} at one pixel"
    return f'<div class="pictures">{_figure(_image(image), words)}</div>'
