"""Logs of random and public models, and altered ones: the proved checker beside the other two.

python tests/adversary/theorems.py --models 5000 --weighted 10000 --public 50 [--data FOLDER]

The weighted models have weights from 1e-300 to 1e300, and forged proofs. The checker of
softmap.verification, the slow one of tests/support and theorems/check have to give the same verdict
on every log: accepted with the same bound, or rejected. Rules that the proved checker does not
cover are counted apart. A bound is compared in units of the integer model, to which the proved
checker rounds it up. That one adds up factors over the same variables, which may prove more; such
models are left out here.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import softmap
from adversary.product_kinds import forged, least_costs, weighted
from adversary.proofs import Proved, changed, optimum, proved, random_model
from softmap.errors import FormatError, SoftmapError
from softmap.model.model import raised
from softmap.relaxation.consistency import tighten
from softmap.verification import check_proof, export_model
from softmap.verification.conclusion import What
from softmap.verification.limit import Refused
from softmap.verification.proof import Checked
from softmap.verification.regions import tightened
from support.proof_files import SlowChecker, packed, put_together, taken_apart, write_proof

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "theorems" / "check"
DATA = ROOT.parent / "shared" / "data"
LARGEST_FILE = 1 << 18  # bytes of a public model, after compression
LIMIT = 1 << 21  # bytes of a log that the proved checker reads
PATIENCE = 60  # seconds of processor time for one log
EFFORT = 64  # times the sizes of tables that the checker of softmap.verification computes


def by_theorem(model: Path, log: Path) -> dict:
    """The verdict of theorems/check."""
    limits = f'ulimit -s unlimited; ulimit -t {PATIENCE}; exec "$0" "$@"'
    command = ["sh", "-c", limits, CHECK, model, log]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode in {-signal.SIGXCPU, -signal.SIGKILL}:
        raise subprocess.TimeoutExpired(command, PATIENCE)
    if not done.stdout:
        raise RuntimeError(f"theorems/check failed: {done.stderr}")
    return json.loads(done.stdout)


def by_python(model: softmap.Model, log: Path) -> Checked | None:
    """What the checker of softmap.verification accepts; None if it rejects the log."""
    try:
        return check_proof(log, model.network, EFFORT)
    except (FormatError, Refused):
        return None


def verdict(found: Checked | None, units: Fraction) -> tuple[str, int | None]:
    """The verdict of softmap.verification as that of theorems/check, with its bound in units."""
    if found is None:
        return "rejected", None
    least, last = math.ceil(found.bound / units), found.conclusion
    if last is None or last.what in (What.BOUND, What.NONE_BELOW):
        return "bound", least
    if last.what is What.INFEASIBLE or last.energy is None:
        return "infeasible", None
    return ("optimal" if last.energy == least * units else "between"), least


def slowly(model: softmap.Model, header: dict, records: list) -> Fraction | float | None:
    """The bound that the slow checker finds; None if it rejects the records."""
    try:
        return SlowChecker(model, header["exponent"]).bound(records)
    except (ArithmeticError, AssertionError, LookupError, StopIteration, TypeError, ValueError):
        return None
    except AttributeError:  # a record out of its place
        return None


def clusters_of(records: list) -> list[int]:
    """The sizes of the clusters of λ."""
    return records[0][1][0] if records and records[0][0] == "DUAL" else []


def clustered(seed: int, folder: Path) -> Proved | None:
    """A random λ for random clusters of a random model; None where it has no labelling."""
    rng = np.random.default_rng((11, seed))
    try:
        model = raised(tighten(random_model(rng)))
    except softmap.InfeasibleModel:
        return None
    best, n = optimum(model), model.network.num_variables
    if best is None or n < 3:
        return None
    sizes = rng.integers(3, min(n, 4) + 1, int(rng.integers(1, 5)))
    clusters = [tuple(rng.permutation(n)[:size].tolist()) for size in sizes]
    count = tightened(model.network, clusters, 1 << 20).half_size
    lam = rng.normal(size=count) if rng.random() < 0.5 else rng.integers(-3, 4, count) / 4
    members = [i for cluster in clusters for i in cluster]
    bits = np.asarray(lam, dtype=np.float64).view(np.int64).tolist()
    path = folder / "clusters"
    write_proof(path, model, packed([("DUAL", [sizes.tolist(), members, bits])]))
    return Proved(model, best, path, -math.inf)


class Campaign:
    """Counts of verdicts, and the disagreements."""

    def __init__(self, folder: Path) -> None:
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.seconds = np.zeros(2)  # of the checkers of softmap.verification and of theorems/
        self._model = folder / "model.json"

    def compare(self, name: str, kind: str, one: Proved, log: Path, *, enumerated: bool) -> None:
        """Check one log by all checkers, and compare their verdicts."""
        header, records = taken_apart(log)
        began = time.perf_counter()
        ours = by_python(one.model, log)
        between = time.perf_counter()
        try:
            theirs = by_theorem(self._model, log)
        except subprocess.TimeoutExpired:
            self.counts[f"{kind}, too slow for the theorem"] += 1
            return
        self.seconds += np.array([between - began, time.perf_counter() - between])
        self.counts[f"{kind} logs"] += 1
        if "not covered" in theirs.get("reason", ""):
            rule = theirs["reason"].split(",")[1].split(":")[0].strip()
            self.counts[f"{kind}, {rule} refused"] += 1
            return
        self.counts[f"{kind}, {theirs['verdict']}"] += 1
        units = Fraction(2) ** json.loads(self._model.read_text())["exponent"]
        mine = verdict(ours, units)
        if clusters_of(records) and "bound" == mine[0] == theirs["verdict"]:
            # sums of factors over the same variables may prove more
            agree = mine[1] is not None and theirs["bound"] >= mine[1]
        else:
            agree = mine == (theirs["verdict"], theirs.get("bound"))
        if not agree:
            self.problems.append(f"{name}: Python {mine}, theorem {theirs}")
            return
        if ours is None or mine[1] is None:
            return
        if enumerated and mine[1] * units > one.optimum:
            self.problems.append(f"{name}: {mine}, the optimum is {float(one.optimum)}")
        if enumerated and records and records[0][0] == "LOAD":
            slow = slowly(one.model, header, records)
            self.counts[f"{kind}, checked slowly"] += 1
            if slow is None or (slow < ours.bound and slow < one.optimum):
                self.problems.append(f"{name}: Python {ours.bound}, slow {slow}")

    def both(self, name: str, seed: int, one: Proved, *, enumerated: bool) -> None:
        """Compare an honest log, and an altered one."""
        export_model(self._model, one.model.network)
        self.compare(name, "honest", one, one.path, enumerated=enumerated)
        rng = np.random.default_rng((7, seed))
        header, records = taken_apart(one.path)
        if rng.random() < 0.05:
            header["exponent"] += int(rng.choice([-1, 1]))
        altered = one.path.with_name("altered")
        put_together(altered, header, packed(changed(records, rng)))
        self.compare(f"{name}, altered", "altered", one, altered, enumerated=enumerated)

    def weighted(self, seed: int, folder: Path) -> None:
        """Compare forged proofs of a model with weights of any size, by λ and by a search."""
        rng = np.random.default_rng((13, seed))
        spec = weighted(rng)
        best, model, path = least_costs(spec), spec.model(), folder / "forged"
        if best is None or len({edge.ends for edge in spec.edges}) < len(spec.edges):
            return
        self.counts["weighted models"] += 1
        export_model(self._model, model.network)
        write_proof(path, model, packed(forged(rng, spec, model)))
        one = Proved(model, best, path, -math.inf)
        self.compare(f"weighted {seed}", "weighted", one, path, enumerated=True)


def public_models(data: Path) -> list[Path]:
    """The smallest public models, at most ten of each folder first."""
    files = sorted(p for p in data.rglob("*") if p.is_file() and p.stat().st_size < LARGEST_FILE)
    names = [p for p in files if p.suffix.lower() not in {".md", ".txt", ".evid", ".csv", ".json"}]
    names.sort(key=lambda p: p.stat().st_size)
    groups: Counter[str] = Counter()
    first, later = [], []
    for path in names:
        groups[str(path.parent)] += 1
        (first if groups[str(path.parent)] <= 10 else later).append(path)
    return [*first, *later]


def run_public(campaign: Campaign, data: Path, wanted: int, folder: Path) -> None:
    """Solve public models with a proof until enough logs were compared."""
    done = 0
    for path in public_models(data):
        if done >= wanted:
            break
        log = folder / "public.proof"
        try:
            model = softmap.read(path)
            result = softmap.solve(model, proof=log, seed=0, time_limit=5)
        except (SoftmapError, OSError, ValueError, NotImplementedError):
            continue
        if log.stat().st_size > LIMIT or not math.isfinite(result.energy):
            campaign.counts["public, log too large or no labelling"] += 1
            continue
        one = Proved(model, Fraction(result.energy), log, result.bound)
        began = time.perf_counter()
        before = campaign.counts["honest logs"]
        campaign.both(str(path.name), done, one, enumerated=False)
        done += campaign.counts["honest logs"] - before
        kinds = sorted({name for name, _ in taken_apart(log)[1]})
        print(f"{path.name}: {time.perf_counter() - began:.1f} s, {' '.join(kinds)}", flush=True)
    campaign.counts["public models"] = done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=5000, help="random logs to compare")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--weighted", type=int, default=1000, help="models with any weights")
    parser.add_argument("--public", type=int, default=50)
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        campaign = Campaign(folder)
        seed = given.first
        while campaign.counts["random models"] < given.models:
            if seed % 1000 == 999:
                print(dict(campaign.counts), *campaign.problems, flush=True)
            one = (clustered if seed % 10 == 9 else proved)(seed, folder)
            if one is not None:
                campaign.counts["random models"] += 1
                campaign.both(f"seed {seed}", seed, one, enumerated=True)
            seed += 1
        seed = given.first
        while campaign.counts["weighted models"] < given.weighted:
            campaign.weighted(seed, folder)
            seed += 1
        if given.data.exists():
            run_public(campaign, given.data, given.public, folder)
        else:
            print("no folder of public models: only random ones were checked")
    for key, count in sorted(campaign.counts.items()):
        print(f"{key}: {count}")
    print("seconds of softmap.verification and of theorems/check:", campaign.seconds.round(1))
    print(*campaign.problems, sep="\n")
    print(f"{len(campaign.problems)} disagreements")
    sys.exit(1 if campaign.problems else 0)


if __name__ == "__main__":
    main()
