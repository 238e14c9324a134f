"""The report page: what it says, what it holds, and how it behaves in a real browser."""

import base64
import io
import json
import re
import zlib
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import softmap
from softmap.model.facts import arity_counts, arity_max, families, model_facts
from softmap.run.evidence import Relaxation, Stated
from softmap.subsolvers.clusters.cluster_evidence import ClusterEvidence
from softmap.views.curves import gaps_chart, values_chart
from softmap.views.drawing import nominal, palette, png
from softmap.views.page import likeliest, payload, render
from softmap.views.words import certificate_sentences, headline
from support.browser import MISSING, browser


@pytest.fixture(scope="module")
def result():
    """A hundred thousand variables, as a user might have."""
    model = softmap.generators.potts_grid(320, 320, 5, seed=3)
    return softmap.solve(model, max_work=2 * model.m * 20, lp_gap=1e-9, goal="lp")


@pytest.fixture(scope="module")
def small():
    """A run of which the words are looked at."""
    model = softmap.generators.potts_grid(8, 9, 5, seed=3)
    return softmap.solve(model, lp_gap=1e-9, goal="lp")


@pytest.fixture(scope="module")
def page(result):
    return render(result, "A <test> & more")


def embedded(page: str) -> dict:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def unpacked(text: str, dtype: str):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype)


def test_nothing_is_left_unfilled_or_unescaped(page):
    assert not re.search(r"\{\{\w+\}\}", page)
    assert "<h1>A &lt;test&gt; &amp; more: within " in page


def test_nothing_is_loaded_from_elsewhere(page):
    markup = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!data:|#)', markup)
    assert "default-src 'none'" in markup


def test_the_embedded_table_is_the_result(page, result):
    held = embedded(page)["variables"]
    assert held["count"] == result.model.network.num_variables
    assert held["shape"] == [320, 320]
    np.testing.assert_array_equal(unpacked(held["label"], "<u4"), result.labels.ravel())
    states = unpacked(held["state"], "<u4").reshape(-1, held["kept"])
    masses = unpacked(held["mass"], "<u2").reshape(-1, held["kept"]) / 65535
    marginals = result.node_marginals.reshape(-1, 5)
    shown = np.take_along_axis(marginals, states.astype(int), axis=1)
    np.testing.assert_allclose(masses, shown, atol=1e-5)


def test_the_embedded_trace_is_the_result(page, result):
    trace = embedded(page)["trace"]
    assert trace["bound"][-1] == pytest.approx(result.bound)
    assert trace["energy"][-1] == pytest.approx(result.energy)


def test_stages_lie_on_the_time_axis():
    edges = [[0, 1], [1, 2], [0, 2]]
    loose = softmap.Model(np.zeros((3, 2)), edges, np.stack([np.eye(2)] * 3))
    solved = softmap.solve(loose)
    page = render(solved)
    stages = embedded(page)["stages"]
    columns = solved.trace.columns()
    assert {stage["name"] for stage in stages} >= {"relaxation"}
    assert len({stage["name"] for stage in stages}) > 1
    for axis in ("seconds", "work"):
        assert stages[0][axis][0] == 0
        assert stages[-1][axis][1] == columns[axis][-1]
        ends = [stage[axis] for stage in stages]
        assert all(a[1] == b[0] for a, b in pairwise(ends))
        assert all(low <= high for low, high in ends)
    assert "<dt>the bound rests on</dt>" in page


def test_the_size_of_the_proof_is_among_the_numbers(small):
    searched = replace(small, proof=Stated(nodes=5678))
    assert "<dt>nodes of the search tree</dt><dd>5,678</dd>" in render(searched)
    tightened = replace(small, proof=ClusterEvidence(clusters=((0, 1, 2),) * 12))
    assert "<dt>clusters</dt><dd>12</dd>" in render(tightened)


def test_the_chart_measures_the_lp_gap_from_the_lp_bound():
    edges = [[0, 1], [1, 2], [0, 2]]
    loose = softmap.Model(np.ones((3, 2)), edges, np.stack([np.eye(2)] * 3))
    solved = softmap.solve(loose)
    assert solved.lp_bound < solved.bound
    assert embedded(render(solved))["trace"]["lp_bound"][-1] == pytest.approx(solved.lp_bound)


def test_a_report_names_the_subsolvers_by_the_words_of_the_trace():
    loose = softmap.solve(softmap.generators.potts_grid(12, 12, 3, seed=1), gap=0.0)
    shown = embedded(render(loose))
    assert next(band["name"] for band in shown["stages"]) == loose.trace[0].stage
    assert {band["name"] for band in shown["stages"]} == set(loose.trace.stages)


def test_a_hundred_thousand_variables_stay_small(page):
    assert len(page) < 2e6


def test_a_run_of_one_check_has_no_charts_of_one_dot(tmp_path):
    short = softmap.solve(softmap.generators.random_tree(6, seed=1))
    assert len(short.trace) == 1
    if MISSING:
        pytest.skip(MISSING)
    path = short.report(tmp_path / "short.html")
    with browser(tmp_path / "profile") as driver:
        driver.get(path.as_uri())
        wait(driver, "return document.body.dataset.ready === 'yes'")
        assert not driver.find_element("id", "charts").is_displayed()
        assert driver.find_element("id", "short").is_displayed()


def test_the_pictures_of_a_grid():
    model = softmap.generators.potts_grid(8, 9, 3, seed=3)
    solved = softmap.solve(model, goal="lp")
    given = np.zeros((8, 9, 3))
    page = render(solved, "a grid", given)
    assert page.count("The image that was given") == 1
    assert "The labelling, 8 rows by 9 columns" in page
    fractional = (solved.node_marginals.reshape(-1, 3).max(axis=1) < 1 - 1e-3).sum()
    assert (f"fractional at {fractional:,} of 72" in page) == (fractional > 0)
    tightened = replace(solved, proof=ClusterEvidence(clusters=((0, 1, 10), (3, 4, 12, 13))))
    shown = render(tightened)
    assert "2 clusters of variables (1 of 3, 1 of 4)" in shown
    assert "0, 1, 10; 3, 4, 12, 13" in shown
    assert "Where the clusters lie: up to 1 at one pixel" in shown
    for wrong in (np.zeros(3), np.zeros((2, 2, 7)), np.full((2, 2), np.nan)):
        with pytest.raises(softmap.ModelError, match="picture"):
            render(solved, "x", wrong)


def test_colours_of_labels_without_order_are_apart():
    inks = nominal(16).astype(int)
    apart = np.abs(inks[:, None] - inks[None]).sum(axis=2) + 999 * np.eye(16, dtype=int)
    assert apart.min() > 40


def test_names_are_in_the_table():
    named = softmap.Model.from_factors({"Rain": ["no", "yes"]}, [((0,), [0.0, 1.0])])
    held = embedded(render(softmap.solve(named)))["variables"]
    assert (held["names"], held["states"]) == (["Rain"], [["no", "yes"]])


def test_result_report_writes_the_page(small, tmp_path):
    path = tmp_path / "run.html"
    small.report(path)
    assert path.read_text("utf-8").startswith("<!doctype html>")
    assert [file.name for file in tmp_path.iterdir()] == ["run.html"]


def test_likeliest_states_of_ragged_variables():
    marginals = np.array([0.2, 0.8, 1.0, 0.1, 0.2, 0.3, 0.4])
    state, mass = likeliest(marginals, np.array([0, 2, 3, 7]), kept=3)
    np.testing.assert_array_equal(state, [[1, 0, 0], [0, 0, 0], [3, 2, 1]])
    np.testing.assert_allclose(mass, [[0.8, 0.2, 0], [1, 0, 0], [0.4, 0.3, 0.2]])


@pytest.mark.parametrize("count", [1, 2, 7, 256, 1000])
def test_the_picture_is_a_png_of_the_labels(count):
    image = pytest.importorskip("PIL.Image")
    labels = np.arange(count * 3).reshape(3, count) % count
    colours = palette(count)[labels]
    with image.open(io.BytesIO(png(colours))) as picture:
        assert picture.size == (count, 3)
        np.testing.assert_array_equal(np.array(picture.convert("RGB")), colours)


def test_the_palette_reads_in_grey():
    grey = palette(50) @ np.array([0.299, 0.587, 0.114])
    assert (np.diff(grey) > 0).all()


def test_facts_count_factors_not_ties():
    factors = [((0, 1, 2), np.zeros((2, 2, 2))), ((0, 1), np.eye(2)), ((2,), np.zeros(2))]
    model = softmap.Model.from_factors([2, 2, 2], factors)
    assert arity_counts(model.network) == {2: 1, 3: 1}
    assert arity_max(model.network) == 3
    assert sum(families(model.network).values()) == model.network.m
    assert model_facts(model.network)["variables"] == "3"
    lonely = softmap.Model([[0.0, 1.0]], np.zeros((0, 2), int), softmap.Potts([]))
    assert arity_max(lonely.network) == 1


def outcome(**changes):
    values = {"energy": 10.0, "bound": 10.0, "primal": 10.0, "gap": 0.0, "lp_gap": 0.0}
    other = {"gap_unit": 10.0, "proof": Relaxation(), "status": softmap.Status.LP_GAP}
    other |= {"upper_bound": np.inf, "tolerances": (1e-4, 1e-6)}
    return SimpleNamespace(**(other | values | changes))


def test_words_for_an_optimal_labelling():
    assert "is optimal" in " ".join(certificate_sentences(outcome()))


def test_words_for_a_gap_of_rounding():
    text = " ".join(certificate_sentences(outcome(energy=10.000000001, gap=1e-9)))
    assert "agree to 1e-09: to that precision, the labelling is optimal" in text


def test_words_for_a_gap():
    text = " ".join(certificate_sentences(outcome(energy=11.0, gap=1.0, primal=10.01, lp_gap=0.01)))
    assert "optimal" not in text
    assert "at most 1 more than the best one (10\u00a0% of the bound)" in text
    assert (
        "solved to within 0.01 (0.1\u00a0%), at 10.01. It cannot raise the bound above that" in text
    )


def test_words_do_not_ask_for_more_where_the_labelling_is_optimal():
    text = " ".join(certificate_sentences(outcome(primal=0.0, lp_gap=0.0)))
    assert "solved exactly, at 0." in text
    assert "the rest" not in text


def test_words_write_large_numbers_without_powers():
    text = " ".join(certificate_sentences(outcome(energy=1234567.0, gap=1234557.0)))
    assert "costs at most 1,234,557 more than the best one (12,345,570\u00a0% of" in text
    assert "e+0" not in text


def test_words_say_what_the_bound_rests_on():
    def words(proof):
        return " ".join(certificate_sentences(outcome(proof=proof)))

    assert "proved by the dual of the LP relaxation." in words(Relaxation())
    tightened = ClusterEvidence(clusters=((0, 1, 2),) * 1234)
    assert "tightened by clusters (1,234 of them)." in words(tightened)
    searched = words(Stated(nodes=5678))
    assert "stated by an exact search (5,678 nodes). The proof file of the run" in searched
    assert "only" not in searched
    assert "proved by" not in searched
    assert "stated by an exact search (1 node)." in words(Stated(nodes=1))


def test_the_title_says_what_was_solved_and_how_well():
    assert headline(outcome()) == "optimal, proved by the dual of the LP relaxation"
    searched = Stated(nodes=9)
    assert headline(outcome(proof=searched)) == "optimal, stated by an exact search"
    digits = outcome(energy=10.0000003, gap=3e-7)
    assert headline(digits).startswith("optimal to 7 digits, proved by")
    near = outcome(energy=10.04, gap=0.04)
    assert headline(near).startswith("within 0.4\u00a0% of the optimum, proved by")
    assert headline(outcome(energy=np.inf, gap=np.inf)).startswith("no labelling found")
    assert headline(outcome(bound=-np.inf, gap=np.inf)) == "a labelling without a lower bound"


def test_the_title_speaks_of_the_upper_bound():
    none = outcome(energy=11.0, gap=1.0, upper_bound=10.0, status=softmap.Status.NONE_BELOW)
    assert headline(none).startswith("no labelling below the upper bound 10, proved by")


def test_the_title_names_the_sizes_unless_it_is_given():
    solved = softmap.solve(softmap.generators.potts_grid(4, 5, 3, seed=3))
    how = "optimal, proved by the dual of the LP relaxation"
    assert f"<title>4 × 5 pixels, 3 labels: {how}</title>" in render(solved)
    assert f"<h1>castle.uai: {how}</h1>" in render(solved, "castle.uai")
    tree = softmap.solve(softmap.generators.random_tree(6, 4, seed=1))
    assert "<h1>6 variables, 4 labels: optimal" in render(tree)


def test_the_page_says_whether_the_bound_is_checked_or_stated(small):
    assert "the dual of the LP relaxation (to be checked by softmap verify)" in render(small)
    searched = replace(small, proof=Stated(nodes=5678))
    assert "an exact search (stated)" in render(searched)


def test_the_graph_of_a_model_is_drawn_with_its_doubt():
    edges = [[0, 1], [1, 2], [0, 2]]
    loose = softmap.Model(np.zeros((3, 2)), edges, np.stack([np.eye(2)] * 3))
    page = render(softmap.solve(loose, goal="lp"))
    assert page.count("<circle") == 6, "three variables, three red rings"
    assert "red rings mark where the relaxation is fractional" in page


def test_words_without_a_labelling():
    text = " ".join(certificate_sentences(outcome(energy=np.inf, gap=np.inf)))
    assert "No labelling that satisfies all hard constraints was found" in text


@pytest.fixture(scope="module")
def opened(page, tmp_path_factory):
    if MISSING:
        pytest.skip(MISSING)
    folder = tmp_path_factory.mktemp("browser")
    path = folder / "run.html"
    path.write_text(page, encoding="utf-8")
    with browser(folder / "profile") as driver:
        driver.get(path.as_uri())
        wait(driver, "return document.body.dataset.ready === 'yes'")
        yield driver


def wait(driver, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 30).until(lambda d: d.execute_script(condition))


def table(driver):
    script = (
        "return [...document.querySelectorAll('#table tbody tr')]"
        ".map(r => [...r.children].map(c => c.textContent))"
    )
    return driver.execute_script(script)


def fill(driver, field, text):
    element = driver.find_element("id", field)
    element.clear()
    element.send_keys(text)
    # clearing a field by script does not tell the page; typing does
    driver.execute_script(
        "arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", element
    )


def test_browser_draws_the_charts(opened):
    drawn = opened.execute_script(
        "return ['chart-values', 'chart-gaps'].map(id => "
        "document.querySelectorAll(`#${id} path.line`).length)"
    )
    assert drawn == [3, 2]
    opened.find_element("css selector", "input[value=work]").click()
    title = "return document.querySelector('#chart-values .title').textContent"
    assert opened.execute_script(title) == "work (messages)"
    opened.find_element("css selector", "input[value=seconds]").click()


def test_browser_draws_no_time_below_zero(opened):
    ticks = "return [...document.querySelectorAll('#chart-values .tick.x')].map(t => t.textContent)"
    shown = opened.execute_script(ticks)
    assert shown[0].strip("0.") == ""
    assert all(float(text.replace(",", "")) >= 0 for text in shown)


def test_browser_ticks_of_the_gap_axis_differ(opened):
    script = (
        "const host = document.createElement('div'); host.id = 'tried';"
        "const figure = document.createElement('figure'); figure.append(host);"
        "document.body.append(figure);"
        "softmapChart(host, {lines: [{name: 'gap', y: arguments[0], colour: '#000', dash: 'solid',"
        " mark: 'circle'}], x: [0, 1], xlabel: 'seconds', log: true, percent: true, bands: []});"
        "const words = [...host.querySelectorAll('.tick.y')].map(t => t.textContent);"
        "figure.remove(); return words"
    )
    for ends in (
        [0.03, 0.029],
        [0.5, 1e-12],
        [0.2, 0.02],
        [0.1, 0.1],
        [0.031, 0.0309],
        [8e-5, 3e-5],
    ):
        words = opened.execute_script(script, ends)
        assert len(words) == len(set(words)) > 1, (ends, words)
        assert all(word.endswith("\u00a0%") for word in words)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_browser_fits_any_width_light_and_dark(opened, width, scheme):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    page = opened.execute_script(
        "const r = document.documentElement, c = getComputedStyle(document.body);"
        "return [r.scrollWidth, r.clientWidth, c.backgroundColor, c.color]"
    )
    assert page[0] <= page[1], "nothing sticks out to the right"
    paper, ink = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in page[2:])
    assert (paper > ink) == (scheme == "light")
    assert abs(paper - ink) > 400
    wait(opened, "return document.querySelectorAll('#chart-values path.line').length === 3")
    assert [e for e in opened.get_log("browser") if e["level"] == "SEVERE"] == []


def test_browser_zooms_by_dragging(opened):
    from selenium.webdriver import ActionChains

    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    opened.execute_script("document.querySelector('#chart-values').scrollIntoView()")
    opened.execute_async_script(  # the new width is drawn a frame later
        "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0], 100)))"
    )
    svg = opened.find_element("css selector", "#chart-values svg")
    ticks = "return [...document.querySelectorAll('#chart-values .tick.x')].map(t => t.textContent)"
    before = opened.execute_script(ticks)
    drag = ActionChains(opened).move_to_element_with_offset(svg, 0, 0).click_and_hold()
    drag.move_by_offset(60, 0).release().perform()
    assert opened.execute_script(ticks) != before
    ActionChains(opened).double_click(
        opened.find_element("css selector", "#chart-values svg")
    ).perform()
    assert opened.execute_script(ticks) == before


def test_browser_filters_and_pages_the_table(opened, result):
    assert len(table(opened)) == 25
    fill(opened, "f-variable", "700-702")
    rows = table(opened)
    assert [row[:3] for row in rows] == [[str(i), "2", str(i - 640)] for i in (700, 701, 702)]
    assert [row[3] for row in rows] == [str(x) for x in result.labels.ravel()[700:703]]
    fill(opened, "f-variable", "")
    fill(opened, "f-label", "2")
    found = opened.find_element("id", "found").text
    assert found == f"{int((result.labels == 2).sum()):,} of 102,400 variables"
    fill(opened, "f-label", "")
    opened.find_element("id", "p-last").click()
    assert table(opened)[-1][0] == "102399"
    opened.find_element("id", "p-first").click()
    assert table(opened)[0][0] == "0"


def test_browser_works_with_the_keyboard(opened):
    from selenium.webdriver.common.keys import Keys

    opened.execute_script("document.querySelector('#table thead button').focus()")
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    assert table(opened)[0][0] == "102399"
    assert "variable" in opened.switch_to.active_element.text
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    assert table(opened)[0][0] == "0"


def test_browser_adapts_to_the_dark_and_to_paper(opened):
    background = "return getComputedStyle(document.body).backgroundColor"
    ink = "return getComputedStyle(document.querySelector('#chart-values .title')).fill"

    def media(kind, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        setting = {"media": kind, "features": features}
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", setting)

    media("screen", "dark")
    wait(opened, f"{ink} === 'rgb(236, 236, 236)'")
    assert opened.execute_script(background) == "rgb(22, 24, 28)"
    media("print", "dark")
    wait(opened, f"{ink} === 'rgb(0, 0, 0)'")
    assert opened.execute_script(background) == "rgb(255, 255, 255)"
    media("", "light")


def test_browser_has_nothing_to_complain_about(opened):
    assert [entry["message"] for entry in opened.get_log("browser")] == []


def test_the_charts_of_a_page_are_those_of_other_displays(result):
    """The page's script draws the lines that notebooks, files and matplotlib draw."""
    charts = payload(result)["charts"]
    trace = result.trace.columns()
    for name, chart in (("chart-values", values_chart(trace)), ("chart-gaps", gaps_chart(trace))):
        shown = charts[name]["lines"]
        assert [line["name"] for line in shown] == [line.name for line in chart.lines]
        assert [line["dash"] for line in shown] == [line.drawn.dash for line in chart.lines]
    assert charts["chart-gaps"]["log"]
    assert charts["chart-gaps"]["percent"]
    bound = charts["chart-values"]["lines"][2]["y"]
    assert len(bound) == len(trace["bound"])
    assert bound[-1] == pytest.approx(result.bound)


def test_every_line_of_a_page_has_a_colour_for_the_dark(result):
    style = (files("softmap.views") / "assets" / "page.css").read_text("utf-8")
    inks = {line["ink"] for c in payload(result)["charts"].values() for line in c["lines"]}
    assert inks == {"--energy", "--primal", "--bound"}
    assert all(style.count(f"{ink}:") == 3 for ink in inks)  # light, dark, paper
