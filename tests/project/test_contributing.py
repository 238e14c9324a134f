"""The worked examples of CONTRIBUTING.md: they run, and the header they teach is right."""

from __future__ import annotations

import ctypes
import inspect
import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import test_families
from softmap.errors import ModelError
from softmap.io.formats import FORMATS
from softmap.methods.base import METHODS
from softmap.model import Model, potentials
from softmap.model.layout import layout
from softmap.subsolvers import registry
from support import families
from support.data import ROOT
from support.numpy_twins import hard_message, soft_message
from support.pages import BLOCK, agrees, run_python

PAGE = ROOT / "CONTRIBUTING.md"
BLOCKS = BLOCK.findall(PAGE.read_text("utf-8"))
REGISTRIES = (potentials.FAMILIES, families.FAMILIES, METHODS, FORMATS)


@pytest.fixture(scope="module")
def names():
    """What the page's Python defines; its registrations last as long as this module's tests."""
    before = [dict(listed) for listed in REGISTRIES]
    table = registry.TABLE
    found: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for language, block in BLOCKS:
        if language == "python":
            printed = run_python(block, found, PAGE.name)
        elif language == "output":
            assert agrees(block, printed), f"the page says\n{block}\nbut it prints\n{printed}"
    yield found
    registry.TABLE = table
    for listed, kept in zip(REGISTRIES, before, strict=True):
        listed.clear()
        listed.update(kept)


CROSSED = [test for name, test in inspect.getmembers(test_families) if name.startswith("test_")]


@pytest.mark.parametrize("test", CROSSED, ids=lambda test: test.__name__)
def test_one_line_crosses_the_family_with_everything(names, test):
    choices = {
        "name": ["ordered"],
        "seed": [2, 3],
        "form": test_families.WRITABLE,
        "method": ["anneal", "slack"],
    }
    wanted = inspect.signature(test).parameters
    for chosen in itertools.product(*(choices[name] for name in wanted)):
        test(*chosen)


def test_a_kernel_that_is_not_compiled_is_named(names):
    fast = type("Fast", (names["Ordered"],), {"kernel_data": names["kernel_data"]})
    model = Model([[0.0, 1.0], [1.0, 0.0]], [[0, 1]], fast([0.5]))
    with pytest.raises(ModelError, match="no compiled kernel reads potentials of kind 'ordered'"):
        layout(model.network)


# --- the header ---------------------------------------------------------------------------------


def compiler() -> str | None:
    named = os.environ.get("CXX", "").split()
    candidates = [*named[:1], "c++", "g++", "clang++"]
    return next((found for name in candidates if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> ctypes.CDLL:
    if (program := compiler()) is None or sys.platform == "win32":
        pytest.skip("no C++ compiler")
    folder: Path = tmp_path_factory.mktemp("core")
    shutil.copytree(ROOT / "src" / "core", folder, dirs_exist_ok=True)
    (header,) = [block for language, block in BLOCKS if language == "cpp"]
    (folder / "families" / "ordered.hpp").write_text(header, "utf-8")
    listed = (folder / "families" / "all.hpp").read_text("utf-8")
    listed = listed.replace('#include "potts.hpp"', '#include "ordered.hpp"\n#include "potts.hpp"')
    listed = re.sub(r"(using Families =\s*FamilyList<[^;]*)>;", r"\1, Ordered>;", listed)
    (folder / "families" / "all.hpp").write_text(listed, "utf-8")
    driver, target = Path(__file__).with_name("family_driver.cpp"), folder / "family.so"
    flags = ["-std=c++20", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([program, *flags, f"-I{folder}", str(driver), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def test_it_is_the_last_of_the_list(library):
    library.last_name.restype = ctypes.c_char_p
    assert library.last_name() == b"ordered"


@pytest.mark.parametrize("way", ["by_one", "by_edges", "by_tile"])
@pytest.mark.parametrize("eta", [0.5, 30.0, 1e5, np.inf])
def test_its_messages_are_those_of_the_dense_tables(names, library, way, eta):
    width = 1 if way == "by_one" else library.lane_count()
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels = rng.integers(1, 7, 2)
        receiver = int(rng.integers(2))
        group = names["Ordered"](rng.choice([-1.0, 0.0, 0.7, 50.0, np.inf], width))
        a = rng.normal(size=(labels[1 - receiver], width))
        a[rng.random(a.shape) < 0.1] = np.inf
        out = np.empty((labels[receiver], width))
        call(library, way, labels, group.weights, receiver, a, out, eta)
        for k in range(width):
            d = len(out)
            if np.isinf(eta):
                expected = hard_message(group, k, receiver, a[:, k], d)
            else:
                expected = soft_message(group, k, receiver, a[:, k], eta, d)
            np.testing.assert_allclose(out[:, k], expected, rtol=1e-11, atol=1e-11 * (1 + 1 / eta))


def call(library, way, labels, weights, receiver, a, out, eta) -> None:
    def address(array: np.ndarray) -> ctypes.c_void_p:
        assert array.flags.c_contiguous
        return ctypes.c_void_p(array.ctypes.data)

    getattr(library, way)(
        address(labels), address(weights), receiver, address(a), address(out), ctypes.c_double(eta)
    )
