"""A stage whose code raises an exception ends alone; the run, its files and its proof are whole."""

import itertools
import json
import warnings

import numpy as np
import pytest

import softmap
from softmap.subsolvers.passes.decode import Decode
from softmap.subsolvers.passes.passes import Passes
from softmap.subsolvers.registry import Place, kinds
from softmap.verification.proof import check_proof

STAGES = [*kinds(Place.BEFORE, Place.BESIDE), Decode, Passes]
PLACES = ("__init__", "make", "plan", "__call__")
CASES = [
    (stage, place)
    for stage, place in itertools.product(STAGES, PLACES)
    if stage is not Passes or place not in ("__init__", "make")  # they are tested below
]
ERRORS = (np.linalg.LinAlgError, ValueError, FloatingPointError, RuntimeError, MemoryError)


def dense(seed):
    """A model of few variables to which most stages apply."""
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(7), 2)))
    tables = softmap.Tables(rng.normal(size=(len(pairs), 2, 2)))
    return softmap.Model(rng.normal(size=(7, 2)), pairs, tables)


def optimum(model):
    ranges = [range(int(d)) for d in model.num_labels[: model.num_visible]]
    return float(np.min(model.energy(np.array(list(itertools.product(*ranges))))))


@pytest.mark.parametrize(("stage", "place"), CASES)
def test_every_stage_may_fail_everywhere(stage, place, monkeypatch, tmp_path):
    kind = ERRORS[(STAGES.index(stage) + PLACES.index(place)) % len(ERRORS)]
    calls = []

    def failing(self, *arguments, **named):
        calls.append(place)
        raise kind("did not converge")

    monkeypatch.setattr(stage, place, failing)
    model = dense(1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = softmap.solve(model, proof=tmp_path / "proof", checkpoint=tmp_path / "run.npz")
    failed = [one.message for one in told if issubclass(one.category, softmap.StageWarning)]
    assert len(failed) == len(calls) == len(result.failures) <= 1
    assert [one.stage for one in failed] == [stage.name] * len(calls)
    assert all(f"{kind.__name__}: did not converge" in str(one) for one in failed)
    assert softmap.verify(result).holds
    best = optimum(model)
    assert result.bound <= best + 1e-9
    assert result.energy == pytest.approx(best)
    assert check_proof(tmp_path / "proof", model).bound <= best
    result.save(tmp_path / "result.npz")
    assert softmap.load_result(tmp_path / "result.npz").failures == result.failures
    monkeypatch.undo()
    again = softmap.resume(tmp_path / "run.npz", model)
    assert again.bound >= result.bound
    assert again.energy <= result.energy
    assert not again.failures


def broken(*arguments, **named):
    raise np.linalg.LinAlgError("1 eigenvectors failed to converge")


def test_a_run_without_passes_returns_its_first_answer(monkeypatch):
    monkeypatch.setattr(Passes, "set_up", broken)
    model = softmap.generators.potts_grid(6, 6, 3, seed=1)
    with pytest.warns(softmap.StageWarning, match="'relaxation' has failed"):
        result = softmap.solve(model, goal="lp")
    assert result.status is softmap.Status.FAILED
    assert result.found
    assert np.isfinite(result.bound)
    assert softmap.verify(result).holds


def test_labels_searched_for_in_the_background_may_fail(monkeypatch):
    from softmap.labels import LabelSearch

    monkeypatch.setattr(LabelSearch, "look", broken)
    model = softmap.generators.potts_grid(12, 12, 3, seed=1)
    with pytest.warns(softmap.StageWarning, match="'labels' has failed"):
        result = softmap.solve(model, threads=2, max_work=200 * model.m)
    assert softmap.verify(result).holds


def test_the_exception_is_raised_for_debugging(monkeypatch):
    monkeypatch.setenv("SOFTMAP_DEBUG", "1")
    monkeypatch.setattr(Passes, "__call__", broken)
    with pytest.raises(np.linalg.LinAlgError) as raised:
        softmap.solve(softmap.generators.potts_grid(12, 12, 3, seed=1), goal="labels")
    assert softmap.verify(raised.value.result).holds


@pytest.mark.parametrize("answer", [softmap.InfeasibleModel("a"), softmap.MissingExtra("a", "b")])
def test_exceptions_that_answer_the_user_are_raised(answer, monkeypatch):
    def answered(self, best, share):
        raise answer

    monkeypatch.setattr(Passes, "__call__", answered)
    with pytest.raises(type(answer)):
        softmap.solve(softmap.generators.potts_grid(6, 6, 3, seed=1))


def test_what_a_callback_raises_is_raised():
    def raising(snapshot):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as raised:
        softmap.solve(softmap.generators.potts_grid(9, 9, 3, seed=1), on_snapshot=raising)
    assert softmap.verify(raised.value.result).holds
    assert not raised.value.result.failures


def test_the_command_says_which_stage_failed(monkeypatch, tmp_path, capsys):
    from softmap.app.cli.app import main

    monkeypatch.setattr(Passes, "__call__", broken)
    path = tmp_path / "model.npz"
    softmap.write(softmap.generators.erdos_renyi(40, 3, seed=1), path)
    assert main(["solve", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    reason = "LinAlgError: 1 eigenvectors failed to converge"
    assert json.loads(out)["failures"] == [{"stage": "relaxation", "error": reason}]
    assert f"the subsolver 'relaxation' has failed ({reason})" in err


@pytest.mark.parametrize(("diversity", "files"), [(None, True), (None, False), (2, False)])
def test_labellings_that_were_found_are_returned(diversity, files, monkeypatch, tmp_path):
    from softmap.tasks import mbest, parts

    calls = []

    def failing(*arguments, **named):
        calls.append(1)
        if len(calls) > 2:
            raise np.linalg.LinAlgError("did not converge")
        return usual(*arguments, **named)

    module, name = (parts, "solve_exact") if diversity is None else (mbest, "next_diverse")
    usual = getattr(module, name)
    monkeypatch.setattr(mbest, "_by_elimination", lambda *_: None)
    monkeypatch.setattr(module, name, failing)
    proof = {"proof": tmp_path / "proof"} if files else {}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ranked = softmap.solve_mbest(dense(2), 40, diversity=diversity, **proof)
    kinds = [one.category for one in told]
    assert softmap.StageWarning in kinds
    assert (softmap.ProofWarning in kinds) == files
    assert 0 < len(ranked) < 40
    energies = sorted(
        float(dense(2).energy(np.array(x))) for x in itertools.product(*[range(2)] * 7)
    )
    if diversity is None:
        for entry, energy in zip(ranked, energies, strict=False):
            assert entry.bound <= energy + 1e-9
            assert entry.energy == pytest.approx(energy)


@pytest.mark.parametrize("name", ["__init__", "branched", "put", "exact_log_partition"])
@pytest.mark.parametrize("good", [0, 1, 5])
def test_marginal_map_returns_the_bounds_it_has(name, good, monkeypatch):
    from softmap.methods.marginals.cases import Cases
    from softmap.tasks import summed

    model, left = dense(3), [good]
    owner = summed if name == "exact_log_partition" else Cases
    whole = softmap.marginal_map(model, range(3))
    usual = getattr(owner, name)

    def failing(*arguments, **named):
        left[0] -= 1
        if left[0] < 0:
            raise np.linalg.LinAlgError("did not converge")
        return usual(*arguments, **named)

    monkeypatch.setattr(owner, name, failing)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = softmap.marginal_map(model, range(3), table=2)
    assert found.bound <= whole.energy + 1e-9
    assert found.energy >= whole.bound - 1e-9
    assert (found.status is softmap.Status.FAILED) == (left[0] < 0) == (len(told) == 1)
