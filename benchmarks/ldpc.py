"""Decoding a low-density parity-check code: certified decoding beside plain belief propagation.

`python -m benchmarks.ldpc [--words 2000] [--snr 1.5,2.0,2.5] [--n 1008] [--json FILE]`. A random
code of rate 1/2 with three checks per bit and six bits per check; the zero word is sent over a
channel with Gaussian noise (it stands for all words: code and channel are symmetric). Belief
propagation runs 50 rounds of sum-product. Every word is decoded on one core, alone; milliseconds
are medians, those of `softmap.codes.ParityCode.decode` also the 90 % quantile.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from softmap.codes import ParityCode

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def regular_code(n: int, seed: int = 0, column: int = 3, row: int = 6) -> Ints:
    """Bits of each check, one row of the array per check; no bit stands twice in a check."""
    rng = np.random.default_rng(seed)
    bits = np.repeat(np.arange(n), column)
    rng.shuffle(bits)
    checks = bits.reshape(-1, row)
    for _ in range(1000):
        ordered = np.sort(checks, axis=1)
        twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not len(twice):
            return checks
        for c in twice:  # exchange a bit of a bad check with one of any check
            other, place, where = rng.integers(len(checks)), *rng.integers(row, size=2)
            kept = checks[c, place]
            checks[c, place], checks[other, where] = checks[other, where], kept
    raise RuntimeError("no code without double bits was found")


def noise(snr: float, rate: float = 0.5) -> float:
    """Standard deviation of the noise at a signal-to-noise ratio per bit, in decibels."""
    return float(np.sqrt(1.0 / (2.0 * rate * 10.0 ** (snr / 10.0))))


def belief_propagation(checks: Ints, ratios: Floats, rounds: int = 50) -> Ints:
    """Bits after sum-product on all checks at once; stops when every parity is even."""
    messages = np.zeros(checks.shape)
    bits = (ratios < 0).astype(np.int64)
    for _ in range(rounds):
        total = ratios + np.bincount(checks.ravel(), messages.ravel(), len(ratios))
        bits = (total < 0).astype(np.int64)
        if not (bits[checks].sum(axis=1) % 2).any():
            break
        half = np.tanh(np.clip((total[checks] - messages) / 2, -15, 15))
        half = np.where(np.abs(half) < 1e-12, 1e-12, half)
        product = half.prod(axis=1, keepdims=True) / half
        messages = 2 * np.arctanh(np.clip(product, -1 + 1e-15, 1 - 1e-15))
    return bits


@dataclass
class Row:
    """Errors, certificates and milliseconds at one signal-to-noise ratio."""

    snr: float
    words: int
    bp_errors: int
    errors: int
    proved: int
    proved_wrong: int
    beaten: int
    bp_ms: float
    ms: float
    ms_90: float


def measured(code: ParityCode, checks: Ints, snr: float, words: int) -> Row:
    """Decode the same words by both, one by one."""
    rng = np.random.default_rng(round(1000 * snr))
    n, sigma = code.num_bits, noise(snr)
    count: Counter[str] = Counter()
    bp_seconds, seconds = [], []
    for _ in range(words):
        ratios = 2.0 * (1.0 + sigma * rng.normal(size=n)) / sigma**2
        begin = time.perf_counter()
        count["bp"] += bool(belief_propagation(checks, ratios).any())
        bp_seconds.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        found = code.decode(ratios)
        seconds.append(time.perf_counter() - begin)
        wrong = bool(found.words.any())
        count["wrong"] += wrong
        count["proved"] += bool(found.proved)
        count["proved wrong"] += wrong and bool(found.proved)
        count["beaten"] += bool(found.costs < 0)  # the most likely word is another than was sent
    return Row(
        snr, words, count["bp"], count["wrong"], count["proved"], count["proved wrong"],
        count["beaten"], 1e3 * float(np.median(bp_seconds)), 1e3 * float(np.median(seconds)),
        1e3 * float(np.quantile(seconds, 0.9)),
    )  # fmt: skip


HEAD = "dB | words | BP errors | errors | proved | proved, not sent | sent word beaten | BP ms | ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=2000)
    parser.add_argument("--snr", default="1.5,2.0,2.5,3.0")
    parser.add_argument("--n", type=int, default=1008)
    parser.add_argument("--json")
    args = parser.parse_args()
    checks = regular_code(args.n)
    code = ParityCode(checks, args.n)
    rows = []
    print(f"| {HEAD} | 90 % |")
    print("| --- " * 10 + "|")
    for snr in map(float, args.snr.split(",")):
        row = measured(code, checks, snr, args.words)
        rows.append(asdict(row))
        counts = [row.words, row.bp_errors, row.errors, row.proved, row.proved_wrong, row.beaten]
        times = [f"{ms:.2f}" for ms in (row.bp_ms, row.ms, row.ms_90)]
        print("|", " | ".join(map(str, [row.snr, *counts, *times])), "|", flush=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
