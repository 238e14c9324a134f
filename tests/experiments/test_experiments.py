"""The reproduction end to end, on settings small enough for every run of the tests."""

import json

import numpy as np
import pytest

from softmap.app.cli.app import main
from softmap.app.experiments import plan as plans
from softmap.app.experiments import trials
from softmap.app.experiments.pictures import draw_all
from softmap.app.experiments.plan import Plan, Settings, settings_for, spaced
from softmap.app.experiments.reproduce import read_tables, reproduce
from softmap.app.experiments.trials import PAPER, Method, Store, cvxpy_optimum, problem, solvers
from softmap.errors import OptionError
from softmap.solving.judge import Judge

TINY = Settings(
    trials=2, updates=120, points=5, size=10, sizes=(5, 8), etas=(10.0, 1000.0), eta_trials=1
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    plan = Plan(("figure1", "figure2", "figure3"), TINY, workers=2)
    return plan, folder, reproduce(plan, folder)


def files(folder):
    """Everything but the clock and the stored trials, which hold times too."""
    return {
        p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and "seconds" not in p.name
    }


def test_everything_is_written(whole):
    _, folder, written = whole
    names = {path.name for path in written}
    pictures = ("figure1", "figure2", "figure3", "figure3-eta")
    assert {f"{name}.{kind}" for name in pictures for kind in ("csv", "png", "svg")} <= names
    assert {"truth.csv", "figure1-ratios.csv", "figure3-seconds.csv", "claims.md"} <= names
    assert all(path.stat().st_size > 0 for path in written)
    assert (folder / "figure1.png").read_bytes().startswith(b"\x89PNG")


def test_tables_are_tidy(whole):
    _, folder, _ = whole
    tables = read_tables(folder)
    curves = tables["figure1"]
    assert list(curves.columns) == [
        "n", "method", "form", "eta", "trial", "updates", "work", "gap", "returned_gap", "bound_gap"
    ]  # fmt: skip
    assert len(curves) == len(PAPER) * TINY.trials * len(spaced(TINY.updates, TINY.points))
    assert set(tables["figure2"]["n"]) == set(TINY.sizes)
    assert set(tables["figure3-eta"]["eta"]) == set(TINY.etas)
    for name in ("figure1", "figure2", "figure3", "figure3-eta"):
        for column in ("gap", "returned_gap", "bound_gap"):
            assert (tables[name][column] > -1e-6).all(), (name, column)
    assert (tables["figure3-seconds"]["seconds"] > 0).all()


def test_the_manifest_says_how_to_repeat_it(whole):
    _, folder, _ = whole
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["what"] == "all"
    assert manifest["settings"]["seed"] == TINY.seed
    assert manifest["settings"]["etas"] == list(TINY.etas)
    assert {"softmap", "python", "numpy", "highspy"} <= set(manifest["versions"])
    assert "figure1.csv" in manifest["files"]
    timed = {"figure3-seconds.csv", "figure3.png", "figure3.svg", "manifest.json"}
    written = {path.name for path in folder.iterdir() if path.is_file()}
    assert set(manifest["files"]) == written - timed


def test_same_seed_same_bytes_on_any_number_of_threads(whole, tmp_path):
    _, folder, _ = whole
    reproduce(Plan(("figure1", "figure2", "figure3"), TINY, workers=1), tmp_path, draw=False)
    before, after = files(folder), files(tmp_path)
    digests = [json.loads(found.pop("manifest.json"))["files"] for found in (before, after)]
    assert {"figure1.csv", "figure2.csv", "figure3.csv", "figure3-eta.csv", "claims.md"} <= set(
        after
    )
    for name in after:
        assert before[name] == after[name], name
        assert digests[0][name] == digests[1][name]


def test_pictures_are_the_same_every_time(whole, tmp_path):
    _, folder, _ = whole
    tables = read_tables(folder)
    draw_all({"figure2": tables["figure2"]}, tmp_path)
    for name in ("figure2.png", "figure2.svg"):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()


def test_another_seed_is_another_run():
    first, second = (problem(10, 3, seed) for seed in (0, 1))
    assert first.model.fingerprint() != second.model.fingerprint()
    assert trials.trial_seed(0, 0) != trials.trial_seed(0, 1) != trials.trial_seed(1, 0)


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    plan = Plan(("figure2",), TINY, workers=1)
    seen, ran, follow = [], [], trials.follow

    def stop(done):
        seen.append(done)
        if len(seen) == 4:
            raise KeyboardInterrupt

    def counted(given, *rest):
        ran.append(given.figure)
        return follow(given, *rest)

    monkeypatch.setattr(trials, "follow", counted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(plan, tmp_path, on_done=stop, draw=False)
    kept = len(list((tmp_path / "trials").iterdir()))
    assert 4 <= kept < len(plan.units)
    assert not (tmp_path / "figure2.csv").exists()
    ran.clear()
    reproduce(plan, tmp_path, draw=False)
    assert ran.count("figure2") == len(plan.units) - kept
    ran.clear()
    untouched = files(tmp_path)
    reproduce(plan, tmp_path, draw=False)
    assert ran == []
    assert files(tmp_path) == untouched


def test_a_damaged_or_foreign_result_is_run_again(tmp_path):
    given = plans.size_units(TINY)[0]
    store = Store(tmp_path, "code")
    points = [trials.Point(k, k, 0.1, 1.0, 1.0, 0.5) for k in given.checks]
    store.save(given, points)
    assert store.load(given) == points
    assert Store(tmp_path, "other code").load(given) is None
    store.path(given).write_text("[[1, 2")
    assert store.load(given) is None
    store.save(given, points[:-1])
    assert store.load(given) is None


def test_points_are_those_of_the_judge():
    """The last point of a trial is what the algorithm itself proposes after as many updates."""
    given = problem(8, 3, 0)
    for method in (Method("smp", "standard"), Method("emp", "proved")):
        trial = trials.Unit("x", 8, 3, 0, method, 100.0, 1, (7, 60))
        algorithm = method.make(100.0)
        state = algorithm.init(given.model, None, trials.trial_seed(0, 1))
        algorithm.step(state, 60)
        proposal = algorithm.propose(state)
        verdict = Judge.of(given.model).look(proposal)
        assert trials.follow(trial, given)[-1].returned == verdict.primals[0]


def test_every_method_of_the_figures_can_be_made():
    model = problem(8, 3, 0).model
    for method in (*PAPER, *solvers()):
        algorithm = method.make(50.0)
        state = algorithm.init(model, None, 0)
        algorithm.step(state, 3)
        assert np.isfinite(algorithm.propose(state).lam).all(), method.label
    assert len({m.label for m in (*PAPER, *solvers())}) == len(PAPER) + len(solvers())
    with pytest.raises(OptionError):
        Method("emp", "unheard").make(1.0)


def test_figure_3_gives_every_method_about_the_same_messages():
    settings = Settings(updates=5000, size=30)
    given = problem(30, 3, 0)
    for trial in plans.work_units(settings, given.model):
        if trial.trial == 0:
            end = trials.follow(trial, given)[-1]
            assert end.work == pytest.approx(settings.messages, rel=0.05), trial.method.label


def test_checks_grow_to_the_last_update():
    assert spaced(1000, 4) == (10, 46, 215, 1000)
    assert spaced(3, 4)[-1] == 3
    assert trials.passes_until(40) == (1, 2, 3, 5, 10, 20, 30, 40)
    assert trials.passes_until(1) == (1,)
    assert len(plans.trial_units(TINY)) == len(PAPER) * TINY.trials


def test_settings_are_checked():
    assert settings_for(quick=True).updates < settings_for().updates
    assert settings_for(quick=True, trials=7).trials == 7
    assert settings_for().trials == 10
    for wrong in ({"trials": 0}, {"updates": 0}, {"seed": -1}):
        with pytest.raises(OptionError):
            settings_for(**wrong)
    with pytest.raises(OptionError):
        Plan(("figure4",), TINY)


def test_the_optimum_agrees_with_cvxpy():
    pytest.importorskip("cvxpy")
    given = problem(12, 3, 3)
    assert cvxpy_optimum(given.model) == pytest.approx(given.optimum, abs=1e-6)


def test_command_line(tmp_path, capsys):
    words = ["reproduce", "figure2", "--quick", "--updates", "60", "--trials", "1", "--no-progress"]
    assert main([*words, "--out", str(tmp_path / "new" / "folder")]) == 0
    out = capsys.readouterr().out
    assert "figure2.svg" in out
    assert "claims.md" in out
    assert main(["reproduce", "figure9", "--out", str(tmp_path)]) == 2
    assert main(["reproduce", "figure1", "--trials", "0", "--out", str(tmp_path)]) == 2
    assert "trials must be at least 1" in capsys.readouterr().err
