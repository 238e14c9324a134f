"""Every allocation of the compiled core fails, one after the other.

Small runs of each kind are repeated, once per allocation: the k-th allocation fails. The program
replaces operator new of its own process (allocations.cpp, loaded by LD_PRELOAD), so that the module
that is tested is the one that is shipped. After each run:

- it has raised MemoryError (or NotEnoughMemory), or has returned an answer that holds;
- a result attached to the exception holds;
- as many blocks are allocated as before;
- the same run without a failure gives its answer;
- no process has died, and none has stopped to run (a limit on the time of one run).

    python tests/faults/memory.py [--only search] [--seeds 10] [--every 1] [--workers 2]
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import json
import math
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


import numpy as np

import softmap
from faults.processes import forked, preloaded
from softmap import core
from softmap.labels.cuts import Expansions, Fusion, solve_binary
from softmap.labels.exact import ExactSearch
from softmap.labels.feasibility import find_feasible
from softmap.subsolvers.cores.core_guided import CoreGuided
from softmap.subsolvers.spins.form import SpinForm
from softmap.subsolvers.spins.spin_numbers import SpinSteps
from softmap.subsolvers.spins.tree import SpinTree
from support.permutations import permutation_model
from support.spreading import Lost, interruptible, spread
from support.stage_runs import tightened

HERE = Path(__file__).resolve().parent
LIMIT = 60  # seconds for one run
PARTS = 4  # the allocations of a run are dealt out to this many tasks


# --- runs: each is a model and a function that returns a lower bound and an energy --------------

Run = Callable[[], tuple[float, float]]


def whole_answer(result: softmap.Result) -> tuple[float, float]:
    """The bound and the energy of a result, if every statement of it holds."""
    assert softmap.verify(result).holds, str(softmap.verify(result))
    return result.bound, result.energy


def passes(seed: int) -> tuple[softmap.Model, Run]:
    model = softmap.generators.erdos_renyi(7, 3, seed=seed)
    work = 2 * model.m * 30
    return model, lambda: whole_answer(
        softmap.solve(model, goal="lp", method="anneal", threads=2, max_work=work)
    )


def solved(seed: int) -> tuple[softmap.Model, Run]:
    model = softmap.generators.erdos_renyi(9, 3, seed=seed)
    return model, lambda: whole_answer(softmap.solve(model, threads=4))


def search(seed: int) -> tuple[softmap.Model, Run]:
    model = softmap.generators.erdos_renyi(11, 3, seed=seed)

    def run() -> tuple[float, float]:
        found = ExactSearch(model.network, threads=4, split_work=0, dp_limit=0.0).run()
        return found.lower_bound, exact_energy(model, found)

    return model, run


def elimination(seed: int) -> tuple[softmap.Model, Run]:
    model = softmap.generators.erdos_renyi(8, 3, seed=seed)

    def run() -> tuple[float, float]:
        options = {"presolve": False, "ascent": False, "search_first": 0.0}
        found = ExactSearch(model.network, threads=2, **options).run()
        return found.lower_bound, exact_energy(model, found)

    return model, run


def exact_energy(model: softmap.Model, found: Any) -> float:
    energy = float(model.energy(found.labels))
    assert math.isclose(energy, found.energy, rel_tol=1e-9, abs_tol=1e-12)
    return energy


def cut(seed: int) -> tuple[softmap.Model, Run]:
    model = softmap.generators.potts_grid(3, 3, 2 + seed % 2, seed=seed)

    def run() -> tuple[float, float]:
        if seed % 2 == 0:
            labels, lam = solve_binary(model.network)
            return float(softmap.relaxation.bounds.dual_bound(model.network, lam)), energy_of(
                labels
            )
        labels = np.zeros(model.network.num_variables, dtype=np.int64)
        fusion = Fusion(model.network, threads=4)
        try:
            Expansions(fusion).run(labels)
        finally:
            fusion.release()
        return -math.inf, energy_of(labels)

    def energy_of(labels: Any) -> float:
        return float(model.energy(np.asarray(labels)))

    return model, run


def tightening(seed: int) -> tuple[softmap.Model, Run]:
    model = softmap.generators.erdos_renyi(7, 3, seed=seed)
    lam, labels = np.zeros(int(model.network.half_offset[-1])), np.zeros(7, dtype=np.int64)

    def run() -> tuple[float, float]:
        found, _ = tightened(model, lam.copy(), labels.copy(), max_work=3000)
        assert found.energy == model.energy(found.labels)
        return found.bound, found.energy

    return model, run


def feasibility(seed: int) -> tuple[softmap.Model, Run]:
    model = softmap.generators.ragged_constrained(7, seed=seed)

    def run() -> tuple[float, float]:
        found = find_feasible(model.network, None)
        return -math.inf, math.inf if found is None else float(model.energy(found))

    return model, run


def decoding(seed: int) -> tuple[softmap.Model, Run]:
    rng = np.random.default_rng(seed)
    code = softmap.codes.ParityCode([rng.permutation(10)[:3] for _ in range(5)], 10)
    ratios = rng.normal(1.0, 1.0, 10)
    model = code.model(ratios)

    def run() -> tuple[float, float]:
        found = code.decode(ratios)
        return float(found.bounds), float(found.costs)

    return model, run


def permutations(seed: int) -> tuple[softmap.Model, Run]:
    rng = np.random.default_rng(seed)
    tables = [
        (pair, 1.0 * rng.integers(0, 9, (5, 5))) for pair in itertools.combinations(range(5), 2)
    ]
    model = permutation_model(5, 5, tables)
    return model, lambda: whole_answer(softmap.solve(model, threads=4))


def cores(seed: int) -> tuple[softmap.Model, Run]:
    model = softmap.generators.erdos_renyi(7, 2, seed=seed)

    def run() -> tuple[float, float]:
        found = CoreGuided(model.network)
        labels = found.run()
        return found.bound + model.constant, float(
            model.energy(labels[: model.network.num_visible])
        )

    return model, run


def semidefinite(seed: int) -> tuple[softmap.Model, Run]:
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(7), 2)))
    model = softmap.Model(
        rng.normal(size=(7, 2)), pairs, softmap.Tables(rng.normal(size=(21, 2, 2)))
    )
    steps = SpinSteps(first_rounds=4, rounds=1, steps=5, halved=50, average=25, sweeps=5)
    never = core.Deadline(math.inf)

    def run() -> tuple[float, float]:
        tree = SpinTree(SpinForm.of(model.network), seed, steps, logged=True)
        tree.relax(3, never, never)
        energy = float(model.energy(tree.labels(7)))
        tree.run(energy, never, never)
        return tree.bound, float(model.energy(tree.labels(7)))

    return model, run


def transported(seed: int) -> tuple[float, Run]:
    costs = np.random.default_rng(seed).random((4, 4))
    every = itertools.permutations(range(4))  # one of them is optimal (Birkhoff)
    least = min(float(costs[np.arange(4), list(one)].mean()) for one in every)
    even = np.full(4, 0.25)

    def run() -> tuple[float, float]:
        found = softmap.transport.sinkhorn(even, even, costs, gap=1e-2)
        return found.bound, found.cost

    return least, run


def labelled(seed: int) -> tuple[softmap.Model, Run]:
    model = softmap.generators.erdos_renyi(9, 3, seed=seed)
    options = {"goal": "labels", "threads": 4, "max_work": 3000}
    return model, lambda: whole_answer(softmap.solve(model, **options))


KINDS: dict[str, Callable[[int], tuple[softmap.Model | float, Run]]] = {
    "pass": passes, "search": search, "cut": cut, "elimination": elimination,
    "tightening": tightening, "feasibility": feasibility, "decoding": decoding, "solve": solved,
    "permutations": permutations, "cores": cores, "semidefinite": semidefinite,
    "transport": transported, "labels": labelled,
}  # fmt: skip


# --- the library ----------------------------------------------------------------------------------


class Allocations:
    """The allocations of the process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        for name in ("calls", "failed", "live"):
            getattr(self._library, f"allocations_{name}").restype = ctypes.c_long
        for begin, end in code_of("softmap/core/_", "libstdc++"):
            self._library.allocations_watch(ctypes.c_size_t(begin), ctypes.c_size_t(end))

    def arm(self, number: int) -> None:
        """Let allocation `number` fail, counted from now; 0: none."""
        self._library.allocations_arm(ctypes.c_long(number))

    def __getattr__(self, name: str) -> int:
        return int(getattr(self._library, f"allocations_{name}")())


def code_of(*names: str) -> Iterator[tuple[int, int]]:
    """The address ranges of the code of loaded libraries."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, rights, *_ = line.split()
        if "x" in rights and any(name in line for name in names):
            begin, _, end = place.partition("-")
            yield int(begin, 16), int(end, 16)


# --- campaigns ------------------------------------------------------------------------------------


def one_run(run: Run, optimum: float) -> str:
    """Run once; return what is wrong."""
    try:
        bound, energy = run()
    except MemoryError as error:
        result = getattr(error, "result", None)
        if result is None:
            return ""
        with np.errstate(all="ignore"):
            report = softmap.verify(result)
        return "" if report.holds else f"the result of the exception is false: {report}"
    except BaseException:
        return traceback.format_exc(limit=-4)
    slack = 1e-9 * (1.0 + abs(optimum))
    if bound > optimum + slack or energy < optimum - slack:
        return f"bound {bound!r}, energy {energy!r}, optimum {optimum!r}"
    return ""


def least_energy(model: softmap.Model) -> float:
    """The least energy over all labellings."""
    ranges = [range(int(d)) for d in model.network.num_labels[: model.network.num_variables]]
    return float(np.min(model.energy(np.array(list(itertools.product(*ranges))))))


def campaign(kind: str, seed: int, first: int, every: int, told: Path) -> None:
    """Repeat one run until no allocation of it fails; `told` holds the place and what is wrong."""
    given, run = KINDS[kind](seed)
    optimum = given if isinstance(given, float) else least_energy(given)
    allocations = Allocations()
    expected = rounded(run())
    run()
    number, failures, problems = first, 0, []
    while True:
        told.write_text(json.dumps([number, failures, problems]))
        gc.collect()
        before = allocations.live
        signal.alarm(LIMIT)
        allocations.arm(number)
        said = one_run(run, optimum)
        hit = allocations.failed
        allocations.arm(0)
        gc.collect()
        after = allocations.live
        if hit and after > before and rounded(run()) == expected:
            gc.collect()  # what the run keeps on purpose, it keeps once
            said = said or leaked(run, allocations, number)
        elif rounded(run()) != expected:
            said = said or "another answer afterwards"
        signal.alarm(0)
        if said:
            problems.append([number, said])
        if not hit:
            break
        failures += 1
        number += every
    told.write_text(json.dumps([-1, failures, problems]))


def leaked(run: Run, allocations: Allocations, number: int) -> str:
    """Repeat a failing run; return how many blocks remain after each."""
    counts = []
    for _ in range(4):
        gc.collect()
        counts.append(allocations.live)
        allocations.arm(number)
        one_run(run, math.inf)
        allocations.arm(0)
    gc.collect()
    counts.append(allocations.live)
    steps = [b - a for a, b in itertools.pairwise(counts)]
    return f"blocks remain after each failure: {steps}" if min(steps[1:]) > 0 else ""


def rounded(answer: tuple[float, float]) -> tuple[float, float]:
    return tuple(float(f"{value:.9g}") for value in answer)  # type: ignore[return-value]


def watched(task: tuple[str, int, int, int], place: Path) -> tuple[str, int, list[Any]]:
    """Run a campaign in forks; one that dies is a problem, and the next goes on."""
    kind, seed, first, step = task
    failures, problems = 0, []
    told, errors = place / f"told-{os.getpid()}", place / f"errors-{os.getpid()}"

    def action() -> int:
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
        campaign(kind, seed, first, step, told)
        return 0

    while len(problems) < 50:
        told.write_text(json.dumps([first, 0, []]))
        code = forked(action)
        number, more, wrong = json.loads(told.read_text())
        failures, problems = failures + more, problems + wrong
        if number < 0:
            break
        last = errors.read_text()[-600:]
        problems.append([number, f"the process ended with {code}: {last}"])
        first = number + step
    return kind, failures, [[seed, *problem] for problem in problems]


def main() -> int:
    """Run all campaigns; 1 if something is wrong."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--only", nargs="*", default=list(KINDS))
    reader.add_argument("--seeds", type=int, default=10)
    reader.add_argument("--seconds", type=float, default=math.inf, help="start no task after these")
    reader.add_argument("--every", type=int, default=1, help="every n-th allocation only")
    reader.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    said = reader.parse_args()
    if (code := preloaded(HERE / "allocations.cpp")) is not None:
        return code
    with tempfile.TemporaryDirectory(prefix="softmap-faults-") as place:
        return campaigns(Path(place), said)


def campaigns(place: Path, said: argparse.Namespace) -> int:
    counted, began = Counted(said.only), time.monotonic()
    step = PARTS * said.every
    tasks = [
        (kind, seed, 1 + part * said.every, step)
        for seed in range(said.seeds)
        for kind in said.only
        for part in range(PARTS)
    ]
    gc.collect()
    gc.freeze()  # what is here now stays: later collections need not look at it
    end = began + said.seconds
    due = itertools.takewhile(lambda _: time.monotonic() < end, tasks)
    with interruptible():
        for answer in spread(due, said.workers, lambda one: watched(one, place)):
            counted.add(answer)
            if counted.done % (PARTS * len(said.only)) == 0 and counted.done < len(tasks):
                print(f"{counted.done} of {len(tasks)} tasks: {counted}", flush=True)
    for kind, failures in counted.failed.items():
        print(f"{kind}: {failures} failed allocations, {counted.wrong[kind]} wrong")
    took = time.monotonic() - began
    tasks_done = f"{counted.done} of {len(tasks)} tasks"
    print(f"{counted}, {tasks_done}, {took:.0f} s")
    return int(counted.wrong.total() > 0)


class Counted:
    """Counts of failed allocations and of what was wrong, by kind; a few examples are printed."""

    def __init__(self, kinds: list[str]) -> None:
        self.failed, self.wrong = Counter(dict.fromkeys(kinds, 0)), Counter[str]()
        self.done = 0

    def __str__(self) -> str:
        return f"{self.failed.total()} failed allocations, {self.wrong.total()} wrong"

    def add(self, answer: tuple[str, int, list[Any]] | Lost) -> None:
        """Add the answer of a task."""
        self.done += 1
        if isinstance(answer, Lost):
            kind, failures, problems = answer.task[0], 0, [[answer.task[1], 0, answer.how]]
        else:
            kind, failures, problems = answer
        self.failed[kind] += failures
        self.wrong[kind] += len(problems)
        for seed, number, words in problems[:5]:
            print(f"{kind}, seed {seed}, allocation {number}: {words}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
