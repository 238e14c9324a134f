"""The fuzzer itself: what it tries is tried, and what fails is found."""

from __future__ import annotations

import pytest

import softmap
from fuzz import targets
from fuzz.mutate import fuzz


@pytest.mark.parametrize("way", range(len(targets.PACKERS)))
def test_packed_files_of_every_kind_are_read_or_refused_as_bombs(way):
    target, seeds = targets.targets()["packed"]
    with pytest.raises(softmap.FormatError, match="expand to"):
        target(bytes([way, 20]) + b"0" * 64)
    if way < 3:
        target(bytes([way, 0]) + seeds[0][2:])


def test_proofs_that_are_fuzzed_reach_the_checker():
    target, seeds = targets.targets()["proof"]
    assert len(seeds) > 10
    for seed in seeds[:4]:
        target(seed)
    with pytest.raises(softmap.FormatError, match="there is no record of kind"):
        target(b"\0\xff\xff")


def test_an_exception_that_is_not_ours_is_a_finding():
    def target(data):
        raise ZeroDivisionError

    _, _, findings = fuzz(target, [b"1 2"], 0.05, softmap.SoftmapError)
    assert len(findings) == 1
