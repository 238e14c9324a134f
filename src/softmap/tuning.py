"""`Tuning`: changed numbers of a run, in the groups of the rooms that use them.

A room (a subsolver, a method, the schedule) has its numbers in a frozen dataclass of its own, a
subclass of `Numbers`, each with its unit, its meaning and its origin: "D12" is decision 12 in
docs/decisions. A run takes them from `Options.tuning`, so that tests and benchmarks change any of
them for one run: `softmap.solve(model, tuning=Tuning(SearchNumbers(fresh=0.25)))`.
`docs/maintainers/numbers.md` lists all; `python -m benchmarks.tuning` halves and doubles each.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

from softmap.arguments import real, wrong

__all__ = ["TUNING", "Numbers", "Tuning"]

Group = TypeVar("Group", bound="Numbers")


@dataclass(frozen=True)
class Numbers:
    """A group of numbers that steer a run; a subclass is a frozen dataclass with defaults.

    A value that is not a number raises `OptionError`.
    """

    def __post_init__(self) -> None:
        for each in fields(self):
            real(f"{type(self).__name__}.{each.name}", getattr(self, each.name))


@dataclass(frozen=True, init=False, repr=False)
class Tuning:
    """The numbers of a run: groups that differ from the default ones.

    Parameters
    ----------
    *groups : Numbers
        Changed groups, at most one of each type.
    """

    groups: frozenset[Numbers]

    def __init__(self, *groups: Numbers) -> None:
        for group in groups:
            if not isinstance(group, Numbers) or type(group) is Numbers:
                raise wrong("tuning", group, "groups such as ScheduleNumbers(share=0.1)")
            if sum(type(other) is type(group) for other in groups) > 1:
                raise wrong("tuning", group, f"at most one {type(group).__name__}")
        changed = frozenset(group for group in groups if group != _default(type(group)))
        object.__setattr__(self, "groups", changed)

    def of(self, kind: type[Group]) -> Group:
        """Return the group of a type: the changed one, or the default one."""
        for group in self.groups:
            if type(group) is kind:
                return group
        return _default(kind)

    def __repr__(self) -> str:
        groups = sorted(map(_changes, self.groups))
        return f"Tuning({', '.join(groups)})"


def _default(kind: type[Group]) -> Group:
    """Return the group of default values, of which there is one object per type."""
    group = _DEFAULTS.get(kind)
    if group is None:
        group = _DEFAULTS[kind] = kind()
    assert isinstance(group, kind)
    return group


_DEFAULTS: dict[type[Numbers], Numbers] = {}


def _changes(group: Numbers) -> str:
    """Return a group as text, with its changed fields alone."""
    usual = _default(type(group))
    values = {each.name: getattr(group, each.name) for each in fields(group)}
    changed = [f"{k}={v!r}" for k, v in values.items() if v != getattr(usual, k)]
    return f"{type(group).__name__}({', '.join(changed)})"


TUNING = Tuning()
"""The numbers of a run by default."""
