"""What notebooks show of models and results, and the drawings in it."""

import base64
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import softmap
from softmap.views.charts import chart_image
from softmap.views.curves import Axis, cost_range, values_chart
from softmap.views.drawing import Dot, graph_svg, positions


def sources(html: str) -> list[str]:
    return re.findall(r'src="data:image/([^;]+);base64,', html)


def drawings(html: str) -> list[ElementTree.Element]:
    """The SVG drawings of a page, parsed."""
    found = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    return [ElementTree.fromstring(base64.b64decode(text)) for text in found]


def tags(drawing: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return drawing.findall(f".//{{http://www.w3.org/2000/svg}}{name}")


def frustrated() -> softmap.Model:
    """Three binary variables that all want to differ: the relaxation is fractional."""
    edges = [[0, 1], [1, 2], [0, 2]]
    return softmap.Model(np.zeros((3, 2)), edges, np.stack([np.eye(2)] * 3))


def test_a_grid_shows_an_image_and_its_sizes():
    html = softmap.generators.potts_grid(6, 7, 3, seed=1)._repr_html_()
    assert sources(html) == ["png"]
    assert "6 × 7" in html


def test_a_small_model_shows_its_graph():
    model = softmap.Model.from_factors(
        {"Rain": ["no", "yes"], "Wet": ["no", "yes"], "Cold": ["no", "yes"]},
        [(("Rain", "Wet"), np.eye(2)), (("Rain", "Wet", "Cold"), np.zeros((2, 2, 2)))],
    )
    (drawing,) = drawings(model._repr_html_())
    assert len(tags(drawing, "circle")) == 3
    assert len(tags(drawing, "rect")) == 2, "the background, and the factor of three variables"
    assert len(tags(drawing, "line")) == model.network.m
    assert {"Rain", "Wet", "Cold"} <= {text.text for text in tags(drawing, "text")}


def test_a_large_graph_is_not_drawn_but_its_sizes_are_shown():
    html = softmap.generators.erdos_renyi(2000, 3, seed=1)._repr_html_()
    assert sources(html) == []
    assert "2,000" in html


def test_a_result_shows_labelling_curves_and_certificate():
    result = softmap.solve(softmap.generators.potts_grid(8, 9, 3, seed=3), goal="lp")
    html = result._repr_html_()
    assert sources(html) == ["png", "png"], "the labelling, and energy and bound over time"
    assert "softmap.Result: " in html
    assert f"A labelling of cost {result.energy:.10g} was found." in html


def test_doubt_is_drawn_on_the_image():
    weights = np.random.default_rng(3).normal(size=144)
    model = softmap.Model.grid(np.zeros((9, 9, 2)), softmap.Potts(weights))
    result = softmap.solve(model, goal="lp")
    html = result._repr_html_()
    unsure = int((result.node_marginals.reshape(-1, 2).max(axis=1) < 1 - 1e-3).sum())
    assert unsure > 0
    assert sources(html)[:2] == ["png", "png"]
    assert f"the relaxation is fractional at {unsure:,} pixels" in html


def test_a_result_of_a_graph_shows_states_and_doubt():
    html = softmap.solve(frustrated(), goal="lp")._repr_html_()
    graph = drawings(html)[0]
    rings = [circle for circle in tags(graph, "circle") if circle.get("fill") == "none"]
    assert len(rings) == 3, "every variable of the frustrated triangle is in doubt"
    assert html.count("<td") >= 6, "three variables, three states"


def test_of_a_large_graph_the_part_with_the_most_doubt_is_drawn():
    model = softmap.generators.erdos_renyi(400, 3, seed=3)
    html = softmap.solve(model, goal="lp")._repr_html_()
    graph = drawings(html)[0]
    dots = [circle for circle in tags(graph, "circle") if circle.get("fill") != "none"]
    assert 1 < len(dots) <= 60
    assert "The variable with the most doubt" in html


def test_labels_that_break_a_constraint_are_not_shown():
    result = softmap.solve(frustrated())
    html = replace(result, energy=np.inf)._repr_html_()
    assert "no labelling found" in html
    assert len(drawings(html)) <= 1


def test_names_cannot_break_the_page():
    named = softmap.Model.from_factors({"<script>": ["&", "b"]}, [((0,), [0.0, 1.0])])
    html = softmap.solve(named)._repr_html_() + named._repr_html_()
    assert "<script>" not in html
    for drawing in drawings(html):
        assert "<script>" not in ElementTree.tostring(drawing, "unicode")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 40])
def test_positions_are_in_the_unit_square_and_apart(count):
    edges = np.array([[i, i + 1] for i in range(count - 1)]).reshape(-1, 2)
    place = positions(count, edges)
    assert place.shape == (count, 2)
    assert ((place >= -1e-9) & (place <= 1 + 1e-9)).all()
    apart = np.linalg.norm(place[:, None] - place[None], axis=2) + np.eye(count)
    assert count == 0 or apart.min() > 1e-3


def test_neighbours_are_nearer_than_others():
    cycle = np.array([[i, (i + 1) % 12] for i in range(12)])
    place = positions(12, cycle)
    apart = np.linalg.norm(place[:, None] - place[None], axis=2)
    assert apart[0, 1] < apart[0, 3] < apart[0, 6]


def test_dots_carry_text_only_where_there_is_room():
    few = graph_svg([Dot((0, 0, 0), "7")] * 3, np.array([[0, 1], [1, 2]]), "three")
    many = graph_svg([Dot((0, 0, 0), "7")] * 100, np.zeros((0, 2), int), "many")
    assert few.count("<text") == 3
    assert "<text" not in many


def columns(**given):
    empty = {name: np.full(len(given["seconds"]), np.nan) for name in ("bound", "primal", "energy")}
    return empty | {name: np.asarray(values, dtype=float) for name, values in given.items()}


def test_costs_that_differ_by_rounding_have_ticks_that_differ():
    trace = columns(seconds=[0.1], energy=[0.47458892], bound=[0.47458892 - 1e-16])
    ticks = [words for _, words in Axis.of(np.array(cost_range([trace])), False, 0, 300).ticks()]
    assert len(ticks) == len(set(ticks)) > 1
    assert max(map(len, ticks)) < 10


def test_each_curve_of_a_run_is_drawn_in_its_colour():
    trace = columns(seconds=[0.0, 1.0], energy=[3.0, 2.0], primal=[2.5, 1.9], bound=[1.0, 1.8])
    ink = {tuple(pixel) for pixel in chart_image(values_chart(trace)).reshape(-1, 3).tolist()}
    assert {(0xB2, 0x18, 0x2B), (0x8C, 0x6D, 0x1F), (0x21, 0x66, 0xAC)} <= ink


def test_a_range_needs_no_primal():
    """Traces of other solvers in a comparison have energy and bound alone."""
    trace = {"energy": np.array([9.0, 4.0]), "bound": np.array([1.0, 2.0])}
    low, high = cost_range([trace])
    assert low < 1.0 < 9.0 < high


def test_a_run_without_finite_costs_has_no_curves():
    assert cost_range([columns(seconds=[0.0, 1.0])]) is None
    found = softmap.solve(frustrated())
    unknown = [replace(row, energy=np.inf, bound=-np.inf, primal=np.inf) for row in found.trace]
    shown = replace(found, energy=np.inf, trace=softmap.Trace(unknown))._repr_html_()
    assert "png" not in sources(shown)


def test_a_report_of_verify_is_a_table_of_statements():
    report = softmap.verify(softmap.solve(softmap.generators.potts_grid(4, 4, 2, seed=1)))
    shown = report._repr_html_()
    assert shown.count("<tr>") == len(report.statements)
    assert "softmap.verify: checked" in shown
