"""Trials of the exact paths: proofs, codes, cuts, elimination, permutations, cutoffs and others.

Each is a function of random numbers that says which promise was broken, as in kinds.py; None if
none was. The answers are compared with enumeration.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import softmap
import softmap.__main__ as entry
from adversary.proofs import campaign, optimum, random_model
from softmap.app.cli.app import main
from softmap.drive.loop import Run
from softmap.labels.cuts import Expansions, Fusion, solve_binary
from softmap.labels.exact import ExactSearch
from softmap.relaxation.bounds import dual_bound
from softmap.run.trace import Status

__all__ = ["EXACT_KINDS"]

Kind = Callable[[np.random.Generator], str | None]


def slack(value: float) -> float:
    """Rounding errors of an energy of this size."""
    return 1e-9 * (1.0 + abs(value))


def _proofs(rng: np.random.Generator) -> str | None:
    """A proof is accepted, and a changed one proves nothing false."""
    seed = int(rng.integers(1 << 40))
    _, problems = campaign([seed], slowly=bool(rng.random() < 0.2))  # type: ignore[arg-type]
    return problems[0] if problems else None


def _decoding(rng: np.random.Generator) -> str | None:
    """Words of small codes against all words."""
    bits = int(rng.integers(3, 11))
    checks = [
        rng.permutation(bits)[: int(rng.integers(2, min(bits, 6) + 1))]
        for _ in range(int(rng.integers(1, bits)))
    ]
    code = softmap.codes.ParityCode(checks, bits)
    ratios = rng.normal(float(rng.choice([0.0, 1.0])), 1.0, bits) * 10.0 ** int(rng.integers(-3, 4))
    odd = rng.integers(0, 2, len(checks)) if rng.random() < 0.5 else np.zeros(len(checks), int)
    words = np.array(list(itertools.product((0, 1), repeat=bits)))
    fine = np.all(
        [words[:, c].sum(axis=1) % 2 == s for c, s in zip(checks, odd, strict=True)], axis=0
    )
    least = min((float(w @ ratios) for w in words[fine]), default=math.inf)
    found = code.decode(ratios, odd, threads=int(rng.integers(1, 3)))
    if float(found.bounds) > least + slack(np.abs(ratios).sum()):
        return f"the bound {float(found.bounds)!r} is above the best word, {least!r}"
    if found.found:
        if (code.syndrome(found.words) != odd).any():
            return "the word is none"
        cost = float(found.words @ ratios)
        if abs(cost - float(found.costs)) > slack(cost):
            return "the cost is not that of the word"
        if found.proved and cost > least + slack(least):
            return "a word called optimal is not"
    return None


def _cuts(rng: np.random.Generator) -> str | None:
    """Submodular models by a cut, and moves that never raise the energy."""
    n = int(rng.integers(2, 9))
    pairs = [p for p in itertools.combinations(range(n), 2) if rng.random() < 0.6] or [(0, 1)]
    tables = rng.normal(size=(len(pairs), 2, 2)) * 10.0 ** int(rng.integers(-4, 5))
    lack = tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]
    tables[:, 0, 1] += np.maximum(lack, 0.0) * (1 + 1e-9)
    model = softmap.Model(rng.normal(size=(n, 2)) * np.abs(tables).max(), pairs, tables)
    best = float(optimum(model) or 0)
    labels, lam = solve_binary(model.network)
    size = slack(float(np.abs(tables).max()) * len(pairs))
    if abs(float(model.energy(labels)) - best) > size:
        return "a cut is not the optimum"
    if dual_bound(model.network, lam) > best + size:
        return "the bound of a cut is above the optimum"
    return _moves(rng)


def _moves(rng: np.random.Generator) -> str | None:
    wide = softmap.generators.potts_grid(
        int(rng.integers(2, 6)), int(rng.integers(2, 6)), int(rng.integers(2, 5)),
        seed=int(rng.integers(1 << 30)),
    )  # fmt: skip
    labels = rng.integers(0, wide.num_labels)
    before = float(wide.energy(labels))
    fusion = Fusion(wide.network, threads=int(rng.integers(1, 5)))
    try:
        Expansions(fusion).run(labels)
    finally:
        fusion.release()
    after = float(wide.energy(labels))
    return "a move raises the energy" if after > before + slack(before) else None


def _eliminated(rng: np.random.Generator) -> str | None:
    """Elimination and searches, with several threads, in any slices."""
    model = random_model(rng)
    best = optimum(model)
    programmed = rng.random() < 0.6
    search = ExactSearch(
        model.network, presolve=bool(rng.random() < 0.5), ascent=bool(rng.random() < 0.5),
        dp_limit=1e9 if programmed else 0.0, search_first=0.0 if programmed else 0.1,
        threads=int(rng.integers(1, 5)), split_work=int(rng.choice([-1, 0, 100])),
    )  # fmt: skip
    found = search.run(backtrack_limit=int(rng.choice([-1, -1, 2])))
    if best is None:
        return None if found.labels is None else "a labelling that is forbidden"
    if found.infeasible:
        return "a feasible model called infeasible"
    if Fraction(found.lower_bound) > best + Fraction(slack(float(best))):
        return "the bound is above the optimum"
    if found.complete and abs(float(model.energy(found.labels)) - float(best)) > slack(float(best)):
        return "a labelling called optimal is not"
    return None


def _permuted(rng: np.random.Generator) -> str | None:
    """Assignments: all different labels, with costs of pairs."""
    n = int(rng.integers(2, 6))
    d = n + int(rng.integers(0, 2))
    linear = rng.integers(0, 9, (n, d)).astype(float)
    flow, far = rng.integers(0, 4, (n, n)), rng.integers(0, 4, (d, d))
    pairs = list(itertools.combinations(range(n), 2))
    factors = [((i, j), (flow[i, j] * far).astype(float)) for i, j in pairs if rng.random() < 0.7]
    parts = [((i,), linear[i]) for i in range(n)]
    model = softmap.Model.from_factors([d] * n, [*parts, *factors, softmap.AllDifferent(range(n))])
    used = dict(factors)
    best = min(
        sum(linear[i, p[i]] for i in range(n)) + sum(t[p[i], p[j]] for (i, j), t in used.items())
        for p in itertools.permutations(range(d), n)
    )
    result = softmap.solve(model, threads=int(rng.integers(1, 3)), max_work=50_000)
    if result.found and len(set(result.labels.tolist())) < n:
        return "labels are not all different"
    if result.bound > best + 1e-9 or (result.found and result.energy < best - 1e-9):
        return "a bound above the optimum, or an energy below it"
    wrong = result.status is Status.OPTIMAL and result.energy > best + 1e-6
    return "an assignment called optimal is not" if wrong else None


def _infeasible(rng: np.random.Generator) -> str | None:
    """Models of hard constraints: infeasible ones are called so, and no others."""
    n, share = int(rng.integers(2, 6)), float(rng.uniform(0.2, 0.8))
    labels = rng.integers(1, 4, n).tolist()
    factors = []
    for _ in range(int(rng.integers(1, 3 * n))):
        scope = rng.permutation(n)[: int(rng.choice([2, 2, 3]) if n > 2 else 2)].tolist()
        shape = [labels[i] for i in scope]
        factors.append((scope, np.where(rng.random(shape) < share, np.inf, 0.0)))
    best = min(
        sum(float(t[tuple(x[i] for i in s)]) for s, t in factors)
        for x in itertools.product(*map(range, labels))
    )
    try:
        model = softmap.Model.from_factors(labels, factors)
        result = softmap.solve(model, threads=int(rng.integers(1, 3)))
    except softmap.InfeasibleModel as error:
        if best < math.inf:
            return "a feasible model called infeasible"
        return _contradiction(error, labels, factors)
    if result.found and best == math.inf:
        return "a labelling that is forbidden"
    return None if result.found or best == math.inf else "no labelling was found"


def _contradiction(error: softmap.InfeasibleModel, labels: list[int], factors: list) -> str | None:
    """The constraints that are named leave no labelling."""

    def open_of(scope: Iterable[int]) -> set[int]:
        return {i for i in scope if labels[i] > 1}  # a variable of one label may be left out

    named = [open_of(one.variables) for one in error.constraints]
    if not named:
        return None
    kept = [(s, t) for s, t in factors if open_of(s) in named]
    for x in itertools.product(*map(range, labels)):
        if all(math.isfinite(t[tuple(x[i] for i in s)]) for s, t in kept):
            return "the constraints named do not contradict each other"
    return None


def _cut_off(rng: np.random.Generator) -> str | None:
    """Searches for labellings below a given cost."""
    model = random_model(rng)
    best = optimum(model)
    if best is None:
        return None
    off = float(rng.choice([-1.0, -1e-6, 0.0, 1e-6, 1.0, 100.0]))
    limit = float(best) + off * max(1.0, abs(float(best)))
    try:
        result = softmap.solve(model, upper_bound=limit, threads=int(rng.integers(1, 3)))
    except softmap.InfeasibleModel:
        return "a feasible model called infeasible"
    near = slack(float(best)) * 1e3
    if result.status is Status.NONE_BELOW and float(best) < limit - near:
        return "a labelling below the limit was denied"
    if result.status is Status.OPTIMAL and abs(result.energy - float(best)) > near:
        return "a labelling called optimal is not"
    if result.bound > float(best) + near and result.bound > limit + near:
        return "the bound is above the optimum and the limit"
    return None if softmap.verify(result).holds else "verify rejects"


def _saved(rng: np.random.Generator) -> str | None:
    """A saved result and its proof are accepted; with a better bound the result is not checked."""
    model = random_model(rng)
    if optimum(model) is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        softmap.write(model, folder / "m.npz")
        result = softmap.solve(model, proof=folder / "p")
        result.save(folder / "r.npz", with_model=False)
        report = softmap.verify(folder / "r.npz", model, proof=folder / "p")
        if not report.holds or report["bound"].verdict.value != "checked":
            return f"its own proof is not enough: {report['bound'].numbers}"
        better = result.bound + max(1.0, abs(result.bound)) * 10.0 ** -float(rng.integers(0, 7))
        replace(result, bound=better, energy=max(better, result.energy)).save(
            folder / "f.npz", with_model=False
        )
        forged = softmap.verify(folder / "f.npz", model, proof=folder / "p")
        if forged.checked:
            return "a better bound than the proof's is called checked"
        words = [
            "verify",
            str(folder / "f.npz"),
            str(folder / "m.npz"),
            "--proof",
            str(folder / "p"),
        ]
        return "a forged result exits with 0" if _quiet(words) == 0 else None


def _quiet(words: list[str]) -> int:
    with _muted():
        return main(words)


@contextlib.contextmanager
def _muted() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def _terminated(rng: np.random.Generator) -> str | None:
    """SIGTERM or SIGHUP ends a command as Ctrl-C does: with a result, and without temporary files.

    The command runs in a fork of this process: a new one would spend its time on imports.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        side = int(rng.integers(3, 14))
        model = softmap.generators.potts_grid(side, side, 5, seed=int(rng.integers(1000)))
        softmap.write(model, folder / "m.npz")
        words = ["solve", "m.npz", "--no-progress", "--gap", "0", "--save", "r.npz"]
        words += ["--proof", "p"] if rng.random() < 0.7 else []
        words += ["--checkpoint", "c.npz"] if rng.random() < 0.5 else []
        running = bool(rng.random() < 0.8)
        number = [signal.SIGTERM, signal.SIGHUP][rng.integers(2)]
        wait = float(rng.choice([0.0, 0.01, 0.1])) * rng.uniform()
        code = _ended(words, folder, wait, running, number)
        rest = {path.name for path in folder.iterdir()} - {"m.npz", "r.npz", "p", "c.npz"}
        if rest:
            return f"files remain: {sorted(rest)}"
        if code not in ((0, 130) if running else (0, 130, -number)):
            return f"exit code {code}"
        saved = folder / "r.npz"
        if not saved.exists():
            return "nothing was saved" if running or code == 0 else None
        if not softmap.verify(saved, model).holds:
            return "the saved result is false"
        if (folder / "p").exists() and not softmap.verify(saved, model, proof=folder / "p").holds:
            return "the proof of the saved result is false"
        return None


@cache
def _imported() -> None:
    """Import what the command imports late: forks then have it."""
    with tempfile.TemporaryDirectory() as name:
        model, result, proof = (str(Path(name) / one) for one in ("m.npz", "r.npz", "p"))
        softmap.write(softmap.generators.potts_grid(3, 3, 2, seed=1), model)
        _quiet(["solve", model, "--no-progress", "--save", result, "--proof", proof])


def _ended(words: list[str], folder: Path, wait: float, running: bool, number: int) -> int:
    """The exit code of a command that gets a signal after it, or its run, has begun."""
    _imported()
    begun, told = os.pipe()
    child = os.fork()
    if not child:
        code = 97
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(number, signal.SIG_DFL)
            os.chdir(folder)
            sys.argv = ["softmap", *words]
            loop = Run.loop

            def noted(run: Run, *given: Any) -> Iterator[None]:
                os.write(told, b"1")
                return loop(run, *given)

            with _muted(), mock.patch.object(Run, "loop", noted):
                if not running:
                    os.write(told, b"1")
                code = entry.main()
        except KeyboardInterrupt:  # before the command, or after its end
            code = 130
        finally:
            os._exit(code)
    os.close(told)
    os.read(begun, 1)
    os.close(begun)
    time.sleep(wait)
    os.kill(child, number)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


EXACT_KINDS: dict[str, Kind] = {
    "proofs": _proofs,
    "codes": _decoding,
    "cuts": _cuts,
    "elimination": _eliminated,
    "permutations": _permuted,
    "infeasible": _infeasible,
    "cutoffs": _cut_off,
    "saved results": _saved,
    "terminated": _terminated,
}
