"""Names of other libraries: what is refused says what to use instead, and that exists."""

import inspect
import subprocess
import sys
import zipfile
from importlib import import_module

import numpy as np
import pytest

import softmap
from softmap import hints, transport
from softmap.app.cli.app import COMMANDS, main

MODEL = softmap.Model.grid(np.zeros((2, 3, 2)), 1.0)
PHOTO = np.zeros((4, 6))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: softmap.solve(MODEL, timeout=1), r"solve\(\) .*'timeout'; did you mean 'time_lim"),
        (lambda: softmap.solve(MODEL, ub=1), "did you mean 'upper_bound'"),
        (lambda: softmap.solve(MODEL, n_jobs=1), "did you mean 'threads'"),
        (lambda: softmap.solve(MODEL, evidence={0: 1}), "model.condition"),
        (lambda: softmap.solve(MODEL, temperature=2.0), "eta = 1 / temperature"),
        (lambda: softmap.segment(PHOTO, k=3), r"segment\(\) .*did you mean 'num_labels'"),
        (lambda: softmap.segment(PHOTO, scribbles=PHOTO), "did you mean 'markers'"),
        (lambda: softmap.denoise(PHOTO, sigma=3), r"denoise\(\) .*did you mean 'noise'"),
        (lambda: softmap.stereo(PHOTO, PHOTO, max_disparity=3), "did you mean 'disparities'"),
        (lambda: softmap.Model.grid(MODEL, weights=1), r"Model.grid\(\) .*did you mean 'pairwise'"),
        (lambda: softmap.codes.Decoder([[1]], error_rate=1), "did you mean 'probabilities'"),
        (lambda: transport.sinkhorn([1], [1], [[0]], reg=1), "without regularisation; gap="),
        (lambda: softmap.soft_map([[0, 1]], 1.0, [], temperature=1), "eta = 1 / temperature"),
        (lambda: softmap.solve(MODEL, maximize=True), "costs are minimised: to maximise"),
        (lambda: softmap.solve_mbest(MODEL, k=3), "did you mean 'm'"),
        (lambda: softmap.solve(MODEL, surprise=1), r"'surprise'$"),
    ],
)
def test_an_argument_of_another_library_is_answered_with_ours(call, said):
    with pytest.raises(TypeError, match=said):
        call()


def test_options_of_many_models_are_answered_too():
    with pytest.raises(softmap.OptionError, match="did you mean 'workers'"):
        softmap.solve_many([MODEL], n_jobs=2)


@pytest.mark.parametrize(
    ("of", "name", "said"),
    [
        (softmap, "load", r"module 'softmap' has no attribute 'load'; use softmap.read\(path\)"),
        (softmap, "CFN", "Model.from_factors"),
        (softmap, "Sampler", "softmap.interop.dimod.Sampler"),
        (softmap, "sovle", "did you mean 'solve'"),
        (softmap, "nonsense", "'nonsense'$"),
        (transport, "barycenter", "multimarginal"),
        (MODEL, "Solve", r"softmap.solve\(model\)"),
        (MODEL, "n_labels", "use num_labels"),
        (MODEL, "num_lables", "did you mean 'num_labels'"),
        (MODEL, "nonsense", "'Model' object has no attribute 'nonsense'$"),
        (softmap.solve(MODEL), "cost", "use energy"),
        (softmap.solve(MODEL), "to_dict", r"use as_dict\(\)"),
        (softmap.solve(MODEL), "enrgy", "did you mean 'energy'"),
        (softmap.solve(MODEL), "nonsense", "'Result' object has no attribute 'nonsense'$"),
        (transport.sinkhorn([1.0], [1.0], [[0.0]]), "matrix", r"use plan\(\)"),
    ],
)
def test_an_attribute_of_another_library_is_answered_with_ours(of, name, said):
    with pytest.raises(AttributeError, match=said):
        getattr(of, name)


def test_what_is_suggested_exists():
    for ours in [*softmap._INSTEAD]:
        for word in ours.replace("(", " ").replace(",", " ").split():
            if word.startswith("softmap."):
                eval(word, {"softmap": softmap})
    helped = {name: _help(name) for name in ("solve", "compare")}
    for option in hints.OPTIONS:
        if option.startswith("--"):
            assert option.split()[0] in "".join(helped.values()) + "--labels", option


def _help(command: str) -> str:
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()) as shown:
        assert main([command, "--help"]) == 0
    return shown.getvalue()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["solve", "m.uai", "-timer=5"], "there is no option -timer; use --time-limit"),
        (["solve", "m.uai", "-w", "x.sol"], "there is no option -w; use --output"),
        (["solve", "m.uai", "m.uai.evid"], "use --evidence m.uai.evid"),
        (["segment", "photo.png"], "softmap demo segment"),
        (["help", "solve"], "use softmap solve --help"),
        (["version"], "use softmap --version"),
        ([__file__], f"is a file; use softmap solve {__file__}"),
        (["solve", "m.uai", "-q"], "use --no-progress"),
        (["solve", "m.uai", "-v"], "there is no option -v; progress is shown by default"),
        (["solve", "m.uai", "--surprise"], "No such option: --surprise"),
    ],
)
def test_a_word_of_another_solver_is_answered_with_ours(words, said, capsys):
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_a_result_in_place_of_a_model_is_recognised(tmp_path, capsys):
    softmap.solve(MODEL).save(tmp_path / "r.npz")
    softmap.write(MODEL, tmp_path / "m.uai")
    for words in (["info", "r.npz"], ["verify", "r.npz", "r.npz"]):
        assert main([words[0], *(str(tmp_path / name) for name in words[1:])]) == 2
        assert "found a saved result: softmap.load_result" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["solve", "m.uai", "--evidence", "0:1"], "labels are given as 0=3,x7=1"),
        (["solve", "m.uai", "--mbest", "0"], "--mbest 0: expected"),
        (["info", "m.zip"], "found a ZIP file with m.uai: unpack it"),
        (["info", "empty.uai"], "empty"),
        (["info", "nothing"], "the file is empty"),
        (["solve-many", "nowhere", "-o", "out"], "nowhere: there is no such file or folder"),
    ],
)
def test_a_wrong_file_or_value_says_what_it_is(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    softmap.write(MODEL, "m.uai")
    with zipfile.ZipFile("m.zip", "w") as archive:
        archive.write("m.uai")
    for name in ("empty.uai", "nothing"):
        (tmp_path / name).touch()
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_the_mark_that_windows_editors_write_is_skipped(tmp_path):
    softmap.write(MODEL, tmp_path / "m.uai")
    plain = (tmp_path / "m.uai").read_bytes()
    (tmp_path / "marked.uai").write_bytes(b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n"))
    again = softmap.read(tmp_path / "marked.uai")
    assert again.energy(np.ones(6, int)) == softmap.read(tmp_path / "m.uai").energy(np.ones(6, int))


def test_a_model_in_place_of_a_result_is_recognised(tmp_path):
    softmap.write(MODEL, tmp_path / "m.npz")
    with pytest.raises(
        softmap.FormatError, match=r"expected a result, found a model: softmap\.read"
    ):
        softmap.load_result(tmp_path / "m.npz")


def test_a_result_is_no_tuple():
    with pytest.raises(TypeError, match=r"use result\.labels and result\.energy"):
        _labels, _energy = softmap.solve(MODEL)


def test_the_relative_gap_is_that_of_the_labelling_by_default():
    result = softmap.solve(softmap.generators.potts_grid(5, 5, 3, seed=1), max_work=100)
    assert result.relative_gap() == result.relative_gap(result.gap) > 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: softmap.read("m.uai", fmt="uai"), "did you mean 'format'"),
        (lambda: softmap.read("m.uai", format="UAI"), "did you mean 'uai'"),
        (lambda: softmap.Model({"a": [0, 1]}, None, 0.5), "Model.from_factors takes variables"),
    ],
)
def test_other_arguments_are_answered_too(call, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    softmap.write(MODEL, "m.uai")
    with pytest.raises(softmap.SoftmapError, match=said):
        call()


def test_a_method_in_another_spelling_is_recognised():
    for name in ("TRW-S", "TRWS", "Anneal"):
        with pytest.raises(softmap.OptionError, match=r"did you mean '(trws|anneal)'"):
            softmap.solve(MODEL, method=name)
    with pytest.raises(softmap.OptionError, match="'bp'; choose anneal or trws, or to compare"):
        softmap.solve(MODEL, method="bp")


@pytest.mark.parametrize("words", ["--report page.pdf", "--trace run.json"])
def test_an_ending_that_promises_another_format_is_refused(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    softmap.write(MODEL, "m.uai")
    assert main(["solve", "m.uai", "--no-progress", *words.split()]) == 2
    assert "is written, no ." in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["m.uai"]


def test_a_proof_in_place_of_a_result_is_recognised(tmp_path, capsys):
    softmap.write(MODEL, tmp_path / "m.uai")
    softmap.solve(softmap.read(tmp_path / "m.uai"), proof=tmp_path / "m.proof")
    assert main(["verify", str(tmp_path / "m.uai"), str(tmp_path / "m.proof")]) == 2
    assert "softmap verify MODEL --proof FILE" in capsys.readouterr().err
    assert main(["verify", str(tmp_path / "m.uai"), "--proof", str(tmp_path / "m.proof")]) == 0


def test_compare_shows_the_methods_and_not_what_other_stages_prove(tmp_path, capsys):
    triangle = softmap.Model(np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], np.eye(2))
    softmap.write(triangle, tmp_path / "m.uai")
    words = ["compare", str(tmp_path / "m.uai"), "--methods", "anneal", "--no-progress"]
    assert main(words) == 0
    assert "0.0000  1.0000" in capsys.readouterr().out  # the relaxation: half of each label
    assert main([*words, "--goal", "map"]) == 0
    assert "1.0000  1.0000" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\xff\xd8\xff\xe0 a photo", "softmap.segment"), (b"c x\np cnf 1 1\n1 0\n", "becomes WCNF")],
)
def test_a_file_that_is_no_model_says_what_it_is_for(content, said, tmp_path):
    (tmp_path / "file.x").write_bytes(content)
    with pytest.raises(softmap.FormatError, match=said):
        softmap.read(tmp_path / "file.x")


def test_markers_at_every_pixel_are_refused():
    with pytest.raises(softmap.ModelError, match="expected -1 where it is not known"):
        softmap.segment(PHOTO, 2, markers=np.zeros(PHOTO.shape, int))


@pytest.mark.parametrize(
    ("factors", "said"),
    [
        ([(("x", "z"), np.zeros((2, 2)))], "no variable 'z'; the variables are 'x', 'y'"),
        ([("x", [0, 1])], r"not 'x'; \('x',\) is a tuple of one"),
        ([(np.zeros((2, 2)), ("x", "y"))], r"a factor is \(scope, costs\)"),
        ({("x", "y"): np.zeros((2, 2))}, r"its items\(\) are one"),
        ([(("x", "y"), np.zeros((3, 2)))], r"over \('x', 'y'\) needs costs of shape \(2, 2\)"),
    ],
)
def test_wrong_factors_are_named_as_they_were_given(factors, said):
    with pytest.raises(softmap.ModelError, match=said):
        softmap.Model.from_factors({"x": 2, "y": 2}, factors)


def test_a_list_of_names_is_no_list_of_counts():
    with pytest.raises(softmap.ModelError, match="a mapping from names to numbers"):
        softmap.Model.from_factors(["x", "y"], [])


@pytest.mark.parametrize("factor", [softmap.AllDifferent, softmap.Or, softmap.ExactlyOne])
def test_a_factor_without_its_variables_says_that_it_has_them(factor):
    with pytest.raises(softmap.ModelError, match=f"{factor.__name__} needs its variables"):
        factor()


def test_one_weight_per_edge_is_for_potts():
    with pytest.raises(softmap.ModelError, match="Potts"):
        softmap.Model.grid(np.zeros((2, 2, 2)), np.ones(4))


def test_a_model_of_another_library_is_answered_with_its_conversion():
    dimod = pytest.importorskip("dimod")
    with pytest.raises(softmap.OptionError, match=r"interop\.dimod\.from_bqm"):
        softmap.solve(dimod.BinaryQuadraticModel({"a": 1.0}, {}, 0.0, "SPIN"))


class Traced:
    """An array that requires a gradient, as those of PyTorch do."""

    requires_grad = True

    def __array__(self, *_args, **_options):
        return np.ones(1)


def test_transport_refuses_gradients_that_it_would_lose():
    one = np.ones(1)
    for given in ((Traced(), one, [[0.0]]), (one, one, Traced())):
        with pytest.raises(softmap.ModelError, match="requires a gradient"):
            transport.sinkhorn(*given)
    with pytest.raises(softmap.ModelError, match=r"marginals\[1\] requires a gradient"):
        transport.multimarginal([one, Traced()], [[0, 1]], [[0.0]])


def test_masses_say_what_was_found():
    with pytest.raises(softmap.ModelError, match="the sum 2"):
        transport.sinkhorn([1.0], [2.0], [[0.0]])
    with pytest.raises(softmap.ModelError, match="the mass -1"):
        transport.sinkhorn([-1.0, 2.0], [1.0], [[0.0], [0.0]])


def test_large_objects_are_short_in_a_console():
    seen = []
    result = softmap.solve(MODEL, on_snapshot=seen.append)
    for value in (
        result.trace,
        softmap.verify(result),
        softmap.exact_marginals(MODEL),
        result.marginals(2.0),
        seen[0],
        transport.sinkhorn(np.full(99, 1 / 99), np.full(99, 1 / 99), np.ones((99, 99))),
        softmap.codes.Decoder(np.ones((1, 99), int), 0.1).decode([1]),
    ):
        assert len(repr(value)) < 200, repr(value)


def test_the_list_of_commands_is_not_cut(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out.split("Commands:")[1].split("Start with")[0]
    assert shown.count("\n  ") >= len(COMMANDS)
    assert "..." not in shown


def test_the_list_of_commands_says_what_their_functions_say():
    for name, command in COMMANDS.items():
        module, _, function = command.function.partition(":")
        described = inspect.getdoc(getattr(import_module(module), function))
        assert described.split("\n\n")[0].replace("\n", " ") == command.summary, name


def test_help_and_version_import_no_numpy():
    """What a command needs is imported when it runs: the list of commands takes no time."""
    program = (
        "import sys; from softmap.__main__ import main\n"
        "sys.argv[1:] = [{word!r}]; main()\n"
        "slow = {{'numpy', 'scipy', 'rich', 'softmap.model'}} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    for word in ("--help", "--version"):
        subprocess.run([sys.executable, "-c", program.format(word=word)], check=True)
