"""Trials of runs that do not end as planned: stages that raise, loops that are left, signals.

Each trial is a function of random numbers that says which promise was broken; None if none was.
"""

from __future__ import annotations

import gc
import math
import signal
import tempfile
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import softmap
from adversary.fault_kinds import false_result, near
from adversary.proofs import optimum, random_model
from softmap.run.interrupts import Interrupts
from softmap.run.subsolver import Subsolver
from softmap.subsolvers.passes.passes import Passes
from softmap.subsolvers.registry import kinds
from softmap.verification.proof import check_proof

__all__ = ["RUN_KINDS"]

STAGES: tuple[type[Subsolver], ...] = (
    *kinds(), Passes,
)  # fmt: skip
PLACES = ("__call__", "__call__", "plan", "plan", "make")
ERRORS = (
    np.linalg.LinAlgError, ValueError, FloatingPointError, RuntimeError, MemoryError, KeyError,
    ImportError, ZeroDivisionError, softmap.ModelError, softmap.OptionError,
)  # fmt: skip
SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


def _options(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    options: dict[str, Any] = {
        "goal": str(rng.choice(["map", "lp", "labels", "optimal"])),
        "threads": int(rng.integers(1, 3)), "max_work": int(rng.integers(1, 30_000)),
        "proof": folder / "proof", "checkpoint": folder / "run.npz",
    }  # fmt: skip
    if rng.random() < 0.3:
        options["time_limit"] = float(rng.uniform(0.0, 0.2))
    return options


# --- stages that raise ----------------------------------------------------------------------------


def _failing(usual: Any, calls: list[int], error: Exception) -> Any:
    """A method of a stage that raises an exception: in its call of this number, or after one."""

    def called(self: Subsolver, *given: Any, **named: Any) -> Any:
        calls[0] -= 1
        if calls[0] == 0:
            raise error
        found = usual(self, *given, **named)
        if calls[0] == -1:  # what it has offered and changed is there
            raise error
        return found

    return called


def _stages_throw(rng: np.random.Generator) -> str | None:
    """Results, proofs and checkpoints of runs in which one or two stages raise an exception."""
    model = random_model(rng)
    best = optimum(model)
    chosen = rng.choice(len(STAGES), size=int(rng.integers(1, 3)), replace=False)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings(record=True) as told:
        folder = Path(name)
        warnings.simplefilter("always")
        with _patched(rng, [STAGES[k] for k in chosen]):
            try:
                result = softmap.solve(model, **_options(rng, folder))
            except softmap.InfeasibleModel:
                return None if best is None else "a feasible model called infeasible"
        said = [one.message for one in told]
        failed = [one for one in said if isinstance(one, softmap.StageWarning)]
        if len(failed) != len(result.failures):
            return f"{len(failed)} warnings, {len(result.failures)} failures"
        return _false(result, model, best, folder, said)


def _patched(rng: np.random.Generator, kinds: list[type[Subsolver]]) -> Any:
    """Let a method of each of these stages raise an exception, once."""
    stack = ExitStack()
    for kind in kinds:
        place = str(rng.choice(PLACES))
        error = ERRORS[rng.integers(len(ERRORS))]("on purpose")
        calls = [int(rng.integers(0, 4))]
        usual = getattr(kind, place)
        stack.enter_context(mock.patch.object(kind, place, _failing(usual, calls, error)))
    return stack


# --- runs that are left ---------------------------------------------------------------------------


def _left(rng: np.random.Generator) -> str | None:
    """Checkpoint and proof of a run that is left: by break, an exception, or a signal."""
    model = random_model(rng)
    best = optimum(model)
    after, way = int(rng.integers(1, 6)), int(rng.integers(5))
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings(record=True) as told:
        folder = Path(name)
        warnings.simplefilter("always")
        options = _options(rng, folder)
        try:
            result = _ended(model, options, after, way, rng)
        except softmap.InfeasibleModel:
            return None if best is None else "a feasible model called infeasible"
        said = [one.message for one in told]
        return _false(result, model, best, folder, said, started=result is not None)


def _ended(
    model: softmap.Model, options: dict[str, Any], after: int, way: int, rng: np.random.Generator
) -> softmap.Result | None:
    """The result of a run that is left after some snapshots, if somebody can read it."""
    if way == 0:
        steps = softmap.iterate(model, **options)
        for count, _ in enumerate(steps, 1):
            if count == after:
                break
        del steps
        gc.collect()
        return None
    seen = [0]

    def ending(snapshot: softmap.Snapshot) -> None:
        seen[0] += 1
        if seen[0] != after:
            return
        if way == 1:
            raise SystemExit(3)
        if way == 2:
            raise RuntimeError("enough")
        if way == 3:
            raise KeyboardInterrupt
        signal.raise_signal(SIGNALS[rng.integers(len(SIGNALS))])

    Interrupts.last = -math.inf  # each signal is the first
    try:
        return softmap.solve(model, on_snapshot=ending, **options)
    except (SystemExit, RuntimeError) as error:
        found: softmap.Result = error.result  # type: ignore[union-attr]
        return found


# --- what has to hold -----------------------------------------------------------------------------


def _false(
    result: softmap.Result | None, model: softmap.Model, best: Fraction | None, folder: Path,
    said: list[Any], *, started: bool = True,
) -> str | None:  # fmt: skip
    """What is false about the result of a run, its proof and its checkpoint."""
    if result is not None and (wrong := false_result(result, best)):
        return wrong
    words = " ".join(map(str, said))
    proof, stored = folder / "proof", folder / "run.npz"
    if proof.exists():
        found = check_proof(proof, model.network)
        if best is not None and found.bound > best:
            return f"the proof proves {float(found.bound)!r}, the optimum is {best}"
    elif started and "proof" not in words:
        return "the proof is missing, without a word"
    if not stored.exists():
        return "the checkpoint is missing" if started and "checkpoint" not in words else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = softmap.resume(stored, model, threads=1, max_work=1)
    if result is not None and best is not None:
        slack = near(best)
        if again.bound < result.bound - slack or again.energy > result.energy + slack:
            return f"the checkpoint has {again!r}, the run had {result!r}"
    return false_result(again, best)


RUN_KINDS: dict[str, Callable[[np.random.Generator], str | None]] = {
    "throwing stages": _stages_throw,
    "runs that are left": _left,
}
