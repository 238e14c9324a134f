"""The project itself: cheap to import, documented, small pieces, and a README that is true."""

import ast
import importlib.util
import inspect
import json
import re
import subprocess
import sys
import tomllib

import pytest

import softmap
from support.data import ROOT

_SPEC = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
release = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(release)
SOURCES = sorted((ROOT / "src" / "softmap").rglob("*.py"))
HEAVY = {"scipy", "highspy", "matplotlib", "plotly", "h5py", "typer", "pandas", "jax"}


def run_python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout


def test_importing_softmap_loads_nothing_heavy():
    loaded = run_python("import sys, json, softmap; print(json.dumps(list(sys.modules)))")
    assert not HEAVY & set(json.loads(loaded))


def test_importing_softmap_loads_few_modules_beside_numpy():
    """A count, not a time: a busy machine does not change it."""
    code = (
        "import sys, numpy; before = set(sys.modules); import softmap; "
        "print(len(set(sys.modules) - before))"
    )
    assert int(run_python(code)) <= 10


@pytest.mark.parametrize("name", softmap.__all__)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(softmap, name)
    assert name in dir(softmap)
    if callable(value):
        assert inspect.getdoc(value)


def test_the_listed_names_are_the_exported_ones():
    assert set(softmap.__all__) == {*softmap._HOME, *softmap._MODULES, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        softmap.nonsense  # noqa: B018


@pytest.mark.parametrize("public", softmap.__all__)
def test_every_public_method_is_documented(public):
    for name, member in inspect.getmembers(getattr(softmap, public)):
        ours = str(getattr(member, "__module__", "")).startswith("softmap")
        if ours and not name.startswith("_") and inspect.isroutine(member):
            assert inspect.getdoc(member), f"{public}.{name}"


def functions_of(node: ast.AST):
    """All functions below a node; expressions hold none."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield child
        if not isinstance(child, ast.expr):
            yield from functions_of(child)


def test_functions_fit_on_a_screen():
    found, long = 0, []
    for path in SOURCES:
        for node in functions_of(ast.parse(path.read_text("utf-8"))):
            body = node.body[1:] if ast.get_docstring(node) else node.body  # words are not counted
            first = body[0].lineno if body else node.end_lineno
            length = (node.end_lineno or first) - first + node.body[0].lineno - node.lineno + 1
            found += 1
            if length > 60:
                long.append(f"{path.relative_to(ROOT)}: {node.name} has {length} lines")
    assert found > len(SOURCES)
    assert not long


def test_the_version_has_an_entry_or_is_under_way():
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## {softmap.__version__}" in changelog or "## Unreleased" in changelog


def test_version_changelog_citation_and_recipe_agree():
    assert release.faults() == [], "python tools/release.py"


@pytest.mark.parametrize(
    ("version", "changelog", "tag", "said"),
    [
        ("0.3.0.dev0", "## Unreleased\n\n## 0.2.0", None, ""),
        ("0.3.0.dev0", "## 0.3.0\n\n## 0.2.0", None, "begins with 0.3.0; expected Unreleased"),
        (
            "0.3.0.dev0",
            "## Unreleased\n\n## 0.1.0",
            None,
            "CITATION.cff says 0.2.0; expected 0.1.0",
        ),
        ("0.3.0.dev0", "## Unreleased\n\n## 0.2.0", "v0.3.0", "expected v0.3.0.dev0"),
        ("0.2.0", "## 0.2.0\n\n## 0.1.0", "v0.2.0", ""),
        ("0.2.0", "## Unreleased\n\n## 0.2.0", "v0.2.0", "begins with Unreleased; expected 0.2.0"),
        ("0.2.0", "## 0.2.0", "v0.2.1", "the tag is v0.2.1; expected v0.2.0"),
        ("0.3.0", "## 0.3.0\n\n## 0.2.0", "v0.3.0", "meta.yaml says 0.2.0; expected 0.3.0"),
    ],
)
def test_a_release_whose_parts_disagree_is_refused(
    version, changelog, tag, said, tmp_path, monkeypatch
):
    files = {
        "src/softmap/__init__.py": f'__version__ = "{version}"\n',
        "CHANGELOG.md": f"# Changelog\n\n{changelog}\n",
        "CITATION.cff": "version: 0.2.0\n",
        "tools/conda/meta.yaml": '{% set version = "0.2.0" %}\n',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    sentences = release.faults(tag)
    assert bool(sentences) == bool(said)
    assert said in "; ".join(sentences)


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_actions_and_ask_for_no_more_than_they_need(path):
    """Actions are pinned by digest, jobs read the repository only, and checkouts keep no token."""
    text = path.read_text("utf-8")
    actions = re.findall(r"uses: (\S+)(.*)", text)
    assert actions
    for action, comment in actions:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+(\.\d+)+", comment), action
    assert "\npermissions:\n  contents: read\n" in text
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")


def test_the_conda_recipe_asks_for_what_the_project_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    recipe = (ROOT / "tools" / "conda" / "meta.yaml").read_text("utf-8")
    for requirement in project["dependencies"]:
        name = re.match(r"[\w-]+", requirement)[0]
        assert f"- {name} {requirement.removeprefix(name)}\n" in recipe
