"""The report page: what it says, what it holds, and how it behaves in a real browser."""

import base64
import io
import json
import re
import zlib
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import softmap
from browser import MISSING, browser
from softmap.model.facts import arity_counts, arity_max, families, model_facts
from softmap.report.page import render
from softmap.report.payload import STAGES, likeliest
from softmap.report.picture import palette, png
from softmap.report.words import certificate_sentences
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.trace import StageName


@pytest.fixture(scope="module")
def result():
    """A hundred thousand variables, as a user might have."""
    model = softmap.generators.potts_grid(320, 320, 5, seed=3)
    return softmap.solve(model, time_limit=2.0, lp_gap=1e-2)


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
    assert "<h1>A &lt;test&gt; &amp; more</h1>" in page


def test_nothing_is_loaded_from_elsewhere(page):
    markup = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!data:|#)', markup)
    assert "default-src 'none'" in markup


def test_the_embedded_table_is_the_result(page, result):
    held = embedded(page)["variables"]
    assert held["count"] == result.model.num_variables
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
    assert "<dt>bound by</dt>" in page


def test_the_size_of_the_proof_is_among_the_numbers(result):
    searched = replace(result, proof=Proof(ProofKind.SEARCH, nodes=5678))
    assert "<dt>nodes of the search tree</dt><dd>5,678</dd>" in render(searched)
    tightened = replace(result, proof=Proof(ProofKind.TIGHTENED, ((0, 1, 2),) * 12))
    assert "<dt>clusters</dt><dd>12</dd>" in render(tightened)


def test_the_words_for_stages_are_those_of_the_trace():
    assert [stage.word for stage in StageName] == list(STAGES)


def test_a_hundred_thousand_variables_stay_small(page):
    assert len(page) < 12e6


def test_result_report_writes_the_page(result, tmp_path):
    path = tmp_path / "run.html"
    result.report(path)
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
    with image.open(io.BytesIO(png(labels, count))) as picture:
        assert picture.size == (count, 3)
        pixels = np.array(picture.convert("RGB"))
    if count <= 256:
        np.testing.assert_array_equal(pixels, palette(count)[labels])


def test_the_palette_reads_in_grey():
    grey = palette(50) @ np.array([0.299, 0.587, 0.114])
    assert (np.diff(grey) > 0).all()


def test_facts_count_factors_not_ties():
    factors = [((0, 1, 2), np.zeros((2, 2, 2))), ((0, 1), np.eye(2)), ((2,), np.zeros(2))]
    model = softmap.Model.from_factors([2, 2, 2], factors)
    assert arity_counts(model) == {2: 1, 3: 1}
    assert arity_max(model) == 3
    assert sum(families(model).values()) == model.m
    assert model_facts(model)["variables"] == "3"
    lonely = softmap.Model([[0.0, 1.0]], np.zeros((0, 2), int), softmap.Potts([]))
    assert arity_max(lonely) == 1


def outcome(**changes):
    values = {"energy": 10.0, "bound": 10.0, "primal": 10.0, "gap": 0.0, "lp_gap": 0.0}
    return SimpleNamespace(**({"unit": 10.0, "proof": Proof()} | values | changes))


def test_words_for_an_optimal_labelling():
    assert "is optimal" in " ".join(certificate_sentences(outcome()))


def test_words_for_a_gap_of_rounding():
    text = " ".join(certificate_sentences(outcome(energy=10.000000001, gap=1e-9)))
    assert "agree to 1e-09: to that precision, the labelling is optimal" in text


def test_words_for_a_gap():
    text = " ".join(certificate_sentences(outcome(energy=11.0, gap=1.0, primal=10.01, lp_gap=0.01)))
    assert "optimal" not in text
    assert "at most 1 more than the best one (10\u00a0% of the bound)" in text
    assert "solved to within 0.01 (0.1\u00a0%), at 10.01: it is loose here" in text


def test_words_say_what_the_bound_rests_on():
    def words(proof):
        return " ".join(certificate_sentences(outcome(proof=proof)))

    assert "proved by the dual of the LP relaxation." in words(Proof())
    tightened = Proof(ProofKind.TIGHTENED, ((0, 1, 2),) * 1234)
    assert "tightened by clusters (1,234 of them)." in words(tightened)
    assert "by an exact search (5,678 nodes)." in words(Proof(ProofKind.SEARCH, nodes=5678))


def test_words_without_a_labelling():
    text = " ".join(certificate_sentences(outcome(energy=np.inf, gap=np.inf)))
    assert "No labelling that obeys all hard constraints was found" in text


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
        "return ['chart-values', 'chart-gaps', 'chart-eta'].map(id => "
        "document.querySelectorAll(`#${id} .scatterlayer .trace .js-line`).length)"
    )
    assert drawn == [3, 2, 2]
    opened.find_element("css selector", "input[value=work]").click()
    title = "return document.querySelector('#chart-values .xtitle').textContent"
    assert opened.execute_script(title) == "work (messages)"


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
    ink = "return document.querySelector('#chart-values .xtitle').style.fill"

    def media(kind, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        setting = {"media": kind, "features": features}
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", setting)

    media("screen", "dark")
    wait(opened, ink.replace("fill", "fill === 'rgb(236, 236, 236)'"))
    assert opened.execute_script(background) == "rgb(22, 24, 28)"
    media("print", "dark")
    wait(opened, ink.replace("fill", "fill === 'rgb(0, 0, 0)'"))
    assert opened.execute_script(background) == "rgb(255, 255, 255)"
    media("", "light")


def test_browser_has_nothing_to_complain_about(opened):
    assert opened.get_log("browser") == []
