"""Commands that begin from what one has: labellings, upper bounds, evidence, names, blocks."""

import json

import pytest

import softmap
from softmap.app.cli.app import main
from support.samples import CFN, DD


@pytest.fixture
def named(tmp_path):
    path = tmp_path / "toy.cfn"
    path.write_bytes(CFN)
    return path


@pytest.fixture
def model(named):
    return softmap.read(named)


@pytest.mark.parametrize("name", ["x.MPE", "x.sol", "x.json"])
def test_what_output_writes_is_read_again(named, model, name, tmp_path, capsys):
    target = tmp_path / name
    assert main(["solve", str(named), "-o", str(target), "--json", "--no-progress"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["assignment"] == softmap.solve(model).as_dict()
    assert softmap.io.read_labels(target, model).tolist() == answer["labels"]
    assert main(["energy", str(named), str(target)]) == 0
    assert float(capsys.readouterr().out) == answer["energy"]
    assert main(["solve", str(named), "--initial", str(target), "-t", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["energy"] == answer["energy"]


def test_sol_files_have_names_where_the_model_has_some(named, model, tmp_path, capsys):
    target = tmp_path / "x.sol"
    assert main(["solve", str(named), "-o", str(target), "--no-progress"]) == 0
    pairs = dict(word.split("=") for word in target.read_text().split())
    assert pairs == {name: str(state) for name, state in softmap.solve(model).as_dict().items()}


@pytest.mark.parametrize(
    "text", ["1 2 0\n", "1\n2\n0\n", "g 2 x\n", "c=x a=g b=2\n", "0 0 0\n1 2 0\n", "MPE\n3 1 2 0"]
)
def test_forms_of_a_labelling(model, text, tmp_path):
    path = tmp_path / "x.sol"
    path.write_text(text)
    assert softmap.io.read_labels(path, model).tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2", "3 variables|3 labels"),
        ("1 9 0", "label 0 to 2"),
        ("g 2 z", "is no state"),
        ("a=g b=2", "every variable"),
        ("a=g b=2 q=1", "no variable 'q'"),
        ("", "end of the file"),
        ('{"labels": null}', "labels"),
    ],
)
def test_labellings_that_are_none(named, text, message, tmp_path, capsys):
    path = tmp_path / "x.sol"
    path.write_text(text)
    assert main(["energy", str(named), str(path)]) == 2
    err = capsys.readouterr().err
    assert softmap.FormatError.__name__ not in err
    assert any(part in err for part in message.split("|"))


def test_the_energy_of_each_labelling_of_a_file(named, tmp_path, capsys):
    path = tmp_path / "x.sol"
    path.write_text("0 2 0\n1 0 1\n")
    code = main(["energy", str(named), str(path), "--json"])
    found = json.loads(capsys.readouterr().out)
    model = softmap.read(named)
    expected = [float(model.energy(x)) for x in ([0, 2, 0], [1, 0, 1])]
    assert code == (3 if float("inf") in expected else 0)
    assert [e for e in found["energies"] if e is not None] == [
        e for e in expected if e != float("inf")
    ]


def test_evidence_may_be_text(named, capsys):
    assert main(["solve", str(named), "--evidence", "a=g,2=0", "--json", "--no-progress"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["assignment"]["a"], answer["labels"][2]) == ("g", 0)
    assert main(["solve", str(named), "--evidence", "a=q"]) == 2
    assert "'q' is no state of 'a'" in capsys.readouterr().err
    assert main(["solve", str(named), "--evidence", "a=r,a=g"]) == 2
    assert "observed as r and as g" in capsys.readouterr().err


def test_variables_without_names_are_x_and_a_number(tmp_path, capsys):
    path = tmp_path / "grid.npz"
    softmap.write(softmap.generators.potts_grid(3, 3, 4, seed=1), path)
    assert main(["solve", str(path), "--evidence", "0=3,x7=1", "--json", "--no-progress"]) == 0
    labels = json.loads(capsys.readouterr().out)["labels"]
    assert (labels[0], labels[7]) == (3, 1)
    assert main(["solve", str(path), "--evidence", "0=4"]) == 2
    assert "labels 0 to 3" in capsys.readouterr().err


def test_an_upper_bound_below_the_optimum(named, model, capsys, tmp_path):
    best = softmap.solve(model).energy
    labels = tmp_path / "x.MPE"
    options = ["--upper-bound", str(best - 0.5), "--no-progress", "--output"]
    assert main(["solve", str(named), *options, str(labels), "--json"]) == 5
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "none_below"
    assert not answer["found"]
    assert answer["labels"] is answer["energy"] is answer["gap"] is None
    assert not labels.exists()
    assert main(["solve", str(named), *options, "-"]) == 5
    out, err = capsys.readouterr()
    assert out == ""
    assert "no labelling costs less" in err
    assert best - 0.5 - 1e-6 <= answer["bound"] <= best


def test_blocks_of_matching_problems(tmp_path, capsys):
    path = tmp_path / "several.dd"
    path.write_bytes(b"gm 0 1\n" + DD + b"gm 0 2\n" + DD.replace(b"-1.5", b"-7"))
    assert main(["solve", str(path)]) == 2
    assert "--block" in capsys.readouterr().err
    assert main(["solve", str(path), "--block", "1", "--json", "--no-progress"]) == 0
    assert json.loads(capsys.readouterr().out)["energy"] < -7
    assert main(["info", str(path), "--block", "0"]) == 0
    assert main(["convert", str(path), str(tmp_path / "one.cfn"), "--block", "1"]) == 0


def test_all_best_labellings_are_written(named, model, tmp_path, capsys):
    path = tmp_path / "best.sol"
    options = ["--mbest", "3", "--diversity", "2", "--json"]
    assert main(["solve", str(named), "-o", str(path), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    kept = softmap.io.read_labellings(path, model)
    assert [row.tolist() for row in kept] == [entry["labels"] for entry in found]
    first, second = kept[0], kept[1]
    assert (first != second).sum() >= 2
    assert main(["solve", str(named), "--diversity", "2"]) == 2
    assert "--mbest" in capsys.readouterr().err


def test_verify_says_what_a_labelling_is_not(named, tmp_path, capsys):
    path = tmp_path / "x.MPE"
    path.write_text("MPE\n3 0 0 0\n")
    assert main(["verify", str(path), str(named)]) == 2
    err = capsys.readouterr().err
    assert "pickle" not in err
    assert "softmap energy MODEL LABELS" in err
    path.write_text("hello")
    assert main(["verify", str(path), str(named)]) == 2
    assert "softmap solve --save" in capsys.readouterr().err


def test_messages_speak_of_options_as_they_are_typed(named, capsys):
    assert main(["solve", str(named), "--method", "accel-smp"]) == 2
    err = capsys.readouterr().err
    assert "give --eta, for example" in err
    assert "eta=" not in err
