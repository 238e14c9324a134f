"""The command line: what it prints, what it refuses, and how it exits."""

import contextlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import softmap
from softmap.app.cli.app import main
from softmap.io.results import format_labellings

UAI = "MARKOV\n3\n2 2 3\n3\n1 0\n2 0 1\n2 1 2\n2\n 1 3\n4\n 2 1 1 2\n6\n 1 2 3 3 2 1\n"


@pytest.fixture
def uai(tmp_path):
    path = tmp_path / "small.uai"
    path.write_text(UAI)
    return path


@pytest.fixture
def infeasible(tmp_path):
    """Two variables that must and must not agree."""
    path = tmp_path / "infeasible.uai"
    path.write_text("MARKOV\n2\n2 2\n3\n2 0 1\n1 0\n1 1\n4\n1 0 0 1\n2\n1 0\n2\n0 1\n")
    return path


def test_help_fits_on_a_screen(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 26
    assert "Exit codes: 0 done" in shown
    assert max(len(line) for line in shown.splitlines()) <= 80
    for command in ("solve", "verify", "info", "convert", "demo", "compare", "doctor", "reproduce"):
        assert f"\n  {command} " in shown


@pytest.mark.parametrize(
    "command",
    [
        "solve",
        "solve-many",
        "solve-large",
        "verify",
        "info",
        "convert",
        "demo",
        "compare",
        "doctor",
    ],
)
def test_every_command_has_help(command, capsys):
    assert main([command, "--help"]) == 0
    assert f"Usage: softmap {command}" in capsys.readouterr().out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"softmap {softmap.__version__}\n"


def test_the_module_runs_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "softmap", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"softmap {softmap.__version__}\n")


BAD_USES = {
    "no such command": (["nonsense"], "No such command 'nonsense'"),
    "no such option": (["solve", "MODEL", "--nonsense"], "--nonsense"),
    "no model": (["solve"], "Missing argument"),
    "no such file": (["solve", "nowhere.uai"], "nowhere.uai"),
    "a folder": (["info", "."], "."),
    "no such method": (["solve", "MODEL", "--method", "magic"], "magic"),
    "no such dtype": (["solve", "MODEL", "--dtype", "int8"], "int8"),
    "negative gap": (["solve", "MODEL", "--gap", "-1"], "gap"),
    "not a number": (["solve", "MODEL", "--time-limit", "soon"], "--time-limit"),
    "no folder": (["solve", "MODEL", "--output", "nowhere/x.MPE"], "there is no folder nowhere"),
    "no format": (["convert", "MODEL", "x.nonsense"], "nonsense"),
    "no such demo": (["demo", "nonsense"], "potts"),
    "no such methods": (["compare", "MODEL", "--methods", "magic"], "magic"),
    "no evidence": (["solve", "MODEL", "--evidence", "nowhere.evid"], "nowhere.evid"),
}


@pytest.mark.parametrize("use", BAD_USES)
def test_bad_use_is_refused_in_one_sentence(use, uai, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words, expected = BAD_USES[use]
    assert main([str(uai) if word == "MODEL" else word for word in words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("softmap: ")
    assert err.count("\n") == 1, "one sentence"
    assert expected in err
    assert "Traceback" not in err


def test_bad_files_are_refused_in_one_sentence(tmp_path, capsys):
    path = tmp_path / "bad.uai"
    path.write_text("MARKOV\n2\n2 2\n1\n2 0 7\n4\n1 2 3 4\n")
    assert main(["solve", str(path)]) == 2
    err = capsys.readouterr().err
    assert "bad.uai" in err
    assert err.count("\n") == 1


def test_debug_keeps_the_traceback(monkeypatch):
    monkeypatch.setenv("SOFTMAP_DEBUG", "1")
    with pytest.raises(softmap.FormatError):
        main(["solve", "nowhere.uai"])


def test_a_failure_of_ours_exits_with_one(uai, monkeypatch, capsys):
    def broken(*_args, **_options):
        raise RuntimeError("a wheel came off")

    monkeypatch.setattr(softmap, "solve", broken)
    assert main(["solve", str(uai)]) == 1
    err = capsys.readouterr().err
    assert "a wheel came off" in err
    assert "SOFTMAP_DEBUG" in err


def test_info_describes_a_model(uai, capsys):
    assert main(["info", str(uai)]) == 0
    shown = capsys.readouterr().out
    for fact in ("variables", "edges", "labels", "2 to 3", "families", "colours", "memory"):
        assert fact in shown
    assert "removes no states" in shown
    assert "connected components  1" in shown


def test_info_says_when_nothing_satisfies_the_constraints(infeasible, capsys):
    assert main(["info", str(infeasible)]) == 0
    assert "no labelling satisfies the hard constraints" in capsys.readouterr().out


def test_infeasible_is_an_answer(infeasible, capsys):
    """It has its own exit code, a sentence on standard output, and an object of its own."""
    assert main(["solve", str(infeasible), "--no-progress"]) == 4
    assert capsys.readouterr().out.startswith("Infeasible: no labelling has finite cost")
    assert main(["solve", str(infeasible), "--json"]) == 4
    answer = json.loads(capsys.readouterr().out)
    assert (answer["found"], answer["status"], answer["labels"]) == (False, "infeasible", None)
    assert answer["variable"] == 1
    assert "+inf" in answer["reason"]
    assert main(["solve", str(infeasible), "--mbest", "2"]) == 4


def test_infeasible_constraints_are_named(tmp_path, capsys):
    """Three variables of two labels that must all differ."""
    path = tmp_path / "three.uai"
    tables = "\n4\n0 1 1 0" * 3
    path.write_text(f"MARKOV\n3\n2 2 2\n3\n2 0 1\n2 1 2\n2 0 2\n{tables}\n")
    assert main(["solve", str(path), "--no-progress"]) == 4
    assert "the pairs over variables 0, 1, 2 cannot all be satisfied" in capsys.readouterr().out
    assert main(["solve", str(path), "--json"]) == 4
    answer = json.loads(capsys.readouterr().out)
    assert answer["constraints"] == [{"kind": "pairs", "variables": [0, 1, 2]}]


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("solve", [0, 1, 2, 3, 4, 5, 6, 130]),
        ("solve-large", [0, 1, 2, 3, 4, 130]),
        ("solve-many", [0, 1, 2, 130]),
        ("verify", [0, 1, 2, 6, 130]),
        ("energy", [0, 1, 2, 3, 130]),
        ("compare", [0, 1, 2, 4, 130]),
        ("demo", [0, 1, 2, 130]),
    ],
)
def test_help_names_the_exit_codes_of_its_command(command, codes, capsys):
    assert main([command, "-h"]) == 0
    words = " ".join(capsys.readouterr().out.split()).split("Exit codes: ")[1]
    assert [int(part.split()[0]) for part in words.split("; ")] == codes


def test_convert_writes_programs(uai, tmp_path, capsys):
    import softmap

    for options, target in (([], "m.lp"), (["--integer"], "m.mps")):
        assert main(["convert", str(uai), str(tmp_path / target), *options]) == 0
        assert b"x0_0" in (tmp_path / target).read_bytes()
    assert main(["convert", str(uai), str(tmp_path / "m.cfn"), "--integer"]) == 2
    assert "--integer" in capsys.readouterr().err
    assert softmap.read(uai).network.num_variables


def test_convert_keeps_the_energies(uai, tmp_path, capsys):
    target = tmp_path / "small.npz"
    assert main(["convert", str(uai), str(target)]) == 0
    assert "3 variables" in capsys.readouterr().err
    before, after = softmap.read(uai), softmap.read(target)
    labels = np.array([[a, b, c] for a in range(2) for b in range(2) for c in range(3)])
    np.testing.assert_allclose(after.energy(labels), before.energy(labels))


def test_doctor_knows_the_environment(capsys):
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    for fact in (softmap.__version__, np.__version__, "threads", "devices", "compiled for"):
        assert fact in shown


def test_standard_input_and_a_closed_pipe(uai):
    command = f"'{sys.executable}' -m softmap solve - --json --no-progress < '{uai}'"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["variables"] == 3
    piped = f"set -o pipefail; '{sys.executable}' -m softmap doctor | true"
    done = subprocess.run(["bash", "-c", piped], capture_output=True, text=True, env=os.environ)
    assert "Traceback" not in done.stderr


def test_info_and_doctor_speak_json(uai, infeasible, capsys):
    assert main(["info", str(uai), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["variables"], facts["edges"], facts["labels_max"]) == (3, 2, 3)
    assert facts["arc_consistent"] is True
    assert main(["info", str(infeasible), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arc_consistent"] is False
    assert main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["packages"]["numpy"] == np.__version__


def test_output_to_standard_output_is_the_labels_alone(uai, capsys):
    assert main(["solve", str(uai), "--output", "-", "--no-progress"]) == 0
    out = capsys.readouterr().out
    assert out == format_labellings([softmap.solve(softmap.read(uai)).labels])
    assert main(["solve", str(uai), "--output", "-", "--json"]) == 2


def test_convert_scales_costs(tmp_path, capsys):
    source, target = tmp_path / "m.npz", tmp_path / "m.wcsp"
    softmap.write(softmap.Model([[0.5, 0.0], [0.0, 0.25]], [[0, 1]], softmap.Potts(0.5)), source)
    assert main(["convert", str(source), str(target)]) == 2
    assert main(["convert", str(source), str(target), "--scale", "4"]) == 0
    scaled, model = softmap.read(target), softmap.read(source)
    labels = np.array(list(np.ndindex(2, 2)))
    np.testing.assert_allclose(scaled.energy(labels), 4 * model.energy(labels))
    assert main(["convert", str(source), str(tmp_path / "m.uai"), "--scale", "4"]) == 2
    assert "--scale is for .wcsp" in capsys.readouterr().err


def test_errors_name_options_of_the_command_line(uai, capsys):
    assert main(["solve", str(uai), "--lp-gap", "-1"]) == 2
    assert "softmap: --lp-gap -1.0: expected" in capsys.readouterr().err
    assert main(["convert", str(uai), "nowhere/x.npz"]) == 2
    assert "--target" not in capsys.readouterr().err
    assert main(["solve"]) == 2
    assert "see softmap solve --help" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["solve", "--method", "tr"], "trws"),
        (["compare", "--methods", "anneal,mp"], "anneal,mplp"),
        (["demo", "ste"], "stereo"),
        (["convert", "--format", "wc"], "wcsp"),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_methods_demos_and_formats(shell, words, found, monkeypatch, capsys):
    line = " ".join(["softmap", *words])
    monkeypatch.setenv("_SOFTMAP_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    with contextlib.suppress(SystemExit):
        main([])
    assert found in capsys.readouterr().out


def test_methods_to_solve_with_are_offered_first():
    from softmap.app.cli.options import complete_method, complete_methods

    assert complete_method("") == ["anneal", "trws"]
    assert complete_methods("smp,") == ["smp,anneal", "smp,trws", "smp,highs"]
    assert complete_method("accel-s") == ["accel-smp", "accel-smp-printed", "accel-sweeps"]


def test_the_suffix_of_a_chart_is_checked_before_the_work(uai, monkeypatch, capsys):
    def unreached(*_args, **_options):
        raise AssertionError("solved before the suffix was read")

    monkeypatch.setattr(softmap, "solve", unreached)
    assert main(["compare", str(uai), "--plot", "x.what"]) == 2
    assert "--plot x.what: expected the suffix of a picture" in capsys.readouterr().err


def test_compare_draws_only_when_asked(uai, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", str(uai), "--methods", "trws", "--no-progress"]) == 0
    assert not list(tmp_path.glob("*.png"))
    assert "trws" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["doctor", "info"])
def test_a_broken_pipe_is_no_failure_of_ours(command, uai):
    words = f"{command} '{uai}'" if command == "info" else command
    piped = f"'{sys.executable}' -m softmap {words} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", piped], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_the_command_alone_prints_its_help(capsys):
    assert main([]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("Usage: softmap")
    assert printed.err == ""


def test_options_are_called_by_what_they_take(capsys):
    assert main(["solve", "--help"]) == 0
    assert "--memory-limit <bytes>" in capsys.readouterr().out


def test_fewer_labellings_than_asked_for_are_explained(tmp_path, capsys):
    softmap.write(softmap.Model([[0.0, 1.0]]), tmp_path / "two.uai")
    assert main(["solve", str(tmp_path / "two.uai"), "--mbest", "3"]) == 0
    assert "--mbest 3: only 2 labellings exist" in capsys.readouterr().err
    assert main(["solve", str(tmp_path / "two.uai"), "--mbest", "2"]) == 0
    assert capsys.readouterr().err == ""


def test_there_are_no_colours_under_mpiexec(monkeypatch):
    from softmap.views.console import results

    monkeypatch.setenv("FORCE_COLOR", "1")
    assert results().is_terminal
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    console = results()
    assert not console.is_terminal
    assert console.no_color
