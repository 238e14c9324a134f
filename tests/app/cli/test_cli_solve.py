"""softmap solve: its output, its files, and its manners when interrupted."""

import json
import math
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import softmap
from softmap.app.cli import solve as solve_module
from softmap.app.cli import targets
from softmap.app.cli.app import main
from softmap.drive import loop as run

FIELDS = [
    "found",
    "energy",
    "bound",
    "primal",
    "gap",
    "lp_gap",
    "status",
    "method",
    "variables",
    "edges",
    "labels_max",
    "arity_max",
    "sweeps",
    "work",
    "seconds",
    "setup_seconds",
    "threads",
    "version",
    "relative_gap",
    "relative_lp_gap",
    "proof",
    "stated",
    "upper_bound",
    "penalty",
    "failures",
    "labels",
]


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "grid.npz"
    softmap.write(softmap.generators.potts_grid(8, 8, 3, seed=1), path)
    return path


def test_json_has_the_fields_that_are_promised(grid, capsys):
    assert main(["solve", str(grid), "--json", "--no-progress"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert list(answer) == FIELDS
    assert err == ""
    assert answer["variables"] == 64
    assert answer["labels_max"] == 3
    assert answer["arity_max"] == 2
    assert answer["bound"] <= answer["primal"] + 1e-9
    assert answer["gap"] == pytest.approx(max(0, answer["energy"] - answer["bound"]))
    assert answer["stated"] == (answer["proof"] == "search")


def test_files_agree_with_the_answer(grid, tmp_path, capsys):
    labels, trace, page = (tmp_path / name for name in ("x.MPE", "x.csv", "x.html"))
    options = ["--output", str(labels), "--trace", str(trace), "--report", str(page)]
    assert main(["solve", str(grid), "--json", "--no-progress", *options]) == 0
    answer = json.loads(capsys.readouterr().out)
    words = labels.read_text().split()
    assert words[:2] == ["MPE", "64"]
    energy = softmap.read(grid).energy(np.array(words[2:], dtype=int))
    assert energy == pytest.approx(answer["energy"])
    header, *rows = trace.read_text().splitlines()
    last = dict(zip(header.split(","), rows[-1].split(","), strict=True))
    assert float(last["bound"]) == pytest.approx(answer["bound"])
    assert "<!doctype html>" in page.read_text("utf-8")[:20]


def test_words_without_json(grid, capsys):
    assert main(["solve", str(grid), "--no-progress"]) == 0
    shown = capsys.readouterr().out
    assert "that is proved by" in shown or "that is stated by an exact search" in shown
    assert "energy" in shown


@pytest.fixture(scope="module")
def triangle(tmp_path_factory):
    """Three variables that cannot all differ: the relaxation is loose."""
    path = tmp_path_factory.mktemp("models") / "triangle.npz"
    edges = [[0, 1], [1, 2], [0, 2]]
    unary = np.array([[0.0, 0.1], [0.0, 0.0], [0.2, 0.0]])
    softmap.write(softmap.Model(unary, edges, np.stack([np.eye(2)] * 3)), path)
    return path


@pytest.mark.parametrize(("goal", "closed"), [("lp", False), ("map", True), ("optimal", True)])
def test_goals(triangle, capsys, goal, closed):
    assert main(["solve", str(triangle), "--goal", goal, "--json", "--no-progress"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["gap"] < 1e-6) == closed
    assert answer["energy"] == pytest.approx(1.0)


def test_the_words_name_the_proof(triangle, capsys):
    assert main(["solve", str(triangle), "--goal", "lp", "--no-progress"]) == 0
    assert "by the dual of the LP relaxation" in capsys.readouterr().out
    assert main(["solve", str(triangle), "--no-progress"]) == 0
    shown = capsys.readouterr().out
    assert "by an exact search" in shown or "tightened by clusters" in shown


def test_an_unknown_goal_is_refused(triangle, capsys):
    assert main(["solve", str(triangle), "--goal", "best", "--no-progress"]) == 2
    assert "optimal" in capsys.readouterr().err


def test_the_best_labellings(triangle, tmp_path, capsys):
    path = tmp_path / "x.MPE"
    assert main(["solve", str(triangle), "--mbest", "3", "--json", "--output", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    model = softmap.read(triangle)
    every = sorted(model.energy(np.array(list(np.ndindex(2, 2, 2)))))
    assert [entry["energy"] for entry in found] == pytest.approx(every[:3])
    assert all(entry["proved"] for entry in found)
    kept = softmap.io.read_labellings(path)
    assert [row.tolist() for row in kept] == [entry["labels"] for entry in found]
    assert main(["solve", str(triangle), "--mbest", "2"]) == 0
    assert "yes" in capsys.readouterr().out


def test_the_best_labellings_take_no_method(triangle, capsys):
    assert main(["solve", str(triangle), "--mbest", "3", "--method", "trws"]) == 2
    assert "--method" in capsys.readouterr().err


def test_plain_lines_go_to_standard_error(grid, capsys):
    assert main(["solve", str(grid), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)
    assert "bound" in err


def test_evidence_fixes_variables(grid, tmp_path, capsys):
    evidence, labels = tmp_path / "x.evid", tmp_path / "x.MPE"
    evidence.write_text("2 0 1 5 2\n")
    options = ["--evidence", str(evidence), "--output", str(labels), "--no-progress"]
    assert main(["solve", str(grid), *options]) == 0
    words = labels.read_text().split()
    assert (words[2], words[7]) == ("1", "2")
    assert "energy" in capsys.readouterr().out


@pytest.mark.parametrize("size", ["1K", "1024", "1kib", "0.5 K"])
def test_a_memory_limit_has_units(size, grid, capsys):
    assert main(["solve", str(grid), "--memory-limit", size, "--no-progress"]) != 0
    said = capsys.readouterr().err
    assert f"{512 if '5' in size else 1024:,} are available" in " ".join(said.split())


def test_a_memory_limit_that_is_none_is_refused(grid, capsys):
    assert main(["solve", str(grid), "--memory-limit", "much"]) == 2
    assert "number of bytes" in " ".join(capsys.readouterr().err.split())


def test_a_time_limit_is_a_success(grid, capsys):
    options = ["--time-limit", "0.05", "--lp-gap", "0", "--gap", "0", "--json", "--no-progress"]
    assert main(["solve", str(grid), *options]) == 0
    assert json.loads(capsys.readouterr().out)["energy"] is not None


def test_checkpoint_and_resume(grid, tmp_path, capsys):
    checkpoint = tmp_path / "run.npz"
    short = ["--time-limit", "0.2", "--lp-gap", "0", "--gap", "0", "--json", "--no-progress"]
    relaxed = ["--goal", "lp"]
    assert main(["solve", str(grid), "--checkpoint", str(checkpoint), *relaxed, *short]) == 0
    first = json.loads(capsys.readouterr().out)
    assert checkpoint.is_file()
    assert main(["solve", str(grid), "--resume", str(checkpoint), *short]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["bound"] >= first["bound"] - 1e-12
    assert second["work"] >= first["work"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_writes_the_best_first(tmp_path, number):
    model, labels, proof = tmp_path / "hard.npz", tmp_path / "x.MPE", tmp_path / "run.proof"
    softmap.write(softmap.generators.erdos_renyi(300, seed=0), model)
    options = ["--lp-gap", "0", "--gap", "0", "--json", "--output", str(labels)]
    options += ["--proof", str(proof)]
    process = subprocess.Popen(
        [sys.executable, "-m", "softmap", "solve", str(model), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # the first line of progress says that the solver, not the import, will be interrupted
    assert process.stderr is not None
    first = process.stderr.readline()
    if "setting up" in first:  # on a busy machine
        first = process.stderr.readline()
    assert "bound" in first
    time.sleep(0.2)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert {path.name for path in tmp_path.iterdir()} == {"hard.npz", "x.MPE", "run.proof"}
    answer = json.loads(out)
    energy = softmap.read(model).energy(np.array(labels.read_text().split()[2:], dtype=int))
    assert energy == pytest.approx(answer["energy"])
    assert answer["bound"] <= answer["energy"]


@pytest.mark.parametrize("more", [["--save"], ["--output"], ["--mbest", "2", "--output"]])
def test_a_signal_after_the_run_loses_nothing(more, grid, tmp_path, monkeypatch, capsys):
    """It comes when the answer is printed, before any file is written."""
    usual = targets.Targets.printing

    def pressed(self, *given):
        signal.raise_signal(signal.SIGTERM)
        return usual(self, *given)

    monkeypatch.setattr(targets.Targets, "printing", pressed)
    words = ["solve", str(grid), "--no-progress", *more, str(tmp_path / "kept.MPE")]
    assert main(words) in (0, 130)
    assert (tmp_path / "kept.MPE").exists()
    assert "energy" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_before_the_run_ends_a_command_with_a_sentence(grid, monkeypatch, capsys):
    def pressed(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(solve_module, "read_model", pressed)
    assert main(["solve", str(grid), "--no-progress"]) == 130
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "softmap: interrupted\n"


def test_a_signal_ends_a_comparison_with_the_methods_that_were_run(grid, monkeypatch, capsys):
    """SIGTERM ends the command, not only the run that gets it."""
    usual = run.Run.loop

    def pressed(self, *given):
        signal.raise_signal(signal.SIGTERM)
        return usual(self, *given)

    monkeypatch.setattr(run.Run, "loop", pressed)
    words = ["compare", str(grid), "--methods", "anneal,trws", "--no-progress"]
    assert main(words) == 130
    said = capsys.readouterr()
    assert "anneal" in said.out
    assert "trws" not in said.out
    assert said.err == "softmap: interrupted; other methods were not run\n"


CLAUSES = "h 1 2 0\nh -1 -2 0\n3 -1 0\n5 -2 0\n0 3 0\n"
SUMS = "min: +3 a +5 b ;\n+1 a +1 b >= 1 ;\n"


@pytest.mark.parametrize(("form", "text", "lines"), [
    ("maxsat", CLAUSES, ["o 3", "s OPTIMUM FOUND"]),
    ("maxsat", "h 1 0\nh -1 0\n", ["s UNSATISFIABLE"]),
    ("pb", SUMS, ["o 3", "s OPTIMUM FOUND", "v a -b"]),
])  # fmt: skip
def test_lines_of_competitions(form, text, lines, tmp_path, capsys):
    path = tmp_path / f"toy.{'wcnf' if form == 'maxsat' else 'opb'}"
    path.write_text(text)
    code = main(["solve", str(path), "--competition", form])
    assert code == (4 if "s UNSATISFIABLE" in lines else 0)
    found = capsys.readouterr().out.splitlines()
    if form == "maxsat" and code == 0:
        assert found.pop()[:4] == "v 10"  # the third variable is free
    assert found[-len(lines) :] == lines


def test_lines_of_competitions_are_for_two_labels(grid, tmp_path, capsys):
    assert main(["solve", str(grid), "--competition", "pb"]) == 2
    assert "two labels" in capsys.readouterr().err
    path = tmp_path / "toy.wcnf"
    path.write_text(CLAUSES)
    assert main(["solve", str(path), "--competition", "maxsat", "--json"]) == 2
    assert "leave out --json" in capsys.readouterr().err


def test_a_query_is_marginal_map(tmp_path, capsys):
    model = softmap.Model(
        [[0.0, 0.3], [1.0, 0.0], [0.2, 0.0]], [[0, 1], [1, 2]], softmap.Potts(0.7)
    )
    path, query, out = (tmp_path / name for name in ("m.uai", "m.query", "m.txt"))
    softmap.io.write(model, path)
    query.write_text("2 2 0\n")
    command = ["solve", str(path), "--query", str(query)]
    assert main([*command, "--json", "--output", str(out)]) == 0
    shown = json.loads(capsys.readouterr().out)
    weights = {
        (a, c): sum(math.exp(-model.energy([a, b, c])) for b in (0, 1))
        for a in (0, 1)
        for c in (0, 1)
    }
    best = max(weights, key=weights.get)
    assert (shown["variables"], shown["labels"]) == ([0, 2], list(best))
    assert shown["energy"] == pytest.approx(-math.log(weights[best]), abs=1e-6)
    assert shown["stated"]
    assert shown["status"] == "optimal"
    assert out.read_text().split() == ["MMAP", "2", "0", str(best[0]), "2", str(best[1])]
    assert main([*command, "--method", "trws"]) == 2
    query.write_text("1 9\n")
    assert main(command) == 2
    query.write_text("2 1 1\n")
    assert main(command) == 2
