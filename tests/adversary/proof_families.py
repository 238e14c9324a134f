"""The campaign of proof files: every family of proofs, honest and altered, against enumeration.

python tests/adversary/proof_families.py --seconds 600 [--workers N] [--honest N] [--first SEED]
    [--family NAME]

Every honest proof has to be accepted. Of each, some altered ones are made: one number or record is
changed, or the records are given to a model with one lower cost. One that is accepted must not
prove anything false; all labellings are enumerated in exact arithmetic.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import softmap
from adversary.proofs import changed, energies, false_rank, proved, random_model, untrue
from softmap import core
from softmap.errors import FormatError
from softmap.relaxation.consistency import tighten
from softmap.run.problem import Problem
from softmap.subsolvers.cores.core_guided import CoreGuided
from softmap.subsolvers.cores.cores import CoreRecords
from softmap.subsolvers.spins.form import SpinForm
from softmap.subsolvers.spins.indicators import IndicatorForm
from softmap.subsolvers.spins.spin_numbers import SpinSteps, SquareSteps
from softmap.subsolvers.spins.squares import SquareBound
from softmap.subsolvers.spins.tree import SpinTree
from softmap.verification.conclusion import What
from softmap.verification.limit import Refused
from softmap.verification.proof import Checked, check_proof
from support.logical import logical_model
from support.permutations import permutation_model, random_factors
from support.proof_files import Record, packed, put_together, taken_apart, write_proof
from support.spreading import Lost, interruptible, spread
from support.squares import random_squares_model, squares_record

Costs = dict[tuple[int, ...], Fraction]
Made = tuple[softmap.Model, Path] | None
ALTERED = 3  # altered proofs of each honest one
SHARE = 20  # seeds handed to a worker at a time
PATIENCE = 600.0  # seconds after which a share is ended
ENUMERATED = 1 << 20  # most labellings of a model, with those of the variables of its chains


# --- families: a model and the file of its proof, or None if there is none ------------------------


def searches(rng: np.random.Generator, folder: Path) -> Made:
    """Searches with options of any kind, and some whole runs."""
    one = proved(int(rng.integers(1 << 40)), folder)
    return None if one is None else (one.model, one.path)


def runs(rng: np.random.Generator, folder: Path) -> Made:
    """Runs to any end: λ, clusters, pieces, searches, or no labelling."""
    model, path = random_model(rng), folder / "proof"
    options: dict[str, Any] = {"goal": str(rng.choice(["map", "optimal", "lp"]))}
    if rng.random() < 0.3:
        options["max_work"] = int(rng.integers(1, 400))
    with contextlib.suppress(softmap.InfeasibleModel):
        softmap.solve(model, proof=path, threads=1, seed=int(rng.integers(99)), **options)
    return model, path


def ranks(rng: np.random.Generator, folder: Path) -> Made:
    """The best labellings."""
    model, path = random_model(rng), folder / "proof"
    with contextlib.suppress(softmap.InfeasibleModel):
        softmap.solve_mbest(model, int(rng.integers(1, 7)), proof=path, threads=1)
    return model, path


def resumed(rng: np.random.Generator, folder: Path) -> Made:
    """Runs that were stored, with or without a proof, and resumed."""
    model, path, stored = random_model(rng), folder / "proof", folder / "stored.npz"
    options = {"proof": folder / "first"} if rng.random() < 0.5 else {}
    most = int(rng.choice([0, 50, 500, 1 << 40]))
    try:
        softmap.solve(model, checkpoint=stored, threads=1, max_work=most, **options)
        if not stored.exists():
            return None
        softmap.resume(stored, model, threads=1, proof=path)
    except softmap.InfeasibleModel:
        return None
    return model, path


def infeasible(rng: np.random.Generator, folder: Path) -> Made:
    """Hard constraints that often contradict each other."""
    n, d, path = 5, 3, folder / "proof"
    tables = [np.where(rng.random((d, d)) < 0.55, np.inf, 1.0) for _ in range(n * (n - 1) // 2)]
    pairs = itertools.combinations(range(n), 2)
    model = softmap.Model.from_factors([d] * n, list(zip(pairs, tables, strict=True)))
    with contextlib.suppress(softmap.InfeasibleModel):
        softmap.solve(model, proof=path, threads=1)
    return model, path


def spins(rng: np.random.Generator, folder: Path) -> Made:
    """Leaves of semidefinite bounds."""
    n, path = int(rng.integers(2, 8)), folder / "proof"
    pairs = list(itertools.combinations(range(n), 2))
    whole = rng.random() < 0.5

    def costs(*shape: int) -> Any:
        return rng.integers(-9, 10, shape) / 2 if whole else rng.normal(size=shape)

    unary = np.zeros((n, 2)) if rng.random() < 0.3 else costs(n, 2)
    model = softmap.Model(unary, pairs, softmap.Tables(costs(len(pairs), 2, 2)))
    form = SpinForm.of(model.network)
    if form is None:
        return None
    small = SpinSteps(first_rounds=4, rounds=1, steps=5, halved=50, average=25, sweeps=5)
    forever = core.Deadline()
    tree = SpinTree(form, int(rng.integers(99)), small, logged=True)
    tree.relax(3, forever, forever)
    rest = int(rng.integers(0, 20))
    while rest and not tree.done:
        rest -= 1
        tree.run(float(model.energy(tree.labels(n))) - 1e-9, forever, forever)
    records: list[Record] = []
    for leaf in tree.leaves:
        path_to = [x for i, s in zip(leaf.spins, leaf.signs, strict=True) for x in (i, int(s < 0))]
        found = leaf.multipliers
        triangles = found.triangles.ravel().tolist()
        records.append(("SPINS", [path_to, bits(found.diagonal), triangles, bits(found.weights)]))
    write_proof(path, model, packed([*records, concluded(tree.bound)]))
    return model, path


def squares(rng: np.random.Generator, folder: Path) -> Made:
    """Squares of models of many labels."""
    model, path = random_squares_model(rng), folder / "proof"
    with contextlib.suppress(softmap.InfeasibleModel):
        bound = SquareBound(IndicatorForm.of(tighten(model)), logged=True, steps=SquareSteps())
        for _ in range(int(rng.integers(1, 4))):
            bound.relax(int(rng.integers(1, 20)), core.Deadline(), core.Deadline())
        if bound.leaves is not None:
            last = concluded(bound.bound)
            write_proof(path, model, packed([("SQUARES", squares_record(bound.leaves)), last]))
            return model, path
    return None


def assignments(rng: np.random.Generator, folder: Path) -> Made:
    """Multipliers of assignment problems."""
    n, d, factors = random_factors(rng, 4)
    path = folder / "proof"
    try:
        model = permutation_model(n, d, factors, many=bool(rng.random() < 0.3))
        result = softmap.solve(model, threads=1, proof=path)
    except softmap.InfeasibleModel:
        return None
    start = result.proof.start if result.proof.stated else result.proof
    given = getattr(start, "multipliers", None)
    if given is not None and rng.random() < 0.7:
        shape = [*given.columns.shape[:2], given.exponent]
        arrays = [one.ravel().tolist() for one in (given.rows, given.columns, given.labels)]
        write_proof(
            path, model.network, packed([("ASSIGNMENT", [shape, *arrays]), concluded(start.value)])
        )
    return None if len(model.network.running) else (model, path)


def cores(rng: np.random.Generator, folder: Path) -> Made:
    """Steps of core-guided search over clauses, tables, sums and counts."""
    path = folder / "proof"
    with contextlib.suppress(softmap.InfeasibleModel):
        problem = Problem.of(logical_model(rng))
        search = CoreGuided(problem.model, problem.given, 1 << 20)
        while not search.done:
            search.run(energy=math.inf, conflicts=int(rng.choice([1, 3, 1 << 40])))
        if math.isinf(search.bound):  # without any labelling there is no bound to prove
            return None
        steps = folder / "steps"
        body = b"".join(CoreRecords(search).records(problem, lambda: steps))
        write_proof(path, problem.given, body, problem.exponent)
        return problem.given, path
    return None


FAMILIES: dict[str, Callable[[np.random.Generator, Path], Made]] = {
    one.__name__: one
    for one in (searches, runs, ranks, resumed, infeasible, spins, squares, assignments, cores)
}  # fmt: skip


def bits(numbers: Any) -> list[int]:
    """Floats as the integers with the same bits."""
    return np.atleast_1d(np.asarray(numbers, dtype=np.float64)).view(np.int64).tolist()


def concluded(bound: float) -> Record:
    """The conclusion that no labelling costs less."""
    return "CONCLUDE", [[0], bits(bound)]


# --- honest and altered ---------------------------------------------------------------------------


def false_claim(found: Checked, costs: Costs) -> str | None:
    """What is false about what the checker has accepted."""
    if not costs:
        return "labellings are listed, and there is none" if found.ranks else None
    if found.ranks:
        return false_rank(found, costs)
    last = found.conclusion
    if last is not None and last.what is What.WITHIN and last.energy not in costs.values():
        return "no labelling costs what is said"
    return untrue(found, min(costs.values()))


def lowered(model: softmap.Model, rng: np.random.Generator) -> softmap.Model:
    """The model with one lower cost."""
    unary = model.unary.copy()
    k = int(rng.integers(unary.size))
    unary[k] = (unary[k] if np.isfinite(unary[k]) else 0.0) - float(rng.choice([1e-9, 0.5, 3.0]))
    return model.replace(unary=unary)


def altered_problem(
    made: tuple[softmap.Model, Path], costs: Costs, rng: np.random.Generator
) -> tuple[bool, str | None]:
    """Whether an altered proof is accepted, and what is false about that."""
    model, path = made
    header, records = taken_apart(path)
    target = path.with_name("altered")
    if rng.random() < 0.3:
        model = lowered(model, rng)
        costs, header["model"] = energies(model), model.fingerprint()
    else:
        records = changed(records, rng)
        header["exponent"] += int(rng.choice([-1, 1])) if rng.random() < 0.05 else 0
    put_together(target, header, packed(records))
    try:
        found = check_proof(target, model.network)
    except (FormatError, Refused):
        return False, None
    return True, false_claim(found, costs)


def trial(seed: int, folder: Path, only: str = "") -> tuple[str, Counter[str], list[str]]:
    """One honest proof and some altered ones: the family, the counts, and what went wrong."""
    name = only or list(FAMILIES)[seed % len(FAMILIES)]
    rng, count = np.random.default_rng((11, seed)), Counter[str]()
    made = FAMILIES[name](rng, folder)
    if (
        made is None
        or math.prod(made[0].network.num_labels[: made[0].network.num_variables].tolist())
        > ENUMERATED
    ):
        return name, count, []
    model, path = made
    costs = energies(model)
    count["honest"] += 1
    try:
        problem = false_claim(check_proof(path, model.network), costs)
    except FormatError as error:
        problem = f"not accepted: {error}"
    if problem is not None:
        return name, count, [f"{seed}, {name}: {problem}"]
    problems = []
    for _ in range(ALTERED):
        accepted, wrong = altered_problem(made, costs, rng)
        count["altered"] += 1
        count["accepted"] += accepted
        problems += [f"{seed}, {name}, altered: {wrong}"] if wrong else []
    return name, count, problems


def share(seeds: range, only: str = "") -> tuple[dict[str, Counter[str]], list[str]]:
    """The counts of each family, and what went wrong."""
    counts = {name: Counter[str]() for name in FAMILIES}
    problems = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", softmap.ProofWarning)
            try:
                name, count, wrong = trial(seed, Path(folder), only)
            except Exception as error:
                problems.append(f"{seed}: {error!r}")
                continue
        counts[name].update(count)
        problems += wrong
    return counts, problems


def main() -> int:
    """Run for the given time; 1 if something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--honest", type=int, default=1 << 60, help="end after so many proofs")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--family", default="", choices=["", *FAMILIES], help="one alone")
    given = parser.parse_args()
    counts, wrong = {name: Counter[str]() for name in FAMILIES}, 0
    end = time.monotonic() + given.seconds
    shares = itertools.takewhile(
        lambda _: (
            time.monotonic() < end
            and sum(count["honest"] for count in counts.values()) < given.honest
        ),
        (range(first, first + SHARE) for first in itertools.count(given.first, SHARE)),
    )
    action = partial(share, only=given.family)
    with interruptible():
        for answer in spread(shares, given.workers, action, limit=PATIENCE):
            if isinstance(answer, Lost):
                answer = {}, [f"{answer.task}: {answer.how}"]
            for name, count in answer[0].items():
                counts[name].update(count)
            wrong += len(answer[1])
            print(*answer[1], sep="\n", end="\n" if answer[1] else "", flush=True)
    for name, count in counts.items():
        print(name, dict(count))
    print("all", dict(sum(counts.values(), Counter())), f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
