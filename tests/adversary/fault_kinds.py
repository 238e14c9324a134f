"""Trials in which a call about a file fails, or an allocation of the compiled core.

Both need the libraries of tests/faults, loaded before the interpreter; `run.py` does so. Each trial
is a function of random numbers that says which promise was broken; None if none was.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import tempfile
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import softmap
from adversary.proofs import energies, optimum, random_model
from faults.files import KINDS, Shim
from faults.memory import Allocations
from faults.processes import can_preload, preloaded
from softmap.labels.exact import ExactSearch
from softmap.verification.proof import check_proof

__all__ = ["FAULT_KINDS", "loaded", "with_faults"]

HERE = Path(__file__).resolve().parent.parent / "faults"
FILE_TYPES = ("m.npz", "m.cfn", "m.npz.gz", "m.h5", "m.cfn.xz")
Kind = Callable[[np.random.Generator], str | None]


def with_faults() -> int | None:
    """Start this program again with both libraries; None within it, or where they cannot be."""
    return preloaded(HERE / "shim.c", HERE / "allocations.cpp") if can_preload() else None


def loaded() -> bool:
    """Whether both libraries are loaded."""
    library = ctypes.CDLL(None)
    return all(hasattr(library, name) for name in ("faults_arm", "allocations_arm"))


def near(value: Fraction) -> float:
    """Rounding errors of an energy of this size."""
    return 1e-9 * (1.0 + abs(float(value)))


def false_result(result: softmap.Result, best: Fraction | None) -> str | None:
    """What is false about a result; `best` is the optimum, None if no labelling is allowed."""
    report = softmap.verify(result)
    if not report.holds:
        return f"verify rejects: {report}"
    if best is not None and result.bound > float(best) + near(best):
        return f"the bound {result.bound!r} is above the optimum {float(best)!r}"
    if result.found and (best is None or result.energy < float(best) - near(best)):
        return f"the energy {result.energy!r} is below the optimum"
    return None


# --- files ----------------------------------------------------------------------------------------


def _files_fail(rng: np.random.Generator) -> str | None:
    """Models, results, proofs and checkpoints are written completely, or an error says why not."""
    model = random_model(rng)
    action = ACTIONS[rng.integers(len(ACTIONS))]
    kind = str(rng.choice(list(KINDS)))
    number = int(rng.integers(1, 25))
    name = str(rng.choice(FILE_TYPES))
    with tempfile.TemporaryDirectory() as place:
        folder, shim = Path(place).resolve(), Shim()
        before = {"m": _prepared(model, folder / name)}
        shim.arm(folder, number, kind)
        said: BaseException | None = None
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                found = action(model, folder, name)
            except softmap.InfeasibleModel:
                found = None
            except softmap.SoftmapError as error:
                found, said = None, error
            finally:
                hit = shim.counted()[1]
                shim.arm("", 0, kind)
        if hit and said is not None and not str(said):
            return "an error without words"
        warned = said is not None or bool(told)
        problem = _after(action, model, folder, found, warned)
        if problem is None and before["m"] != (folder / name).read_bytes() and action is not _again:
            problem = "an input has changed"
        rest = [path.name for path in folder.iterdir() if path.name.startswith((".", "tmp"))]
        if rest and hit.partition(" ")[0] not in ("unlink", "rmdir", "open", "opendir"):
            problem = problem or f"files remain: {rest}"
        return None if problem is None else f"{action.__name__}, {kind} at {number}: {problem}"


def _prepared(model: softmap.Model, path: Path) -> bytes:
    softmap.write(model, path)
    return path.read_bytes()


def _solved(model: softmap.Model, folder: Path, name: str) -> Any:
    proof, stored = folder / "proof", folder / "stored.npz"
    return softmap.solve(model, threads=1, proof=proof, checkpoint=stored, max_work=5000)


def _saved(model: softmap.Model, folder: Path, name: str) -> Any:
    result = softmap.solve(model, threads=1, max_work=5000)
    result.save(folder / "result.npz")
    return result


def _read(model: softmap.Model, folder: Path, name: str) -> Any:
    return softmap.read(folder / name)


def _again(model: softmap.Model, folder: Path, name: str) -> Any:
    softmap.write(model, folder / name)


def _resumed(model: softmap.Model, folder: Path, name: str) -> Any:
    stored = folder / "stored.npz"
    softmap.solve(model, threads=1, goal="lp", max_work=50, checkpoint=stored)
    if not stored.exists():
        return None
    return softmap.resume(stored, model, threads=1, proof=folder / "proof")


def _ranked(model: softmap.Model, folder: Path, name: str) -> Any:
    softmap.solve_mbest(model, 3, proof=folder / "proof", threads=1)


ACTIONS = (_solved, _saved, _read, _again, _resumed, _ranked)


def _after(
    action: Any, model: softmap.Model, folder: Path, found: Any, excused: bool
) -> str | None:
    """What is false about the answer, or about a file that is there."""
    best = optimum(model)
    if isinstance(found, softmap.Result) and (wrong := false_result(found, best)):
        return wrong
    if isinstance(found, softmap.Model) and not _alike(found, model):
        return "another model was read"
    checks: dict[str, Callable[[Path], str | None]] = {
        "proof": lambda path: _false_proof(check_proof(path, model.network), model),
        "result.npz": lambda path: false_result(softmap.load_result(path, model), best),
        **{name: lambda path: _false_model(path, model) for name in FILE_TYPES},
    }
    for name, check in checks.items():
        path = folder / name
        if not path.exists():
            continue
        try:
            wrong = check(path)
        except softmap.SoftmapError as error:
            wrong = f"is damaged: {error}"
        if wrong:
            return f"{name} {wrong}"
    if not isinstance(found, softmap.Result) or excused:
        return None
    expected = {_solved: "stored.npz", _saved: "result.npz", _resumed: "stored.npz"}[action]
    return None if (folder / expected).exists() else f"{expected} is missing, without a word"


def _false_proof(found: Any, model: softmap.Model) -> str | None:
    best = optimum(model)
    wrong = best is not None and found.bound > best
    return f"proves {float(found.bound)!r}, the optimum is {best}" if wrong else None


def _false_model(path: Path, model: softmap.Model) -> str | None:
    return None if _alike(softmap.read(path), model) else "is another model"


def _alike(one: softmap.Model, other: softmap.Model) -> bool:
    """Whether two models have the same costs of all labellings, up to rounding."""
    ranges = [range(int(d)) for d in other.num_labels[: other.network.num_visible]]
    every = np.array(list(itertools.islice(itertools.product(*ranges), 300)))
    if one.network.num_visible != other.network.num_visible:
        return False
    costs = np.asarray(other.energy(every))
    return bool(np.allclose(one.energy(every), costs, rtol=1e-9, atol=1e-9))


# --- memory ---------------------------------------------------------------------------------------


@cache
def _allocations() -> Allocations:
    return Allocations()


def _memory_fails(rng: np.random.Generator) -> str | None:
    """Runs in which an allocation of the core fails, and the same run without a failure."""
    model, allocations = random_model(rng), _allocations()
    best, seed = optimum(model), int(rng.integers(1 << 30))
    run = RUNS[rng.integers(len(RUNS))]
    number = int(10 ** rng.uniform(0, 3.3))
    for failing in (number, 0):
        allocations.arm(failing)
        try:
            with warnings.catch_warnings():
                if failing:
                    warnings.simplefilter("ignore", softmap.StageWarning)
                found = run(model, np.random.default_rng(seed))
        except MemoryError as error:
            found = getattr(error, "result", None)
            if not failing:
                return f"{run.__name__}: out of memory without a failure after {number}"
        except softmap.InfeasibleModel:
            found = None
            if best is not None:
                return f"{run.__name__}, allocation {failing}: a feasible model called infeasible"
        finally:
            allocations.arm(0)
        with np.errstate(all="ignore"):
            wrong = None if found is None else found_wrong(found, model, best)
        if wrong:
            return f"{run.__name__}, allocation {number} failed, now {failing}: {wrong}"
    return None


def found_wrong(found: Any, model: softmap.Model, best: Fraction | None) -> str | None:
    """What is false about an answer: a result, a bound with an energy, or ranks."""
    if isinstance(found, softmap.Result):
        return false_result(found, best)
    if isinstance(found, list):
        true = sorted(energies(model).values())
        wrong = [k for k, one in enumerate(found) if one.bound > float(true[k]) + near(true[k])]
        return f"a false bound of rank {wrong[0]}" if wrong else None
    bound, energy = found
    if best is None:
        return None if energy == math.inf else "a labelling that is forbidden"
    if bound > float(best) + near(best) or energy < float(best) - near(best):
        return f"bound {bound!r}, energy {energy!r}, optimum {float(best)!r}"
    return None


def _whole(model: softmap.Model, rng: np.random.Generator) -> Any:
    goal, threads = str(rng.choice(["map", "lp", "labels", "optimal"])), int(rng.integers(1, 3))
    return softmap.solve(model, goal=goal, threads=threads, max_work=20_000)


def _logged(model: softmap.Model, rng: np.random.Generator) -> Any:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", softmap.ProofWarning)
        return softmap.solve(model, proof=Path(folder) / "proof", threads=1)


def _searched(model: softmap.Model, rng: np.random.Generator) -> Any:
    found = ExactSearch(
        model.network, presolve=bool(rng.integers(2)), dp_limit=float(rng.choice([0.0, 1e9])),
        threads=int(rng.integers(1, 4)), split_work=0,
    ).run()  # fmt: skip
    energy = math.inf if found.labels is None else float(model.energy(found.labels))
    return found.lower_bound, energy


def _several(model: softmap.Model, rng: np.random.Generator) -> Any:
    return softmap.solve_mbest(model, 3, threads=1)


RUNS = (_whole, _whole, _logged, _searched, _several)

FAULT_KINDS: dict[str, Kind] = {"file faults": _files_fail, "memory faults": _memory_fails}
