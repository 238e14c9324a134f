"""Decoders on the same shots: failures, proofs and milliseconds, beside BP+OSD and matching.

`python -m benchmarks.decoders [--shots 2000] [--only NAME ...] [--data FOLDER] [--json FILE]`;
with `--threshold`, surface codes of three distances at five error rates instead of the codes below.
A failure is a shot whose predicted observables differ from those that were flipped, or a received
word that is decoded to another than was sent. `Decoder.decode_batch` of softmap runs on one thread;
BP+OSD is `ldpc.BpOsdDecoder` with a combination sweep of order 10, matching is `pymatching`. Times
are process times in milliseconds per shot, in one run; a decoder that is not installed is left out.
`--decoders threads gpu` decodes on all cores, without and with a GPU, in elapsed milliseconds per
shot, and checks that the answers with the GPU are as good.

Detector error models are made by `stim` where it is installed: rotated surface codes under circuit
noise with d rounds. Otherwise, and for the colour and bicycle codes, they are the `.dem` files of a
folder (`--data`), whose shots are sampled here. Classical codes are `.alist` files of the folder,
over a channel with Gaussian noise; without them, a random (3, 6) code.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import softmap
from benchmarks.ldpc import noise, regular_code
from softmap.codes import Decoder, ParityCode
from softmap.codes.inputs import Errors, errors_of

Bytes = NDArray[np.uint8]


@dataclass
class Task:
    """Shots of one code: errors, and what was sampled."""

    name: str
    errors: Errors
    syndromes: Bytes
    flips: Bytes  # observables that were flipped; nothing for received words
    ratios: NDArray[np.float64] | None = None  # costs of received words, one row each
    graph: Any = None  # stim's model with errors decomposed into edges, for matching


@dataclass
class Row:
    """The result of one decoder on one task."""

    task: str
    decoder: str
    shots: int
    failures: int
    ms: float
    proved: int | None = None
    proved_failures: int | None = None
    gap: float | None = None  # mean of cost - bound of shots without a proof


def matrix_of(errors: Errors) -> Bytes:
    table = np.zeros((len(errors.checks), len(errors.costs)), np.uint8)
    for check, row in enumerate(errors.checks):
        table[check, list(row)] = 1
    return table


def sampled(name: str, errors: Errors, shots: int, seed: int = 7) -> Task:
    """Sample errors independently."""
    rng = np.random.default_rng(seed)
    p = 1.0 / (1.0 + np.exp(errors.costs))
    happened = (rng.random((shots, len(p))) < p).astype(np.uint8)
    syndromes = ParityCode(errors.checks, len(p)).syndrome(happened)
    return Task(name, errors, syndromes, happened @ errors.observables % 2)


def surface(distance: int, p: float, shots: int) -> Task | None:
    """A rotated surface code with `distance` rounds under circuit noise, by stim."""
    try:
        stim = importlib.import_module("stim")
    except ImportError:
        return None
    circuit = stim.Circuit.generated(
        "surface_code:rotated_memory_z", distance=distance, rounds=distance,
        after_clifford_depolarization=p, before_round_data_depolarization=p,
        before_measure_flip_probability=p, after_reset_flip_probability=p,
    )  # fmt: skip
    task = sampled(f"surface d={distance} p={p:g}", errors_of(circuit, None, None), shots)
    task.graph = circuit.detector_error_model(decompose_errors=True)
    return task


def received(name: str, code: ParityCode, snr: float, shots: int) -> Task:
    """Words of zeros over a channel with Gaussian noise; `snr` in decibels per bit."""
    rng = np.random.default_rng(round(1000 * snr))
    sigma = noise(snr, 1.0 - len(code.checks) / code.num_bits)
    ratios = 2.0 * (1.0 + sigma * rng.normal(size=(shots, code.num_bits))) / sigma**2
    errors = errors_of(code, None, None)
    none = np.zeros((shots, len(code.checks)), np.uint8)
    return Task(f"{name} {snr:g} dB", errors, none, np.zeros((shots, 0), np.uint8), ratios)


def failures(task: Task, words: Bytes) -> NDArray[np.bool_]:
    if task.ratios is not None:
        return words.any(axis=1)
    return (words @ task.errors.observables % 2 != task.flips).any(axis=1)


def by_softmap(task: Task, name: str = "softmap", backend: str = "cpu") -> Row:
    """Decode on one thread; `name` "threads" and "gpu": on all cores, and measure elapsed time."""
    kept = np.isfinite(task.errors.costs)
    assert kept.all(), "an error is certain or impossible"
    code = ParityCode(task.errors.checks, len(task.errors.costs))
    decoder = Decoder(code, ratios=task.errors.costs)
    threads, clock = (1, time.process_time) if name == "softmap" else (None, time.perf_counter)
    few = task.ratios if task.ratios is None else task.ratios[:2]
    decoder.decode_batch(task.syndromes[:2], ratios=few, backend=backend)  # compiles kernels
    begin = clock()
    found = decoder.decode_batch(
        task.syndromes, ratios=task.ratios, threads=threads, backend=backend
    )
    seconds = clock() - begin
    if backend != "cpu":
        plain = decoder.decode_batch(task.syndromes, ratios=task.ratios)
        assert (found.costs <= plain.costs).all(), "a worse answer than that of the CPU"
        assert (found.proved >= plain.proved).all(), "a proof of the CPU is missing"
        assert (found.costs == plain.costs)[plain.proved].all(), "proved costs differ"
    wrong = failures(task, found.words)
    gap = float(found.gaps[~found.proved].mean()) if not found.proved.all() else 0.0
    return Row(
        task.name, name, len(wrong), int(wrong.sum()), 1e3 * seconds / len(wrong),
        int(found.proved.sum()), int((wrong & found.proved).sum()), gap,
    )  # fmt: skip


def by_lp(task: Task) -> Row:
    code = ParityCode(task.errors.checks, len(task.errors.costs))
    costs = task.errors.costs if task.ratios is None else task.ratios
    table = np.broadcast_to(costs, (len(task.syndromes), code.num_bits))
    begin = time.process_time()
    found = code.decode(table, task.syndromes)
    seconds = time.process_time() - begin
    wrong = failures(task, found.words) | ~found.found
    return Row(
        task.name, "ParityCode", len(wrong), int(wrong.sum()), 1e3 * seconds / len(wrong),
        int(found.proved.sum()), int((wrong & found.proved).sum()),
    )  # fmt: skip


def by_osd(task: Task) -> Row | None:
    try:
        peer = importlib.import_module("ldpc").BpOsdDecoder
    except ImportError:
        return None
    table, seconds = matrix_of(task.errors), 0.0
    # of the settings tried, those with the fewest failures: flooding min-sum, scaled adaptively
    # (factor 0) for detector error models, by 0.625 for received words
    factor, rounds = (0.0, 30) if task.ratios is None else (0.625, 100)
    options: dict[str, Any] = {
        "bp_method": "minimum_sum", "ms_scaling_factor": factor, "max_iter": rounds,
        "osd_method": "OSD_CS", "osd_order": 10,
    }  # fmt: skip
    p = 1.0 / (1.0 + np.exp(np.abs(task.errors.costs)))
    decoder = peer(table, error_channel=list(p), **options)
    words = np.empty((len(task.syndromes), len(p)), np.uint8)
    for k, syndrome in enumerate(task.syndromes):
        hard = np.zeros(len(p), np.uint8)
        if task.ratios is not None:
            hard = (task.ratios[k] < 0).astype(np.uint8)
            decoder.update_channel_probs(1.0 / (1.0 + np.exp(np.abs(task.ratios[k]))))
            syndrome = table @ hard % 2
        begin = time.process_time()
        words[k] = decoder.decode(syndrome) ^ hard
        seconds += time.process_time() - begin
    wrong = failures(task, words)
    return Row(task.name, "BP+OSD", len(wrong), int(wrong.sum()), 1e3 * seconds / len(wrong))


def by_matching(task: Task) -> Row | None:
    """Matching on stim's graph: errors of more than two detectors are decomposed into edges."""
    try:
        peer = importlib.import_module("pymatching").Matching
    except ImportError:
        return None
    if task.graph is None:
        return None
    matching = peer.from_detector_error_model(task.graph)
    begin = time.process_time()
    flips = matching.decode_batch(task.syndromes)
    seconds = time.process_time() - begin
    wrong = (flips != task.flips).any(axis=1)
    return Row(task.name, "matching", len(wrong), int(wrong.sum()), 1e3 * seconds / len(wrong))


DECODERS: dict[str, Callable[[Task], Row | None]] = {
    "softmap": by_softmap, "ParityCode": by_lp, "BP+OSD": by_osd, "matching": by_matching,
    "threads": partial(by_softmap, name="threads"),
    "gpu": partial(by_softmap, name="gpu", backend="cuda"),
}  # fmt: skip
CLASSICAL = {"CCSDS_64_128": 3.5, "WIMAX_288_576": 1.8, "MACKAY_504_1008": 2.0}
FILES = ("midout_color_code", "bicycle_bivariate_72", "surface d=5")


def tasks(data: Path | None, shots: int, only: list[str] | None) -> Any:
    """Yield the tasks whose name contains a word of `only`."""

    def asked(name: str) -> bool:
        return only is None or any(word in name for word in only)

    for d, p in ((3, 0.01), (5, 0.008), (7, 0.005)):
        if asked(f"surface d={d}") and (task := surface(d, p, shots)) is not None:
            yield task
    for path in sorted(data.rglob("*.dem*")) if data else ():
        name = next((name for name in FILES if name in path.name), None)
        if name and asked(name):
            yield sampled(name, errors_of(path, None, None), shots)
    for name, snr in CLASSICAL.items():
        found = list(data.rglob(f"{name}.alist")) if data else []
        if found and asked(name):
            yield received(name, ParityCode.from_alist(found[0]), snr, shots)
    if asked("(3, 6)"):
        yield received("(3, 6) 1008", ParityCode(regular_code(1008), 1008), 2.5, shots)


THRESHOLD = {3: 2000, 5: 1000, 7: 300}  # shots by distance
RATES = (0.004, 0.006, 0.008, 0.01, 0.012)


def threshold() -> Any:
    """Yield surface codes of several distances and error rates."""
    for distance, shots in THRESHOLD.items():
        for p in RATES:
            if (task := surface(distance, p, shots)) is not None:
                yield task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shots", type=int, default=2000)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--decoders", nargs="*", default=["softmap", "BP+OSD", "matching"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--threshold", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    print("| code | decoder | shots | failures | ms | proved | proved and failed | mean gap |")
    print("| --- " * 8 + "|")
    for task in threshold() if args.threshold else tasks(args.data, args.shots, args.only):
        for name in args.decoders:
            if (row := DECODERS[name](task)) is None:
                continue
            rows.append(asdict(row))
            rest = (row.proved, row.proved_failures, row.gap and round(row.gap, 3))
            cells = [row.task, row.decoder, row.shots, row.failures, f"{row.ms:.3f}"]
            print("|", " | ".join(map(str, [*cells, *("" if r is None else r for r in rest)])), "|",
                  flush=True)  # fmt: skip
            if args.json:  # after each row, so that an interrupted run is not lost
                run = {"version": softmap.__version__, "rows": rows}
                args.json.write_text(json.dumps(run, indent=1) + "\n")


if __name__ == "__main__":
    main()
