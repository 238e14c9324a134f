"""A small coverage-guided fuzzer in plain Python, for where atheris cannot be installed.

Inputs that reach lines (or pairs of consecutive lines) of `softmap.io` not seen before are kept
and mutated further: tokens and bytes changed, removed, doubled, cut, and inputs spliced. Tracing
lines takes most of the time, so that it is done for one input in `TRACED` only, once a few thousand
have found what is easy to reach.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

WORDS = [
    b"0", b"1", b"2", b"3", b"-1", b"-2", b"7", b"1e9", b"1e308", b"1e999", b"-inf", b"inf", b"nan",
    b"0.5",
    b"999999999999", b"9223372036854775808", b"18446744073709551616", b"4294967296", b"2147483648",
    b"x", b"MARKOV", b"BAYES", b"MPE", b"MAP", b"#", b"c", b"p", b"a", b"e", b"gm", b"[", b"]",
    b";", b"(", b")", b"=", b"|", b"^", b"~x1", b">=", b"h", b"D0", b"<", b">",
    b"{", b"}", b'"', b":", b",", b"scope", b"costs", b"defaultcost", b"-BEGIN-", b"\n", b"\x00",
    b"\xff",
]  # fmt: skip
LONGEST = 1 << 14
TRACED = 16  # one input in so many is traced ...
ALL_TRACED = 2000  # ... after so many


def mutated(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """One to a few random changes."""
    for _ in range(1 << rng.randrange(4)):
        choice = rng.randrange(9)
        if choice < 3:
            words = data.split(b" ")
            at = rng.randrange(len(words))
            if choice == 0:
                words[at] = rng.choice(WORDS)
            elif choice == 1:
                words[at : at + 1 + rng.randrange(2)] = []
            else:
                words.insert(at, rng.choice([rng.choice(WORDS), rng.choice(words)]))
            data = b" ".join(words)
        elif choice == 3:
            data = data[: rng.randrange(len(data) + 1)]
        elif choice == 4:
            cut = rng.randrange(len(data) + 1)
            data = data[:cut] + other[rng.randrange(len(other) + 1) :]
        elif data:
            at = rng.randrange(len(data))
            fresh = bytes([rng.choice((0, 1, 255, 127, 128, 32, 10, rng.randrange(256)))])
            if choice == 5:
                fresh = bytes([data[at] ^ 1 << rng.randrange(8)])
            elif choice == 6:
                fresh = b""
            elif choice == 7:
                fresh = data[at : at + rng.randrange(1, 9)] * 2
            data = data[:at] + fresh + data[at + 1 :]
    return data[:LONGEST]


class Coverage:
    """Pairs of consecutive lines executed in files whose name contains `part`."""

    def __init__(self, part: str) -> None:
        self.part = part
        self.seen: set[tuple[str, int, int]] = set()
        self.fresh = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if self.part not in name:
            return None
        last = 0

        def line(inner: FrameType, kind: str, __: Any) -> Any:
            nonlocal last
            if kind == "line":
                key = (name, last, inner.f_lineno)
                last = inner.f_lineno
                if key not in self.seen:
                    self.seen.add(key)
                    self.fresh = True
            return line

        return line


def place_of(error: BaseException) -> str:
    """Where an exception comes from: two inputs that fail alike count as one finding."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{type(error).__name__} {trace and trace.tb_lineno} {str(error)[:30]}"


def fuzz(
    target: Callable[[bytes], object],
    seeds: list[bytes],
    seconds: float,
    allowed: type[BaseException],
    seed: int = 0,
    note: Callable[[bytes], object] = len,
) -> tuple[int, int, list[tuple[bytes, BaseException | float]]]:
    """Runs, lines pairs covered, and findings: an input with its exception, or its seconds.

    `note` is called with each input before it is tried.
    """
    rng = random.Random(seed)
    coverage = Coverage("softmap/io")
    corpus = list(seeds)
    findings: list[tuple[bytes, BaseException | float]] = []
    places: set[str] = set()
    runs = 0
    end = time.monotonic() + seconds
    queue = list(seeds)
    while time.monotonic() < end:
        data = queue.pop() if queue else mutated(rng.choice(corpus), rng.choice(corpus), rng)
        runs += 1
        note(data)
        coverage.fresh = False
        begin = time.process_time()
        if runs <= ALL_TRACED or runs % TRACED == 0:
            sys.settrace(coverage)
        try:
            target(data)
        except allowed:
            pass
        except Exception as error:
            sys.settrace(None)
            place = place_of(error)
            if place not in places:
                places.add(place)
                findings.append((data, error))
        finally:
            sys.settrace(None)
        spent = time.process_time() - begin
        if spent > 1.0:
            findings.append((data, spent))
        if coverage.fresh:
            corpus.append(data)
    return runs, len(coverage.seen), findings
