"""Bayesian networks in files: BIF, XMLBIF, NET, XDSL, against each other and against pgmpy."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

import softmap
from softmap.io.bayes import conditionals
from softmap.io.formats import FORMATS
from support.files import labellings
from support.samples import BIF, NET, XDSL, XMLBIF

TEXTS = {"bif": BIF, "xmlbif": XMLBIF, "net": NET, "xdsl": XDSL}
NAMED = pytest.mark.parametrize("form", TEXTS)


def named(text, form=None):
    return softmap.read(io.BytesIO(text), format=form)


@pytest.mark.parametrize("form", ["bif", "xmlbif", "net"])
def test_the_joint_distribution_of_a_toy(form):
    found = named(TEXTS[form])
    wet = [[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]]
    assert found.names.states == (("no", "yes"), ("dry", "a bit", "soaked"), ("good", "bad"))
    for r, w, m in labellings(found):
        mood = [0.1, 0.9] if (w, r) == (2, 1) else [0.5, 0.5]
        joint = [0.8, 0.2][r] * wet[r][w] * mood[m]
        assert np.exp(-found.energy([r, w, m])) == pytest.approx(joint)


def test_deterministic_nodes():
    found = named(XDSL)
    assert found.names.variables == ("rain", "wet", "boots")
    assert np.exp(-found.energy([1, 2, 0])) == pytest.approx(0.2 * 0.5)
    assert found.energy([1, 2, 1]) == np.inf


@NAMED
def test_contents_tell_the_format(form):
    assert softmap.io.format_of("unknown", TEXTS[form]) == form


@NAMED
def test_round_trip(form, tmp_path):
    found = named(TEXTS["bif" if form == "bif" else "net"])
    path = tmp_path / f"toy{FORMATS[form].suffixes[0]}"
    if form == "xdsl":  # its names hold no blanks
        states = [[s.replace(" ", "_") for s in own] for own in found.names.states]
        found = found.with_names(found.names.variables, states)
    softmap.write(found, path)
    again = softmap.read(path)
    assert set(again.names.variables) == set(found.names.variables)
    for x in labellings(found):
        y = again.names.labels(found.names.as_dict(x))
        assert again.energy(y) == pytest.approx(found.energy(x))


@NAMED
def test_what_is_no_network_is_not_written(form, tmp_path):
    path = tmp_path / f"x{FORMATS[form].suffixes[0]}"
    with pytest.raises(softmap.ModelError, match="Bayesian network"):
        softmap.write(softmap.Model(np.eye(2), [[0, 1]], softmap.Potts([1.0])), path)
    assert not path.exists()
    odd = softmap.Model([[0.0]]).with_names(['a\n"b'], [["s"]])  # no format can hold this name
    softmap.write(odd, path)
    assert softmap.read(path).names.variables == ("x0",)


def bundled(name: str) -> bytes:
    """A network that comes with pgmpy."""
    pgmpy = pytest.importorskip("pgmpy")
    path = Path(pgmpy.__file__).parent / "utils" / "example_models" / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"this pgmpy has no {name}")
    return gzip.decompress(path.read_bytes())


REAL = {"asia": (8, 18), "alarm": (37, 509), "child": (20, 230), "barley": (48, 114005)}


@pytest.mark.parametrize("name", REAL)
def test_real_networks_have_the_documented_size(name):
    """Nodes and free parameters as the repository of networks counts them."""
    found = named(bundled(name))
    variables, parameters = REAL[name]
    assert len(found.names.variables) == variables
    counted = 0
    for part in conditionals(found):
        counted += part.table.size // part.table.shape[-1] * (part.table.shape[-1] - 1)
    assert counted == parameters


def test_names_of_networks_stay_with_the_model(tmp_path):
    model = softmap.io.parse(TEXTS["bif"])
    assert model.names.variables[0] == "rain"
    assert softmap.solve(model).as_dict()["rain"] == "no"
    softmap.write(model, tmp_path / "toy.xmlbif")
    assert softmap.read(tmp_path / "toy.xmlbif").names.variables[0] == "rain"
