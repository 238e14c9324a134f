"""What a snapshot hands out, and methods that run as long as they are asked to."""

import numpy as np
import pytest

import softmap
from softmap.methods.marginals import smoothed_optimum

CYCLE = softmap.Model(
    [[0.0, 0.3], [0.2, 0.0], [0.1, 0.0]], [[0, 1], [1, 2], [0, 2]], softmap.Potts([0.5, 0.4, 0.6])
)


@pytest.mark.parametrize("method", ["anneal", "trws", "smp", "emp"])
def test_lam_of_each_snapshot_proves_a_bound(method):
    """The bound of λ is one on the LP optimum, and no better than the best so far."""
    options = {"method": method, "updates": 12, "goal": "lp", "lp_gap": 0, "gap": 0}
    if softmap.METHODS[method].fixed_eta:
        options["eta"] = 5.0
    best = softmap.lp.solve(CYCLE).value
    seen = []
    for snapshot in softmap.paper.snapshots(CYCLE, **options):
        assert snapshot.lam.shape == (CYCLE.network.half_size,)
        bound = softmap.certificate(CYCLE, snapshot.lam, eta=5.0).bound
        assert bound <= best + 1e-9
        assert bound <= snapshot.bound + 1e-9
        seen.append(snapshot.lam)
    assert len(seen) > 1
    if method not in ("trws", "anneal"):  # these may solve it in one pass
        assert any(not np.array_equal(a, seen[0]) for a in seen)


def test_lam_is_gone_when_the_run_has_gone_on():
    run = softmap.paper.snapshots(CYCLE, method="trws", updates=8, goal="lp")
    first, second = next(run), next(run)
    kept = second.lam
    with pytest.raises(softmap.OptionError, match="lost when the run continues"):
        _ = first.lam
    next(run)
    assert second.lam is kept


@pytest.mark.parametrize("method", ["trws", "mplp", "smp", "emp"])
def test_a_method_asked_for_by_name_makes_all_its_updates(method):
    """A tiny model is proved optimal long before; a teacher wants to see the method run."""
    options = {"eta": 10.0} if softmap.METHODS[method].fixed_eta else {}
    result = softmap.paper.solve(CYCLE, method=method, updates=30, **options)
    assert result.status is softmap.Status.UPDATES
    assert len(result.trace) > 3
    assert {row.stage for row in result.trace} == {"relaxation"}
    assert softmap.verify(result).holds
    assert softmap.paper.solve(CYCLE, method=method, **options).status is softmap.Status.OPTIMAL


@pytest.mark.parametrize("method", ["trws", "mplp", "smp", "accel-emp", "greedy-smp", "anneal"])
@pytest.mark.parametrize("every", [1, 3])
def test_snapshots_come_as_often_as_asked(method, every):
    options = {"eta": 10.0} if softmap.METHODS[method].fixed_eta else {}
    model = softmap.generators.random_grid(3, 3, 2, seed=2)
    seen = list(softmap.paper.snapshots(model, method=method, updates=10, every=every, goal="lp",
                                lp_gap=0, gap=0, **options))  # fmt: skip
    found = [snapshot.updates for snapshot in seen if snapshot.stage == "relaxation"]
    wanted = [*range(every, 10, every), 10]
    assert [k for k in dict.fromkeys(found) if k] == wanted[: len(set(found) - {0})]
    assert method == "anneal" or max(found) == 10


def test_an_interval_is_a_positive_number():
    for wrong in (0, -1, 1.5, "all"):
        with pytest.raises(softmap.OptionError, match="every="):
            softmap.paper.solve(CYCLE, method="trws", updates=5, every=wrong)


@pytest.mark.parametrize("method", sorted(set(softmap.METHODS) - {"anneal", "anneal-safe"}))
def test_every_method_shows_its_smoothed_dual(method):
    """The value at λ and η of the check; a lower bound on the smoothed optimum.

    That of the default method and its variant is of chains, with another entropy.
    """
    options = {"eta": 4.0} if softmap.METHODS[method].fixed_eta else {}
    shown = []
    for snapshot in softmap.paper.snapshots(CYCLE, method=method, updates=6, every=2, **options):
        if snapshot.stage == "relaxation" and snapshot.updates:
            shown.append(snapshot.smoothed)
            optimum = smoothed_optimum(CYCLE, snapshot.eta).value
            assert snapshot.smoothed <= optimum + 1e-8
            if method in ("smp", "emp", "trws"):
                dual = softmap.SmoothedDual(CYCLE, snapshot.eta)
                assert snapshot.smoothed == pytest.approx(-dual.value(snapshot.lam))
    assert shown
    assert np.isfinite(shown).all()


def test_a_trace_is_a_table_in_a_notebook():
    trace = softmap.paper.solve(CYCLE, method="trws", updates=60, every=1).trace
    page = trace._repr_html_()
    assert page.count("<tr>") == 1 + 21  # the header, ten rows, dots, ten rows
    assert "<th>bound</th>" in page
    assert f"<td>{trace[-1].bound:.6g}</td>" in page
    assert "relaxation" in page
