"""Bulk parsing of decimals against Python's own, to the last bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.io.tokens import Numbers, parse_decimals


def decimals(digits: int) -> st.SearchStrategy[str]:
    """Digits with a point anywhere, in front or behind included, or nowhere, and a sign or none."""
    text = st.text("0123456789", min_size=1, max_size=digits)
    place = st.integers(-1, digits)
    return st.builds(
        lambda d, at, sign: sign + (d if at < 0 else d[:at] + "." + d[at:]),
        text, place, st.sampled_from(["", "-"]),
    )  # fmt: skip


PLAIN, LONG = decimals(8), decimals(22)
OTHER = st.one_of(
    st.floats(allow_nan=False).map(repr), st.sampled_from(["inf", "-inf", "1e5", "+1"])
)
SPACE = st.sampled_from([" ", "\n", "\t", "  ", "\r\n", " \n\n"])


def joined(tokens, spaces):
    """Enough repetitions for the bulk path."""
    pairs = list(zip(tokens, spaces * len(tokens), strict=False))
    text = "".join(token + space for token, space in pairs)
    return text * (1 + 300 // len(text)), tokens * (1 + 300 // len(text))


@given(
    st.lists(st.one_of(PLAIN, LONG, OTHER), min_size=1, max_size=60),
    st.lists(SPACE, min_size=1, max_size=5),
)
def test_every_number_is_the_one_python_reads(tokens, spaces):
    text, repeated = joined(tokens, spaces)
    values = parse_decimals(text.encode())
    expected = np.array([float(token) for token in repeated])
    assert values is not None
    assert np.array_equal(values, expected)
    assert np.array_equal(np.signbit(values), np.signbit(expected))


@given(st.lists(PLAIN, min_size=1, max_size=60), st.lists(SPACE, min_size=1, max_size=5))
def test_short_plain_numbers(tokens, spaces):
    text, repeated = joined(tokens, spaces)
    assert np.array_equal(parse_decimals(text.encode()), [float(token) for token in repeated])


BAD = [
    "1..2", "1.2.3", "-", "--1", ".", "-.", "1/2", "1:2", "1-2", "1e", "0x1", "1_0", "a", "1,",
    "..", "12345678.-", "123456789.1.2",
    "\x00", "\x1f", "\x7f", "é", "/.", "./1", ".//", "1234567-", "١",
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("neighbour", ["1.0", "1234.56789012", "1e-5"])
def test_anything_else_is_refused(bad, neighbour):
    for count in (3, 300):
        tokens = ["1.0", neighbour] * count
        assert parse_decimals(" ".join(tokens).encode()) is not None
        tokens[count] = bad
        assert parse_decimals(" ".join(tokens).encode()) is None


@given(st.binary(min_size=1, max_size=12), st.integers(0, 40))
def test_junk_is_refused_wherever_python_refuses_it(junk, at):
    tokens = [b"1.5"] * 100
    tokens[at] = junk
    values = parse_decimals(b" ".join(tokens))
    try:
        expected = [float(token) for token in b" ".join(tokens).split()]
    except ValueError:
        assert values is None
    else:  # Python also reads underscores and numbers in other scripts
        assert values is None or np.array_equal(values, expected, equal_nan=True)


def test_pieces_are_cut_between_numbers_and_lines_are_counted():
    text = b"\n".join(b"%d.25" % k for k in range(60_000))
    assert len(text) > 3 * LIMITS.text_bytes
    numbers = Numbers(Content(text))
    assert np.array_equal(numbers.values, np.arange(60_000) + 0.25)
    assert numbers.line(0) == 1
    assert numbers.line(45_678) == 45_679
    with pytest.raises(softmap.FormatError) as caught:
        Numbers(Content(text.replace(b"50000.25", b"50000,25")))
    assert caught.value.line == 50_001
    for endless in (
        b"1" * (4 * LIMITS.text_bytes),
        b"1 2\n" + b"3" * (4 * LIMITS.text_bytes) + b" 4",
    ):
        with pytest.raises(softmap.FormatError, match="expected a number"):
            Numbers(Content(endless))
