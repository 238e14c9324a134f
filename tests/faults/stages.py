"""Every call that a stage makes of numpy, scipy, HiGHS and the compiled core fails once.

Small runs of each kind are repeated, once per call: the k-th call within a stage raises an
exception. After each run:

- it has returned a result, and no exception;
- the result holds, its bound is no larger than the optimum, its energy no smaller;
- proof and checkpoint are there and true, or a warning says that they could not be written;
- the same run without a failure gives its answer.

    python tests/faults/stages.py [--only spins] [--seeds 3] [--every 1] [--workers 2]
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import highspy
import numpy as np

import softmap
from softmap import core
from softmap.labels.search import SearchEffort
from softmap.run.failures import Failures
from softmap.run.subsolver import Subsolver
from softmap.subsolvers import registry
from softmap.subsolvers.labels.label_numbers import ExpansionNumbers
from softmap.subsolvers.passes.pass_numbers import InteriorTimes, PassNumbers
from softmap.subsolvers.registry import Place
from softmap.subsolvers.search.eliminate import EliminationNumbers
from softmap.subsolvers.spins.spin_numbers import SpinNumbers
from softmap.tuning import Tuning
from softmap.verification.proof import check_proof
from support.permutations import permutation_model
from support.spreading import Lost, interruptible, spread

ERRORS = (np.linalg.LinAlgError, ValueError, FloatingPointError, RuntimeError)
TABLE = registry.TABLE
CLASSES = {line.kind.__name__: line.kind for line in TABLE}
STAGES = set(CLASSES.values())
LIMIT = 60  # seconds for one run
PARTS = 4  # the calls of a run are dealt out to this many tasks
PACKAGES = ("drive", "labels", "methods", "model", "relaxation", "run", "subsolvers")


# --- runs: a model, the options of `solve`, and the stages beside the relaxation ------------------

SMALL = (  # so that every stage has a turn on a model that can be enumerated
    PassNumbers(vertex_after=2), EliminationNumbers(per_state=10**6, states=1),
    SpinNumbers(degree=1), SearchEffort(fused=2), ExpansionNumbers(variables=2),
)  # fmt: skip
Run = tuple[softmap.Model, dict[str, Any], tuple[type[Subsolver], ...]]
OPTIMAL = {"goal": "optimal", "max_work": 20_000, "tuning": Tuning(*SMALL)}


def dense(labels: int, variables: int, seed: int) -> softmap.Model:
    """A complete graph whose relaxation is far from tight: equal labels cost 1 or -1."""
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(variables), 2)))
    signs = rng.choice([-1.0, 1.0], size=(len(pairs), 1, 1)) * np.eye(labels)
    unary = 0.1 * rng.normal(size=(variables, labels))
    return softmap.Model(unary, pairs, softmap.Tables(signs))


def spins(seed: int) -> Run:
    return dense(2, 9, seed), OPTIMAL, (CLASSES["Semidefinite"],)


def squares(seed: int) -> Run:
    return dense(3, 6, seed), OPTIMAL, (CLASSES["Semidefinite"],)


def searched(seed: int) -> Run:
    return dense(3, 6, seed), OPTIMAL, (CLASSES["Search"], CLASSES["Improve"])


def together(seed: int) -> Run:
    """Three searches for labels in threads, beside labels searched for in the background."""
    return dense(3, 6, seed), {"time_limit": 0.3, "threads": 4}, (CLASSES["Improve"],)


def frustrated(seed: int) -> Run:
    return dense(3, 6, seed), OPTIMAL, (CLASSES["Tighten"], CLASSES["Obey"])


def moves(seed: int) -> Run:
    model = softmap.generators.potts_grid(3, 3, 3, seed=seed)
    return model, OPTIMAL | {"goal": "labels"}, (CLASSES["Expand"], CLASSES["Improve"])


def cut(seed: int) -> Run:
    return softmap.generators.potts_grid(3, 3, 2, seed=seed), OPTIMAL, (CLASSES["Cut"],)


def constrained(seed: int) -> Run:
    model = softmap.generators.ragged_constrained(8, seed=seed)
    return model, OPTIMAL, (CLASSES["Obey"], CLASSES["Search"])


def _clauses(seed: int) -> softmap.Model:
    rng = np.random.default_rng(seed)
    factors = [
        (tuple(rng.permutation(8)[:3].tolist()), rng.integers(0, 5, (2, 2, 2)) * 1.0)
        for _ in range(9)
    ]
    return softmap.Model.from_factors([2] * 8, factors)


def clauses(seed: int) -> Run:
    return _clauses(seed), OPTIMAL, (CLASSES["Cores"],)


def eliminated(seed: int) -> Run:
    return _clauses(seed), OPTIMAL, (CLASSES["Eliminate"],)


def permutations(seed: int) -> Run:
    rng = np.random.default_rng(seed)
    tables = [
        (pair, 1.0 * rng.integers(0, 9, (5, 5))) for pair in itertools.combinations(range(5), 2)
    ]
    return permutation_model(5, 5, tables), OPTIMAL, (CLASSES["Permute"],)


def assignment(seed: int) -> Run:
    costs = [((i,), row) for i, row in enumerate(np.random.default_rng(seed).random((4, 4)))]
    model = softmap.Model.from_factors([4] * 4, [*costs, softmap.AllDifferent(range(4))])
    return model, OPTIMAL, (CLASSES["Assign"],)


def forest(seed: int) -> Run:
    return softmap.generators.random_tree(7, 3, seed=seed), OPTIMAL, (CLASSES["Forest"],)


def relaxed(seed: int) -> Run:
    tuning = Tuning(*SMALL, InteriorTimes(steps=0, pair=0.0))
    return dense(3, 6, seed), {"goal": "lp", "lp_gap": 1e-6, "tuning": tuning}, ()


def vertex(seed: int) -> Run:
    tuning = Tuning(*SMALL, InteriorTimes(product=1e300, pair=1e300))
    return dense(3, 6, seed), {"goal": "lp", "lp_gap": 1e-8, "tuning": tuning}, ()


KINDS: dict[str, Callable[[int], Run]] = {
    "spins": spins, "squares": squares, "searched": searched, "together": together,
    "frustrated": frustrated, "moves": moves, "cut": cut, "constrained": constrained,
    "clauses": clauses, "eliminated": eliminated, "permutations": permutations,
    "assignment": assignment, "forest": forest, "relaxed": relaxed, "vertex": vertex,
}  # fmt: skip


# --- calls that fail ------------------------------------------------------------------------------


@dataclass
class Calls:
    """Counts the calls that stages make, and lets one of them fail.

    Attributes
    ----------
    number : int
        The call that fails, counted from 1; 0: none.
    count : int
        Number of calls since `arm`.
    failed : str
        The function whose call has failed.
    by : Counter of type
        The number of calls of each kind of stage.
    """

    number: int = 0
    count: int = 0
    failed: str = ""
    by: Counter[type] = field(default_factory=Counter)
    _inside: list[Any] = field(default_factory=list)
    _lock: Any = field(default_factory=threading.Lock)

    def arm(self, number: int) -> None:
        """Let call `number` fail, counted from now; 0: none."""
        self.number, self.count, self.failed = number, 0, ""

    @contextlib.contextmanager
    def within(self, stage: Any) -> Iterator[None]:
        """What is called inside belongs to a stage."""
        self._inside.append(stage)
        try:
            yield
        finally:
            self._inside.pop()

    def note(self, name: str) -> None:
        """Count a call; raise an exception if it is the one that fails."""
        thread = threading.current_thread()
        background = thread is not threading.main_thread() and "softmap" in thread.name
        if not self._inside and not background:
            return
        with self._lock:
            self.count += 1
            if self._inside:
                self.by[type(self._inside[-1])] += 1
            if self.count != self.number:
                return
            self.failed = name
        raise ERRORS[self.number % len(ERRORS)](f"call {self.number}, {name}, fails")


CALLS = Calls()


class Counting:
    """A function, and functions that are its attributes (`np.add.at`), with their calls counted."""

    def __init__(self, function: Any, name: str) -> None:
        self._function, self._name = function, name

    def __call__(self, *given: Any, **named: Any) -> Any:
        CALLS.note(self._name)
        return self._function(*given, **named)

    def __getattr__(self, name: str) -> Any:
        return counted(getattr(self._function, name), f"{self._name}.{name}")


class CountingModule:
    """A module whose functions count their calls."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    @cache  # noqa: B019 - there is one object per module
    def __getattr__(self, name: str) -> Any:
        return counted(getattr(self._module, name), f"{self._module.__name__}.{name}")


def counted(value: Any, name: str) -> Any:
    """A value, with its calls counted if it is a function; types are left alone."""
    if isinstance(value, types.ModuleType):
        return CountingModule(value)
    return Counting(value, name) if callable(value) and not isinstance(value, type) else value


def method(function: Any, name: str) -> Callable[..., Any]:
    """A method whose calls are counted."""

    def called(self: Any, *given: Any, **named: Any) -> Any:
        CALLS.note(name)
        return function(self, *given, **named)

    return called


def instrument() -> None:
    """Count the calls of numpy, scipy, HiGHS and the core in all modules that stages use."""
    root = Path(softmap.__file__).parent
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            words = path.relative_to(root.parent).with_suffix("").parts
            if "cuda" not in words and words[-1] != "__init__":
                import_module(".".join(words))
    for module in [m for name, m in sys.modules.items() if name.startswith("softmap.")]:
        if not module.__name__.startswith(tuple(f"softmap.{one}." for one in PACKAGES)):
            continue
        for name, value in list(vars(module).items()):
            home = str(getattr(value, "__module__", ""))
            if value is np:
                setattr(module, name, CountingModule(np))
            elif home.startswith("scipy.") and callable(value):
                setattr(module, name, Counting(value, f"scipy {name}"))
    for name, value in list(vars(core).items()):
        if type(value).__name__ == "nb_func":
            setattr(core, name, Counting(value, f"core.{name}"))
        elif type(value).__name__ == "nb_type":
            for part, function in list(vars(value).items()):
                if type(function).__name__ == "nb_method" and part != "__init__":
                    setattr(value, part, method(function, f"core.{name}.{part}"))
    for part in ("passModel", "run", "setOptionValue", "getSolution"):
        setattr(highspy.Highs, part, method(getattr(highspy.Highs, part), f"Highs.{part}"))
    attempt = Failures.attempt

    def within(self: Failures, stage: Any, action: Any, otherwise: Any) -> Any:
        def counting() -> Any:
            with CALLS.within(stage):
                return action()

        return attempt(self, stage, counting, otherwise)

    Failures.attempt = within  # type: ignore[method-assign]


# --- campaigns ------------------------------------------------------------------------------------


def least_energy(model: softmap.Model) -> float:
    """The least energy over all labellings."""
    ranges = [range(int(d)) for d in model.num_labels[: model.network.num_visible]]
    return float(np.min(model.energy(np.array(list(itertools.product(*ranges))))))


def one_run(run: Run, optimum: float, place: Path) -> str:
    """Run once; return what is wrong."""
    model, options, stages = run
    always = (Place.RELAXATION, Place.CHECKED)
    registry.TABLE = tuple(line for line in TABLE if line.place in always or line.kind in stages)
    proof, stored = place / "proof", place / "run.npz"
    for path in (proof, stored):
        path.unlink(missing_ok=True)
    options = {"threads": 1} | options
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            result = softmap.solve(model, proof=proof, checkpoint=stored, **options)
        number, CALLS.number = CALLS.number, 0
        said = [str(one.message) for one in told]
        problem = _false(result, model, optimum)
        problem = problem or _false_files(result, model, optimum, place, said)
        CALLS.number = number
        return problem
    except BaseException:
        return traceback.format_exc(limit=-6)
    finally:
        CALLS.number = 0


def _false(result: softmap.Result, model: softmap.Model, optimum: float) -> str:
    slack = 1e-9 * (1.0 + abs(optimum))
    report = softmap.verify(result)
    if not report.holds:
        return f"verify rejects: {report}"
    if result.bound > optimum + slack or result.energy < optimum - slack:
        return f"bound {result.bound!r}, energy {result.energy!r}, optimum {optimum!r}"
    if result.found and abs(float(model.energy(result.labels)) - result.energy) > slack:
        return f"the labels do not cost {result.energy!r}"
    return ""


def _false_files(
    result: softmap.Result, model: softmap.Model, optimum: float, place: Path, said: list[str]
) -> str:
    slack = 1e-9 * (1.0 + abs(optimum))
    if (place / "proof").exists():
        proved = float(check_proof(place / "proof", model.network).bound)
        if proved > optimum + slack:
            return f"the proof proves {proved!r}, the optimum is {optimum!r}"
        if proved < result.bound - slack and not any("proof" in one for one in said):
            return f"the proof proves {proved!r}, the result says {result.bound!r}"
    elif not any("proof" in one for one in said):
        return "the proof is missing, without a word"
    if (place / "run.npz").exists():
        again = softmap.resume(place / "run.npz", model, threads=1, max_work=1)
        if again.bound < result.bound - slack or again.energy > result.energy + slack:
            return f"the checkpoint has {again!r}, the run had {result!r}"
        return _false(again, model, optimum)
    return "" if any("checkpoint" in one for one in said) else "the checkpoint is missing"


def campaign(task: tuple[str, int, int, int], place: Path) -> tuple[str, int, list[Any]]:
    """Repeat one run until no call of it fails; return the number of runs, and problems."""
    kind, seed, number, step = task
    folder = Path(tempfile.mkdtemp(dir=place))
    run = KINDS[kind](seed)
    optimum = least_energy(run[0])
    runs, problems = 0, []
    while len(problems) < 20:
        signal.alarm(LIMIT)
        CALLS.arm(number)
        problem, failed = one_run(run, optimum, folder), CALLS.failed
        CALLS.arm(0)
        if problem:
            problems.append([seed, number, f"{failed} fails: {problem}"])
        if not failed:
            break
        runs += 1
        number += step
    CALLS.arm(0)
    if problem := one_run(run, optimum, folder):
        problems.append([seed, 0, f"afterwards: {problem}"])
    signal.alarm(0)
    return kind, runs, problems


def calls_of(kinds: list[str]) -> Counter[type]:
    """The number of calls of each kind of stage, in runs of these kinds without a failure."""
    CALLS.by.clear()
    with tempfile.TemporaryDirectory(prefix="softmap-faults-") as place:
        for kind in kinds:
            run = KINDS[kind](0)
            CALLS.arm(0)
            if problem := one_run(run, least_energy(run[0]), Path(place)):
                raise AssertionError(f"{kind}, without a failure: {problem}")
    return CALLS.by


def main() -> int:
    """Run all campaigns; 1 if something is wrong."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--only", nargs="*", default=list(KINDS))
    reader.add_argument("--seeds", type=int, default=3)
    reader.add_argument("--every", type=int, default=1, help="every n-th call only")
    reader.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    said = reader.parse_args()
    instrument()
    by = calls_of(said.only)
    if said.only == list(KINDS):
        assert not STAGES - set(by), f"stages that no run calls: {STAGES - set(by)}"
    print(", ".join(f"{kind.__name__} {count}" for kind, count in by.items()), flush=True)
    began, runs, wrong = time.monotonic(), Counter[str](), 0
    tasks = [
        (kind, seed, 1 + part * said.every, PARTS * said.every)
        for seed in range(said.seeds)
        for kind in said.only
        for part in range(PARTS)
    ]
    with tempfile.TemporaryDirectory(prefix="softmap-faults-") as place, interruptible():
        for answer in spread(tasks, said.workers, lambda one: campaign(one, Path(place))):
            if isinstance(answer, Lost):
                kind, count, problems = answer.task[0], 0, [[*answer.task[1:3], answer.how]]
            else:
                kind, count, problems = answer
            runs[kind] += count
            wrong += len(problems)
            for seed, number, words in problems[:5]:
                print(f"{kind}, seed {seed}, call {number}: {words}", flush=True)
    for kind in said.only:
        print(f"{kind}: {runs[kind]} failed calls")
    print(f"{runs.total()} failed calls, {wrong} wrong, {time.monotonic() - began:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
