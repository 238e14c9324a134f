"""Kernels are compiled once on a machine, and whatever happens to the folder they are kept in."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from softmap import core
from softmap.methods.cuda.arena import ARENA
from softmap.methods.cuda.cupy_device import HEADERS, Compiler, Store, sources
from softmap.methods.cuda.engine import DeviceClock
from softmap.methods.cuda.levels import RANGES
from softmap.methods.cuda.shapes import CHOICES, Shape
from softmap.methods.cuda.tiling import LANES, LIMITS
from softmap.methods.sweeps.loops import SAMPLED


class Counting:
    """Stands for a compiler; notes what it was asked for."""

    def __init__(self):
        self.names = []

    def __call__(self, text, name, options):
        self.names.append(name)
        return name.upper(), text.encode() + b"\n\0" + " ".join(options).encode()


def test_a_second_process_compiles_nothing(tmp_path, caplog):
    first, second = Counting(), Counting()
    names = ["tick", "bounds<Shape<Facts{.labels = 4}>>"]
    with caplog.at_level(logging.INFO, "softmap"):
        one = Compiler(first, ["sm_90", "13.0"], Store(tmp_path))
        one.begin(names)
        made = [one.kernel(name) for name in names]
        assert "compiling 2 GPU kernels" in caplog.text
        caplog.clear()
        other = Compiler(second, ["sm_90", "13.0"], Store(tmp_path))
        other.begin(names)
        assert [other.kernel(name) for name in names] == made
    assert sorted(first.names) == sorted(names)
    assert not second.names
    assert not caplog.text


def test_another_device_or_compiler_has_binaries_of_its_own(tmp_path):
    for facts in (["sm_90", "13.0"], ["sm_80", "13.0"], ["sm_90", "13.1"]):
        compiler = Counting()
        Compiler(compiler, facts, Store(tmp_path)).kernel("tick")
        assert compiler.names


@pytest.mark.parametrize("harm", ["cut", "changed", "empty"])
def test_a_damaged_binary_is_compiled_again(tmp_path, harm):
    made = Compiler(Counting(), [], Store(tmp_path)).kernel("tick")
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes({"cut": whole[:-3], "changed": whole[:-1] + b"?", "empty": b""}[harm])
    compiler = Counting()
    assert Compiler(compiler, [], Store(tmp_path)).kernel("tick") == made
    assert compiler.names


def test_a_folder_that_cannot_be_used_costs_time_only(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    for folder in (blocked / "kernels", None):
        compiler = Counting()
        assert Compiler(compiler, [], Store(folder)).kernel("tick")
        assert compiler.names


def test_errors_of_the_compiler_reach_who_waits(tmp_path):
    def broken(text, name, options):
        raise RuntimeError("tick: expected a ;")

    compiler = Compiler(broken, [], Store(tmp_path))
    compiler.begin(["tick"])
    with pytest.raises(RuntimeError, match="expected a ;"):
        compiler.kernel("tick")


def test_every_kernel_is_in_the_header_that_is_included_for_it():
    folder = sources() / "cuda"
    found = {}
    for path in folder.glob("*.hpp"):
        text = Path(path).read_text()
        for name in re.findall(r"SOFTMAP_(?:MODEL_)?KERNEL\s+(\w+)\(", text):
            found[name] = path.stem
    assert found
    assert {name: HEADERS.get(name, "judging") for name in found} == found


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("arena.hpp", f"tile_size = {LANES};"),
        ("arena.hpp", f"both % {LIMITS.halves}u"),
        ("batches.hpp", f"!H::bounded && H::N <= {CHOICES.teamed};"),
        ("passes.hpp", f"sampling = {SAMPLED};"),
        ("numbers.hpp", f"safe = {RANGES.single},"),
        ("numbers.hpp", f"safe = {RANGES.double},"),
        ("arena.hpp", "enum : int { " + ", ".join([*core.KINDS, "shared_tables"]) + " };"),
    ],
)
def test_the_kernels_and_the_driver_have_the_same_numbers(header, text):
    assert text in (sources() / "cuda" / header).read_text()


def test_the_clock_of_the_driver_is_that_of_the_kernels():
    text = (sources() / "cuda" / "passes.hpp").read_text()
    control = re.search(r"struct DeviceClock \{(.*?)\};", text, re.DOTALL)
    plain = re.sub(r"//.*|double|\s", "", control[1])
    assert tuple(re.split("[,;]", plain.strip(";"))) == DeviceClock.members


def test_facts_of_a_shape_are_those_of_the_kernels():
    text = (sources() / "cuda" / "arena.hpp").read_text()
    members = re.findall(
        r"(?:bool|int) (\w+) = (\S+);", re.search(r"Facts \{(.*?)\};", text, re.S)[1]
    )
    assert members == [(f.name, str(f.default).lower()) for f in fields(Shape)]


def test_an_arena_of_the_driver_is_that_of_the_kernels():
    text = (sources() / "cuda" / "arena.hpp").read_text()
    body = re.sub(r"//.*", "", re.search(r"struct Arena \{(.*?)\};", text, re.S)[1])
    assert tuple(re.findall(r"(\w+)\s*[,;]", body)) == ARENA.names


COMPILER = next((name for name in ("c++", "g++", "clang++") if shutil.which(name)), None)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize("header", sorted({*HEADERS.values(), "judging"}))
def test_kernels_use_only_what_the_run_time_compiler_has(header, host):
    """It has no standard library: ``cuda/std`` replaces the few headers that kernels use."""
    from softmap.core import _device

    wanted = re.compile(r"kind = (tables, .labels = 3, |potts, .labels = 3, .plain)|^[^F]*$")
    names = [
        name for name in _device.names()
        if HEADERS.get(name.split("<")[0], "judging") == header and wanted.search(name)
    ]  # fmt: skip
    assert names
    folder = sources()
    command = [
        COMPILER, "-std=c++20", "-fsyntax-only", "-x", "c++", "-nostdinc", "-nostdinc++",
        "-DSOFTMAP_DEVICE", "-D__CUDACC_RTC__",
        "-include", str(Path(__file__).with_name("builtins.hpp")),
        f"-I{folder / 'cuda' / 'std'}", f"-I{folder}", "-",
    ]  # fmt: skip
    lines = [f'#include "cuda/{header}.hpp"', "using namespace softmap::device;"]
    lines += [f"auto *kernel_{k} = &{name};" for k, name in enumerate(names)]
    text = "\n".join(lines) + "\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
