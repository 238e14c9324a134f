"""Proof files taken apart and put together again, and a slow checker of them.

The slow checker is the oracle of `softmap.verification.proof`: it enumerates. Where that repeats
the reasons of a search (costs moved, labels removed, factors replaced), this one forgets them, and
compares every labelling of a closed node with the cut.
"""

from __future__ import annotations

import itertools
import json
import math
import zlib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from softmap import Model
from softmap.model import checked_network

NAMES = [
    "LOAD", "REMOVE", "PERSISTENT", "SPLIT", "SUBSTITUTE", "ELIMINATE", "SHIFT", "COMPONENT", "END",
    "CUT", "DIVE", "BRANCH", "CLOSE", "LEAVE", "STEP", "COMBINE", "DUAL", "PIECE", "LABELS",
    "CONCLUDE", "HARD", "SPINS", "ASSIGNMENT", "BOOLEANS", "COSTS", "GIVEN", "LEARNED", "CORE",
    "GROUP", "EXCEPT", "PART", "RANKS", "SQUARES",
]  # fmt: skip
NUMBERS = {name: k for k, name in enumerate(NAMES, 1)}
BY_NUMBER = {k: name for name, k in NUMBERS.items()}
ARRAYS = {
    "REMOVE": 2, "PERSISTENT": 2, "SUBSTITUTE": 2, "SHIFT": 2, "COMPONENT": 2, "END": 0, "CLOSE": 0,
    "LEAVE": 0, "STEP": 5, "COMBINE": 3, "DUAL": 3, "PIECE": 3, "CONCLUDE": 2, "HARD": 0,
    "SPINS": 4, "ASSIGNMENT": 4, "BOOLEANS": 2, "COSTS": 2, "GIVEN": 2, "LEARNED": 2, "GROUP": 3,
    "EXCEPT": 2, "PART": 2, "SQUARES": 3,
}  # fmt: skip

Record = tuple[str, list[list[int]]]


def put_together(path: Path, header: dict, body: bytes) -> None:
    """Write a proof whose size and check sum are right."""
    whole = header | {"bytes": len(body), "crc32": zlib.crc32(body)}
    path.write_bytes(json.dumps(whole).encode() + b"\n" + body)


def write_proof(path: Path, model: Model, body: bytes, exponent: int = 0) -> None:
    """The proof of a model that is searched as it is."""
    header = {"format": "softmap proof", "version": 3, "model": model.fingerprint()}
    put_together(path, header | {"exponent": exponent}, body)


def taken_apart(path: Path) -> tuple[dict, list[Record]]:
    """The header and all records of a proof."""
    line, body = path.read_bytes().split(b"\n", 1)
    header = json.loads(line)
    body = zlib.decompress(body) if header.pop("packed", False) else body
    records, at = [], 0
    while at < len(body):
        name, at = BY_NUMBER[body[at]], at + 1
        arrays = []
        for _ in range(ARRAYS.get(name, 1)):
            width, count, at = 1 << (body[at] & 3), body[at] >> 2, at + 1
            if count == 63:
                count, at = int.from_bytes(body[at : at + 8], "little"), at + 8
            arrays.append(np.frombuffer(body, f"<i{width}", count, at).tolist())
            at += count * width
        records.append((name, arrays))
    return header, records


def packed(records: list[Record]) -> bytes:
    """Records as bytes, every number with eight of them."""
    out = bytearray()
    for name, arrays in records:
        out.append(NUMBERS[name])
        for array in arrays:
            out.append(min(len(array), 63) << 2 | 3)
            if len(array) >= 63:
                out += len(array).to_bytes(8, "little")
            out += np.array([number & (1 << 64) - 1 for number in array], "<u8").tobytes()
    return bytes(out)


@dataclass
class Table:
    """Costs by the labels of a scope, which is in increasing order; forbidden ones are +inf."""

    scope: tuple[int, ...]
    costs: dict[tuple[int, ...], float]


class SlowChecker:
    """The records of one search over a small model, believed only where enumeration agrees."""

    def __init__(self, model: Model, exponent: int) -> None:
        self.model, self.exponent = model, exponent
        self.labels: dict[int, int] = {}  # how many each variable has
        self.tables: dict[int, Table] = {}
        self.count, self.base, self.part, self.common = 0, 0, None, 0

    # --- the problem left -------------------------------------------------------------------------

    def add(self, scope, costs) -> None:
        """A factor, or one more cost of a scope that has one."""
        order = sorted(range(len(scope)), key=lambda k: scope[k])
        table = Table(
            tuple(scope[k] for k in order),
            {tuple(x[k] for k in order): c for x, c in costs.items()},
        )
        if not table.scope:
            self.base += table.costs[()]
            return
        same = [k for k, other in self.tables.items() if other.scope == table.scope]
        if same:
            old = self.tables[same[0]].costs
            self.tables[same[0]] = Table(
                table.scope, {x: old[x] + c for x, c in table.costs.items()}
            )
            return
        number = -1 - table.scope[0] if len(table.scope) == 1 else self.count
        self.count += len(table.scope) > 1
        self.tables[number] = table

    def own(self, v: int) -> dict:
        return self.tables[-1 - v].costs

    def labellings(self, variables, fixed=None):
        """All labellings of variables, as dictionaries; `fixed` are allowed labels of some."""
        choices = [(fixed or {}).get(v, range(self.labels[v])) for v in variables]
        for x in itertools.product(*choices):
            yield dict(zip(variables, x, strict=True))

    def cost(self, x: dict) -> float:
        """What the tables cost whose variables all have a label."""
        return sum(
            table.costs[tuple(x[v] for v in table.scope)]
            for table in self.tables.values()
            if all(v in x for v in table.scope)
        )

    def least(self, fixed=None) -> float:
        found = [self.cost(x) for x in self.labellings(sorted(self.labels), fixed)]
        return self.base + min(found, default=math.inf)

    def keep(self, v: int, kept: list[int]) -> None:
        """Only these labels, numbered anew."""
        for table in self.tables.values():
            if v in table.scope:
                k = table.scope.index(v)
                table.costs = {
                    (*x[:k], kept.index(x[k]), *x[k + 1 :]): c
                    for x, c in table.costs.items()
                    if x[k] in kept
                }
        self.labels[v] = len(kept)

    def forget(self, v: int) -> None:
        del self.labels[v]
        self.tables = {k: table for k, table in self.tables.items() if v not in table.scope}

    # --- records ----------------------------------------------------------------------------------

    def bound(self, records: list[Record]) -> Fraction:
        """What they prove."""
        for name, arrays in records:
            if name not in ("LABELS", "CONCLUDE"):  # compared with the optimum by the campaign
                getattr(self, "do_" + name.lower())(*arrays)
        self.normalise()
        rest = self.base + (self.open_bound() if self.part else 0)
        if self.common > 1 and rest < math.inf:
            rest = -(-rest // self.common) * self.common
        units = min(self.cut, rest)
        return self.unit * units + Fraction(self.model.constant)

    def do_load(self, numbers) -> None:
        granule, exponent, most = numbers
        self.unit = Fraction(granule) * Fraction(2) ** (exponent - self.exponent)
        model, n = self.model, checked_network(self.model).num_variables
        for v in range(n):
            self.labels[v] = int(checked_network(model).num_labels[v])
            own = checked_network(model).unary[checked_network(model).node_slice(v)].tolist()
            self.add((v,), self.rounded({(a,): c for a, c in enumerate(own)}, most))
        scopes = [
            (checked_network(model).edges[e].tolist(), checked_network(model).table(e))
            for e in range(checked_network(model).m)
        ]
        scopes = [(scope, table) for scope, table in scopes if max(scope) < n]
        for a in range(len(checked_network(model).auxiliaries)):
            start = checked_network(model).auxiliaries.start[a : a + 2].tolist()
            scope = checked_network(model).auxiliaries.member[slice(*start)].tolist()
            joint = checked_network(model).unary[checked_network(model).node_slice(n + a)]
            scopes.append((scope, joint.reshape([self.labels[v] for v in scope])))
        for scope, table in scopes:
            every = itertools.product(*(range(size) for size in table.shape))
            self.add(tuple(scope), self.rounded({x: float(table[x]) for x in every}, most))
        self.cut = self.base + most + 1
        self.normalise()

    def rounded(self, costs: dict, most: int) -> dict:
        finite = {x: math.floor(Fraction(c) / self.unit) for x, c in costs.items() if c < math.inf}
        low = min(finite.values(), default=0)
        exact = all(finite[x] * self.unit == Fraction(costs[x]) for x in finite)
        near = [units for units in finite.values() if units - low <= most]
        self.common = math.gcd(self.common, *near) if exact else 1
        self.base += low
        inf = math.inf
        return {
            x: finite[x] - low if x in finite and finite[x] - low <= most else inf for x in costs
        }

    def normalise(self) -> None:
        for table in self.tables.values():
            low = min(table.costs.values())
            if low < math.inf:
                self.base += low
                table.costs = {x: c - low for x, c in table.costs.items()}

    def do_remove(self, which, labels) -> None:
        (v,) = which
        before = self.least()
        for a, reason in zip(labels[::2], labels[1::2], strict=True):
            assert reason >= 0 or self.least({v: [a]}) >= self.cut
        self.keep(v, [a for a in range(self.labels[v]) if a not in labels[::2]])
        assert min(self.least(), self.cut) == min(before, self.cut)

    def do_persistent(self, labels, amounts) -> None:
        before = self.least()
        for v, a in zip(labels[::2], labels[1::2], strict=True):
            self.keep(v, [a])
        assert min(self.least(), self.cut) == min(before, self.cut)

    def do_split(self, which) -> None:
        table = self.tables.pop(which[0])
        self.add_pairs(table.scope, table.costs)

    def add_pairs(self, scope, costs: dict) -> None:
        """A factor as a sum over pairs, which must not be more than it."""
        rest, whole = dict(costs), dict.fromkeys(costs, 0)
        for j, i in itertools.product(range(len(scope)), repeat=2):
            if i >= j:
                continue
            pair: dict = {}
            for x, c in rest.items():
                pair[x[i], x[j]] = min(pair.get((x[i], x[j]), math.inf), c)
            rest = {
                x: c if pair[x[i], x[j]] == math.inf else c - pair[x[i], x[j]]
                for x, c in rest.items()
            }
            whole = {x: c + pair[x[i], x[j]] for x, c in whole.items()}
            if any(pair.values()):
                self.add((scope[i], scope[j]), pair)
        assert all(whole[x] <= c for x, c in costs.items())

    def do_substitute(self, which, image) -> None:
        tie, x, y = which
        before = self.least()
        table = self.tables.pop(tie)
        k = table.scope.index(x)
        assert all(c == math.inf or image[p[k]] == p[1 - k] for p, c in table.costs.items())
        own = {(p[k],): c for p, c in table.costs.items() if image[p[k]] == p[1 - k]}
        self.add((x,), {(a,): own[a,] + self.own(y)[image[a],] for a in range(self.labels[x])})
        for f in sorted(k for k, t in self.tables.items() if y in t.scope and k >= 0):
            old = self.tables.pop(f)
            scope = (*(v for v in old.scope if v not in (x, y)), x)
            fresh = {}
            for z in self.labellings(scope):
                z[y] = image[z[x]]
                fresh[tuple(z[v] for v in scope)] = old.costs[tuple(z[v] for v in old.scope)]
            self.add(scope, fresh)
        self.forget(y)
        assert self.least() == before

    def do_eliminate(self, which) -> None:
        (v,) = which
        before = self.least()
        parts = [table for _, table in sorted(self.tables.items()) if v in table.scope]
        labels = self.labels[v]
        groups = [parts] if labels > 1 else [[table] for table in parts]
        self.forget(v)
        for group in groups:
            scope = tuple(sorted({u for table in group for u in table.scope} - {v}))
            fresh = {}
            for x in self.labellings(scope):
                fresh[tuple(x.values())] = min(
                    sum(t.costs[tuple((x | {v: a})[u] for u in t.scope)] for t in group)
                    for a in range(labels)
                )
            low = min(fresh.values())
            self.base += low
            if low < math.inf:
                self.add(scope, {x: c - low for x, c in fresh.items()})
        assert self.least() == before

    def do_shift(self, places, amounts) -> None:
        before, moves = self.least(), iter(amounts)
        for f, k in zip(places[::2], places[1::2], strict=True):
            table = self.tables[f]
            v = table.scope[k]
            amount = [next(moves) for _ in range(self.labels[v])]
            table.costs = {x: c - amount[x[k]] for x, c in table.costs.items()}
            self.add((v,), {(a,): amount[a] for a in range(self.labels[v])})
        self.normalise()
        assert self.least() == before

    # --- the tree: decisions and enumeration ------------------------------------------------------

    def do_component(self, variables, factors) -> None:
        self.normalise()
        self.part, self.part_cut = variables, math.inf
        self.inside = [self.tables[f] for f in (*factors, *(-1 - v for v in variables))]
        self.open, self.opened, self.path, self.levels = {0: []}, 0, None, []

    def node_least(self, path) -> float:
        """The least cost of a node's labellings, which its decisions allow."""
        allowed = {v: list(range(self.labels[v])) for v in self.part}
        for k, kind, a in path:
            v = self.part[k]
            allowed[v] = [b for b in allowed[v] if (b == a, b != a, b <= a, b > a)[kind]]
        costs = [
            sum(table.costs[tuple(x[v] for v in table.scope)] for table in self.inside)
            for x in self.labellings(self.part, allowed)
        ]
        return min(costs, default=math.inf)

    def open_bound(self) -> float:
        least = min([self.part_cut, *(self.node_least(path) for path in self.open.values())])
        return max(0, least)  # no table has an entry below 0

    def do_cut(self, which) -> None:
        self.part_cut = min(self.part_cut, which[0])

    def do_dive(self, which) -> None:
        self.path, self.levels = self.open.pop(which[0]), []

    def do_branch(self, decision) -> None:
        self.levels.append((self.path, decision))
        self.path = [*self.path, decision]

    def do_close(self) -> None:
        assert self.node_least(self.path) >= self.part_cut
        if self.levels:
            before, (x, kind, a) = self.levels.pop()
            self.path = [*before, (x, kind ^ 1, a)]

    def do_leave(self) -> None:
        sides = [[*before, (x, kind ^ 1, a)] for before, (x, kind, a) in self.levels]
        for path in [*sides, self.path]:
            self.opened += 1
            self.open[self.opened] = path

    def do_step(self, *_) -> None:
        """A reason: forgotten here."""

    do_combine = do_step

    def do_end(self) -> None:
        bound = self.open_bound()
        gone = set(self.part)
        self.base += bound
        self.labels = {v: d for v, d in self.labels.items() if v not in gone}
        self.tables = {k: t for k, t in self.tables.items() if not gone & set(t.scope)}
        self.part = None
