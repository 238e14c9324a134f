"""Graph matching files: labels, uniqueness, pair costs, several graphs, damage."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from io_helpers import damaged, reads_or_refuses
from softmap.io import parse_dd

DD = b"""c two left nodes, two right nodes
p 2 2 3 2
a 0 0 0 -1.5
a 1 0 1 -1
a 2 1 1 -2
e 0 2 -0.5
e 1 2 100
"""


def by_hand(x):
    """Cost of choosing labels x: assignments {0: [0, 1], 1: [2]}, the last label is none."""
    chosen = [a for a in ([0, 1, None][x[0]], [2, None][x[1]]) if a is not None]
    right = [[0, 1, 1][a] for a in chosen]
    if len(set(right)) < len(right):
        return np.inf
    cost = sum([-1.5, -1.0, -2.0][a] for a in chosen)
    return cost + (-0.5 if chosen == [0, 2] else 0.0)


def test_energies_are_those_of_the_matching():
    model = parse_dd(DD)
    assert model.num_labels.tolist() == [3, 2]
    for x in itertools.product(range(3), range(2)):
        assert model.energy(x) == by_hand(x)


def test_files_of_several_graphs_are_read_block_by_block():
    both = b"gm 0 1\n" + DD + b"gm 0 2\n" + DD.replace(b"-1.5", b"-7")
    with pytest.raises(softmap.FormatError, match="2 "):
        parse_dd(both)
    assert parse_dd(both, block=1).energy([0, 1]) == -7
    with pytest.raises(softmap.FormatError, match="block 0 to 1"):
        parse_dd(both, block=2)


BAD = {
    b"": (None, "one line 'p"),
    b"p 1 1 1 0\na 0 0 0": (2, "4 numbers"),
    b"p 1 1 1 0\na 0 0 0 x": (2, "4 numbers"),
    b"p 1 1 1 0\na 0 0 0 nan": (2, "4 numbers"),
    b"p 1 1 1 0\nq 0 0 0 1": (2, "a line p, a, e or c"),
    b"p 1 1 2 0\na 0 0 0 1": (None, "2 assignments"),
    b"p 1 1 1 0\na 1 0 0 1": (None, "an assignment 0 to 0"),
    b"p 1 1 1 0\na 0 5 0 1": (None, "a left node 0 to 0"),
    b"p 1 1 1 0\na 0 0 5 1": (None, "a right node 0 to 0"),
    b"p 1 1 1 1\na 0 0 0 1": (None, "1 pairs"),
    b"p 1 1 1 1\na 0 0 0 1\ne 0 1 1": (None, "an assignment"),
    b"p 1 1 2 0\na 0 0 0 1\na 0 0 0 1": (None, "once"),
    b"p 1 1 2 0\na 0 0 0 1\na 1 0 0 1": (None, "at most once"),
    b"p 0 1 0 0": (None, "counts"),
    b"p 99999999 1 0 0": (None, "costs"),
    b"gm 0 1\nc toy\np 27483648  3 0 0 ": (None, "costs"),  # found by fuzzing: slow
}


@pytest.mark.parametrize("text", BAD)
def test_bad_dd(text):
    line, expected = BAD[text]
    with pytest.raises(softmap.FormatError) as caught:
        parse_dd(text)
    assert caught.value.line == line
    assert expected in str(caught.value)


@given(st.one_of(damaged([DD]), st.binary(max_size=60)))
def test_no_matching_raises_anything_but_our_errors(data):
    reads_or_refuses(parse_dd, data)
