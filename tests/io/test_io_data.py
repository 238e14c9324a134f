"""The benchmark instances beside the repository, if they are there: read, and checked by energy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import softmap
from softmap.io import read_evidence, read_labels
from support.data import shared_data
from support.known import known

DATA = shared_data()
pytestmark = pytest.mark.skipif(DATA is None, reason="no benchmark instances")
ROOT = DATA if DATA is not None else Path()
KNOWN = {case.name: case for case in known(ROOT)} if DATA is not None else {}


@pytest.fixture(scope="module", params=list(KNOWN))
def instance(request):
    """Each instance, read once for all tests of it."""
    case = KNOWN[request.param]
    return case, case.read()


def test_every_instance_is_read_and_has_the_documented_energy(instance):
    case, model = instance
    assert model.network.num_variables == case.variables
    if not case.name.startswith("graph-matching"):
        counts = model.network.num_labels[: model.network.num_variables]
        assert (counts.min(), counts.max()) == (case.labels[0], case.labels[-1])
    solution = case.companion(".MAP")
    assert (solution is None) == (case.reference is None)
    if solution is not None:
        assert model.energy(read_labels(solution)) == pytest.approx(case.reference, abs=6e-5)


def test_certificates_agree_with_the_best_known_energies(instance):
    case, model = instance
    result = softmap.solve(model, time_limit=0.05)
    assert result.energy == pytest.approx(model.energy(result.labels))
    assert result.bound <= result.energy + 1e-9 * abs(result.energy)
    if case.best is not None:
        slack = 1e-4 + 1e-6 * abs(case.best)  # the README rounds to four decimals
        assert result.bound <= case.best + slack
        assert result.energy >= case.best - slack or not case.proved


def read_known(name: str) -> softmap.Model:
    return KNOWN[name].read()


def test_documented_optimum_of_a_wcsp():
    model = read_known("wcsp/CELAR6-SUB0.wcsp.xz")
    assert model.energy(read_labels(ROOT / "wcsp/CELAR6-SUB0.sol", model)) == 159


def test_both_dialects_of_evidence_occur():
    counts = {p.name: len(read_evidence(p)) for p in ROOT.glob("*/*.evid")}
    assert counts["rus_20_40_9_3.uai.evid"] == 784
    assert counts["relational_3.uai.evid"] == 7
    assert counts["Promedas_11.uai.evid"] == 20


def test_families_of_the_opengm_instance():
    model = read_known("opengm-h5/triplepoint4-plain-ring.h5")
    assert [p.family for p in model.potentials] == ["shared"]
    assert model.m == 28560


def test_pairs_written_twice_are_merged():
    model = read_known("uai-wcsp/wcsp_18.uai.xz")
    assert model.m == 16904 - 13972
    assert len(np.unique(np.sort(model.edges, axis=1), axis=0)) == model.m


def test_multi_graph_file_is_read_block_by_block():
    (path,) = ROOT.glob("graph-matching/hotel*.txt.xz")
    with pytest.raises(softmap.FormatError, match="6"):
        softmap.read(path)
    for block in range(6):
        assert softmap.read(path, block=block).num_labels.tolist() == [11] * 10


@pytest.mark.parametrize("name", ["uai-bayes/water.uai", "wcsp/404.wcsp.xz", "cfn/alarm.cfn.gz"])
def test_written_instances_have_the_same_energies(name, tmp_path):
    model = read_known(name)
    rng = np.random.default_rng(0)
    labels = rng.integers(
        0,
        model.network.num_labels[: model.network.num_variables],
        (50, model.network.num_variables),
    )
    for suffix in (".uai.LG", ".cfn", ".h5", ".npz"):
        softmap.write(model, tmp_path / f"m{suffix}")
        again = softmap.read(tmp_path / f"m{suffix}")
        assert np.allclose(again.energy(labels), model.energy(labels), rtol=1e-12)


MORE = sorted(
    path
    for folder in ("wcnf", "opb", "cfn-other")
    for path in (ROOT / "more" / folder).glob("*")
    if not path.name.endswith((".md", ".opt"))
)


@pytest.mark.parametrize("path", MORE, ids=lambda path: path.name[:40])
def test_files_that_failed_for_small_reasons_are_read(path):
    """MaxSAT Evaluation headers, names of OPB variables, large weights, repeated names."""
    model = softmap.read(path)
    labels = np.zeros(model.network.num_visible, dtype=int)
    assert not np.isnan(model.energy(labels))
    assert model.network.nbytes < 1 << 28


def test_a_market_split_problem_is_small_enough_to_be_solved():
    """Its chain of sums had 200 million states."""
    path = ROOT / "more/opb/normalized-opt-market-split_4_30_2.opb"
    if not path.exists():
        pytest.skip("not among the instances")
    model = softmap.read(path)
    assert model.network.n < 10_000
    result = softmap.solve(model, time_limit=0.2)
    assert result.bound <= result.energy
