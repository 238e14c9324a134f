"""Labellings, bounds and proofs beside toulbar2 and α-expansion, over the models of a data folder.

`python -m benchmarks.map_race [--seconds S] [--only TEXT] [--out FILE] [--peers FILE]
[--workers W]` (ten seconds each by default, one thread, W models at a time). toulbar2 runs by its
command and by the package `pytoulbar2`, and the better of the two counts; energies of all
labellings are computed from the model by us. One JSON object goes to FILE, the table to the screen;
with `--peers` the peers' entries are taken from the FILE of an earlier race.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import softmap
from benchmarks.facts import facts
from benchmarks.peers import expansion, toulbar2
from benchmarks.summary import markdown

# the table of what is known is shared with the tests
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.data import shared_data
from support.known import Known, known

OPENERS = {".xz": lzma.open, ".gz": gzip.open}
SAME = 1e-6  # relative difference under which two energies count as equal
UNREAD = ("wcsp_13", "wcsp_18")  # several tables for one pair: toulbar2 adds them up wrongly
IMAGES = 5000  # variables from which a model that α-expansion can take is given to it


@dataclass(frozen=True)
class Entry:
    """What one solver says of one model.

    `energy` is computed from the model; `stated` is the cost that the solver itself states, if it
    is another one. The bound of toulbar2 is `energy` minus the gap that it states.
    """

    energy: float
    proved: bool
    seconds: float
    bound: float = -math.inf
    stated: float | None = None

    def better_than(self, other: Entry) -> bool:
        """Whether it proves more, sooner, or has the better labels or bound."""
        mine = (not self.proved, self.seconds if self.proved else 0.0, self.energy, -self.bound)
        its = (not other.proved, other.seconds if other.proved else 0.0, other.energy, -other.bound)
        return mine < its


@dataclass(frozen=True)
class Race:
    """All entries of one model."""

    name: str
    variables: int
    ours: Entry
    toulbar2: Entry | None
    expansion: Entry | None = None

    @property
    def folder(self) -> str:
        """The family of the model."""
        return self.name.split("/")[0]

    def better(self) -> int:
        """1 if our labelling is better than toulbar2's, -1 if worse, 0 if equal."""
        return 0 if self.toulbar2 is None else _sign(self.ours.energy, self.toulbar2.energy)


def _sign(ours: float, theirs: float) -> int:
    if ours == theirs:
        return 0
    if not math.isfinite(ours) or not math.isfinite(theirs):
        return 1 if ours < theirs else -1
    apart = abs(ours - theirs) > SAME * max(abs(ours), abs(theirs))
    return 0 if not apart else 1 if ours < theirs else -1


def solve_ours(model: softmap.Model, seconds: float) -> Entry:
    """Our run, reading not counted."""
    began = time.perf_counter()
    result = softmap.solve(model, time_limit=seconds, threads=1)
    taken = time.perf_counter() - began
    proved = result.status in (softmap.Status.OPTIMAL, softmap.Status.GAP)
    return Entry(result.energy, proved, taken, result.bound)


def solve_theirs(case: Known, model: softmap.Model, seconds: float) -> Entry | None:
    """toulbar2's better run; None where neither of its forms reads the model."""
    with tempfile.TemporaryDirectory() as name:
        files, plain = _files(case, model, Path(name)), Path(name) / "plain.uai"
        found = [toulbar2.by_command(files, seconds)]
        if len(files) > 1:
            softmap.write(model, plain)
        found.append(toulbar2.by_package(plain if len(files) > 1 else files[0], seconds))
    entries = [_entry(model, one) for one in found if one is not None]
    best = entries[0] if entries else None
    for other in entries[1:]:
        best = other if best is None or other.better_than(best) else best
    return best


def _entry(model: softmap.Model, found: toulbar2.Found) -> Entry:
    energy = _energy(model, found.labels)
    bound = energy - found.short if math.isfinite(energy) else -math.inf
    other = math.isfinite(found.stated) and _sign(energy, found.stated) != 0
    return Entry(energy, found.proved, found.seconds, bound, found.stated if other else None)


def _files(case: Known, model: softmap.Model, folder: Path) -> list[Path]:
    """The model in files that toulbar2 reads: the original ones where it can."""
    name = case.path.name.removesuffix(".xz").removesuffix(".gz")
    target = folder / name
    rewrite = case.path.suffix in (".h5", ".dd") or case.name.startswith("uai-cost")
    if rewrite or any(word in name for word in UNREAD):
        target = target.with_suffix(".uai")
        softmap.write(model, target)
        return [target]
    opener = OPENERS.get(case.path.suffix, open)
    with opener(case.path, "rb") as file:
        target.write_bytes(file.read())
    evidence = case.companion(".evid")
    return [target, evidence] if evidence else [target]


def _energy(model: softmap.Model, labels: list[int]) -> float:
    if len(labels) != model.network.num_variables:
        return math.inf
    try:
        return float(model.energy(np.array(labels)))
    except (ValueError, softmap.ModelError):
        return math.inf


def expand(model: softmap.Model) -> Entry | None:
    """α-expansion on models of pictures."""
    found = expansion.expansion(model) if model.n >= IMAGES else None
    return None if found is None else Entry(float(model.energy(found[0])), False, found[1])


def race_of(case: Known, seconds: float, earlier: Race | None) -> Race:
    """The entries of one model, each solver after the other; the peers' of an earlier race."""
    softmap.solve(softmap.generators.random_grid(6, 6, 3), time_limit=1.0)  # loads what is lazy
    model = case.read()
    ours = solve_ours(model, seconds)
    if earlier is not None:
        theirs, cut = earlier.toulbar2, earlier.expansion
    else:
        theirs, cut = solve_theirs(case, model, seconds), expand(model)
    return Race(case.name, model.network.num_variables, ours, theirs, cut)


def race(only: str, seconds: float, peers: dict[str, Race], workers: int = 1) -> Iterator[Race]:
    """All models whose name contains the text, several at a time."""
    root = shared_data()
    if root is None:
        sys.exit("no folder of instances beside the project")
    cases = [case for case in known(root) if only in case.name]
    with ProcessPoolExecutor(workers, get_context("spawn"), max_tasks_per_child=1) as pool:
        earlier = [peers.get(case.name) for case in cases]
        yield from pool.map(race_of, cases, [seconds] * len(cases), earlier)


def table(races: list[Race]) -> str:
    """The races as Markdown; α-expansion has a column if it ran."""

    def cells(entry: Entry | None) -> list[str]:
        if entry is None:
            return ["–", "–", "–"]
        proof = f"{entry.seconds:.2f}\u00a0s" if entry.proved else "open"
        return [f"{entry.energy:.8g}", f"{entry.bound:.8g}", proof]

    def cut(entry: Entry | None) -> str:
        return "" if entry is None else f"{entry.energy:.8g} ({entry.seconds:.1f}\u00a0s)"

    ran = any(r.expansion for r in races)
    head = ["model", "variables", "energy", "bound", "proof"]
    head += ["toulbar2: energy", "bound", "proof", *["α-expansion"] * ran]
    names = [r.name.replace("/", "/\u200b") for r in races]
    rows = [
        [name, str(r.variables), *cells(r.ours), *cells(r.toulbar2), *[cut(r.expansion)] * ran]
        for name, r in zip(names, races, strict=True)
    ]
    return markdown(head, rows)


def summary(races: list[Race]) -> str:
    """Proofs, labellings, bounds and times counted."""
    both = [(r, r.toulbar2) for r in races if r.toulbar2 is not None]
    signs = [r.better() for r, _ in both]
    ours = Counter(r.folder for r in races if r.ours.proved)
    theirs = Counter(r.folder for r, t in both if t.proved)
    fewer = {f: (ours[f], n) for f, n in theirs.items() if ours[f] < n}
    neither = [(r.ours.bound, t.bound) for r, t in both if not r.ours.proved and not t.proved]
    ahead = sum(_sign(-a, -b) >= 0 for a, b in neither)
    times = [(r.ours.seconds, t.seconds) for r, t in both if r.ours.proved and t.proved]
    ratios = [math.log(max(a, 0.01) / max(b, 0.01)) for a, b in times]
    mean = math.exp(sum(ratios) / max(1, len(ratios)))
    slow = [
        r.name
        for r, t in both
        if r.ours.proved and t.proved and r.ours.seconds > 1 + 10 * t.seconds
    ]
    cuts = [_sign(r.ours.energy, r.expansion.energy) for r in races if r.expansion is not None]
    return "\n".join(
        [
            f"{len(races)} models; proved: ours {ours.total()}, toulbar2 {theirs.total()}; "
            f"folders with fewer: {fewer or 'none'}",
            f"labelling better on {signs.count(1)}, equal on {signs.count(0)}, "
            f"worse on {signs.count(-1)} of {len(both)}; infinite: "
            f"{[r.name for r in races if not math.isfinite(r.ours.energy)]}",
            f"bound at least as good on {ahead} of {len(neither)} that neither proves",
            f"time to proof, geometric mean of ratios over {len(times)}: {mean:.2f}; slower than "
            f"1 s + 10 x: {slow}",
            f"α-expansion: better on {cuts.count(1)}, equal on {cuts.count(0)}, "
            f"worse on {cuts.count(-1)}",
        ]
    )


def races_of(rows: list[dict[str, Any]]) -> list[Race]:
    """The races of a file's rows."""
    races = []
    for row in rows:
        entries = {
            peer: Entry(**_numbers(row[peer])) if row.get(peer) else None
            for peer in ("ours", "toulbar2", "expansion")
        }
        races.append(Race(**row | entries))
    return races


def _numbers(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry as JSON stores it: null is an energy that is not known, +inf, or a bound, -inf."""
    missing = {"energy": math.inf, "bound": -math.inf}
    return {name: missing.get(name) if value is None else value for name, value in entry.items()}


def as_json(races: list[Race], seconds: float) -> str:
    """The facts of the run and its races; what is not finite is null."""
    rows = [asdict(r) for r in races]
    for row in rows:
        for peer in ("ours", "toulbar2", "expansion"):
            for name, value in (row[peer] or {}).items():
                finite = value is not None and math.isfinite(value)
                row[peer][name] = value if finite else None
    return json.dumps({"facts": facts() | {"seconds": seconds}, "races": rows}, indent=1) + "\n"


def earlier_races(path: Path | None) -> dict[str, Race]:
    """The races of a file, by model."""
    if path is None:
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))["races"]
    return {one.name: one for one in races_of(rows)}


def main() -> None:
    """Race and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    races = []
    known_peers = earlier_races(options.peers)
    for one in race(options.only, options.seconds, known_peers, options.workers):
        races.append(one)
        print(one, flush=True)
        if options.out:
            options.out.write_text(as_json(races, options.seconds), encoding="utf-8")
    print(table(races))
    print(summary(races))


if __name__ == "__main__":
    main()
