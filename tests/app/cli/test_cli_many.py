"""What is shown while many models are solved."""

import io
import json
import subprocess
import sys

import pytest
from rich.console import Console

import softmap
from softmap.app.cli.app import main
from softmap.app.cli.many import ManyDisplay, remaining

ROWS = {
    "a": {"state": "solved", "status": "optimal", "relative_gap": 0.0},
    "b": {"state": "solved", "status": "time_limit", "relative_gap": 0.25},
    "c": {"state": "failed", "error": "x"},
    "d": {"state": "unchanged", "status": "gap", "relative_gap": 1e-7},
}


def shown(terminal: bool, rows: dict, total: int = 8) -> str:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100, highlight=False)
    with ManyDisplay(console, total, rows, enabled=True) as display:
        display()
    return text.getvalue()


def test_the_worst_gaps_come_first_on_a_terminal():
    text = shown(True, ROWS)
    assert "worst gaps" in text
    assert text.index("0.25") < text.index("1e-07")
    assert "4 of 8 models: 2 solved, 1 unchanged, 1 failed; 2 proved optimal" in text


def test_lines_where_there_is_none():
    text = shown(False, ROWS)
    assert "4 of 8 done, 1 failed, about" in text
    assert "no estimate yet" in shown(False, {})


def test_what_is_left_is_like_what_is_done():
    assert remaining(2, 6, 10.0) == 20.0
    assert remaining(0, 6, 10.0) == float("inf")
    assert remaining(6, 6, 10.0) == 0.0


@pytest.fixture
def folder(tmp_path):
    """Four tiny models, one of which has evidence, one is infeasible and one is damaged."""
    inside = tmp_path / "models"
    inside.mkdir()
    softmap.write(softmap.generators.potts_grid(3, 3, 3, seed=1), inside / "a.uai")
    softmap.write(softmap.generators.potts_grid(3, 3, 3, seed=2), inside / "b.uai")
    (inside / "b.uai.evid").write_text("1 0 2\n")
    (inside / "c.uai").write_text("MARKOV\n1\n2\n1\n1 0\n2\n0 0\n")
    (inside / "d.uai").write_text("MARKOV\n1\n2\n1\n1 0\n2\n0 what\n")
    (inside / "notes.txt").write_text("no model")
    return inside


def test_a_folder_of_models(folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["solve-many", str(folder), "-o", str(out), "-t", "10", "-j", "2"]) == 1
    err = capsys.readouterr().err
    assert f"{folder / 'd.uai'}: line 7: expected a number, found 'what'" in err.replace("\n", " ")
    assert "1 of 4 models have evidence" in err
    assert "1 infeasible" in err
    assert json.loads((out / "c.json").read_text())["status"] == "infeasible"
    assert json.loads((out / "b.json").read_text())["labels"][0] == 2
    assert (out / "a.MPE").is_file()
    assert main(["solve-many", str(folder), "-o", str(out), "--no-evidence", "-t", "10"]) == 1
    free = json.loads((out / "b.json").read_text())
    model = softmap.read(folder / "b.uai")
    assert free["energy"] == pytest.approx(softmap.solve(model).energy)


def test_a_few_small_models_need_no_cluster(folder, tmp_path):
    """Dask takes a second to load and another to start: not for four tiny files."""
    code = (
        "import sys; from softmap.app.cli.app import main\n"
        f"main(['solve-many', {str(folder)!r}, '--out', {str(tmp_path / 'out')!r}])\n"
        "sys.exit('distributed' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert (tmp_path / "out" / "summary.csv").is_file()


def test_a_folder_without_models(tmp_path, capsys):
    assert main(["solve-many", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "no model file in this folder" in capsys.readouterr().err


def test_json_holds_counts_and_a_row_per_model(folder, tmp_path, capsys):
    words = ["solve-many", str(folder), "-o", str(tmp_path / "out"), "--json", "-j", "1"]
    assert main(words) == 1  # one of the models is damaged
    found = json.loads(capsys.readouterr().out)
    assert (found["models"], found["solved"], found["failed"]) == (4, 3, 1)
    rows = {row["name"]: row for row in found["rows"]}
    assert rows["a"]["energy"] == pytest.approx(rows["a"]["bound"])
    assert rows["c"]["status"] == "infeasible"
    assert "line" in rows["d"]["error"]


def test_proofs_of_many_models_are_written_and_hold(tmp_path, capsys):
    for seed in (1, 2):
        model = softmap.generators.random_grid(5, 5, 3, seed=seed)
        softmap.write(model, tmp_path / f"m{seed}.npz")
    words = ["solve-many", str(tmp_path / "m1.npz"), str(tmp_path / "m2.npz")]
    proofs = tmp_path / "proofs"
    done = ["--proofs", str(proofs), "-o", str(tmp_path / "out"), "--no-progress", "-j", "1"]
    assert main([*words, *done, "--memory-limit", "1G"]) == 0
    assert {path.name for path in proofs.iterdir()} == {"m1.proof", "m2.proof"}
    for seed in (1, 2):
        model = softmap.read(tmp_path / f"m{seed}.npz")
        result = softmap.solve(model)
        assert softmap.verify(result, proof=proofs / f"m{seed}.proof").holds
