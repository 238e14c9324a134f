"""Change the checker in one place at a time, and count the changes that its tests notice.

Every comparison, sign, rounding and condition of `softmap.verification` is changed, one per mutant.
A mutant is caught if a test fails, runs out of time, or ends its process. The tests are collected
once. A fork of the process runs, for each mutant, those that reach the changed line, the fastest
first. Changes that no test can notice, because they change no result, are listed in
tests/verification/mutants.txt with the reason. The program fails if less than 98 % of all other
mutants are caught, or if one of the list is caught.

    python tools/mutants.py [--workers 2] [--only reduction] [--again FILE] [--longest 0.3]
        [--seconds 580] [--out missed.txt]

With `--seconds` the tests of the checker run first, without a change; the mutants that were tried
until the time was over are counted, in an order that does not depend on the machine.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import copy
import importlib.abc
import importlib.util
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "src" / "softmap" / "verification"
KNOWN = ROOT / "tests" / "verification" / "mutants.txt"
TESTS = ["tests/verification", "tests/run/test_tampered.py"]
PYTEST = ["-q", "-x", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=0"]
REQUIRED = 0.98  # fraction of mutants caught
MEMORY = 8 << 30  # bytes that the tests of one mutant may allocate

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr}
RENAMED = {
    "floor": "ceil", "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum",
    "any": "all", "all": "any",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Attributes
    ----------
    module : str
        Name of the module in the package.
    place : str
        The function, the expression before and after the change, and a number if the function
        has several of them.
    lines : range
        The lines of the changed statement.
    inside : bool
        Whether the change is inside a function.
    source : str
        The changed module.
    """

    module: str
    place: str
    lines: range
    inside: bool
    source: str

    @property
    def name(self) -> str:
        """The name of this mutant in lists."""
        return f"{self.module}: {self.place}"


# --- mutants --------------------------------------------------------------------------------------


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the changed versions of one node of a syntax tree."""
    if isinstance(node, ast.Compare):
        for k, operator in enumerate(node.ops):
            ops = [*node.ops[:k], COMPARED[type(operator)](), *node.ops[k + 1 :]]
            yield ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BoolOp):
        for rest in without_one(node.values):
            yield ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0]
    elif isinstance(node, ast.If | ast.IfExp):
        yield from (changed(node, test=ast.Constant(value)) for value in (True, False))
    elif isinstance(node, ast.comprehension):
        yield from (changed(node, ifs=rest) for rest in without_one(node.ifs))
    else:
        yield from signs(node)


def signs(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node with another sign, rounding or extremum."""
    if isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATED:
        yield changed(node, op=OPERATED[type(node.op)]())
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("nextafter"):
        yield node.args[0]
    elif isinstance(node, ast.Attribute) and node.attr == "inf":
        yield ast.UnaryOp(ast.USub(), node)
    elif isinstance(node, ast.Attribute) and node.attr in RENAMED:
        yield changed(node, attr=RENAMED[node.attr])
    elif isinstance(node, ast.Name) and node.id in RENAMED:
        yield changed(node, id=RENAMED[node.id])


def without_one(values: list[Any]) -> Iterator[list[Any]]:
    """Yield the list without each of its elements."""
    for k in range(len(values)):
        yield values[:k] + values[k + 1 :]


def changed(node: ast.AST, **fields: Any) -> ast.AST:
    """Return a copy of a node with other fields."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def shown(node: ast.AST) -> str:
    """The text of a node on one line; of a condition, its test only."""
    if isinstance(node, ast.If | ast.IfExp):
        return f"if {ast.unparse(node.test)}"
    return " ".join(ast.unparse(node).split())


@dataclass(frozen=True)
class Site:
    """A node of a syntax tree, the function and the lines of its statement, and its slot."""

    node: ast.AST
    path: str
    inside: bool
    lines: range
    put: Callable[[ast.AST], None]


SILENT = {"annotation", "returns", "decorator_list"}


def sites(node: ast.AST, path: str = "", inside: bool = False, lines: range = range(0)) -> Any:
    """Yield the sites of all nodes that run, without annotations and texts of messages."""
    if isinstance(node, ast.JoinedStr | ast.Raise):
        return
    for name, value in ast.iter_fields(node):
        for k, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or name in SILENT:
                continue
            into, put = path, slot(node, name, value, k)
            own = statement_lines(child) if isinstance(child, ast.stmt) else lines
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                into = f"{path}.{child.name}".lstrip(".")
            deep = inside or isinstance(child, ast.FunctionDef)
            yield Site(child, into or "module", deep, own, put)
            yield from sites(child, into, deep, own)


def slot(node: ast.AST, name: str, value: Any, k: int) -> Callable[[ast.AST], None]:
    """Return a function that replaces one child of a node."""
    if isinstance(value, list):
        return lambda new: value.__setitem__(k, new)
    return lambda new: setattr(node, name, new)


def statement_lines(node: ast.stmt) -> range:
    """The lines of a statement; of a compound one, those before its body."""
    body = getattr(node, "body", None)
    if body and not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return range(node.lineno, max(body[0].lineno, node.lineno + 1))
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def mutants_of(module: str) -> Iterator[Mutant]:
    """Yield all mutants of one module."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text())
    seen: collections.Counter[str] = collections.Counter()
    for site in list(sites(tree)):
        for new in changes(site.node):
            place = f"{site.path}: {shown(site.node)} -> {shown(new)}"
            seen[place] += 1
            if seen[place] > 1:
                place += f" ({seen[place]})"
            if hasattr(site.node, "lineno"):
                ast.copy_location(new, site.node)
            site.put(ast.fix_missing_locations(new))
            yield Mutant(module, place, site.lines, site.inside, ast.unparse(tree))
            site.put(site.node)


def every_mutant() -> list[Mutant]:
    """The mutants of all modules."""
    modules = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
    found = [mutant for module in modules for mutant in mutants_of(module)]
    return sorted(found, key=lambda mutant: not mutant.inside)  # a constant takes a new process


# --- loading a changed module ---------------------------------------------------------------------


def install(mutant: Mutant) -> None:
    """Give every function of the loaded module the code of the changed one."""
    old = sys.modules[f"softmap.verification.{mutant.module}"]
    new = types.ModuleType(old.__name__)
    vars(new).update(__package__=old.__package__, __file__=old.__file__)
    exec(compile(mutant.source, mutant.name, "exec"), vars(new))
    replace_code(vars(old), vars(new))


def replace_code(old: Any, new: Any) -> None:
    """Replace the code of functions, methods and properties by that of another version."""
    for name, value in new.items():
        before = old.get(name)
        for function in ("__func__", "fget"):
            value, before = getattr(value, function, value), getattr(before, function, before)
        if type(before) is not type(value) or not hasattr(value, "__module__"):
            continue
        if before.__module__ != value.__module__:
            continue
        if isinstance(value, types.FunctionType):
            before.__code__, before.__defaults__ = value.__code__, value.__defaults__
        elif isinstance(value, type):
            replace_code(vars(before), vars(value))


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the changed source of one module: for constants, which other modules import."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant, self._name = mutant, f"softmap.verification.{mutant.module}"

    def find_spec(self, name: str, path: object, target: object = None) -> Any:
        """Return a specification for the changed module, None for others."""
        return importlib.util.spec_from_loader(name, self) if name == self._name else None

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the changed source."""
        exec(compile(self._mutant.source, self._mutant.name, "exec"), vars(module))


# --- running tests --------------------------------------------------------------------------------


def forked(action: Callable[[], int]) -> int:
    """Run an action in a fork without output; the child ends with the number that it returns."""
    child = os.fork()
    if child:
        return child
    status = 99
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        status = action()
    finally:
        os._exit(status)


def run_items(items: list[Any], after: Callable[[Any, float], None] | None = None) -> int:
    """Run tests until one fails; 1 if one does."""
    from _pytest.runner import runtestprotocol

    for item, following in zip(items, [*items[1:], None], strict=True):
        began = time.process_time()
        if any(report.failed for report in runtestprotocol(item, nextitem=following, log=False)):
            return 1
        if after is not None:
            after(item, time.process_time() - began)
    return 0


@dataclass(frozen=True)
class Reach:
    """One test: its seconds, and the lines of the checker that it runs, as (module, line)."""

    item: Any
    seconds: float
    lines: frozenset[tuple[str, int]]


def measured(items: list[Any]) -> list[Reach]:
    """Run all tests without a change, and record what each of them reaches, fastest first."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "lines.json"
        status = os.waitpid(forked(lambda: record(items, target)), 0)[1]
        if status:
            raise SystemExit("the tests fail without a change")
        found = json.loads(target.read_text())
    tests = [
        Reach(item, seconds, frozenset((module, line) for module, line in lines))
        for item, (seconds, lines) in zip(items, found, strict=True)
    ]
    return sorted(tests, key=lambda test: test.seconds)


def record(items: list[Any], target: Path) -> int:
    """Run tests and write the seconds and the lines of each."""
    found, lines, names = [], set[tuple[str, int]](), dict[str, str]()
    names.update({str(path): path.stem for path in FOLDER.glob("*.py")})

    def local(frame: Any, event: str, arg: object) -> Any:
        lines.add((names[frame.f_code.co_filename], frame.f_lineno))
        return local

    def trace(frame: Any, event: str, arg: object) -> Any:
        return local(frame, event, arg) if frame.f_code.co_filename in names else None

    def after(item: Any, seconds: float) -> None:
        found.append((seconds, sorted(lines)))
        lines.clear()

    sys.settrace(trace)
    status = run_items(items, after)
    target.write_text(json.dumps(found))
    return status


@dataclass
class Attempt:
    """The tests of one mutant, in a process of their own."""

    mutant: Mutant
    child: int
    latest: float

    @classmethod
    def start(cls, mutant: Mutant, tests: list[Reach]) -> Attempt:
        """Start the tests that reach the mutant."""
        touched = {(mutant.module, line) for line in mutant.lines}
        reached = [test for test in tests if not mutant.inside or touched & test.lines]
        limit = 10 + int(4 * sum(test.seconds for test in reached))

        def action() -> int:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            if not mutant.inside:
                files = dict.fromkeys(str(test.item.path) for test in tests)
                command = [sys.executable, __file__, "--one", mutant.name, "--tests", *files]
                return int(subprocess.run(command, check=False).returncode != 0)
            install(mutant)
            return run_items([test.item for test in reached])

        return cls(mutant, forked(action), time.monotonic() + 20 * limit)

    def caught(self) -> bool | None:
        """Whether a test failed or the time is over; None while the tests run."""
        done, status = os.waitpid(self.child, os.WNOHANG)
        if done:
            return status != 0
        if time.monotonic() < self.latest:
            return None
        self.end()
        return True

    def end(self) -> None:
        """End the tests."""
        with contextlib.suppress(ProcessLookupError):  # not yet a group of its own
            os.killpg(self.child, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)


def attempts(
    mutants: list[Mutant], tests: list[Reach], workers: int, end: float
) -> Generator[tuple[Mutant, bool], None, None]:
    """Run the tests of mutants, some at a time, until the time `end`; yield which were caught."""
    waiting, running = mutants[::-1], list[Attempt]()
    try:
        while (waiting or running) and time.monotonic() < end:
            while waiting and len(running) < workers:
                running.append(Attempt.start(waiting.pop(), tests))
            time.sleep(0.01)
            for attempt in list(running):
                if (found := attempt.caught()) is not None:
                    running.remove(attempt)
                    yield attempt.mutant, found
    finally:
        for attempt in running:
            attempt.end()


class Campaign:
    """A plugin of pytest that runs the collected tests on all mutants.

    Attributes
    ----------
    status : int
        0 if enough mutants were caught.
    """

    def __init__(self, mutants: list[Mutant], said: argparse.Namespace) -> None:
        self._mutants, self._workers, self.status = mutants, said.workers, 2
        self._longest, self._seconds, self._out = said.longest, said.seconds, said.out

    def pytest_runtestloop(self, session: Any) -> bool:
        """Replace pytest's own loop."""
        tests, reasons = measured(session.items), known()
        tests = [test for test in tests if test.seconds <= self._longest]
        seconds = sum(test.seconds for test in tests)
        print(f"{len(self._mutants)} mutants, {len(tests)} tests of {seconds:.1f} s", flush=True)
        counts, stopped = Counts(reasons), time.monotonic() + self._seconds
        found = attempts(self._mutants, tests, self._workers, stopped)
        with contextlib.suppress(KeyboardInterrupt):
            for mutant, caught in found:
                counts.add(mutant, caught)
                if counts.done % 100 == 0:
                    print(f"{counts.done} done, {len(counts.survivors)} not caught", flush=True)
        found.close()
        if self._out is not None:
            self._out.write_text("".join(f"not caught: {name}\n" for name in counts.survivors))
        print(f"{counts.done} of {len(self._mutants)} mutants tried: {counts}")
        self.status = int(counts.share < REQUIRED or counts.wrong > 0)
        return True


class Counts:
    """Mutants that were tried, caught, and listed as those that no test can catch."""

    def __init__(self, reasons: dict[str, str]) -> None:
        self._reasons = reasons
        self.done = self.listed = self.wrong = 0
        self.survivors: list[str] = []

    def __str__(self) -> str:
        caught = f"{self.done - self.listed - len(self.survivors)} of {self.done - self.listed}"
        return f"{caught} caught ({100 * self.share:.1f} %), {self.listed} listed"

    @property
    def share(self) -> float:
        """The fraction of mutants that were caught, of those that are not listed."""
        return 1 - len(self.survivors) / max(self.done - self.listed, 1)

    def add(self, mutant: Mutant, caught: bool) -> None:
        """Add a mutant."""
        expected = mutant.name in self._reasons
        self.done, self.listed = self.done + 1, self.listed + expected
        self.wrong += expected and caught
        if not expected and not caught:
            self.survivors.append(mutant.name)
        if expected == caught:
            print("listed but caught:" if caught else "not caught:", mutant.name, flush=True)


def known() -> dict[str, str]:
    """The mutants that no test can catch, with the reason: a line, then its mutants, indented."""
    reasons, reason = {}, ""
    for line in KNOWN.read_text().splitlines():
        if line.startswith(" "):
            reasons[line.strip()] = reason
        elif line and not line.startswith("#"):
            reason = line
    return reasons


# --- the program ----------------------------------------------------------------------------------


def options() -> argparse.Namespace:
    """Read the command line."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--workers", type=int, default=1)
    reader.add_argument("--only", default="", help="mutants whose name contains this text")
    reader.add_argument(
        "--again", type=Path, help="the mutants that an earlier output calls missed"
    )
    reader.add_argument("--tests", nargs="*", default=TESTS, help="files or folders of tests")
    reader.add_argument("--longest", type=float, default=1e9, help="leave out longer tests, in s")
    reader.add_argument("--seconds", type=float, default=math.inf, help="stop after these")
    reader.add_argument("--out", type=Path, help="file for the mutants that were not caught")
    reader.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    reader.add_argument("--one", help=argparse.SUPPRESS)
    return reader.parse_args()


def chosen(said: argparse.Namespace) -> list[Mutant]:
    """The mutants to run."""
    found = [mutant for mutant in every_mutant() if said.only in mutant.name]
    if said.again is not None:
        start = "not caught: "
        lines = said.again.read_text().splitlines()
        missed = {line.removeprefix(start) for line in lines if line.startswith(start)}
        found = [mutant for mutant in found if mutant.name in missed]
    return found


def main() -> int:
    """Run the tests once per mutant."""
    import pytest

    said = options()
    os.chdir(ROOT)
    if said.one is not None:
        found = next(mutant for mutant in every_mutant() if mutant.name == said.one)
        sys.meta_path.insert(0, Changed(found))
        return int(pytest.main([*PYTEST, *said.tests]))
    mutants = chosen(said)
    for name in known().keys() - {mutant.name for mutant in every_mutant()}:
        print("listed, but no mutant any more:", name)
    if said.list:
        print(*(mutant.name for mutant in mutants), sep="\n")
        return 0
    campaign = Campaign(mutants, said)
    pytest.main([*PYTEST, *said.tests], plugins=[campaign])
    return campaign.status


if __name__ == "__main__":
    sys.exit(main())
