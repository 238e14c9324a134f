"""`import softmap` and building models stay light: what is heavy is loaded on first use."""

from __future__ import annotations

import subprocess
import sys
import time

from softmap import clock
from softmap.io.formats import FORMATS
from softmap.subsolvers.registry import TABLE, Place

HEAVY = ("scipy", "highspy", "matplotlib", "plotly", "h5py", "pandas", "networkx")
FOUNDATION = ("errors", "model", "generators", "io", "relaxation.dual", "relaxation.polytope")

BUILD = """
import numpy as np
model = softmap.generators.potts_grid(4, 5, 3)
model.energy(np.zeros((2, 20), int))
model.condition({0: 1}).fingerprint()
softmap.Model.from_factors([2, 2, 2], [((0, 1, 2), np.zeros((2, 2, 2)))]).network.graph.degree
"""


# What any command line of typer loads: pydantic and its requirements, from version 0.29 on.
COMMAND = """
import contextlib, pathlib, typer
app = typer.Typer(add_completion=False, rich_markup_mode=None)
@app.command()
def run(path: pathlib.Path, seconds: float = 1.0): pass
with contextlib.suppress(SystemExit): app(["x", "--seconds", "2"])
"""


def loaded_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())


def test_import_loads_nothing_heavy():
    assert not loaded_after("import softmap").intersection(HEAVY)


def test_building_models_compiles_nothing():
    imports = "\n".join(f"import softmap.{name}" for name in FOUNDATION)
    loaded = loaded_after(f"import softmap\n{imports}\n{BUILD}")
    assert "softmap.model" in loaded
    assert not loaded.intersection(HEAVY)


FIRST = """
import time
import softmap
model = softmap.generators.potts_grid(8, 8, 3, seed=1)
load = softmap.import_module
softmap.import_module = lambda name: time.sleep(0.2) or load(name)
began = time.perf_counter()
first = softmap.solve(model, time_limit=0.1)
taken = time.perf_counter() - began
assert 0.2 <= first.setup_seconds <= taken, (first.setup_seconds, taken)
assert first.status is softmap.Status.TIME_LIMIT
assert first.bound <= first.energy == model.energy(first.labels)
"""


def test_what_a_first_call_imports_counts_against_its_limit():
    loaded = loaded_after(FIRST)
    assert "softmap.drive.loop" in loaded
    assert not loaded.intersection((*HEAVY, "concurrent.futures"))


def test_an_import_counts_for_the_call_that_follows_at_once(monkeypatch):
    monkeypatch.setattr(clock, "AT_ONCE", 60.0)
    before = time.perf_counter()
    with clock.importing():
        pass
    after = time.perf_counter()
    assert before <= clock.call_began() <= after
    assert clock.call_began() >= after  # counted once
    with clock.importing():
        pass
    after = time.perf_counter()
    monkeypatch.setattr(clock, "AT_ONCE", 0.0)  # something else came between
    assert clock.call_began() >= after
    assert clock.call_began() >= after


def test_a_command_loads_what_it_needs(tmp_path):
    """A small model takes a moment to solve: what starts the command must not take longer."""
    path = tmp_path / "small.uai"
    path.write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1.0 0.3 0.5 1.2\n")
    words = ["solve", str(path), "--json"]
    code = f"from softmap.app.cli.app import main\nassert main({words!r}) == 0"
    loaded = loaded_after(code)
    assert "softmap.app.cli.solve" in loaded
    assert not loaded.intersection((*HEAVY, "rich", "softmap.views.page"))
    others = ("files", "demo", "doctor", "large", "many")
    assert not loaded.intersection(f"softmap.app.cli.{name}" for name in others)
    unused = ("run.warm", "drive.checkpoint", "subsolvers.clusters.tightening", "tasks")
    assert not loaded.intersection(f"softmap.{name}" for name in unused)
    standard = ("numpy.ma", "zipfile", "csv", "html", "hashlib", "tempfile")
    assert not (loaded - loaded_after(COMMAND)).intersection(standard)
    assert not loaded.intersection(("softmap.paper", "softmap.methods.sweeps.trws"))


READ = """
import io, softmap
softmap.io.format_of("a.wcsp", b"x 1 1 0 9")
softmap.read(io.BytesIO(b"MARKOV 1 2 0"))
"""


def test_reading_a_file_imports_its_format_only():
    loaded = loaded_after(READ)
    formats = {form.reader.partition(".")[0] for form in FORMATS.values() if form.reader}
    assert {name for name in formats if f"softmap.io.{name}" in loaded} == {"uai"}


def test_conversions_have_one_home_under_either_name():
    code = (
        "from softmap.interop.dimod import from_bqm\n"
        "import softmap.interop, softmap.io.interop\n"
        "assert softmap.io.interop is softmap.interop\n"
        "assert softmap.interop.dimod.from_bqm is from_bqm\n"
    )
    assert "softmap.interop.dimod" in loaded_after(code)


DENSE = """
import itertools
import softmap
pairs = list(itertools.combinations(range(12), 2))
model = softmap.Model([[0.0, k - 5.5] for k in range(12)], pairs, softmap.Potts([1.0] * len(pairs)))
assert softmap.solve(model, time_limit=60.0).status is softmap.Status.OPTIMAL
"""


def test_a_model_that_a_cut_solves_imports_no_subsolver_beside_the_relaxation():
    """They are made after the first check, if that leaves the gap open."""
    loaded = loaded_after(DENSE)
    lines = [(line.place, line.kind.__module__) for line in TABLE]
    assert {module for place, module in lines if place is Place.BEFORE} <= loaded
    assert not loaded.intersection(module for place, module in lines if place is Place.BESIDE)
    assert not loaded.intersection(("softmap.subsolvers.spins.tree", "fractions", "scipy"))


HARD = """
import itertools
import numpy as np
import softmap
tables = np.random.default_rng(0).normal(size=(6, 3, 3))
tables[0, 0, 0] = np.inf
pairs = list(itertools.combinations(range(4), 2))
model = softmap.Model(np.zeros((4, 3)), pairs, softmap.Tables(tables))
assert softmap.solve(model, time_limit=60.0).status is softmap.Status.OPTIMAL
"""


def test_a_model_with_hard_constraints_does_not_import_the_search_for_permutations():
    """Each such run asks whether its labels all differ; few of them do."""
    loaded = loaded_after(HARD)
    assert "softmap.subsolvers.permutations.permute" in loaded
    assert "softmap.labels.permutations" not in loaded
