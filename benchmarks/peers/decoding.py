"""Decoders of the scoreboard: 20 syndromes per detector error model, costs added up.

`energy` is the sum of the costs of the errors that a decoder names, `failures` the number of
syndromes whose predicted observables are wrong. Matching names no errors that fit our model.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.decoders import matrix_of
from benchmarks.peers.labels import text_of
from softmap.codes import Decoder, ParityCode
from softmap.codes.inputs import Errors, errors_of

__all__ = ["DECODERS"]

Bytes = NDArray[np.uint8]
Shots = tuple[Bytes, Bytes]


def shots_of(path: Path) -> Shots:
    """Syndromes and flipped observables of the file `.shots` beside a detector error model."""
    name = path.name.removesuffix(".xz").removesuffix(".dem") + ".shots"
    lines = path.with_name(name).read_text("utf-8").splitlines()
    parts = [line.split() for line in lines if line.strip()]
    bits = [np.array([[int(b) for b in row[k]] for row in parts], np.uint8) for k in (0, 1)]
    return bits[0], bits[1]


def by_softmap(path: Path, errors: Errors, shots: Shots) -> dict[str, Any]:
    """Our decoder on one thread."""
    code = ParityCode(errors.checks, len(errors.costs))
    decoder = Decoder(code, ratios=errors.costs)
    began = time.perf_counter()
    found = decoder.decode_batch(shots[0], threads=1)
    taken = time.perf_counter() - began
    row = _row(errors, code, shots, found.words, taken)
    return row | {"bound": float(found.bounds.sum()), "proved": bool(found.proved.all())}


def by_osd(path: Path, errors: Errors, shots: Shots) -> dict[str, Any]:
    """BP+OSD of the package ldpc with a combination sweep of order 10."""
    peer = importlib.import_module("ldpc").BpOsdDecoder
    channel = list(1.0 / (1.0 + np.exp(errors.costs)))
    decoder = peer(
        matrix_of(errors), error_channel=channel, bp_method="minimum_sum", ms_scaling_factor=0.0,
        max_iter=30, osd_method="OSD_CS", osd_order=10,
    )  # fmt: skip
    began = time.perf_counter()
    words = np.array([decoder.decode(syndrome) for syndrome in shots[0]], np.uint8)
    taken = time.perf_counter() - began
    return _row(errors, ParityCode(errors.checks, len(errors.costs)), shots, words, taken)


def by_matching(path: Path, errors: Errors, shots: Shots) -> dict[str, Any]:
    """pymatching on stim's model, for models whose errors are edges or decomposed into edges."""
    stim = importlib.import_module("stim")
    peer = importlib.import_module("pymatching").Matching
    matching = peer.from_detector_error_model(stim.DetectorErrorModel(text_of(path)))
    began = time.perf_counter()
    flips = matching.decode_batch(shots[0])
    taken = time.perf_counter() - began
    wrong = int((flips != shots[1]).any(axis=1).sum())
    return {"energy": math.inf, "seconds": taken, "failures": wrong}


def _row(
    errors: Errors, code: ParityCode, shots: Shots, words: Bytes, taken: float
) -> dict[str, Any]:
    fits = (code.syndrome(words) == shots[0]).all()
    wrong = (words @ errors.observables % 2 != shots[1]).any(axis=1)
    energy = float((words @ errors.costs).sum()) if fits else math.inf
    return {"energy": energy, "seconds": taken, "failures": int(wrong.sum())}


DECODERS: dict[str, Callable[[Path, Errors, Shots], dict[str, Any]]] = {
    "softmap": by_softmap, "BP+OSD": by_osd, "pymatching": by_matching,
}  # fmt: skip


def decoded(solver: str, path: Path) -> dict[str, Any]:
    """The row of one decoder on one detector error model."""
    return DECODERS[solver](path, errors_of(path, None, None), shots_of(path))
