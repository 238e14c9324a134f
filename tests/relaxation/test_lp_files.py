"""LP and MPS files: HiGHS solves them to the values of the model, and its solutions come back."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings

import softmap
from softmap import lp
from support.oracles import brute_force, dense_lp
from support.strategies import models


def solved(path, solution):
    """Read and solve a file with HiGHS, write its solution."""
    import highspy

    if path.suffix == ".gz":  # HiGHS 1.11 is built without zlib
        path, packed = path.with_suffix(""), path
        path.write_bytes(gzip.decompress(packed.read_bytes()))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(path))
    highs.run()
    highs.writeSolution(str(solution), 0)
    return highs.getInfo().objective_function_value


@pytest.mark.parametrize("suffix", [".lp", ".mps", ".mps.gz"])
@given(model=models())
@settings(max_examples=6)
def test_programs_have_the_values_of_the_model(tmp_path_factory, suffix, model):
    folder = tmp_path_factory.mktemp("programs")
    for integer in (False, True):
        lp.write(model, folder / f"m{suffix}", integer=integer)
        value = solved(folder / f"m{suffix}", folder / "m.sol")
        found = lp.read_solution(model, folder / "m.sol")
        if integer:
            best, _ = brute_force(model)
            assert value == pytest.approx(best, abs=1e-6)
            assert found.energy == pytest.approx(best, abs=1e-6)
        else:
            assert value == pytest.approx(dense_lp(model), abs=1e-6)
            if found.labels is not None:
                assert found.energy == pytest.approx(value, abs=1e-6)


def test_factors_and_constants(tmp_path):
    factors = [((0, 1, 2), np.arange(8.0).reshape(2, 2, 2)), ((0,), [3.0, 0.0])]
    model = softmap.Model.from_factors([2, 2, 2], factors, constant=-7.5)
    lp.write(model, tmp_path / "m.lp", integer=True)
    value = solved(tmp_path / "m.lp", tmp_path / "m.sol")
    found = lp.read_solution(model, tmp_path / "m.sol")
    assert value == pytest.approx(-4.5)
    assert found.energy == pytest.approx(-4.5)
    assert found.labels.tolist() == [0, 0, 0]


OTHERS = [
    b"# Objective value = 1\nx0_0 0\nx0_1 1\nx1_0 1\nx1_1 0\ny0_0_0 0\n",  # Gurobi
    b"solution status: optimal\nobjective value: 1\nx0_1    1 \t(obj:0)\nx1_0  1.0 \t(obj:1)\n",
]


@pytest.mark.parametrize("text", OTHERS)
def test_solutions_of_other_solvers(text, tmp_path):
    model = softmap.Model(np.eye(2), [[0, 1]], softmap.Potts([0.3]))
    (tmp_path / "other.sol").write_bytes(text)
    assert lp.read_solution(model, tmp_path / "other.sol").labels.tolist() == [1, 0]


BAD = {
    b"": "none",
    b"x9_0 1\n": "x9_0",
    b"x0_7 1\n": "x0_7",
    b"x0_0 1\nx1_0 0.2\n": "sum to 0.2",
    b"1 0 1 x0_0 5\n": "sum to 5",
}


@pytest.mark.parametrize("text", BAD)
def test_other_files_are_refused(text, tmp_path):
    model = softmap.Model(np.eye(2), [[0, 1]], softmap.Potts([0.3]))
    (tmp_path / "bad.sol").write_bytes(text)
    with pytest.raises(softmap.FormatError, match=BAD[text]):
        lp.read_solution(model, tmp_path / "bad.sol")


def test_fractional_solutions_have_no_labels(tmp_path):
    model = softmap.Model(np.eye(2), [[0, 1]], softmap.Potts([0.3]))
    (tmp_path / "half.sol").write_bytes(b"x0_0 0.5\nx0_1 0.5\nx1_0 1\n")
    found = lp.read_solution(model, tmp_path / "half.sol")
    assert found.labels is None
    assert np.isnan(found.energy)
    assert found.node_marginals.tolist() == [0.5, 0.5, 1.0, 0.0]


@pytest.mark.parametrize("target", ["m.txt", "m", 3, None])
def test_targets_of_other_names(target, tmp_path):
    with pytest.raises(softmap.OptionError, match=r"\.lp or \.mps"):
        lp.write(softmap.Model(np.eye(2), [], []), target)


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_write_knows_linear_programs(tmp_path, suffix):
    model = softmap.generators.potts_grid(2, 2, 2, seed=1)
    softmap.write(model, tmp_path / f"a{suffix}", integer=True)
    softmap.lp.write(model, tmp_path / f"b{suffix}", integer=True)
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    with pytest.raises(softmap.FormatError, match="expected columns of whole numbers"):
        softmap.read(tmp_path / f"a{suffix}")
    with pytest.raises(softmap.OptionError, match="'integer' is no option of uai files"):
        softmap.write(model, tmp_path / "a.uai", integer=True)
