"""Statements of a result, one by one: each is checked at its limit, and false beyond it."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

import softmap
from softmap.errors import OptionError
from softmap.relaxation.gaps import PROVED
from softmap.run.evidence import Stated
from softmap.run.trace import Status, Trace
from softmap.subsolvers.clusters.cluster_evidence import ClusterEvidence
from softmap.verification import Report, Statement, Verdict, relaxed, verify
from softmap.verification.checks import ALLOWED, _close, _labels, _ulp, energy_terms
from softmap.verification.dual import (
    allowed_states,
    blocks,
    dual_proves,
    exact_bound,
    largest_cost,
    outer_terms,
    stacks,
)
from softmap.verification.exact import TINIEST
from softmap.verification.point import EPSILON, _price, _unplaced, membership
from softmap.verification.regions import tightened
from support.exact_sums import below

INF = math.inf
CHECKED, STATED, FALSE = Verdict.CHECKED, Verdict.STATED, Verdict.FALSE


# --- reports --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdicts", "whole", "holds"),
    [
        ((CHECKED, CHECKED), CHECKED, True), ((CHECKED, STATED), STATED, True),
        ((STATED, FALSE), FALSE, False), ((FALSE, CHECKED), FALSE, False), ((), CHECKED, True),
    ],
)  # fmt: skip
def test_a_report_is_as_good_as_its_worst_statement(verdicts, whole, holds):
    report = Report(tuple(Statement(f"s{k}", one, "x") for k, one in enumerate(verdicts)))
    assert report.verdict is whole
    assert report.holds is holds
    assert report.checked is (whole is CHECKED)
    assert report.as_dict() == {
        "verdict": whole.value,
        "statements": [
            {"name": f"s{k}", "verdict": one.value, "numbers": "x"}
            for k, one in enumerate(verdicts)
        ],
    }
    for k, one in enumerate(verdicts):
        assert report[f"s{k}"].verdict is one
    with pytest.raises(KeyError):
        report["another"]
    assert Verdict.of(True) is CHECKED
    assert Verdict.of(False) is FALSE


def test_the_lines_of_a_report_are_aligned():
    report = Report((Statement("a longer name", CHECKED, "1"), Statement("b", FALSE, "2")))
    lines = str(report).splitlines()
    assert lines[0] == "a longer name  checked: 1"
    assert lines[1] == "b              false: 2"
    assert lines[2].startswith("result         false: ")


# --- points ---------------------------------------------------------------------------------------

PAIR = softmap.Model([[0.0, 1.0], [2.0, 0.0]], [[0, 1]], [[[0.0, 4.0], [1.0, INF]]], constant=3.0)
NODES, EDGES = np.array([0.5, 0.5, 1.0, 0.0]), np.array([0.5, 0.0, 0.5, 0.0])


def test_a_point_of_the_polytope():
    found = membership(PAIR.network, NODES, EDGES)
    assert found.outside == 0.0
    assert found.cost == 3 + 0.5 + 2 + 0.5
    assert found.size == 6.0
    assert 0 < found.grain < 1e-13


@pytest.mark.parametrize(
    ("nodes", "edges", "outside"),
    [
        ([0.25, 0.5, 1.0, 0.0], [0.5, 0.0, 0.5, 0.0], 0.25),  # a sum below 1, and rows
        ([1.25, -0.25, 1.0, 0.0], [1.25, 0.0, -0.25, 0.0], 0.25),  # negative masses
        ([0.5, 0.5, 1.0, 0.0], [0.75, 0.0, 0.25, 0.0], 0.25),  # rows
        ([0.5, 0.5, 1.0, 0.0], [0.5, 0.0, 0.25, 0.25], 0.25),  # columns, and a forbidden mass
        ([0.5, 0.5, 1.0, 0.0], [0.25, 0.25, 0.75, -0.25], 0.25),
        ([0.5, 0.5, 0.5, 0.5], [0.0, 0.5, 0.5, 0.0], 0.0),
        ([0.5, 0.5, 0.5, 0.5], [0.5, 0.0, 0.0, 0.5], 0.5),  # a forbidden pair
        ([0.5, 0.5, 0.75, 0.5], [0.0, 0.5, 0.5, 0.0], 0.25),  # a sum above 1
    ],
)
def test_the_largest_violation(nodes, edges, outside):
    assert membership(PAIR.network, np.array(nodes), np.array(edges)).outside == outside


WIDE = softmap.Model([[0.0] * 3, [0.0] * 3, [0.0, 0.0]], [[0, 1]], np.arange(9.0).reshape(1, 3, 3))


@pytest.mark.parametrize(
    ("first", "second", "alone", "masses"),
    [
        # a sum that is not 1, of masses that agree
        ([0.5, 0.5, 0.25], [0.5, 0.5, 0.25], [1.0, 0.0], np.diag([0.5, 0.5, 0.25])),
        ([0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.75], np.diag([0.5, 0.5, 0.0])),
        # a negative mass of a variable, and of a pair
        ([0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [-0.25, 1.25], np.diag([0.5, 0.5, 0.0])),
        (
            [0.5, 0.5, 0.0],
            [0.5, 0.5, 0.0],
            [1.0, 0.0],
            [[0.75, -0.25, 0], [-0.25, 0.75, 0], [0, 0, 0]],
        ),
        # rows, then columns
        ([0.25, 0.75, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0], np.diag([0.5, 0.5, 0.0])),
        ([0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [1.0, 0.0], np.diag([0.5, 0.5, 0.0])),
    ],
)
def test_each_violation_alone(first, second, alone, masses):
    nodes = np.array([*first, *second, *alone])
    assert membership(WIDE.network, nodes, np.asarray(masses, dtype=float).ravel()).outside == 0.25


@pytest.mark.parametrize("place", range(4))
def test_a_mass_that_is_no_number_is_outside(place):
    nodes = NODES.copy()
    nodes[place] = math.nan
    assert math.isnan(membership(PAIR.network, nodes, EDGES).outside)
    edges = EDGES.copy()
    edges[place] = math.nan
    assert math.isnan(membership(PAIR.network, NODES, edges).outside)


def test_prices():
    terms, grains = [], []
    cost, mass = np.array([2.0, -3.0, INF, 0.0, 5e-324]), np.array([0.5, 1.0, -0.25, 1.0, 0.0])
    assert _price(cost, mass, terms, grains) == 0.25
    assert terms == [1.0, -3.0, 0.0]
    assert grains == [2 * EPSILON, 3 * EPSILON, TINIEST]
    assert _price(np.array([1.0]), np.array([1.0]), [], []) == 0.0


def test_the_cost_of_a_mass_too_small_to_be_placed():
    cost = np.array([[[1.0, -8.0], [INF, 100.0]]])
    rows, cols = np.array([[0.5, 0.0]]), np.array([[0.5, 0.25]])
    assert _unplaced(cost, rows, cols) == [8 * EPSILON]
    assert _unplaced(cost, rows, np.array([[0.5, EPSILON / 4]])) == [2 * EPSILON]
    assert _unplaced(cost, np.array([[0.5, 0.5]]), cols) == [100 * EPSILON]
    assert _unplaced(cost, np.array([[-0.5, 0.0]]), cols) == [0.0]


def test_the_terms_of_energies():
    assert sorted(energy_terms(PAIR.network, np.array([1, 0]))) == [1.0, 1.0, 2.0, 3.0]
    triple = np.arange(12.0).reshape(2, 3, 2)
    mixed = softmap.Model.from_factors([2, 3, 2], [((0, 1, 2), triple), ((0, 1), np.ones((2, 3)))])
    for labels in np.ndindex(2, 3, 2):
        assert math.fsum(energy_terms(mixed.network, np.array(labels))) == triple[labels] + 1
    costs = np.arange(9.0) ** 2
    many = softmap.Model.from_factors([2] * 8, [softmap.Cardinality(range(8), 1, costs)])
    assert len(many.network.running)
    for labels in np.random.default_rng(1).integers(0, 2, (10, 8)):
        assert math.fsum(energy_terms(many.network, labels)) == costs[labels.sum()]
    two = softmap.Model(
        np.zeros((3, 2)),
        None,
        [([[0, 1]], softmap.Potts([1.0])), ([[0, 2], [1, 2]], softmap.Potts([2.0, 4.0]))],
    )
    for labels in np.ndindex(2, 2, 2):
        assert math.fsum(energy_terms(two.network, np.array(labels))) == two.energy(
            np.array(labels)
        )


def test_costs_that_are_near():
    assert _close(1.0, 1.0 + 2.0**-40)
    assert not _close(1.0, 1.0 + 2.0**-38)
    assert _close(INF, INF)
    assert not _close(INF, 1.0)
    assert not _close(1.0, -1.0)
    assert _close(1e-291, -1e-291)
    assert not _close(1e-280, -1e-280)
    assert not _close(math.nan, math.nan)
    limit = 1e-290
    for _ in range(3):
        limit = 1e-290 + ALLOWED.rounding * limit
    assert _close(limit, 0.0)
    assert not _close(math.nextafter(limit, INF), 0.0)
    assert _ulp(1.0) == 2.0**-52
    assert _ulp(INF) == 0.0


# --- results --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tight() -> softmap.Result:
    """A result of a grid whose relaxation is tight."""
    return softmap.solve(softmap.generators.potts_grid(3, 3, 3, seed=3), threads=1)


@pytest.fixture(scope="module")
def loose() -> softmap.Result:
    """A result with a gap, at a point that is no labelling."""
    model = softmap.generators.erdos_renyi(8, 3, seed=4)
    return softmap.solve(model, goal="lp", threads=1)


def verdict(result: softmap.Result, name: str, **fields) -> Verdict:
    return verify(dataclasses.replace(result, **fields))[name].verdict


def test_the_names_of_statements(tight, tmp_path):
    names = ["energy", "bound", "LP bound", "primal", "gaps", "status", "trace"]
    assert [one.name for one in verify(tight).statements] == names
    assert verify(tight).verdict is CHECKED
    assert verify(tight, tight.model)["model"].verdict is CHECKED
    other = softmap.generators.potts_grid(3, 3, 3, seed=4)
    assert verify(tight, other)["model"].verdict is FALSE
    same = softmap.generators.potts_grid(3, 3, 3, seed=3)
    assert verify(tight, same)["model"].verdict is CHECKED
    tight.save(tmp_path / "r.npz", with_model=False)
    assert verify(tmp_path / "r.npz", tight.model)["file"].verdict is CHECKED
    model, path = tight.model, tmp_path / "r.npz"
    for wrong in (
        lambda: verify(3),
        lambda: verify(tight, 3),
        lambda: verify(model),
        lambda: verify(model, model, proof=path),
    ):
        with pytest.raises(OptionError, match="verify: expected"):
            wrong()


def test_an_energy_is_right_to_one_unit_in_the_last_place(loose):
    energy = loose.energy
    assert verdict(loose, "energy") is CHECKED
    for steps, expected in ((1, CHECKED), (-1, CHECKED), (2, FALSE), (-2, FALSE)):
        value = energy + steps * math.ulp(energy)
        assert verdict(loose, "energy", energy=value) is expected
    assert verdict(loose, "energy", energy=INF) is FALSE


@pytest.mark.parametrize("label", [-1, 3])
def test_labels_out_of_range(loose, label):
    for place in (0, 7):
        labels = loose.labels.copy()
        labels[place] = label
        report = verify(dataclasses.replace(loose, labels=labels))
        assert report["energy"].verdict is report["gaps"].verdict is FALSE
        assert f"variable {place} has no label {label}" in report["energy"].numbers


@pytest.mark.parametrize(
    "labels", [np.zeros(7, int), np.zeros(9, int), np.zeros(8), np.zeros(8, bool)]
)
def test_labels_of_another_kind(loose, labels):
    with pytest.raises(ValueError, match="8 whole numbers"):
        _labels(dataclasses.replace(loose, labels=labels))
    assert verdict(loose, "energy", labels=labels) is FALSE


def test_unsigned_labels_are_labels(loose):
    assert verdict(loose, "energy", labels=loose.labels.astype(np.uint8)) is CHECKED


def test_a_forbidden_labelling_has_infinite_energy():
    model = softmap.Model(np.zeros((2, 2)), [[0, 1]], [[[0.0, INF], [INF, 1.0]]])
    result = softmap.solve(model, threads=1)
    changed = {"labels": np.array([0, 1]), "energy": INF}
    assert verdict(result, "energy", **changed) is CHECKED
    assert verdict(result, "energy", labels=np.array([0, 1])) is FALSE
    assert verdict(result, "energy", energy=INF) is FALSE


def test_a_bound_above_that_of_lam_is_false(loose):
    found = dual_proves(loose.model.network, loose.lam, loose.lp_bound)
    assert found.proved
    exact = exact_bound(loose.model.network, loose.lam)
    for steps in range(-3, 4):
        bound = float(exact) + steps * math.ulp(float(exact))
        proved = dual_proves(loose.model.network, loose.lam, bound).proved
        assert proved == (exact >= bound)
        assert verdict(loose, "LP bound", lp_bound=bound) is (CHECKED if proved else FALSE)
    assert dual_proves(loose.model.network, loose.lam, INF).proved is False
    assert math.isnan(dual_proves(loose.model.network, loose.lam, math.nan).found)


def test_a_bound_far_below_that_of_lam_is_false(loose):
    assert verdict(loose, "LP bound", lp_bound=loose.lp_bound - 1e-3) is FALSE
    size = dual_proves(loose.model.network, loose.lam, loose.lp_bound).size
    within = loose.lp_bound - 0.5 * ALLOWED.rounding * size
    assert verdict(loose, "LP bound", lp_bound=within) is CHECKED
    beyond = loose.lp_bound - 2.0 * ALLOWED.rounding * size
    assert verdict(loose, "LP bound", lp_bound=beyond) is FALSE
    assert verdict(loose, "LP bound", lp_bound=-INF) is CHECKED


def test_bounds_of_large_models_may_be_summed_in_single_precision(loose, monkeypatch):
    size = dual_proves(loose.model.network, loose.lam, loose.lp_bound).size
    low = loose.lp_bound - 0.5 * ALLOWED.single * size
    for large, expected in ((loose.model.m, FALSE), (loose.model.m - 1, CHECKED)):
        monkeypatch.setattr(relaxed, "ALLOWED", dataclasses.replace(ALLOWED, large=large))
        assert verdict(loose, "LP bound", lp_bound=low) is expected
        assert verdict(loose, "LP bound", lp_bound=low - ALLOWED.single * size) is FALSE


def test_a_lam_of_another_size_or_not_finite_is_false(loose):
    for lam in (loose.lam[:-1], np.append(loose.lam, 0.0), np.append(loose.lam[:-1], math.nan)):
        assert verdict(loose, "LP bound", lam=lam) is FALSE


def test_a_primal_value_is_that_of_its_point(loose):
    found = membership(loose.model.network, loose.node_marginals, loose.edge_marginals)
    slack = ALLOWED.rounding * found.size
    assert verdict(loose, "primal") is CHECKED
    for sign in (-1, 1):
        assert verdict(loose, "primal", primal=found.cost + sign * 0.5 * slack) is CHECKED
        assert verdict(loose, "primal", primal=found.cost + sign * 1e3 * slack) is FALSE
    assert verdict(loose, "primal", primal=INF) is CHECKED


def test_a_primal_value_may_be_the_bound_that_it_rounds_to(loose):
    """A cost below the bound is replaced by it, as far as points may be infeasible."""
    found = membership(loose.model.network, loose.node_marginals, loose.edge_marginals)
    for factor, expected in ((0.5, CHECKED), (3.0, FALSE)):
        value = found.cost + factor * ALLOWED.feasible * found.size
        assert verdict(loose, "primal", primal=value, lp_bound=value) is expected
        assert verdict(loose, "primal", primal=value) is FALSE
        below = found.cost - factor * ALLOWED.feasible * found.size
        assert verdict(loose, "primal", primal=below, lp_bound=below) is FALSE


def test_a_point_outside_of_the_polytope_is_false(loose):
    nodes = loose.node_marginals.copy()
    for off, expected in ((0.5, CHECKED), (2.0, FALSE)):
        changed = nodes.copy()
        changed[0] += off * ALLOWED.feasible
        point = dataclasses.replace(loose.point, nodes=changed, labels=None)
        found = membership(loose.model.network, changed, loose.edge_marginals)
        assert (found.outside > ALLOWED.feasible) is (expected is FALSE)
        near = {"primal": found.cost, "point": point}
        assert verdict(loose, "primal", **near) is expected


def gaps(result, **fields) -> Verdict:
    return verdict(result, "gaps", **fields)


def test_the_order_of_bounds_and_costs(loose):
    size = math.fsum(map(abs, energy_terms(loose.model.network, loose.labels))) + abs(loose.bound)
    slack = ALLOWED.feasible * size
    assert gaps(loose) is CHECKED
    above = loose.energy + 0.5 * slack
    assert gaps(loose, bound=above) is CHECKED
    assert gaps(loose, bound=loose.energy + 2 * slack) is FALSE
    assert gaps(loose, lp_bound=loose.primal + 2 * slack, bound=loose.energy) is FALSE
    lifted = loose.primal + 0.5 * slack
    assert gaps(loose, lp_bound=lifted, bound=max(lifted, loose.bound)) is CHECKED
    assert gaps(loose, lp_bound=loose.bound) is CHECKED
    assert gaps(loose, lp_bound=math.nextafter(loose.bound, INF)) is FALSE
    assert gaps(loose, primal=loose.energy) is CHECKED
    assert gaps(loose, primal=math.nextafter(loose.energy, INF)) is FALSE


# --- status and trace -----------------------------------------------------------------------------


def status(result, **fields) -> Verdict:
    return verdict(result, "status", **fields)


@pytest.mark.parametrize("kind", [Status.LP_GAP, Status.GAP])
def test_a_status_claims_its_tolerance(loose, kind):
    """The gap is that of the bound to the energy, or of the LP bound to the primal value."""
    changed = dataclasses.replace(loose, status=kind)
    gap = changed.relative_gap(changed.claimed_gap)
    if gap <= 0:
        pytest.skip("no gap")
    for factor, expected in ((1.001, CHECKED), (0.999, FALSE)):
        tolerances = (gap * factor, 0.0) if kind is Status.LP_GAP else (0.0, gap * factor)
        assert status(loose, status=kind, tolerances=tolerances) is expected
        other = (0.0, 1.0) if kind is Status.LP_GAP else (1.0, 0.0)
        assert status(loose, status=kind, tolerances=other) is FALSE


def test_optimal_is_a_claim_without_tolerance(loose, tight):
    assert status(tight) is CHECKED
    assert tight.status is Status.OPTIMAL
    assert loose.relative_gap(loose.gap) > PROVED
    assert status(loose, status=Status.OPTIMAL, tolerances=(1.0, 1.0)) is FALSE


def test_other_statuses_claim_nothing(loose):
    assert status(loose, status=Status.TIME_LIMIT, tolerances=(0.0, 0.0)) is CHECKED


def test_gaps_between_tiny_costs_are_stated(loose):
    """Costs below 1e-290 were rounded: their gap is compared only if it is a rounding error."""
    model, optimal = loose.model, {"status": Status.OPTIMAL}
    bound = 2.0**-1060
    rounded = (4 + 2 * (model.n + model.m)) * TINIEST
    assert status(loose, bound=bound, energy=bound + rounded, **optimal) is CHECKED
    above = bound + rounded + TINIEST
    assert status(loose, bound=bound, energy=above, **optimal) is STATED
    for bound, expected in ((ALLOWED.least, FALSE), (0.5 * ALLOWED.least, STATED)):
        assert status(loose, bound=bound, energy=1.0, **optimal) is expected


def test_clusters_without_a_lam_are_none(loose):
    model = softmap.Model(np.zeros((3, 1)), [[0, 1]], np.zeros((1, 1, 1)))
    proof = ClusterEvidence(clusters=((0, 1, 2),))
    report = verify(dataclasses.replace(softmap.solve(model), proof=proof))
    assert report["bound"].verdict is FALSE
    assert "λ has 0 numbers" in report["bound"].numbers


def test_what_rests_on_a_search_is_stated(loose):
    searched = {"proof": Stated(nodes=5), "bound": loose.energy}
    assert status(loose, status=Status.OPTIMAL, **searched) is STATED
    assert verdict(loose, "bound", **searched) is STATED
    worse = {**searched, "bound": loose.bound - 1.0}
    assert status(loose, status=Status.OPTIMAL, **worse) is FALSE
    assert status(loose, status=Status.LP_GAP, tolerances=(1.0, 0.0), **searched) is CHECKED


def trace(result, **columns) -> Verdict:
    """The verdict on a trace whose last row has other numbers."""
    last = dataclasses.replace(result.trace[-1], **columns)
    return verdict(result, "trace", trace=Trace([*result.trace.rows[:-1], last]))


def test_the_last_row_of_a_trace_is_the_result(loose):
    row = loose.trace[-1]
    assert trace(loose) is CHECKED
    for name in ("work", "energy", "sweeps", "eta", "bound", "primal"):
        value = getattr(row, name)
        for off in (-1, 1):
            assert trace(loose, **{name: value + off}) is FALSE, name
    assert trace(loose, seconds=loose.seconds) is CHECKED
    assert trace(loose, seconds=loose.seconds + 1.0) is FALSE
    assert verdict(loose, "trace", trace=Trace([])) is FALSE
    near = 2.0**-42 * largest_cost(loose.model.network)
    assert trace(loose, primal=row.primal - near) is CHECKED
    assert trace(loose, primal=row.primal - 1e3 * near) is FALSE


def test_the_last_primal_value_is_that_of_the_result_up_to_rounding(loose):
    """Up to the digits of the largest cost and of the constant, or to its own."""
    model = loose.model.replace(constant=100.0)
    digits = ALLOWED.rounding * (largest_cost(model.network) + 100.0)

    def last(before: float, stated: float) -> Verdict:
        row = dataclasses.replace(loose.trace[-1], primal=before)
        return verdict(loose, "trace", model=model, primal=stated, trace=Trace([row]))

    for before, stated, expected in (
        (digits, 0.0, CHECKED), (1.01 * digits, 0.0, FALSE), (1.0 + digits, 1.0, CHECKED),
        (1e6 + 1.5e6 * ALLOWED.rounding, 1e6, CHECKED), (1e6 + 1e7 * digits, 1e6, FALSE),
    ):  # fmt: skip
        assert last(before, stated) is expected


@pytest.mark.parametrize(
    ("name", "off"),
    [("work", 1), ("seconds", 1.0), ("bound", 1.0), ("primal", -1.0), ("energy", -1.0)],
)
def test_traces_are_monotone(loose, name, off):
    last = loose.trace[-1]
    same = dataclasses.replace(last)
    fine = [*loose.trace.rows, same]
    assert verdict(loose, "trace", trace=Trace(fine), seconds=last.seconds) is CHECKED
    before = dataclasses.replace(last, **{name: getattr(last, name) + off})
    rows = [*loose.trace.rows[:-1], before, same]
    assert verdict(loose, "trace", trace=Trace(rows), seconds=last.seconds) is FALSE


# --- allowed states and blocks --------------------------------------------------------------------


def test_states_are_crossed_out_until_nothing_changes():
    """A chain of implications: the first label of the first variable is lost in three rounds."""
    last = np.array([[0.0, 0.0], [INF, INF]])
    model = softmap.Model(
        [[0.0, 0.0]] * 4,
        [[2, 3], [1, 2], [0, 1]],
        np.array([last, np.array([[0.0, INF], [INF, 0.0]]), np.array([[0.0, INF], [INF, 0.0]])]),
    )
    assert allowed_states(model.network).tolist() == [True, False] * 3 + [True, True]
    free = softmap.Model([[0.0, 1.0]] * 2, [[0, 1]], np.zeros((1, 2, 2)))
    assert allowed_states(free.network).all()


def test_blocks_cover_every_edge_once(monkeypatch):
    from softmap.verification import dual

    rng = np.random.default_rng(1)
    tables = [
        rng.normal(size=(2, 3)),
        rng.normal(size=(3, 2)),
        rng.normal(size=(2, 3)),
        rng.normal(size=(3, 3)),
    ]
    model = softmap.Model(
        [np.zeros(2), np.zeros(3), np.zeros(2), np.zeros(3)],
        [[0, 1], [1, 0], [2, 1], [1, 3]],
        tables,
    )
    for entries in (1 << 20, 6, 1):
        monkeypatch.setattr(dual, "ENTRIES", entries)
        found = {}
        for block in blocks(model.network):
            assert block.cost[0].size * (len(block.edges) - 1) < max(entries, 2)
            found.update(zip(block.edges.tolist(), block.cost, strict=True))
        assert sorted(found) == [0, 1, 2, 3]
        for e, table in found.items():
            assert (table == model.network.table(e)).all()


def test_tables_of_other_shapes_are_in_other_blocks():
    """The shapes (1, 3) and (2, 1)."""
    tables = [np.ones((1, 3)), np.ones((2, 1))]
    model = softmap.Model([np.zeros(1), np.zeros(2), np.zeros(3)], [[0, 2], [1, 0]], tables)
    assert sorted(block.cost.shape for block in blocks(model.network)) == [(1, 1, 3), (1, 2, 1)]


@pytest.mark.parametrize("scale", [1.0, 2.0**-450, 2.0**-1000, 2.0**900])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_decided_exactly_at_every_scale(scale, seed):
    rng = np.random.default_rng(seed)
    weights = np.abs(rng.normal(size=3))
    shared = softmap.SharedTables(rng.normal(size=(1, 2, 2)) * scale, [0] * 3, weights)
    model = softmap.Model(rng.normal(size=(3, 2)) * scale, [[0, 1], [1, 2], [0, 2]], shared)
    lam = rng.normal(size=12) * scale
    exact = exact_bound(model.network, lam)
    for steps in range(-3, 4):
        bound = float(exact) + steps * math.ulp(float(exact))
        found = dual_proves(model.network, lam, bound)
        assert found.proved == (exact >= bound)
        assert math.isclose(found.found, float(exact), rel_tol=1e-9)
        assert abs(found.found) <= found.size <= 100 * scale
    undefined = dual_proves(model.network, lam, math.nan)
    assert (undefined.proved, undefined.size) == (False, INF)
    assert math.isnan(undefined.found)


def test_weights_are_0_and_tables_infinite_at_forbidden_pairs():
    table = np.array([[[1.0, INF], [2.0, 3.0]]])
    model = softmap.Model(np.zeros((2, 2)), [[0, 1]], softmap.SharedTables(table, [0], [2.0]))
    ((_, weights, tables),) = stacks(model.network)
    assert weights.tolist() == [[[2.0, 0.0], [2.0, 2.0]]]
    assert tables.tolist() == table.tolist()


def test_the_largest_cost_is_finite_and_of_any_sign():
    model = softmap.Model([[0.0, 5.0], [-7.0, INF]], [[0, 1]], np.ones((1, 2, 2)))
    assert largest_cost(model.network) == 7.0


def test_a_bound_of_large_and_cancelling_numbers_is_decided():
    large = 2.0**990
    for unary, lam, constant in (
        (large, [0.0] * 4, 0.0), (0.0, [large, large, 0.0, 0.0], 0.0), (1.0, [0.0] * 4, large),
    ):  # fmt: skip
        unaries = [[unary, unary], [0.0, 0.0]]
        model = softmap.Model(unaries, [[0, 1]], np.zeros((1, 2, 2)), constant=constant)
        assert dual_proves(model.network, np.array(lam), 0.0).proved
    model = softmap.Model([[0.0], [0.0]], [[0, 1]], np.zeros((1, 1, 1)))
    found = dual_proves(
        model.network, np.array([1.7e308, 0.0]), 0.0
    )  # the sizes of its terms overflow
    assert (found.proved, found.size) == (False, INF)


def test_products_that_underflow_are_rounded_down_in_bounds():
    tiny = 2.0**-540 * (1 + 2.0**-52)
    for sign, entry in ((1, 0.0), (-1, -5e-324)):
        shared = softmap.SharedTables(np.full((1, 2, 2), sign * tiny), [0], [tiny])
        model = softmap.Model(np.zeros((2, 2)), [[0, 1]], shared, constant=1.0)
        assert exact_bound(model.network, np.zeros(4)) == 1 + Fraction(entry)
        assert dual_proves(model.network, np.zeros(4), 1.0).proved == (sign == 1)


def test_inner_nodes_have_a_cost_for_each_label():
    model, none = softmap.Model(np.zeros((2, 2)), [[0, 1]], np.zeros((1, 2, 2))), np.zeros(0, int)
    inner = np.array([0])
    assert outer_terms(model.network, np.zeros(4), inner, none, np.zeros(2)) is not None
    for size in (1, 3):
        assert outer_terms(model.network, np.zeros(4), inner, none, np.zeros(size)) is None


def test_clusters_need_variables_and_a_lam_of_their_size():
    model = softmap.Model(np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], np.zeros((3, 2, 2)))
    assert tightened(model.network, [], 0) is model.network
    assert tightened(model.network, [(0, 1, 2)], 8).n > 3
    for clusters, held, words in (
        ([(0, 1, 2)], 7, "joint states"),
        ([(0, 1, 3)], 100, "no variable 3"),
        ([(-1, 0, 1)], 100, "no variable -1"),
    ):
        with pytest.raises(ValueError, match=words):
            tightened(model.network, clusters, held)


@pytest.mark.parametrize("forbidden", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_the_exact_bound_is_that_of_fractions(seed, forbidden):
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((3, 3)) < forbidden, INF, rng.normal(size=(3, 3)))
    table[0, 0] = 0.3
    weights, lam = np.abs(rng.normal(size=2)), rng.normal(size=12)
    unary = rng.normal(size=(3, 3))
    unary[:, 2] = INF if forbidden else unary[:, 2]
    shared = softmap.SharedTables(table[None], [0, 0], weights)
    model = softmap.Model(unary, [[0, 1], [1, 2]], shared, constant=0.1)
    allowed, moved = allowed_states(model.network).reshape(3, 3), [Fraction(x) for x in lam]
    total = Fraction(0.1)
    halves = {0: [0], 1: [1, 2], 2: [3]}
    for i in range(3):
        total += min(
            Fraction(unary[i, x]) - sum(moved[3 * h + x] for h in halves[i])
            for x in np.flatnonzero(allowed[i]).tolist()
        )
    for e in range(2):
        total += min(
            below(Fraction(weights[e]) * Fraction(table[x, y]))
            + moved[6 * e + x] + moved[6 * e + 3 + y]
            for x, y in np.argwhere(np.isfinite(table)).tolist()
            if allowed[e, x] and allowed[e + 1, y]
        )  # fmt: skip
    assert exact_bound(model.network, lam) == total
    near = dual_proves(model.network, lam, float(total))
    assert near.proved == (Fraction(float(total)) <= total)


@pytest.mark.parametrize(("bound", "relaxed"), [(0, 0), (1, 0), (0, 1), (1, 1), (-1, 0), (-1, -1)])
def test_the_bound_and_that_of_the_relaxation_are_checked_each(bound, relaxed):
    """λ proves both; they are checked together only if they are equal."""
    result = softmap.solve(softmap.generators.random_tree(12, seed=1), goal="lp")
    assert result.proof.kind == "relaxation"
    unit = 1e-3 * abs(result.lp_bound)
    stated = dataclasses.replace(
        result, bound=result.lp_bound + bound * unit, lp_bound=result.lp_bound + relaxed * unit
    )
    report = verify(stated)
    assert report["bound"].verdict is (FALSE if bound else CHECKED)
    assert report["LP bound"].verdict is (FALSE if relaxed else CHECKED)
    assert repr(stated.bound) in report["bound"].numbers
