"""The front door: `softmap.extend` has what it lists, and the contract covers every package."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import softmap
from softmap import extend
from softmap.io.formats import FORMATS, Format
from softmap.methods.base import METHODS
from softmap.model.potentials import FAMILIES
from softmap.subsolvers import registry
from support.data import ROOT

ROOMS = sorted(path.stem for path in Path(extend.__file__).parent.glob("[a-z]*.py"))
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
TENANTS = next(c for c in CONTRACTS["contracts"] if "front door" in c["name"])
OPEN = {"softmap.arguments", "softmap.errors", "softmap.extend", "softmap.generators",
        "softmap.hints", "softmap.io", "softmap.later"}  # fmt: skip


@pytest.mark.parametrize("name", ["", *ROOMS])
def test_every_name_exists(name):
    module = import_module(f"softmap.extend.{name}" if name else "softmap.extend")
    assert module.__doc__
    assert all(getattr(module, member) is not None for member in module.__all__)


def test_it_stays_small():
    assert len(extend.__all__) <= 40
    assert len(ROOMS) <= 5
    assert not set(extend.__all__) & set(softmap.__all__)


def test_the_page_names_what_there_is():
    page = (ROOT / "docs" / "reference" / "extend.md").read_text("utf-8")
    rooms = {f"extend.{room}" for room in ROOMS}
    assert [name for name in (*extend.__all__, *rooms) if f"`{name}`" not in page
            and f"extend.{name}`" not in page and f"`{name}." not in page] == []  # fmt: skip


def test_its_import_loads_nothing_else():
    script = (
        "import sys, softmap.extend\nprint(*(n for n in sys.modules if n.startswith('softmap')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["softmap", "softmap.extend"]


def test_the_contract_names_every_package_below_the_door():
    tenants = set(TENANTS["source_modules"])
    inside = {f"softmap.{path.stem}" for path in (ROOT / "src" / "softmap").glob("[a-z]*")}
    below = inside - tenants - OPEN - {"softmap.app", "softmap.py"}
    assert below <= set(TENANTS["forbidden_modules"])
    assert tenants >= {"softmap.codes", "softmap.learn", "softmap.scale", "softmap.views"}
    assert TENANTS["allow_indirect_imports"] is True
    assert "ignore_imports" not in TENANTS


def test_register_knows_each_kind(monkeypatch):
    monkeypatch.setattr(registry, "TABLE", registry.TABLE)
    for kinds in (FAMILIES, FORMATS, METHODS.data):
        monkeypatch.setitem(kinds, "mine", None)  # removed again at the end
    family = type("Mine", (extend.Potential,), {"family": "mine"})
    method = type("Method", (extend.Algorithm,), {"name": "mine"})
    once, beside = type("First", (extend.Once,), {}), type("Beside", (extend.Subsolver,), {})
    form = Format("mine", (".mine",), FORMATS["uai"].begins)
    for kind in (family, method, once, beside, form):
        extend.register(kind)
    assert FAMILIES["mine"] is family
    assert METHODS["mine"] is method
    assert FORMATS["mine"] is form
    first, last = registry.TABLE[0], registry.TABLE[-1]
    assert (first.place, first.kind) == (registry.Place.BEFORE, once)
    assert (last.place, last.kind) == (registry.Place.BESIDE, beside)


@pytest.mark.parametrize("kind", [dict, None, "anneal"])
def test_register_rejects_what_is_no_extension(kind):
    with pytest.raises(TypeError, match="no family, method, subsolver or format"):
        extend.register(kind)
