"""Parity-check matrices in the alist format."""

import numpy as np
import pytest

import softmap
from softmap.io.alist import parse_checks
from softmap.io.streams import Content

PADDED = b"3 2\n2 2\n1 2 1\n2 2\n1 0\n1 2\n2 0\n1 2\n2 3\n"
PLAIN = b"# a comment\n3 2\n2 2\n1 2 1\n2 2\n\n1\n1 2\n2\n1 2\n2 3\n"
EMPTY = b"2 2\n1 1\n1 0\n1 0\n1\n\n1\n\n"


@pytest.mark.parametrize("text", [PADDED, PLAIN])
def test_columns_and_rows(text):
    assert parse_checks(Content(text)) == ([[0, 1], [1, 2]], 3)
    model = softmap.io.parse(text)
    assert softmap.io.format_of("unknown", text) == "alist"
    words = [[0, 0, 0], [1, 1, 1], [1, 0, 0]]
    assert [model.energy(model.network.complete(w)) for w in words] == [0.0, 0.0, np.inf]


def test_empty_columns_and_rows():
    assert parse_checks(Content(EMPTY)) == ([[0], []], 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"3 2\n2 2\n", "four lines"),
        (PADDED.replace(b"1 2 1", b"1 2"), "line 3: expected the weight of each column"),
        (PADDED.replace(b"1 0\n", b"5 0\n"), "line 5: expected 1 different numbers from 1 to 2"),
        (PADDED.replace(b"2 3\n", b"1 3\n"), "line 9: expected the ones of row 2"),
        (PADDED.replace(b"2 3\n", b""), "line 9: expected 2 different numbers"),
        (PADDED.replace(b"1 2\n2 3\n", b""), "expected 9 lines"),
        (PADDED.replace(b"2 0\n", b"2 x\n"), "line 7: expected whole numbers"),
        (PADDED.replace(b"3 2\n2", b"0 2\n2"), "at least one column"),
    ],
)
def test_damaged_files_name_the_line(text, message):
    with pytest.raises(softmap.FormatError, match=message):
        softmap.io.parse(text, format="alist")


@pytest.mark.parametrize("number", [b"1e300", b"inf", b"-2", b"4", b"1.5"])
@pytest.mark.filterwarnings("error")
def test_places_beyond_the_matrix_are_refused(number):
    text = PADDED[: PADDED.index(b"1 2\n2 0")] + number + PADDED[PADDED.index(b" 2\n2 0") :]
    with pytest.raises(softmap.FormatError):
        softmap.io.parse(text, "alist")
