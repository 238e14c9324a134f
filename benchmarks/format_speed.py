"""How fast large files of the field's other formats are read, and whether time is linear in size.

`python -m benchmarks.format_speed [--megabytes 100] [--only qpbo,...]`. The files are made here,
from a fixed seed. Speeds are in processor time, best of two; `growth` is the time per byte of the
whole file over that of a file of a tenth of its size (1 is linear).
"""

from __future__ import annotations

import argparse
import gc
import io
import sys
import time
from collections.abc import Callable

import numpy as np

import softmap
from softmap.io.formats import FORMATS
from softmap.io.streams import Content


def lines(rows: list[np.ndarray]) -> bytes:
    """Columns of numbers as lines of text."""
    file = io.BytesIO()
    np.savetxt(file, np.column_stack(rows), fmt="%d")
    return file.getvalue()


def qpbo(size: int) -> bytes:
    """Sparse random weights, in the order of their pairs."""
    rng = np.random.default_rng(0)
    n, m = max(10, size // 400), size // 15
    i, j = np.sort(rng.integers(1, n + 1, (2, m)), axis=0)
    order = np.lexsort((j, i))
    i, j = i[order], j[order]
    body = lines([i, j, rng.integers(-1000, 1001, m)])
    return b"%d %d\n" % (n, m) + body


def wcnf(size: int) -> bytes:
    """Random clauses: soft ones of one and two literals, hard ones of three."""
    rng = np.random.default_rng(0)
    n = max(10, size // 200)
    parts = [b"c made by softmap\n"]
    for k, share, hard in ((1, 0.05, False), (2, 0.55, False), (3, 0.4, True)):
        m = int(size * share / (8 * k + 4))
        literals = rng.integers(1, n + 1, (k, m)) * rng.choice([-1, 1], (k, m))
        weight = rng.integers(1, 1000, m)
        text = lines([weight, *literals, np.zeros(m, int)])
        if hard:
            text = lines([*literals, np.zeros(m, int)])
            text = b"h " + text.replace(b"\n", b"\nh ")[:-2]
        parts.append(text)
    return b"".join(parts)


def xmlbif(size: int, labels: int = 6, parents: int = 3) -> bytes:
    """A network whose variables have a few parents each, as large diagnostic networks have."""
    rng = np.random.default_rng(0)
    entry = labels ** (parents + 1)
    n = max(parents + 1, size // (entry * 9 + 600))
    out = ['<?xml version="1.0"?>\n<BIF VERSION="0.3">\n<NETWORK>\n']
    states = "".join(f"<OUTCOME>s{k}</OUTCOME>" for k in range(labels))
    out += [f'<VARIABLE TYPE="nature"><NAME>v{i}</NAME>{states}</VARIABLE>\n' for i in range(n)]
    table = rng.dirichlet(np.ones(labels), labels**parents).round(6)
    text = " ".join(f"{p:.6f}" for p in table.ravel())
    for i in range(n):
        own = range(max(0, i - parents), i)
        given = "".join(f"<GIVEN>v{j}</GIVEN>" for j in own)
        short = len(own) < parents
        body = " ".join(["0.5"] * labels ** (len(own) + 1)) if short else text
        out.append(f"<DEFINITION><FOR>v{i}</FOR>{given}<TABLE>{body}</TABLE></DEFINITION>\n")
    out.append("</NETWORK>\n</BIF>\n")
    return "".join(out).encode()


def small_xmlbif(size: int) -> bytes:
    """The same of many variables with two states and two parents: mostly tags."""
    return xmlbif(size, labels=2, parents=2)


MAKERS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "qpbo": ("qpbo", qpbo),
    "wcnf": ("wcnf", wcnf),
    "xmlbif": ("xmlbif", xmlbif),
    "xmlbif, small tables": ("xmlbif", small_xmlbif),
}


def spent(form: str, data: bytes, times: int = 2) -> tuple[float, softmap.Model]:
    """Processor seconds to parse, best of some."""
    best, model = np.inf, None
    for _ in range(times):
        del model
        gc.collect()
        begin = time.process_time()
        model = FORMATS[form].parse(Content(data, "made here"))
        best = min(best, time.process_time() - begin)
    return best, model


def network() -> str:
    """A network of the size of *barley*: 48 variables, 130,000 probabilities, written as BIF."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(3, 12, 48).tolist()
    factors = []
    for i, d in enumerate(sizes):
        own = tuple(range(max(0, i - (3 if i % 3 else 2)), i))
        shape = tuple(sizes[j] for j in own)
        table = rng.dirichlet(np.ones(d), shape) if shape else rng.dirichlet(np.ones(d))
        factors.append(((*own, i), 0.0 - np.log(table)))
    model = softmap.Model.from_factors(sizes, factors)
    states = tuple(tuple(f"state_{x}" for x in range(d)) for d in sizes)
    with_names = model.with_names([f"variable_{i}" for i in range(48)], states)
    file = io.BytesIO()
    softmap.write(with_names, file, format="bif")
    data = file.getvalue()
    seconds, _ = spent("bif", data, 3)
    entries = sum(t.size for _, t in factors)
    size = f"{entries:,} probabilities, {len(data) / 1e6:.1f} MB"
    return f"BIF, 48 variables, {size}: {seconds:.2f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--only", default=",".join(MAKERS))
    options = parser.parse_args()
    print("| file | MB | variables | edges | MB/s | growth |\n" + "| --- " * 6 + "|")
    for name, (form, make) in MAKERS.items():
        if name not in options.only:
            continue
        data = make(int(options.megabytes * 1e6))
        part = make(int(options.megabytes * 1e5))
        small, _ = spent(form, part)
        large, model = spent(form, data)
        growth = large / len(data) / (small / len(part))
        size = len(data) / 1e6
        counts = f"{model.network.num_variables:,} | {model.m:,}"
        print(f"| {name} | {size:.0f} | {counts} | {size / large:.0f} | {growth:.2f} |", flush=True)
        del data, model
    print("\n" + network())
    return 0


if __name__ == "__main__":
    sys.exit(main())
