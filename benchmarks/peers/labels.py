"""Solvers of the scoreboard: each takes a file and its model; the last answer it yields counts."""

from __future__ import annotations

import gzip
import importlib
import lzma
import math
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import softmap
from benchmarks.peers import expansion, toulbar2

__all__ = ["SOLVERS", "Answer"]

OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open}
# files that toulbar2 reads; release 1.1.1 takes OPB files for other ones than they are
NATIVE = (".uai", ".wcsp", ".cfn", ".wcnf", ".qpbo")


@dataclass
class Answer:
    """Labels, bound and proof of one solver; all of it may be missing."""

    labels: Any = None
    bound: float = -math.inf
    proved: bool = False
    seconds: float = 0.0


def text_of(path: Path) -> str:
    """The decompressed text of a file."""
    with OPENERS.get(path.suffix, open)(path, "rt") as file:
        return str(file.read())


def by_softmap(path: Path, model: Any, seconds: float) -> Iterator[Answer]:
    """Our own run, with one thread."""
    softmap.solve(softmap.generators.random_grid(6, 6, 3), time_limit=1.0)  # loads what is lazy
    began = time.perf_counter()
    try:
        result = softmap.solve(model, time_limit=seconds, threads=1)
    except softmap.InfeasibleModel:
        yield Answer(proved=True, seconds=time.perf_counter() - began)
        return
    proved = result.status in (softmap.Status.OPTIMAL, softmap.Status.GAP)
    yield Answer(result.labels, result.bound, proved, time.perf_counter() - began)


def _toulbar2(run: Callable[[Path, float], toulbar2.Found | None]) -> Any:
    def solver(path: Path, model: Any, seconds: float) -> Iterator[Answer]:
        """One of toulbar2's programs, on the file itself or on the model as we write it."""
        suffix = "".join(s for s in path.suffixes[-2:] if s not in OPENERS)
        suffix = suffix if suffix in NATIVE else f".{suffix.rpartition('.')[2]}"
        observed = any(path.parent.glob(f"{path.name.split('.uai')[0]}.uai.evid*"))
        with tempfile.TemporaryDirectory() as folder:
            if suffix in NATIVE and not observed:
                (target := Path(folder) / f"model{suffix}").write_text(text_of(path))
            else:
                other = {".uai": ".uai", ".bif": ".uai", ".dat": ".wcsp"}.get(suffix, ".cfn")
                softmap.write(model, target := Path(folder) / f"model{other}")
            if (found := run(target, seconds)) is not None:
                yield _answer(model, found)

    return solver


def _answer(model: Any, found: toulbar2.Found) -> Answer:
    energy = energy_of(model, found.labels)
    known = math.isfinite(energy)  # a proof about labels that our model forbids is none
    bound = energy - found.short if known else -math.inf
    return Answer(found.labels, bound, found.proved and known, found.seconds)


def _command(file: Path, seconds: float) -> toulbar2.Found | None:
    return toulbar2.by_command([file], seconds)


def _neighbourhoods(file: Path, seconds: float) -> toulbar2.Found | None:
    # the package where there is no command: its wheel for aarch64 (1.4.0) needs a CPU with SVE
    if shutil.which("toulbar2") is None:
        return toulbar2.by_package(file, seconds, "vns")
    return toulbar2.by_command([file], seconds, "-vns")


def energy_of(model: Any, labels: Any) -> float:
    """The energy of labels by our model; +inf where there are none or they do not fit."""
    try:
        whole = np.asarray(labels, np.int64)
        fits = len(whole) in (model.n, model.network.num_variables)  # with chain variables
        return float(model.energy(whole)) if fits else math.inf
    except (TypeError, ValueError, softmap.ModelError):
        return math.inf


def by_dwave(path: Path, model: Any, seconds: float) -> Iterator[Answer]:
    """dwave-samplers: half of the time tabu search, half of it annealing with restarts."""
    samplers = importlib.import_module("dwave.samplers")
    quadratic = _quadratic(model)
    began, seed = time.perf_counter(), 0
    found = samplers.TabuSampler().sample(quadratic, timeout=500 * seconds, seed=seed).first
    yield Answer(_row(found, model), seconds=time.perf_counter() - began)
    while (taken := time.perf_counter() - began) < seconds:
        seed += 1
        other = samplers.SimulatedAnnealingSampler().sample(quadratic, num_reads=1, seed=seed).first
        if other.energy < found.energy:
            found = other
            yield Answer(_row(found, model), seconds=taken)


def _row(found: Any, model: Any) -> list[int]:
    return [int(found.sample[v]) for v in range(model.n)]


def _quadratic(model: Any) -> Any:
    """A model of two labels without auxiliary nodes as a binary quadratic model of dimod."""
    dimod = importlib.import_module("dimod")
    unary = np.asarray(model.unary).reshape(-1, 2)
    quadratic = dimod.BinaryQuadraticModel("BINARY")
    for v, (zero, one) in enumerate(unary.tolist()):
        quadratic.add_linear(v, one - zero)
    for e, (i, j) in enumerate(np.asarray(model.edges).tolist()):
        t = np.asarray(model.network.table(e), float)
        quadratic.add_linear(i, t[1, 0] - t[0, 0])
        quadratic.add_linear(j, t[0, 1] - t[0, 0])
        quadratic.add_quadratic(i, j, t[1, 1] - t[1, 0] - t[0, 1] + t[0, 0])
    return quadratic


def by_expansion(path: Path, model: Any, seconds: float) -> Iterator[Answer]:
    """α-expansion by gco-wrapper, on models whose edges share one metric."""
    importlib.import_module("gco")
    if (found := expansion.expansion(model)) is not None:
        yield Answer(found[0], seconds=found[1])


def by_scipy_qap(path: Path, model: Any, seconds: float) -> Iterator[Answer]:
    """scipy's quadratic_assignment, faq and then 2opt from its result, restarted at random."""
    optimize = importlib.import_module("scipy.optimize")
    n, *rest = map(float, path.read_text().split())
    flow, distance = np.array(rest).reshape(2, int(n), int(n))
    began, best, rng = time.perf_counter(), math.inf, np.random.default_rng(0)
    while (taken := time.perf_counter() - began) < seconds:
        options = {"rng": rng, "P0": "randomized"}
        start = optimize.quadratic_assignment(flow, distance, options=options)
        guess = np.column_stack([np.arange(int(n)), start.col_ind])
        found = optimize.quadratic_assignment(
            flow, distance, method="2opt", options={"rng": rng, "partial_guess": guess}
        )
        if found.fun < best:
            best = found.fun
            yield Answer(found.col_ind, seconds=taken)


def by_rc2(path: Path, model: Any, seconds: float) -> Iterator[Answer]:
    """RC2 of python-sat (stratified); its cost so far is a lower bound."""
    rc2 = importlib.import_module("pysat.examples.rc2").RC2Stratified
    formula = importlib.import_module("pysat.formula").WCNF(from_string=text_of(path))
    began = time.perf_counter()
    solver = rc2(formula)
    (timer := threading.Timer(seconds, solver.interrupt)).start()
    found, taken = solver.compute(expect_interrupt=True), time.perf_counter() - began
    timer.cancel()
    true = {v for v in found or () if v > 0}
    labels = [int(v + 1 in true) for v in range(model.n)] if found else None
    yield Answer(labels, float(solver.cost), found is not None, taken)


def by_cpsat(path: Path, model: Any, seconds: float) -> Iterator[Answer]:
    """CP-SAT of OR-Tools with one worker; products and soft constraints as reified literals."""
    cp_model = importlib.import_module("ortools.sat.python.cp_model")
    program = Program(cp_model.CpModel(), model.n)
    (program.read_clauses if ".wcnf" in path.name else program.read_sums)(text_of(path))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    program.model.minimize(sum(program.costs))
    began = time.perf_counter()
    status = solver.solve(program.model)
    taken, bound, labels = time.perf_counter() - began, solver.best_objective_bound, None
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        labels = [int(solver.value(x)) for x in program.variables]
    proved = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    yield Answer(labels, float(bound), proved, taken)


class Program:
    """A program of CP-SAT, filled from the text of a WCNF, OPB or WBO file.

    Parameters
    ----------
    model : CpModel
        An empty model.
    n : int
        The number of variables x1, x2, ...
    """

    def __init__(self, model: Any, n: int) -> None:
        self.model = model
        self.variables = [model.new_bool_var(f"x{v + 1}") for v in range(n)]
        self.costs: list[Any] = []
        self._products: dict[tuple[int, ...], Any] = {}
        self._names: dict[str, int] = {}

    def literal(self, signed: int) -> Any:
        """The variable ±v or its negation."""
        x = self.variables[abs(signed) - 1]
        return x if signed > 0 else x.negated()

    def read_clauses(self, text: str) -> None:
        """Add weighted clauses."""
        top = math.inf
        for line in text.splitlines():
            words = line.split()
            if not words or words[0].startswith("c"):
                continue
            if words[0] == "p":
                top = float(words[4]) if len(words) > 4 else math.inf
                continue
            clause = [self.literal(int(word)) for word in words[1:-1]]
            if words[0] == "h" or float(words[0]) >= top:
                self.model.add_bool_or(clause)
            else:
                violated = self.model.new_bool_var("")
                self.model.add_bool_or([*clause, violated])
                self.costs.append(int(words[0]) * violated)

    def read_sums(self, text: str) -> None:
        """Add the objective and the constraints of an OPB or WBO file."""
        text = re.sub(r"(?m)^\s*\*.*$", "", text)
        for statement in filter(str.strip, text.split(";")):
            if match := re.match(r"\s*(min|max):", statement):
                sign = 1 if match[1] == "min" else -1
                self.costs.append(sign * self._sum(statement[match.end() :]))
            elif not statement.strip().startswith("soft:"):
                self._constrain(statement)

    def _constrain(self, statement: str) -> None:
        weight = re.match(r"\s*\[\s*(\d+)\s*\]", statement)
        body = statement[weight.end() :] if weight else statement
        left, relation, right = re.split(r"(>=|<=|=)", body)
        total, bound = self._sum(left), int(right.replace(" ", ""))
        held = {">=": total >= bound, "<=": total <= bound, "=": total == bound}[relation]
        constraint = self.model.add(held)
        if weight:
            violated = self.model.new_bool_var("")
            constraint.only_enforce_if(violated.negated())
            self.costs.append(int(weight[1]) * violated)

    def _sum(self, text: str) -> Any:
        terms: list[tuple[int, list[int]]] = []
        for number, negated, name in re.findall(r"([-+]?\s*\d+)(?=\s)|(~?)\s*([A-Za-z_]\S*)", text):
            if number:
                terms.append((int(number.replace(" ", "")), []))
                continue
            terms = terms or [(1, [])]
            v = int(name[1:]) if re.fullmatch(r"x\d+", name) else self._number(name)
            terms[-1][1].append(-v if negated else v)
        return sum(weight * self._product(tuple(sorted(own))) for weight, own in terms)

    def _number(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names) + 1)

    def _product(self, own: tuple[int, ...]) -> Any:
        if len(own) < 2:
            return self.literal(own[0]) if own else 1
        if own not in self._products:
            product = self._products[own] = self.model.new_bool_var("")
            literals = [self.literal(v) for v in own]
            self.model.add_bool_and(literals).only_enforce_if(product)
            self.model.add_bool_or([product, *(x.negated() for x in literals)])
        return self._products[own]


SOLVERS: dict[str, Callable[[Path, Any, float], Iterator[Answer]]] = {
    "softmap": by_softmap, "toulbar2 command": _toulbar2(_command),
    "toulbar2 package": _toulbar2(toulbar2.by_package), "toulbar2 VNS": _toulbar2(_neighbourhoods),
    "dwave-samplers": by_dwave, "scipy QAP": by_scipy_qap, "RC2": by_rc2, "CP-SAT": by_cpsat,
    "α-expansion": by_expansion,
}  # fmt: skip
