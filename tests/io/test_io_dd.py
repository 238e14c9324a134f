"""Graph matching files: labels, uniqueness, pair costs, several graphs."""

import itertools

import numpy as np
import pytest

import softmap
from softmap.io.formats import FORMATS
from support.samples import DD

parse_dd = FORMATS["dd"].parse


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
