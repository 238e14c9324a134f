"""Published values in QAPLIB files, and tables that are functions in BIF files."""

import numpy as np
import pytest

import softmap

ROWS = "0 3\n2 0\n\n0 5\n1 0\n"


@pytest.mark.parametrize("text", [f"2\n{ROWS}", f"2 11\n{ROWS}", f"2\n{ROWS}\n11\n"])
def test_a_published_value_is_not_an_entry(text, tmp_path):
    (tmp_path / "m.dat").write_text(text)
    model = softmap.read(tmp_path / "m.dat")
    assert model.energy([0, 1]) == 3 * 5 + 2 * 1
    assert model.energy([1, 0]) == 3 * 1 + 2 * 5
    assert np.isinf(model.energy([0, 0]))


def test_another_number_is_refused(tmp_path):
    (tmp_path / "m.dat").write_text("2\n0 3\n2 0\n0 5\n1 0 4\n")
    with pytest.raises(softmap.FormatError, match=r"expected 8 numbers .* found 9 numbers"):
        softmap.read(tmp_path / "m.dat")


def test_a_function_in_place_of_a_table_is_refused_by_name(tmp_path):
    text = (
        "network n { }\nvariable a { type discrete [ 2 ] { no, yes }; }\n"
        "probability ( a ) { property function max; table 0.5, 0.5; }\n"
    )
    (tmp_path / "m.bif").write_text(text)
    with pytest.raises(softmap.FormatError, match="a table of probabilities, found 'property fun"):
        softmap.read(tmp_path / "m.bif")
