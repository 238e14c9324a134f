"""A digest of the code that decides on the results of trials."""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import softmap
from softmap import core, generators
from softmap.app.experiments.entries import PAPER, SETTLED, Method, solvers
from softmap.model import Model
from softmap.relaxation import bounds, dual, polytope, transport
from softmap.run import judge

COMPILED = ("base", "families", "paper", "passes", "proof")  # folders of src/core
EXPERIMENTS = ("entries", "evaluation", "problems", "trials")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|^\s*#\s*include[^\n]*", re.DOTALL | re.MULTILINE)


def code_digest() -> str:
    """Return a digest of the sources that decide on numbers.

    It covers the classes of all methods in the figures with their bases, the modules that project
    and bound, the experiments, and the folders `COMPILED` of the core, whose sources are at hand in
    a clone alone; elsewhere the compiled inner loops take their place. Comments, docstrings,
    imports, spaces and the names of files do not count.
    """
    parts = sorted(hashlib.sha256(part).digest() for part in _sources())
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _sources() -> Iterator[bytes]:
    for file in _modules():
        yield bare_python(file.read_text(encoding="utf-8")).encode()
    compiled = Path(softmap.__file__).resolve().parent.parent / "core"
    if (compiled / "paper").is_dir():
        for folder in COMPILED:
            for source in (compiled / folder).rglob("*.?pp"):
                yield bare_cpp(source.read_text(encoding="utf-8")).encode()
    else:
        binary = Path(str(core.native.__file__))
        for loops in binary.parent.glob(f"_kernels_{core.level()}.*"):
            yield loops.read_bytes()


def _modules() -> set[Path]:
    entries = (*PAPER, *solvers(), Method("emp", "proved" + SETTLED))
    kinds = {kind for entry in entries for kind in type(entry.make(1.0)).mro()}
    modules: list[ModuleType | None] = [bounds, dual, polytope, transport, generators, judge]
    modules.append(inspect.getmodule(Model))
    modules += [inspect.getmodule(kind) for kind in kinds if kind.__module__.startswith("softmap")]
    here = Path(__file__).resolve().parent
    files = {here / f"{name}.py" for name in EXPERIMENTS}
    return files | {Path(module.__file__) for module in modules if module and module.__file__}


def bare_python(source: str) -> str:
    """Return a module without its comments, docstrings and imports."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [line for line in body if not isinstance(line, ast.Import | ast.ImportFrom)]
            if kept and _is_text(kept[0]):
                kept = kept[1:]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_text(line: ast.stmt) -> bool:
    value = line.value if isinstance(line, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def bare_cpp(source: str) -> str:
    """Return a C++ file without its comments and includes, with single spaces."""
    return " ".join(COMMENT.sub(" ", source).split())
