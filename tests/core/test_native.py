"""The compiled core: which instruction set is loaded, and what happens when another is wanted."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from softmap import core

FLAGS = {  # as Linux spells them in /proc/cpuinfo; abm stands for lzcnt, pni for sse3
    "v2": "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
    "v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe",
    "v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
LANES = {"v2": 2, "v3": 4, "v4": 8, "plain": 2}


def run_core(code: str, cpu: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"from softmap import core; {code}"],
        env=os.environ | {"SOFTMAP_CPU": cpu},
        capture_output=True,
        text=True,
    )


def test_the_best_available_level_is_loaded_unless_told_otherwise():
    wanted = os.environ.get("SOFTMAP_CPU") or core.available()[-1]
    assert core.level() == wanted
    assert f"softmap.core._kernels_{wanted}" in sys.modules


@pytest.mark.skipif(
    not (Path("/proc/cpuinfo").exists() and platform.machine() == "x86_64"),
    reason="the flags of the processor are read from Linux",
)
def test_the_levels_are_those_of_the_processor():
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    flags = set(next(line for line in lines if line.startswith("flags")).split())
    expected = []
    for level, needed in FLAGS.items():
        if not flags.issuperset(needed.split()):
            break
        expected.append(level)
    assert core.cpu_level() == expected[-1]
    assert set(core.available()) <= set(expected)
    assert core.available()[-1] == expected[-1]


@pytest.mark.parametrize("level", core.available())
def test_every_available_level_can_be_asked_for(level):
    done = run_core("print(core.level(), core.width())", level)
    assert done.stdout.split() == [level, str(LANES[level])], done.stderr


@pytest.mark.parametrize("level", ["v1", "avx2", "V3", "../v3"])
def test_another_level_is_refused_by_name(level):
    done = run_core("", level)
    assert done.returncode != 0
    offered = ", ".join(core.available())
    assert f"OptionError: SOFTMAP_CPU={level}: this machine offers {offered}" in done.stderr


@pytest.mark.parametrize("level", core.available())
def test_all_levels_offer_the_same_functions(level):
    done = run_core("print(*sorted(dir(core.native)))", level)
    assert done.stdout.split() == sorted(dir(core.native))


def test_loops_for_a_newer_processor_only_are_refused_with_advice(monkeypatch):
    monkeypatch.setattr(core.native, "cpu_level", lambda: "v2")
    monkeypatch.setattr(core, "find_spec", lambda name: name.endswith("v4") or None)
    with pytest.raises(
        ImportError, match=r"newer processor than this one \(x86-64-v2\).*LEVELS=all"
    ):
        core.available()


@pytest.mark.parametrize("table", ["v3", object()])
def test_only_a_table_of_kernels_is_taken(table):
    with pytest.raises(ValueError, match="no table of kernels"):
        core.native.use(table)
    assert core.level() in core.available()


@pytest.mark.threads
def test_the_core_may_be_called_from_several_threads():
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: core.width(), range(1000))) == {core.width()}


@pytest.mark.parametrize("count", [0, 1, 7, 8, 1003])
def test_exponentials_are_those_of_numpy_up_to_rounding(count):
    values, out = -(np.random.default_rng(count).uniform(0.0, 26.0, count) ** 2), np.empty(count)
    core.exponentials(values, out)
    np.testing.assert_allclose(out, np.exp(values), rtol=2e-13)


def test_exponentials_of_very_small_numbers_stay_normal_numbers():
    out = np.empty(3)
    core.exponentials(np.array([-690.0, -1e6, -np.inf]), out)
    np.testing.assert_array_equal(out, out[0])
    assert 1e-301 < out[0] < 1e-299


def test_exponentials_need_as_much_room_as_there_are_values():
    with pytest.raises(ValueError, match="differ in size"):
        core.exponentials(np.zeros(3), np.empty(2))
