"""A file of every format, made here from a fixed seed, of about the size that is asked for."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial

import numpy as np

import softmap
from benchmarks.format_speed import lines, qpbo, wcnf, xmlbif


def _written(form: str, size: int, entry: float, **options: object) -> bytes:
    """A grid with six labels, written in the format; an entry takes so many bytes."""
    side = max(2, round((size / (entry * 72)) ** 0.5))
    rng = np.random.default_rng(0)
    edges = softmap.generators.grid_edges(side, side)
    tables = rng.integers(0, 1000, (len(edges), 6, 6)).astype(float)
    model = softmap.Model(rng.integers(0, 1000, (side**2, 6)).astype(float), edges, tables)
    file = io.BytesIO()
    softmap.write(model, file, format=form, **options)
    return file.getvalue()


def _network(form: str, size: int) -> bytes:
    """A Bayesian network of random tables, written in the format."""
    rng = np.random.default_rng(0)
    n = max(4, size // 14_000)
    sizes, factors = [6] * n, []
    for i in range(n):
        own = tuple(range(max(0, i - 3), i + 1))
        table = rng.dirichlet(np.ones(6), (6,) * (len(own) - 1)).round(6) + 1e-6
        factors.append((own, -np.log(table / table.sum(axis=-1, keepdims=True))))
    states = tuple(tuple(f"s{x}" for x in range(6)) for _ in sizes)
    model = softmap.Model.from_factors(sizes, factors)
    file = io.BytesIO()
    softmap.write(model.with_names([f"v{i}" for i in range(n)], states), file, format=form)
    return file.getvalue()


def _weights(form: str, size: int) -> bytes:
    """Sparse random weights of pairs."""
    model = softmap.io.parse(qpbo(size), "qpbo")
    file = io.BytesIO()
    softmap.write(model, file, format=form)
    return file.getvalue()


def maxcut(size: int) -> bytes:
    """A sparse graph with weights 1 and -1."""
    rng = np.random.default_rng(0)
    n, m = max(10, size // 400), size // 13
    i, j = np.sort(rng.integers(1, n + 1, (2, m)), axis=0)
    i, j = np.unique(np.stack([i, j])[:, i < j], axis=1)
    return b"%d %d\n" % (n, len(i)) + lines([i, j, rng.choice([-1, 1], len(i))])


def long_clauses(size: int) -> bytes:
    """Hard clauses of twelve literals."""
    rng = np.random.default_rng(0)
    n, m = max(100, size // 200), size // 80
    literals = rng.integers(1, n + 1, (12, m)) * rng.choice([-1, 1], (12, m))
    return b"h " + lines([*literals, np.zeros(m, int)]).replace(b"\n", b"\nh ")[:-2]


def _sums(size: int, row: Callable[[int, list[int]], str], width: int = 4) -> list[str]:
    rng = np.random.default_rng(0)
    m = max(1, size // (10 * width))
    n = max(20, m // 2)
    picked = rng.integers(0, n, (m, width))
    return [row(k, sorted(set(own))) for k, own in enumerate(picked.tolist())]


def opb(size: int, width: int = 4) -> bytes:
    """Covering rows of a few variables."""
    rows = _sums(size, lambda _, own: " ".join(f"+1 x{j + 1}" for j in own) + " >= 1 ;", width)
    n = max(20, len(rows) // 2)
    goal = " ".join(f"+{1 + j % 9} x{j + 1}" for j in range(n))
    return (f"min: {goal} ;\n" + "\n".join(rows) + "\n").encode()


def lp(size: int, width: int = 4) -> bytes:
    """The same as an LP file."""
    rows = _sums(size, lambda k, own: f"r{k}: " + " + ".join(f"x{j}" for j in own) + " >= 1", width)
    n = max(20, len(rows) // 2)
    goal = " + ".join(f"{1 + j % 9} x{j}" for j in range(n))
    names = "\n".join(f"x{j}" for j in range(n))
    text = "\n".join(["minimize", f"obj: {goal}", "subject to", *rows, "binary", names, "end"])
    return (text + "\n").encode()


def mps(size: int) -> bytes:
    """The same as an MPS file."""
    rng = np.random.default_rng(0)
    m = max(10, size // 70)
    n = max(20, m // 2)
    head = ["NAME made-here", "ROWS", " N obj", *(f" G r{k}" for k in range(m)), "COLUMNS"]
    owner = np.sort(rng.integers(0, n, (4, m)).ravel())
    pairs = np.unique(np.column_stack([owner, rng.permutation(np.repeat(np.arange(m), 4))]), axis=0)
    body = [" M1 'MARKER' 'INTORG'", *(f" x{j} obj {1 + j % 9}" for j in range(n))]
    entries = [f" x{j} r{k} 1" for j, k in pairs.tolist()]
    by_column = sorted([*body[1:], *entries], key=lambda line: int(line.split()[0][1:]))
    bounds = [f" BV B x{j}" for j in range(n)]
    ends = [" M2 'MARKER' 'INTEND'", "RHS", *(f" R r{k} 1" for k in range(m)), "BOUNDS", *bounds]
    return "\n".join([*head, body[0], *by_column, *ends, "ENDATA", ""]).encode()


def qap(size: int) -> bytes:
    """Two random matrices."""
    n = max(3, int((size / 6) ** 0.5))
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 100, (2 * n, n)).tolist()
    return f"{n}\n".encode() + "\n".join(" ".join(map(str, row)) for row in rows).encode() + b"\n"


def dd(size: int) -> bytes:
    """A graph matching problem of sparse assignments and pairs."""
    rng = np.random.default_rng(0)
    e = max(20, size // 18)
    a = max(20, e // 5)
    n = max(4, a // 4)
    places = np.stack([np.arange(a) // 4, rng.integers(0, n, a)])
    places = np.unique(np.minimum(places, n - 1), axis=1)
    a = places.shape[1]
    pairs = np.unique(np.sort(rng.integers(0, a, (2, e)), axis=0), axis=1)
    pairs = pairs[:, places[0, pairs[0]] != places[0, pairs[1]]]
    head = [f"p {n} {n} {a} {pairs.shape[1]}"]
    head += [f"a {k} {i} {j} -1.5" for k, (i, j) in enumerate(places.T.tolist())]
    return "\n".join([*head, *(f"e {i} {j} 0.25" for i, j in pairs.T.tolist()), ""]).encode()


def alist(size: int) -> bytes:
    """A random code with three checks for each bit and six bits in each check."""
    rng = np.random.default_rng(0)
    checks = max(12, size // 90)
    bits = 2 * checks
    rows: list[set[int]] = [set() for _ in range(checks)]
    for start in range(3):
        for k, bit in enumerate(rng.permutation(bits).tolist()):
            rows[(k + start) % checks].add(bit)
    columns: list[list[int]] = [[] for _ in range(bits)]
    for check, own in enumerate(rows):
        for bit in own:
            columns[bit].append(check + 1)
    weights = [" ".join(str(len(part)) for part in parts) for parts in (columns, rows)]
    body = [" ".join(map(str, own)) for own in columns]
    body += [" ".join(str(bit + 1) for bit in sorted(own)) for own in rows]
    return "\n".join([f"{bits} {checks}", "3 6", *weights, *body, ""]).encode()


def dem(size: int) -> bytes:
    """Errors of two detectors and some observables."""
    rng = np.random.default_rng(0)
    m = max(10, size // 30)
    n = max(4, m // 8)
    pairs = np.sort(rng.integers(0, n, (m, 2)), axis=1).tolist()
    mark = [" L0" if k % 7 == 0 else "" for k in range(m)]
    errors = [
        f"error(0.00{1 + k % 9}) D{i} D{i + 1 + j % 5}{mark[k]}" for k, (i, j) in enumerate(pairs)
    ]
    return ("\n".join(errors) + "\n").encode()


TEXTS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "uai": ("uai", partial(_written, "uai", entry=4, values="cost")),
    "wcsp": ("wcsp", partial(_written, "wcsp", entry=8)),
    "cfn": ("cfn", partial(_written, "cfn", entry=7)),
    "npz": ("npz", partial(_written, "npz", entry=8, compress=False)),
    "opengm": ("opengm", partial(_written, "opengm", entry=8)),
    "bif": ("bif", partial(_network, "bif")), "net": ("net", partial(_network, "net")),
    "xmlbif": ("xmlbif", xmlbif), "xdsl": ("xdsl", partial(_network, "xdsl")),
    "qpbo": ("qpbo", qpbo), "qubo": ("qubo", partial(_weights, "qubo")),
    "coo": ("coo", partial(_weights, "coo")), "maxcut": ("maxcut", maxcut),
    "qap": ("qap", qap), "dd": ("dd", dd), "dem": ("dem", dem), "alist": ("alist", alist),
    "wcnf": ("wcnf", wcnf), "wcnf, clauses of 12": ("wcnf", long_clauses),
    "opb": ("opb", opb), "opb, rows of 10": ("opb", partial(opb, width=10)),
    "lp": ("lp", lp), "lp, rows of 10": ("lp", partial(lp, width=10)), "mps": ("mps", mps),
}  # fmt: skip
