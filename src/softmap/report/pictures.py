"""What a page shows of a grid: the picture given, the labelling, doubts and clusters."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ModelError
from softmap.model.potentials.base import numbers
from softmap.report.picture import data_uri, nominal, palette, photo_uri, shade_uri
from softmap.report.subject import Subject

__all__ = ["clusters", "pictures"]

FRACTIONAL = 1e-3  # a variable whose largest LP value is further from 1 than this is in doubt
LISTED = 12  # clusters named in the page
NAMED = 24  # labels that have a swatch of their own


def pictures(result: Subject, given: Any = None) -> str:
    """The picture that was given, the labelling, and where the relaxation leaves doubt."""
    shape = result.model.shape
    photo = None if given is None else _photo(given)
    if shape is None or len(shape) != 2:
        return "" if photo is None else _section([_figure(photo, "What was given", "")])
    figures = [] if photo is None else [_figure(photo, "What was given", "")]
    figures += [_labelling(result, shape), _doubt(result, shape)]
    return _section([figure for figure in figures if figure])


def _section(figures: list[str]) -> str:
    return (
        '<section aria-labelledby="h-labelling"><h2 id="h-labelling">Labelling</h2>'
        f'<div class="pictures">{"".join(figures)}</div></section>'
    )


def _figure(uri: str, words: str, below: str) -> str:
    return (
        f'<figure class="labelling"><img alt="{escape(words)}" src="{uri}">'
        f"<figcaption>{escape(words)}{below}</figcaption></figure>"
    )


def _photo(given: Any) -> str:
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
    return photo_uri(picture)


def _labelling(result: Subject, shape: tuple[int, ...]) -> str:
    """Labels without an order have colours far apart; others run from dark to bright."""
    model, labels = result.model, np.asarray(result.labels).reshape(shape)
    count = int(model.num_labels[: model.num_visible].max())
    ordered = any(p.family.startswith("truncated") for p in model.potentials)
    words = f"The labelling, {shape[0]} rows by {shape[1]} columns"
    if ordered or count > 256:
        inks = palette(min(count, 32))
        colours = ",".join(f"rgb({r},{g},{b})" for r, g, b in inks.tolist())
        below = (
            '<span class="scale"><span>label 0</span><span class="bar" '
            f'style="background:linear-gradient(to right,{colours})"></span>'
            f"<span>{count - 1}</span></span>"
        )
        return _figure(data_uri(labels, count), words, below)
    inks = nominal(count)
    swatches = "".join(
        f'<span><i style="background:rgb({r},{g},{b})"></i>{k}</span>'
        for k, (r, g, b) in enumerate(inks[: min(count, NAMED)].tolist())
    )
    return _figure(
        data_uri(labels, count, inks), words, f'<span class="swatches">{swatches}</span>'
    )


def _doubt(result: Subject, shape: tuple[int, ...]) -> str:
    """Where the relaxation is fractional: 1 minus the largest LP value of each pixel."""
    model = result.model
    begin = model.node_offset[: model.num_visible + 1]
    largest = np.maximum.reduceat(result.node_marginals[: begin[-1]], begin[:-1])
    doubt = np.clip(1.0 - largest, 0.0, 1.0)
    unsure = int((doubt > FRACTIONAL).sum())
    if not unsure:
        return ""
    words = f"Doubt: the relaxation is fractional at {unsure:,} of {doubt.size:,} pixels"
    return _figure(shade_uri(np.sqrt(doubt).reshape(shape)), words, "")


def clusters(result: Subject) -> str:
    """Which clusters the bound of a tightened run rests on, on the picture where there is one."""
    scopes = result.proof.clusters
    if not scopes:
        return ""
    sizes = Counter(len(scope) for scope in scopes)
    kinds = ", ".join(f"{number:,} of {size}" for size, number in sorted(sizes.items()))
    listed = "; ".join(", ".join(map(str, scope)) for scope in scopes[:LISTED])
    more = "; …" if len(scopes) > LISTED else ""
    return (
        '<section aria-labelledby="h-clusters"><h2 id="h-clusters">Clusters</h2>'
        f"<p>The bound rests on {len(scopes):,} clusters of variables ({kinds}), which are coupled "
        f"more strictly than the relaxation does. The first of them: {listed}{more}.</p>"
        f"{_cover(result, scopes)}</section>"
    )


def _cover(result: Subject, scopes: tuple[tuple[int, ...], ...]) -> str:
    shape = result.model.shape
    if shape is None or len(shape) != 2:
        return ""
    members = np.concatenate([np.asarray(scope, dtype=np.int64) for scope in scopes])
    visible = result.model.num_visible
    held: NDArray[np.int64] = np.bincount(members, minlength=visible)[:visible]
    most = int(held.max())
    uri = shade_uri(np.sqrt(held / max(1, most)).reshape(shape))
    words = f"Where the clusters lie: up to {most} at one pixel"
    return f'<div class="pictures">{_figure(uri, words, "")}</div>'
