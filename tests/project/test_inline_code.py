"""Code inside sentences and tables of the pages: names, keywords, commands and files exist."""

import ast
import contextlib
import functools
import importlib
import inspect
import io
import re

import pytest

import softmap
from softmap.app.cli.app import COMMANDS, main
from support.data import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES.remove(ROOT / "docs" / "history.md")  # it has the names of its day
for folder in ("guides", "reference", "theory", "benchmarks"):
    PAGES += sorted((ROOT / "docs" / folder).glob("*.md"))
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"\bsoftmap(?:\.[A-Za-z_]\w*)+(?!\.py)")
COMMAND = re.compile(r"(?:mpiexec -n \d+ )?softmap ([a-z][a-z-]*)(.*)")
OPTION = re.compile(r"(?<!\S)(--[a-z][a-z-]*|-[a-z]{1,2})(?![\w-])")
FILE = re.compile(r"(?:src|docs|tests|benchmarks|tools|theorems)/[\w./-]+\w")
OPTIONAL = ("cpmpy", "sinter")  # modules of ours that need these packages


def codes():
    return [
        pytest.param(path, code, id=f"{path.name}: {code[:60]}")
        for path in PAGES
        for code in dict.fromkeys(CODE.findall(path.read_text("utf-8")))
        if "softmap" in code or FILE.fullmatch(code) or re.match(r"[A-Za-z_.]+\(.*\)$", code)
    ]


def found(path: str):
    """The object of a dotted name, which may be that of a module."""
    value, parts = softmap, path.split(".")
    for k, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(".".join(parts[:k]))
    return value


@functools.cache
def help_of(command: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        assert main([command, "--help"]) == 0
    return shown.getvalue()


def calls(code: str):
    """Calls of public functions in an expression, with the names of their keywords."""
    try:
        tree = ast.parse(code, mode="eval")
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and re.fullmatch(r"[\w.]+", ast.unparse(node.func)):
            name = ast.unparse(node.func).removeprefix("softmap.")
            if name.split(".")[0] in softmap.__all__:
                # a keyword without a name is `**options`: the code is a signature
                yield f"softmap.{name}", [word.arg for word in node.keywords]


@pytest.mark.parametrize(("path", "code"), codes())
def test_inline_code_is_true(path, code):
    if any(f".{name}" in code for name in OPTIONAL):
        pytest.skip("needs a package that tests do without")
    for name in NAME.findall(code):
        found(name)
    for name, keywords in calls(code):
        parameters = inspect.signature(found(name)).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()) and None not in keywords:
            assert set(keywords) <= {*parameters}, f"{name} has no {set(keywords) - {*parameters}}"
    if FILE.fullmatch(code):
        assert (ROOT / code).exists()
    if match := COMMAND.fullmatch(code):
        command, rest = match.groups()
        assert command in COMMANDS, code
        for option in OPTION.findall(rest):
            assert option in help_of(command), f"{command} has no {option}"
