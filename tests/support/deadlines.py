"""Deadlines that stop a loop at the same place in every run."""

from softmap import core


def stopping(looks: int) -> core.Deadline:
    """A deadline that passes at the given look of a loop; loops then look as often as they can."""
    deadline = core.Deadline()
    deadline.stop_after(looks)
    return deadline
