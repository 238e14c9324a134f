"""The page of numbers that steer a run."""

import inspect
import re

from softmap import tuning


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
