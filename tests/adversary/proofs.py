"""Random models and their proofs; and proofs with one number or record changed.

python tests/adversary/proofs.py --models 10000 [--first SEED]

Every proof has to be accepted, and to prove what its search says. A changed one may be accepted
where it still proves something true: its bound is compared with the optimum found by enumeration.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import softmap
from softmap.errors import FormatError
from softmap.labels.exact import ExactSearch
from softmap.model.model import raised
from softmap.relaxation.consistency import tighten
from softmap.verification.conclusion import What
from softmap.verification.proof import Checked, check_proof
from support.exact_sums import AllCosts, Units
from support.proof_files import SlowChecker, packed, put_together, taken_apart, write_proof


def random_model(rng: np.random.Generator) -> softmap.Model:
    """Up to eight variables; whole or real costs, hard constraints, factors of two to four."""
    binary, whole, hard = rng.random(3) < (0.4, 0.5, 0.4)
    n = int(rng.integers(2, 9 if binary else 6))
    labels = np.full(n, 2) if binary else rng.integers(1, 5, n)

    def costs(*shape: int) -> np.ndarray:
        out = rng.integers(-4, 8, shape).astype(float) if whole else rng.normal(size=shape)
        return np.where(rng.random(shape) < 0.25, np.inf, out) if hard else out

    factors = []
    for _ in range(int(rng.integers(1, 3 * n))):
        size = min(n, int(rng.choice([2, 2, 2, 2, 3, 4]) if rng.random() < 0.5 else 2))
        scope = rng.permutation(n)[:size]
        table = costs(*labels[scope])
        factors.append(
            (scope.tolist(), table if np.isfinite(table).any() else np.zeros_like(table))
        )
    model = softmap.Model.from_factors(labels.tolist(), factors)
    split = int(labels.sum())
    own = 2 * rng.normal(size=split) if not whole else rng.integers(0, 5, split).astype(float)
    own *= 10.0 ** int(rng.choice([0, 0, -6, 9]))
    return model.replace(unary=own, constant=float(rng.integers(-3, 4)))


def every_cost(model: softmap.Model) -> tuple[np.ndarray, AllCosts]:
    """All labellings, one per row, and their exact costs."""
    counts = model.network.num_labels[: model.network.num_variables].tolist()
    labels = np.indices(counts).reshape(len(counts), -1).T
    states = np.concatenate([labels, model.network.auxiliaries.states(labels)], axis=1)
    first, second = model.network.edges.T
    tables = [model.network.table(e) for e in range(model.network.m)]
    units = Units(
        [model.network.unary, *tables, [model.constant]],
        terms=model.network.n + model.network.m + 1,
    )
    (unary, *pairs, constant), (open_to, *open_pairs, _) = units.tables, units.allowed
    at = model.network.node_offset[:-1] + states
    total, allowed = constant[0] + unary[at].sum(axis=1), open_to[at].all(axis=1)
    for table, fine, i, j in zip(pairs, open_pairs, first, second, strict=True):
        x, y = states[:, i], states[:, j]
        total = total + table[x, y]
        allowed &= fine[x, y]
    return labels, AllCosts(total, allowed, units.unit)


def energies(model: softmap.Model) -> dict[tuple[int, ...], Fraction]:
    """The exact cost of every labelling that is allowed, by its labels."""
    labels, costs = every_cost(model)
    rows = [*map(tuple, labels.tolist())]
    return {rows[k]: cost for (k,), cost in costs.each()}


def optimum(model: softmap.Model) -> Fraction | None:
    """The least energy, added up in fractions; None where no labelling is allowed."""
    return every_cost(model)[1].least


@dataclass(frozen=True)
class Proved:
    """A model, its optimum, and the file of a proof with the bound that it is said to prove."""

    model: softmap.Model
    optimum: Fraction
    path: Path
    bound: float


def proved(seed: int, folder: Path) -> Proved | None:
    """A proof by a search with options of any kind; None where the model has no labelling."""
    rng = np.random.default_rng(seed)
    try:
        model = raised(tighten(random_model(rng)))
    except softmap.InfeasibleModel:
        return None
    best = optimum(model)
    if best is None:
        return None
    path = folder / "proof"
    if rng.random() < 0.2:
        result = softmap.solve(model, proof=path, seed=seed)
        return Proved(model, best, path, result.bound)
    presolve, ascent, programmed = rng.random(3) < (0.6, 0.5, 0.5)
    search = ExactSearch(
        model.network, presolve=bool(presolve), ascent=bool(ascent),
        dp_limit=1e9 if programmed else 0.0, log=folder / "log",
    )  # fmt: skip
    found = search.run(backtrack_limit=int(rng.choice([-1, -1, 1, 3])))
    if rng.random() < 0.5 and not found.complete:
        found = search.run(backtrack_limit=2)
    assert found.log is not None
    write_proof(path, model, found.log.path.read_bytes()[: found.log.size])
    return Proved(model, best, path, found.lower_bound)


def honest_problem(one: Proved, *, slowly: bool) -> str | None:
    """What is wrong with a proof as it was written."""
    try:
        found = check_proof(one.path, one.model.network)
    except FormatError as error:
        return f"not accepted: {error}"
    if not found.proves(one.bound):
        return f"{one.bound!r} is said, {float(found.bound)!r} is proved"
    if wrong := untrue(found, one.optimum):
        return wrong
    header, records = taken_apart(one.path)
    if slowly and records[0][0] == "LOAD":
        try:
            slow = SlowChecker(one.model, header["exponent"]).bound(records)
        except (AssertionError, LookupError, StopIteration) as error:
            return f"the slow checker does not accept it: {error!r}"
        if slow < found.bound and slow < one.optimum:
            return f"the slow checker proves {float(slow)!r}, this one {float(found.bound)!r}"
    return None


def changed(records: list, rng: np.random.Generator) -> list:
    """Records with one number changed, or one record left out, repeated or moved."""
    records = [(name, [list(array) for array in arrays]) for name, arrays in records]
    k = int(rng.integers(len(records)))
    way = rng.integers(8)
    if way == 0:
        del records[k]
    elif way == 1:
        records.insert(k, records[int(rng.integers(len(records)))])
    elif way == 2:
        j = int(rng.integers(len(records)))
        records[k], records[j] = records[j], records[k]
    else:
        arrays = [array for array in records[k][1] if array]
        if arrays:
            array = arrays[int(rng.integers(len(arrays)))]
            at, by = int(rng.integers(len(array))), int(rng.choice([1, 2, 1 << 20, 1 << 40]))
            array[at] = -array[at] if way == 3 else array[at] + by * int(rng.choice([-1, 1]))
    return records


def changed_problem(one: Proved, seed: int) -> tuple[bool, str | None]:
    """Whether a changed proof is accepted, and what is wrong with that."""
    rng = np.random.default_rng((7, seed))
    header, records = taken_apart(one.path)
    if rng.random() < 0.05:
        header["exponent"] += int(rng.choice([-1, 1]))
    path = one.path.with_name("changed")
    put_together(path, header, packed(changed(records, rng)))
    try:
        found = check_proof(path, one.model.network)
    except FormatError:
        return False, None
    return True, untrue(found, one.optimum)


def untrue(found: Checked, best: Fraction) -> str | None:
    """What is false about the bound or the conclusion that the checker has accepted."""
    last = found.conclusion
    if last is not None and (last.what is What.INFEASIBLE or last.needed > best):
        return f"{last} is accepted, {float(best)!r} is the optimum"
    if found.bound > best:
        return f"{float(found.bound)!r} is accepted, {float(best)!r} is the optimum"
    return None


def false_rank(found: Checked, costs: dict[tuple[int, ...], Fraction]) -> str | None:
    """What is false about the ranks that the checker has accepted."""
    least = sorted(costs.values())
    if len(found.ranks) > len(least):
        return "more labellings than there are"
    if found.bound > least[0]:
        return f"{float(found.bound)!r} is accepted, {float(least[0])!r} is the optimum"
    for k, (rank, true) in enumerate(zip(found.ranks, least, strict=False), 1):
        if rank.bound > true or rank.energy != costs.get(rank.labels):
            return f"rank {k}: {rank} is accepted, {float(true)!r} is true"
    listed = {rank.labels for rank in found.ranks}
    left = [cost for labels, cost in costs.items() if labels not in listed]
    if listed and left and found.others > min(left):
        return f"{found.others!r} is accepted of the others, {float(min(left))!r} is true"
    return None


def infeasible_problem(seed: int, folder: Path) -> str | None:
    """What is wrong with proofs of infeasibility: one that is true, and changed ones.

    The records of a model without a labelling are given to a model that has one.
    """
    rng = np.random.default_rng((9, seed))
    n, d = 5, 3
    tables = {p: rng.random((d, d)) < 0.55 for p in itertools.combinations(range(n), 2)}

    def model(forbidden: dict) -> softmap.Model:
        factors = [(p, np.where(table, np.inf, 1.0)) for p, table in forbidden.items()]
        return softmap.Model.from_factors([d] * n, factors)

    without = model(tables)
    try:
        softmap.solve(without, proof=folder / "infeasible", threads=1)
        return None  # it has a labelling
    except softmap.InfeasibleModel:
        pass
    found = check_proof(folder / "infeasible", without.network)
    if found.conclusion is None or found.conclusion.what is not What.INFEASIBLE:
        return "a proof of infeasibility does not conclude it"
    labels = rng.integers(0, d, n)
    for (i, j), table in tables.items():
        table[labels[i], labels[j]] = False
    having = model(tables)
    header, records = taken_apart(folder / "infeasible")
    header["model"] = having.fingerprint()
    for _ in range(4):
        put_together(folder / "changed", header, packed(changed(records, rng)))
        try:
            found = check_proof(folder / "changed", having.network)
        except FormatError:
            continue
        if found.conclusion is not None:
            return "a feasible model is proved infeasible"
    return None


def campaign(seeds: range, *, slowly: bool = True) -> tuple[dict[str, int], list[str]]:
    """Counts, and what went wrong."""
    counts, problems = {"proofs": 0, "changed": 0, "accepted": 0}, []
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            one = proved(seed, Path(folder))
            if one is None:
                continue
            counts["proofs"] += 1
            if problem := honest_problem(one, slowly=slowly):
                problems.append(f"{seed}: {problem}")
                continue
            if problem := infeasible_problem(seed, Path(folder)):
                problems.append(f"{seed}, infeasible: {problem}")
            accepted, wrong = changed_problem(one, seed)
            counts["changed"] += 1
            counts["accepted"] += accepted
            if wrong:
                problems.append(f"{seed}, changed: {wrong}")
    return counts, problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--fast", action="store_true", help="without the slow checker")
    given = parser.parse_args()
    counts, problems = campaign(
        range(given.first, given.first + given.models), slowly=not given.fast
    )
    print(counts, *problems, sep="\n")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
