"""What commands write: never over their own input, and nothing is lost with a target that fails."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import softmap
from softmap.app.cli.app import main
from softmap.scale.many.items import Answer, Folder
from softmap.scale.processes import Alone

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")

QUIET = "--no-progress"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a model, evidence, and links to the model."""
    softmap.write(softmap.generators.potts_grid(4, 4, 3, seed=1), tmp_path / "a.npz")
    (tmp_path / "a.evid").write_text("1 0 1\n")
    (tmp_path / "inner").mkdir()
    (tmp_path / "soft.npz").symlink_to("a.npz")
    os.link(tmp_path / "a.npz", tmp_path / "hard.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


ALIASES = {
    "output": "a.npz --output a.npz",
    "save": "a.npz --save a.npz",
    "checkpoint": "a.npz --checkpoint a.npz",
    "trace": "a.npz --trace a.npz",
    "report": "a.npz --report a.npz",
    "another spelling": "a.npz --output inner/../a.npz",
    "a symbolic link": "a.npz --output soft.npz",
    "through a symbolic link": "soft.npz --output a.npz",
    "a hard link": "a.npz --output hard.npz",
    "evidence": "a.npz --evidence a.evid --output a.evid",
    "two targets": "a.npz --output x --report x",
    "two spellings": "a.npz --output x --save inner/../x",
    "checkpoint and save": "a.npz --checkpoint x --save x",
    "standard output twice": "a.npz --output - --trace -",
    "a result as standard output": "a.npz --save -",
    "the best labellings": "a.npz --mbest 2 --output a.npz",
    "resume and output": "a.npz --resume hard.npz --output hard.npz",
}


@pytest.mark.parametrize("words", ALIASES.values(), ids=ALIASES)
def test_a_target_that_is_an_input_or_another_target_is_refused(words, folder, capsys):
    before = files(folder)
    assert main(["solve", *words.split(), QUIET]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "--" in err
    assert files(folder) == before


OTHERS = {
    "convert": "convert a.npz ./a.npz",
    "convert a link": "convert soft.npz a.npz",
    "compare": "compare a.npz --plot a.npz",
    "compare evidence": "compare a.npz --evidence a.evid --plot a.evid",
    "demo": "demo denoise --image denoise-input.png --size 8",
    "demo report": "demo potts --report potts-input.png --size 8",
    "many": "solve-many a.npz --out .",
}


@pytest.mark.parametrize("words", OTHERS.values(), ids=OTHERS)
def test_other_commands_refuse_it_too(words, folder, capsys):
    Path("a.json").symlink_to("a.npz")
    shutil.copy("a.npz", "denoise-input.png")
    before = files(folder)
    assert main([*words.split(), *([] if "convert" in words else [QUIET])]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert files(folder) == before


def test_a_checkpoint_may_go_on_in_its_own_file(folder, capsys):
    short = ["--json", QUIET, "--checkpoint", "run.npz"]
    assert main(["solve", "a.npz", *short]) == 0
    assert main(["solve", "a.npz", "--resume", "run.npz", *short]) == 0
    capsys.readouterr()


def test_devices_may_be_named_twice(folder, capsys):
    words = ["--output", "/dev/null", "--trace", "/dev/null", QUIET]
    assert main(["solve", "a.npz", *words]) == 0
    assert "energy" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["output", "save", "report", "trace", "checkpoint"])
def test_a_folder_that_cannot_be_written_is_noticed_before_the_run(option, folder, monkeypatch):
    def unreached(*_args, **_options):
        raise AssertionError("solved before the target was tried")

    monkeypatch.setattr(softmap, "solve", unreached)
    assert main(["solve", "a.npz", f"--{option}", "/proc/x", QUIET]) == 2


def test_one_target_that_fails_loses_neither_the_printout_nor_the_others(folder, capsys):
    words = [
        "--output",
        "/dev/full",
        "--trace",
        "x.csv",
        "--report",
        "/dev/full",
        "--save",
        "r.npz",
    ]
    assert main(["solve", "a.npz", *words, "--json", QUIET]) == 1
    out, err = capsys.readouterr()
    answer = json.loads(out)
    saved = softmap.load_result("r.npz", softmap.read("a.npz"))
    assert saved.energy == answer["energy"]
    assert (folder / "x.csv").stat().st_size > 0
    lines = err.splitlines()
    assert [line.split()[1] for line in lines] == ["--output", "--report"]
    assert all("/dev/full" in line and "No space left" in line for line in lines)


def test_a_defect_in_one_target_loses_no_other(folder, monkeypatch, capsys):
    def broken(*_args, **_options):
        raise RuntimeError("a wheel came off")

    monkeypatch.setattr(softmap.Result, "report", broken)
    words = ["--report", "p.html", "--save", "r.npz"]
    assert main(["solve", "a.npz", *words, QUIET]) == 1
    out, err = capsys.readouterr()
    assert "energy" in out
    assert "a wheel came off" in err
    assert softmap.load_result("r.npz", softmap.read("a.npz")).found


def test_one_picture_that_fails_loses_no_other(folder, capsys):
    (folder / "potts-input.png").symlink_to("/dev/full")
    assert main(["demo", "potts", "--size", "8", "--report", "p.html", QUIET]) == 1
    out, err = capsys.readouterr()
    for name in ("potts-labelling.png", "potts-convergence.png", "p.html"):
        assert (folder / name).stat().st_size > 0
        assert name in out
    assert "potts-input.png" in err
    assert "Wrote potts-input.png" not in out


def test_the_table_is_printed_where_the_picture_fails(folder, capsys):
    assert main(["compare", "a.npz", "--methods", "trws", "--plot", "/dev/full", QUIET]) == 1
    out, err = capsys.readouterr()
    assert "trws" in out
    assert "/dev/full" in err


class Solo(Alone):
    """One process, as MPI would have it."""

    def gather(self, value, root):
        return [value]


def test_a_large_model_keeps_its_file_and_all_that_can_be_written(folder, monkeypatch, capsys):
    monkeypatch.setattr("softmap.scale.processes.world", Solo)
    shutil.copy("a.npz", "labels.npz")
    assert main(["solve-large", "labels.npz", "--out", ".", QUIET]) == 2
    assert "labels.npz is an input" in capsys.readouterr().err
    (folder / "result").mkdir()
    (folder / "result/result.json").symlink_to("/dev/full")
    assert main(["solve-large", "a.npz", "--parts", "2", "--out", "result", QUIET]) == 1
    out, err = capsys.readouterr()
    assert "energy" in out
    assert "result.json" in err
    assert len(softmap.io.read_labels("result/labels.MPE")) == 16


def test_a_large_model_is_not_solved_where_its_facts_cannot_be_written(folder, monkeypatch, capsys):
    monkeypatch.setattr("softmap.scale.processes.world", Solo)
    (folder / "taken/result.json").mkdir(parents=True)
    assert main(["solve-large", "a.npz", "--out", "taken", QUIET]) == 2
    out, err = capsys.readouterr()
    assert "result.json is a folder" in err
    assert out == ""
    assert not (folder / "taken/checkpoint").exists()


def shell(words, folder, before=":"):
    command = f"{before}; '{sys.executable}' -m softmap {words}"
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=folder)


@pytest.mark.parametrize(
    "words", ["doctor", "info a.npz", "solve a.npz --json", "--version", "solve --help"]
)
def test_a_full_standard_output_is_named(words, folder):
    done = shell(f"{words} > /dev/full", folder)
    assert done.returncode == 1
    assert done.stderr.endswith("softmap: standard output: No space left on device\n")
    assert "inside softmap" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_full_standard_output_loses_no_file(folder):
    done = shell("solve a.npz --save r.npz --output x.MPE > /dev/full", folder)
    assert done.returncode == 1
    assert "standard output: No space left on device" in done.stderr
    assert softmap.load_result(folder / "r.npz", softmap.read(folder / "a.npz")).found
    assert (folder / "x.MPE").is_file()


def test_a_reader_that_is_gone_loses_no_file(folder):
    done = shell("solve a.npz --save r.npz --trace x.csv 2>&1 | true", folder)
    assert done.returncode == 0
    assert softmap.load_result(folder / "r.npz", softmap.read(folder / "a.npz")).found


@pytest.mark.parametrize("words", ["doctor", "info a.npz", "solve a.npz --save r.npz"])
def test_a_closed_standard_output_is_refused(words, folder):
    done = shell(f"{words} >&-", folder)
    assert done.returncode == 2
    assert done.stderr == "softmap: standard output is closed; send it to a file or /dev/null\n"
    assert not (folder / "r.npz").exists()


@pytest.mark.parametrize("error", ["2>&-", "2>/dev/full"])
def test_results_need_no_standard_error(error, folder):
    done = shell(f"solve a.npz --json --trace x.csv {error}", folder)
    assert done.returncode == 0
    assert json.loads(done.stdout)["found"]
    assert (folder / "x.csv").is_file()


def rows(folder):
    with (folder / "summary.csv").open() as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def test_a_summary_keeps_the_rows_of_other_models(tmp_path):
    first = Folder(tmp_path, {})
    first.keep("a", "1", Answer({"found": False, "energy": 1.5}, None))
    first.keep_error("b", ValueError("no, nothing"))
    first.summarise()
    second = Folder(tmp_path, {})
    second.keep("b", "2", Answer({"found": False, "energy": 2.5}, None))
    second.summarise()
    found = rows(tmp_path)
    assert list(found) == ["a", "b"]
    assert found["a"]["energy"] == "1.5"
    assert (found["b"]["energy"], found["b"]["error"]) == ("2.5", "")
    assert list(second.rows) == ["b"]  # what is counted is of this run


def test_a_summary_that_is_none_is_replaced(tmp_path):
    (tmp_path / "summary.csv").write_bytes(b"\xff\x00nothing")
    folder = Folder(tmp_path, {})
    folder.keep_error("b", ValueError("no"))
    folder.summarise()
    assert list(rows(tmp_path)) == ["b"]


@pytest.mark.parametrize("name", ["--proof", "--checkpoint"])
def test_a_file_of_the_run_on_a_full_disk_does_not_lose_the_run(folder, capsys, name):
    (folder / "link").symlink_to("/dev/full")
    words = ["solve", "a.npz", name, "link", "--output", "x.MPE", "--json", QUIET]
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["found"]
    assert (folder / "x.MPE").is_file()
    assert err.startswith("softmap: link: the ")
    assert "No space left" in err
    assert len(err.splitlines()) == 1
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_records_of_a_search_on_a_full_disk_do_not_lose_the_run(tmp_path):
    """The records of a search exceed the largest file that this process may write."""
    softmap.write(softmap.generators.erdos_renyi(40, seed=1), tmp_path / "a.npz")
    words = "solve a.npz --proof p --no-progress --json"
    done = shell(words, tmp_path, before="ulimit -f 1")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["found"]
    assert "cannot be written" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"a.npz"}


def test_a_labelling_is_not_written_in_a_format_that_its_name_does_not_say(folder, capsys):
    assert main(["solve", "a.npz", "--output", "x.foo", QUIET]) == 2
    assert "x.foo: a labelling is written to" in capsys.readouterr().err
    assert not (folder / "x.foo").exists()
    with pytest.raises(softmap.OptionError, match="foo"):
        softmap.io.write_labels([0, 1], folder / "x.foo")
    softmap.io.write_labels([0, 1], folder / "x.MPE.gz")
    assert softmap.io.read_labels(folder / "x.MPE.gz").tolist() == [0, 1]
