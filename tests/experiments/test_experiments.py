"""The reproduction end to end, on settings small enough for every run of the tests."""

import json
import math
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from softmap.app.cli.app import main
from softmap.app.experiments import plan as plans
from softmap.app.experiments import reproduce as reproducing
from softmap.app.experiments import trials
from softmap.app.experiments.archive import load_run, save_run
from softmap.app.experiments.code import bare_cpp, bare_python, code_digest
from softmap.app.experiments.entries import PAPER, Method, own_method, solvers
from softmap.app.experiments.evaluation import Evaluator
from softmap.app.experiments.plan import FIGURE1, FIGURES, Plan, Settings, settings_for, spaced
from softmap.app.experiments.problems import Graph, cvxpy_optimum, optimum
from softmap.app.experiments.reproduce import publish, reproduce
from softmap.app.experiments.tables import Table
from softmap.app.experiments.trials import Store
from softmap.errors import FormatError, OptionError
from softmap.relaxation.bounds import projected_cost
from softmap.relaxation.dual import SmoothedDual
from softmap.relaxation.polytope import couple

TINY = Settings(
    graphs=2, trials=2, updates=120, points=5, size=10, sizes=(5, 8), etas=(10.0, 1000.0)
)
TIMED = {"seconds.npz", "figure3-seconds.csv", "figure3.png", "figure3.svg"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    plan = Plan(FIGURES, TINY, workers=2)
    return plan, folder, reproduce(plan, folder, draws=100)


def files(folder):
    """Everything but the clock and the stored trials, which hold times too."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and p.name not in TIMED}


def test_everything_is_written(whole):
    _, folder, written = whole
    names = {path.name for path in written}
    figures = ("figure1", "figure2", "figure3", "figure3-eta", "figure4")
    assert {f"{name}.{kind}" for name in figures for kind in ("csv", "png", "svg")} <= names
    others = {"run.npz", "seconds.npz", "truth.csv", "claims.md", "manifest.json"}
    assert others | {"figure1-ratios.csv", "figure4-graphs.csv"} <= names
    assert all(path.stat().st_size > 0 for path in written)
    assert (folder / "figure1.png").read_bytes().startswith(b"\x89PNG")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["settings"]["graphs"] == TINY.graphs
    assert manifest["code"] == code_digest()
    assert {"softmap", "python", "numpy", "highspy"} <= set(manifest["versions"])
    assert manifest["machine"]


def test_a_stored_run_has_every_bit(whole, tmp_path):
    plan, folder, _ = whole
    results = load_run(folder)
    assert list(results) == plan.units
    again = trials.follow(plan.units[-1])
    np.testing.assert_array_equal(
        np.array(again)[:, [0, 1, 3, 4, 5, 6]],
        np.array(results[plan.units[-1]])[:, [0, 1, 3, 4, 5, 6]],
    )
    save_run(results, tmp_path)
    assert (tmp_path / "run.npz").read_bytes() == (folder / "run.npz").read_bytes()
    save_run({}, tmp_path)
    (tmp_path / "seconds.npz").write_bytes((folder / "seconds.npz").read_bytes())
    with pytest.raises(FormatError):
        load_run(tmp_path)


def test_every_method_has_every_trial_on_every_graph(whole):
    plan, folder, _ = whole
    first = [unit for unit in plan.units if unit.figure == "figure1"]
    assert len(first) == len(PAPER) * TINY.trials * TINY.graphs
    assert {unit.graph.seed for unit in first} == {0, 1}
    table = Table.from_csv(folder / "figure1.csv")
    assert len(table) == len(PAPER) * len(spaced(TINY.updates, TINY.points))
    assert (table["gap_low"] <= table["gap_high"]).all()
    assert set(Table.from_csv(folder / "figure2.csv")["n"]) == set(TINY.sizes)


def test_same_seed_same_bytes_on_any_number_of_threads(whole, tmp_path, monkeypatch):
    _, folder, _ = whole
    monkeypatch.setattr(reproducing, "can_draw", lambda: False)
    reproduce(Plan(FIGURES, TINY, workers=1), tmp_path, draws=100)
    before, after = files(folder), files(tmp_path)
    assert {"run.npz", "figure1.csv", "figure4.csv", "claims.md", "truth.csv"} <= set(after)
    assert not any(name.endswith((".png", ".svg")) for name in after)
    for name in after:
        assert before[name] == after[name], name


def test_figures_are_the_same_every_time(whole, tmp_path):
    _, folder, _ = whole
    results = load_run(folder)
    save_run({unit: results[unit] for unit in results if unit.figure == "figure2"}, tmp_path)
    for name in ("truth.csv", "manifest.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    publish(tmp_path, draws=100)
    for name in ("figure2.png", "figure2.svg", "figure2.csv"):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    plan = Plan(("figure2",), TINY, workers=1)
    seen, ran, follow = [], [], trials.follow
    monkeypatch.setattr(reproducing, "can_draw", lambda: False)

    def stop(done):
        seen.append(done)
        if len(seen) == 4:
            raise KeyboardInterrupt

    def counted(unit, *others):
        ran.append(unit.figure)
        return follow(unit, *others)

    monkeypatch.setattr(trials, "follow", counted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(plan, tmp_path, on_done=stop)
    kept = len(list((tmp_path / "trials").iterdir()))
    assert 4 <= kept < len(plan.units)
    assert not (tmp_path / "figure2.csv").exists()
    ran.clear()
    reproduce(plan, tmp_path)
    assert len(ran) == len(plan.units) - kept
    ran.clear()
    reproduce(plan, tmp_path)
    assert ran == []


def test_a_damaged_or_foreign_result_is_run_again(tmp_path):
    unit = plans.size_units(TINY)[0]
    store = Store(tmp_path, "code")
    points = [trials.Point(k, k, 0.1, 1.0, 1.0, 0.5, 0.9) for k in unit.checks]
    store.save(unit, points)
    assert store.load(unit) == points
    assert Store(tmp_path, "other code").load(unit) is None
    store.path(unit).write_text("[[1, 2")
    assert store.load(unit) is None
    store.save(unit, points[:-1])
    assert store.load(unit) is None


def test_points_are_projections_and_exchanges_have_a_column_of_their_own():
    """A gap is that of Proj, at the current iterate; what softmap makes of it is kept apart."""
    graph = Graph(12, 3, 0)
    model, dual = graph.model(), SmoothedDual(graph.model(), 100.0)
    for method in (Method("smp", "standard"), Method("emp", "proved")):
        unit = trials.Unit("x", graph, method, 100.0, 1, (7, 60))
        algorithm = method.make(100.0)
        state = algorithm.init(model.network, None, trials.trial_seed(0, 1))
        algorithm.step(state, 60)
        lam = trials.current(algorithm, state)
        nodes = dual.node_marginals(lam)
        point = trials.follow(unit)[-1]
        assert point.primal == pytest.approx(projected_cost(dual, lam, nodes), abs=1e-12)
        assert point.exchanged == pytest.approx(
            couple(model.network, nodes, lam, 100.0).cost, abs=1e-12
        )
        assert point.exchanged < point.primal - 1e-3
        assert math.isnan(trials.follow(unit)[0].exchanged)
        kept = algorithm.propose(state).lam
        if method.form == "standard":
            returned = projected_cost(dual, kept, dual.node_marginals(kept))
            assert point.returned == pytest.approx(returned, abs=1e-12)
        else:
            assert math.isnan(point.returned)


def test_a_prefix_of_a_run_is_a_run():
    unit = trials.Unit("x", Graph(9, 3, 1), Method("smp", "printed"), 100.0, 0, (5, 20, 80))
    short, full = trials.follow(unit, until=20), trials.follow(unit)
    assert [point.updates for point in short] == [5, 20]
    assert [point.primal for point in short] == [point.primal for point in full[:2]]


def test_iterates_that_diverge_cost_infinitely_much():
    evaluator = Evaluator(Graph(9, 3, 0).model().network)
    lam = np.full(evaluator.model.network.half_size, np.nan)
    assert evaluator.projected(lam, 100.0) == math.inf
    assert evaluator.exchanged(lam, 100.0).cost == math.inf


def test_every_method_of_the_figures_can_be_made():
    model = Graph(8, 3, 0).model()
    settled = [Method(name, f"{form}-settled") for name in ("emp", "smp") for form in plans.FORMS]
    every = (*PAPER, *solvers(), *settled)
    for method in every:
        algorithm = method.make(50.0, 10)
        state = algorithm.init(model.network, None, 0)
        algorithm.step(state, 3)
        assert np.isfinite(algorithm.propose(state).lam).all(), method.label
    assert len({m.label for m in every}) == len(every)
    with pytest.raises(OptionError):
        Method("emp", "unheard").make(1.0)


def test_figure_3_gives_every_method_about_the_same_messages():
    settings = Settings(updates=5000, size=30, graphs=1, work_trials=1)
    for unit in plans.work_units(settings):
        end = trials.follow(unit)[-1]
        assert end.work == pytest.approx(settings.messages, rel=0.05), unit.method.label


def test_checks_grow_to_the_last_update():
    assert spaced(1000, 4) == (10, 46, 215, 1000)
    assert spaced(3, 4)[-1] == 3
    assert trials.passes_until(40) == (1, 2, 3, 5, 10, 20, 30, 40)
    assert trials.passes_until(1) == (1,)
    lengths = Settings().lengths("emp")
    assert lengths[-2:] == (100_000, 300_000)
    assert all(a < b for a, b in pairwise(lengths))


def test_settings_are_checked():
    assert settings_for(quick=True).updates < settings_for().updates
    assert settings_for(quick=True, trials=7).trials == 7
    assert (settings_for().trials, settings_for().graphs) == (10, 20)
    for wrong in ({"trials": 0}, {"updates": 0}, {"seed": -1}, {"graphs": 0}):
        with pytest.raises(OptionError):
            settings_for(**wrong)
    with pytest.raises(OptionError):
        Plan(("figure9",), TINY)


def test_the_optimum_agrees_with_cvxpy():
    pytest.importorskip("cvxpy")
    model = Graph(12, 3, 3).model()
    assert cvxpy_optimum(model) == pytest.approx(optimum(model), abs=1e-6)


MINE = '''
from softmap import paper
from softmap.methods.base import Algorithm
from softmap.paper import EMP

class Mine(EMP):
    """EMP under another name."""

    name = "my EMP"

Written = paper.as_method(paper.emp, paper.edges, name="written")

class Passes(EMP):
    sweeping = True

class Half(Algorithm):
    pass

class Other:
    pass
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of the user in the current folder."""
    (tmp_path / "mymodule.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != ""])
    yield tmp_path
    sys.modules.pop("mymodule", None)


def test_a_method_of_ones_own_is_in_the_figures(mine):
    """It is EMP here, with the same random numbers, so its ratio to EMP is 0."""
    words = ["reproduce", "figure1", "--quick", "--updates", "200", "--trials", "1", "--graphs",
             "2", "--with", "mymodule:Mine", "--no-progress", "--out", "out"]  # fmt: skip
    assert main(words) == 0
    ratios = Table.from_csv("out/figure1-ratios.csv").where(form="my EMP")
    assert set(ratios["method"]) == {"emp", "smp"}
    assert (ratios.where(method="emp")["mean"] == 0).all()
    assert not (ratios.where(method="smp")["mean"] == 0).all()


def test_a_method_that_was_edited_is_run_again(mine, monkeypatch):
    """A second run finds the trials of the first one, but not those of one's own method."""
    settings = replace(TINY, graphs=1, trials=1, updates=20, points=2, own=("mymodule:Mine",))
    plan, runs = Plan((FIGURE1,), settings, workers=1), []
    monkeypatch.setattr(reproducing, "publish", lambda *_: [])
    for edited in (MINE, MINE, MINE.replace("my EMP", "my own EMP")):
        (mine / "mymodule.py").write_text(edited)
        sys.modules.pop("mymodule", None)
        reproduce(plan, mine / "out")
        runs.append(set((mine / "out" / "trials").iterdir()))
    assert runs[0] == runs[1] < runs[2]
    assert len(runs[2] - runs[1]) == 1


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("mymodule", "expected module:Class"),
        ("nomodule:Mine", "cannot import 'nomodule'"),
        ("mymodule:Nobody", "has no 'Nobody'"),
        ("mymodule:Other", "not a subclass"),
        ("mymodule:Half", "has no init, propose, step"),
    ],
)
def test_a_wrong_method_is_refused_by_name(mine, place, says):
    with pytest.raises(OptionError, match=says):
        own_method(place)


def test_a_method_of_ones_own_is_measured_at_its_current_iterate(mine):
    """A rule of EMP in numpy is EMP, whose proposals are another iterate."""
    graph, checks = Graph(9, 3, 0), (10, 40)
    points = [
        trials.follow(trials.Unit("x", graph, method, 100.0, 0, checks))
        for method in (Method("emp", "standard"), own_method("mymodule:Written"))
    ]
    plain, written = ([point.primal for point in each] for each in points)
    assert own_method("mymodule:Written").label == "written"
    assert written == pytest.approx(plain, abs=1e-9)


def test_a_method_of_passes_enters_figure_3_alone(mine):
    settings = settings_for(quick=True, own=("mymodule:Passes",))
    with pytest.raises(OptionError, match="expected figure3"):
        Plan(("figure1",), settings)
    assert any(unit.method.label == "Passes" for unit in Plan(("figure3",), settings).units)


def test_command_line(tmp_path, capsys, monkeypatch):
    words = ["reproduce", "figure2", "--quick", "--updates", "60", "--trials", "1",
             "--graphs", "1", "--no-progress"]  # fmt: skip
    out = tmp_path / "new" / "folder"
    assert main([*words, "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert "figure2.svg" in shown.out
    assert "claims.md" in shown.out
    assert "no figures" not in shown.err
    assert main(["reproduce", "figure9", "--out", str(tmp_path)]) == 2
    assert main(["reproduce", "figure1", "--trials", "0", "--out", str(tmp_path)]) == 2
    assert "trials must be at least 1" in capsys.readouterr().err
    monkeypatch.setattr(reproducing, "find_spec", lambda name: None)
    assert main([*words, "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert "figure2.svg" not in shown.out
    assert "no figures: matplotlib is not installed (pip install 'softmap[plot]')" in shown.err


def test_comments_and_places_do_not_count_as_code():
    code = "x = 1\n\n\ndef f():\n    return x + 1\n"
    other = '"""Words."""\nimport os\n\nx = 1  # one\n\ndef f():\n    """More."""\n    return x+1\n'
    assert bare_python(code) == bare_python(other)
    assert bare_python(code) != bare_python(code.replace("+", "-"))
    assert bare_cpp("int a; // one\n#include <b>\nint  b;") == bare_cpp("int a;\nint b; /* two */")
    assert bare_cpp("a + b;") != bare_cpp("a - b;")
