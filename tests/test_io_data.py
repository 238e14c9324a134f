"""The benchmark instances beside the repository, if they are there: read, and checked by energy."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import softmap
from data import shared_data
from softmap.io import read_dd, read_evidence, read_labels

DATA = shared_data()
pytestmark = pytest.mark.skipif(DATA is None, reason="no benchmark instances")
ROOT = DATA if DATA is not None else Path()

SUFFIX = re.compile(r"\.(uai|wcsp|cfn|h5|dd)(\.xz|\.gz)?$")
MODELS = sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("*/*") if SUFFIX.search(p.name))


def load(name: str) -> softmap.Model:
    evidence = ROOT / f"{re.sub('.xz$', '', name)}.evid"
    values = "cost" if name.startswith("uai-cost") else None
    return softmap.read(
        ROOT / name, values=values, evidence=evidence if evidence.exists() else None
    )


def table() -> dict[str, str]:
    """The rows of the folder's README, by folder and file name."""
    rows, folder = {}, ""
    for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("### ") and (ROOT / line[4:].strip()).is_dir():
            folder = line[4:].strip()
        elif match := re.match(r"\| ([^ |<]+)", line):
            rows[f"{folder}/{match[1]}"] = line
    return rows


ROWS = table() if DATA is not None else {}


@pytest.mark.parametrize("name", MODELS)
def test_every_instance_is_read_and_has_the_documented_energy(name):
    model = load(name)
    row = next((line for key, line in ROWS.items() if key == name), None)
    assert row is not None, "an instance without a row in the README"
    variables, labels = (cell.strip() for cell in np.array(row.split("|"))[[3, 5]])
    assert model.num_variables == int(re.match(r"\d+", variables)[0])
    if not name.startswith("graph-matching"):
        counts = model.num_labels[: model.num_variables]
        assert re.findall(r"\d+", labels)[:1] == [str(counts.min())]
        assert re.findall(r"\d+", labels)[-1:] == [str(counts.max())]
    solution = ROOT / f"{re.sub('.xz$', '', name)}.MAP"
    documented = re.search(r"reference solution (-?[\d.]+)", row)
    assert solution.exists() == (documented is not None)
    if documented is not None:
        energy = model.energy(read_labels(solution))
        assert energy == pytest.approx(float(documented[1]), abs=6e-5)


def test_documented_optimum_of_a_wcsp():
    labels = np.array((ROOT / "wcsp/CELAR6-SUB0.sol").read_text().split(), dtype=int)
    assert load("wcsp/CELAR6-SUB0.wcsp.xz").energy(labels) == 159


def test_both_dialects_of_evidence_occur():
    counts = {p.name: len(read_evidence(p)) for p in ROOT.glob("*/*.evid")}
    assert counts["rus_20_40_9_3.uai.evid"] == 784
    assert counts["relational_3.uai.evid"] == 7
    assert counts["Promedas_11.uai.evid"] == 20


def test_families_of_the_opengm_instance():
    model = load("opengm-h5/triplepoint4-plain-ring.h5")
    assert [p.family for p in model.potentials] == ["shared"]
    assert model.m == 28560


def test_pairs_written_twice_are_merged():
    model = load("uai-wcsp/wcsp_18.uai.xz")
    assert model.m == 16904 - 13972
    assert len(np.unique(np.sort(model.edges, axis=1), axis=0)) == model.m


def test_multi_graph_file_is_read_block_by_block():
    (path,) = ROOT.glob("graph-matching/hotel*.txt.xz")
    with pytest.raises(softmap.FormatError, match="6"):
        softmap.read(path)
    for block in range(6):
        assert read_dd(path, block=block).num_labels.tolist() == [11] * 10


@pytest.mark.parametrize("name", ["uai-bayes/water.uai", "wcsp/404.wcsp.xz", "cfn/alarm.cfn.gz"])
def test_written_instances_have_the_same_energies(name, tmp_path):
    model = load(name)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, model.num_labels[: model.num_variables], (50, model.num_variables))
    for suffix in (".uai.LG", ".cfn", ".h5", ".npz"):
        softmap.write(model, tmp_path / f"m{suffix}")
        again = softmap.read(tmp_path / f"m{suffix}")
        assert np.allclose(again.energy(labels), model.energy(labels), rtol=1e-12)
