"""Adding and removing a subsolver: one line of the table, and one module of the checker."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import softmap
from softmap.drive import checkpoint
from softmap.io.store import digest, read_archive, write_archive
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.records import bits, record
from softmap.run.subsolver import Once, Outcome
from softmap.subsolvers import registry
from softmap.subsolvers.registry import Line, Place, kinds
from softmap.verification import table as checkers
from softmap.verification.proof import check_proof
from support.logical import logical_model
from support.permutations import permutation_model, random_factors
from support.proof_files import write_proof
from support.toy_room.sums import KIND, LeastSums, Sums

TOY = Line(Place.BEFORE, "support.toy_room.sums:LeastSums")
BESIDE = Line(Place.BESIDE, "support.toy_room.sums:LeastSums")


def optimum(model: softmap.Model) -> float:
    ranges = [range(int(d)) for d in model.num_labels[: model.network.num_visible]]
    return float(np.min(model.energy(np.array(list(itertools.product(*ranges))))))


def triangle(seed: int = 0) -> softmap.Model:
    """Three variables whose relaxation is loose."""
    rng = np.random.default_rng(seed)
    tables = np.stack([np.eye(2) * 3] * 3) + rng.normal(size=(3, 2, 2)) / 9
    return softmap.Model(rng.normal(size=(3, 2)) / 9, [[0, 1], [1, 2], [0, 2]], tables)


def dense(labels: int, seed: int = 7) -> softmap.Model:
    rng = np.random.default_rng(seed)
    pairs = list(itertools.combinations(range(6), 2))
    shape = (len(pairs), labels, labels)
    return softmap.Model(rng.normal(size=(6, labels)), pairs, rng.normal(size=shape))


MODELS = {
    "tree": lambda: softmap.generators.random_tree(7, 3, seed=1),
    "triangle": triangle,
    "two labels": lambda: dense(2),
    "three labels": lambda: dense(3),
    "clauses": lambda: logical_model(np.random.default_rng(3)),
    "permutation": lambda: permutation_model(*random_factors(np.random.default_rng(202))),
    "grid": lambda: softmap.generators.potts_grid(3, 3, 3, seed=1),
}
DEFAULT = registry.TABLE
LINES = [line.kind.__name__ for line in registry.TABLE]


# --- removing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("removed", LINES)
@pytest.mark.parametrize("goal", ["map", "lp"])
def test_without_any_line_of_the_table_a_run_claims_what_is_true(removed, goal, monkeypatch):
    lines = tuple(line for line in registry.TABLE if line.kind.__name__ != removed)
    monkeypatch.setattr(registry, "TABLE", lines)
    for name, make in MODELS.items():
        model = make()
        best = optimum(model)
        result = softmap.solve(model, threads=1, goal=goal, max_work=100_000)
        assert result.bound <= best + 1e-9 * (1 + abs(best)), name
        assert result.energy >= best - 1e-9 * (1 + abs(best)), name
        assert softmap.verify(result).holds, name


def test_without_any_subsolver_a_run_returns_its_first_answer(monkeypatch):
    monkeypatch.setattr(registry, "TABLE", ())
    model = triangle()
    result = softmap.solve(model)
    assert result.status is softmap.Status.EXHAUSTED
    assert result.bound <= optimum(model) <= result.energy
    assert softmap.verify(result).holds


# --- the table ------------------------------------------------------------------------------------


def test_every_line_has_a_class_of_its_own_and_one_leads():
    classes = list(kinds())
    assert len(set(classes)) == len(classes) == len({kind.__name__ for kind in classes})
    assert sum(line.place is Place.RELAXATION for line in registry.TABLE) == 1
    words = [kind.evidence.kind for kind in classes if kind.evidence is not None]
    assert len(set(words)) == len(words)


def test_numbers_of_earlier_files_mean_one_name_each():
    pairs = {(kind.number, kind.name) for kind in kinds() if kind.number is not None}
    assert len(pairs) == len({number for number, _ in pairs}) == len(registry.numbered())


def test_results_of_earlier_versions_number_the_subsolvers(tmp_path):
    """Their traces are read as words; a number of none is refused."""
    path, earlier = tmp_path / "new.npz", tmp_path / "old.npz"
    result = softmap.solve(triangle())
    assert len(result.trace.stages) > 1
    result.save(path)
    header, arrays = read_archive(path, "result", 3, softmap.FormatError)
    numbers = {name: number for number, name in registry.numbered().items()}
    column = list(result.trace.columns()).index("stage")
    del header["stages"], header["digest"]
    arrays["trace"][:, column] = [numbers[row.stage] for row in result.trace]
    write_archive(earlier, header | {"digest": digest(header, arrays)}, arrays)
    assert softmap.load_result(earlier) == result
    assert softmap.verify(earlier).holds
    arrays["trace"][0, column] = 99
    write_archive(earlier, header | {"digest": digest(header, arrays)}, arrays)
    with pytest.raises(softmap.FormatError, match="damaged"):
        softmap.load_result(earlier)


# --- adding ---------------------------------------------------------------------------------------


@pytest.fixture
def toy(monkeypatch):
    """The toy comes first; its bound is the only one, as the relaxation proves less here."""
    monkeypatch.setattr(registry, "TABLE", (TOY,))
    kind = checkers.RecordKind("least sums", 1, "support.toy_room.checker:SumsProof", real=True)
    monkeypatch.setitem(checkers.RECORDS, KIND, kind)
    monkeypatch.setitem(checkers.EVIDENCE, "least sums", "support.toy_room.checker")


def better(monkeypatch) -> None:
    """Let the bound of λ = 0 prove nothing, so that the toy's is the best."""
    from softmap.run.best import Best

    monkeypatch.setattr(Best, "offer_zero", lambda self: None)
    monkeypatch.setattr(Best, "offer_lam", lambda self, lam: -math.inf)


def test_a_toy_is_in_trace_report_json_and_files(toy, monkeypatch, tmp_path, capsys):
    from softmap.app.cli.app import main

    better(monkeypatch)
    model, path = triangle(), tmp_path / "model.npz"
    result = softmap.solve(model, proof=tmp_path / "proof")
    assert isinstance(result.proof, Sums)
    assert -math.inf < result.bound <= optimum(model)
    assert result.trace.stages == ["least sums"]
    assert "least sums" in result.trace._repr_html_()
    assert "the least costs of all tables" in result.report(tmp_path / "r.html").read_text()
    result.save(tmp_path / "result.npz")
    assert softmap.load_result(tmp_path / "result.npz").trace == result.trace
    softmap.write(model, path)
    capsys.readouterr()
    proof = tmp_path / "other"
    assert main(["solve", str(path), "--json", "--proof", str(proof)]) == 0
    assert json.loads(capsys.readouterr().out)["proof"] == "least sums"
    assert main(["verify", str(path), "--proof", str(proof)]) == 0


def test_its_proof_is_checked_by_its_module(toy, monkeypatch, tmp_path):
    better(monkeypatch)
    model, path = triangle(1), tmp_path / "proof"
    result = softmap.solve(model, proof=path)
    found = check_proof(path, model.network)
    assert found.bound >= result.bound
    assert found.proves(result.bound)
    report = softmap.verify(result)
    assert report["bound"].verdict.value == "checked"
    forged = softmap.verify(replaced(result, 1e-6))
    assert forged["bound"].verdict.value == "false"


def replaced(result, more: float):
    """The result with least costs that are a little larger."""
    proof = replace(result.proof, least=np.asarray(result.proof.least) + more)
    return replace(result, proof=proof)


def test_a_forged_record_of_the_toy_is_rejected(toy, monkeypatch, tmp_path):
    better(monkeypatch)
    model, path = triangle(2), tmp_path / "proof"
    least = np.asarray(softmap.solve(model).proof.least)
    honest, forged, short = (b"".join(record(KIND, bits(x))) for x in (least, least + 1, least[1:]))
    write_proof(path, model, honest)
    assert check_proof(path, model.network).bound <= optimum(model)
    for body in (forged, short, honest + honest, b"".join(record(21)) + honest):
        write_proof(path, model, body)
        with pytest.raises(softmap.FormatError):
            check_proof(path, model.network)


def test_the_toy_is_resumed_where_it_stood(toy, monkeypatch, tmp_path):
    calls, usual = [], LeastSums.__call__

    def counted(self, best, share):
        calls.append(len(self._least))
        return usual(self, best, share)

    monkeypatch.setattr(LeastSums, "__call__", counted)
    leader = next(line for line in DEFAULT if line.place is Place.RELAXATION)
    monkeypatch.setattr(registry, "TABLE", (leader, BESIDE))
    model, path, stop = triangle(3), tmp_path / "run.npz", iter(range(10))
    softmap.solve(model, checkpoint=path, on_snapshot=lambda _: next(stop) < 2)
    assert calls == [0, 1]
    resumed = softmap.resume(path, model)
    assert calls == [0, 1, 2, 3, 4, 5]
    assert resumed.bound <= optimum(model)
    waiting = checkpoint.Parts(path, {"LeastSums/least": np.zeros(99)})
    with pytest.raises(softmap.CheckpointError, match="damaged"):
        waiting.put_back(LeastSums(Problem.of(model), Options()))


@pytest.mark.parametrize("limit", [{}, {"time_limit": 30.0}])
def test_the_schedule_gives_the_toy_its_turns_beside_all_others(limit, toy, monkeypatch):
    monkeypatch.setattr(registry, "TABLE", (*DEFAULT, BESIDE))
    model = softmap.generators.potts_grid(4, 4, 3, seed=2)
    calls = []
    usual = LeastSums.__call__
    monkeypatch.setattr(
        LeastSums, "__call__", lambda self, b, s: calls.append(1) or usual(self, b, s)
    )
    result = softmap.solve(dense(3), gap=0.0, max_work=50_000, **limit)
    assert result.bound <= optimum(dense(3)) + 1e-9
    assert len(calls) > 1
    assert "least sums" in result.trace.stages
    assert softmap.solve(model).bound <= optimum_of_grid(model)


def optimum_of_grid(model: softmap.Model) -> float:
    return softmap.solve(model, goal="optimal").energy + 1e-9


def test_a_subsolver_beside_the_relaxation_is_not_made_before_the_gap_is_known(monkeypatch):
    made = []

    class Beside(Once):
        name = "beside"

        @classmethod
        def make(cls, problem, options):
            made.append(1)

        def __call__(self, best, share):
            return Outcome(active=False)

    monkeypatch.setattr(registry, "TABLE", (*registry.TABLE, Line(Place.BESIDE, Beside)))
    softmap.solve(softmap.generators.random_tree(7, 3, seed=1))
    assert not made
    softmap.solve(triangle())
    assert made == [1]
