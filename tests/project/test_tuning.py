"""The page of numbers that steer a run."""

import inspect
import re
from pathlib import Path

import pytest
from benchmarks.tuning import Listed, changed_outside, listed

from softmap import tuning

ROOT = Path(__file__).resolve().parents[2]


def test_there_are_at_most_ninety_numbers_each_with_a_unit_and_an_origin():
    groups = inspect.getsource(tuning).split("@dataclass")
    count = 0
    for group in groups[1:]:
        head = group.split('    """')[1]
        for line in re.findall(r"^    \w+: (?:int|float) = .*", group, flags=re.M):
            count += 1
            _, comment = line.split("  # ")
            assert re.search(r"D\d+", comment) or re.search(r"D\d+", head), line
            assert re.search("[a-zA-Z]{3}", comment), line
    assert 50 < count <= 90


@pytest.mark.parametrize("number", listed(), ids=lambda each: f"{each.file}:{each.name}")
def test_the_page_of_other_numbers_says_what_the_sources_say(number):
    text = (ROOT / number.file).read_text()
    stated = (
        rf"(?<!\w){re.escape(number.name)}(?:: [\w\[\]]+)? =\s+{re.escape(number.value)}(?![\w.])"
    )
    assert re.search(stated, text)
    assert re.search(r"D\d+", number.origin)
    assert re.search("[a-zA-Z]{3}", number.meaning)


def test_a_number_outside_the_page_is_multiplied_and_comes_back():
    for number in listed():
        if number.owner is None:
            continue
        before = getattr(number.owner, number.name)
        with changed_outside(number, 2.0):
            assert getattr(number.owner, number.name) == 2 * before
        assert getattr(number.owner, number.name) == before
    assert sum(isinstance(each, Listed) and each.owner is not None for each in listed()) > 50
