"""Exceptions reach another process as they were raised."""

import errno
import pickle

import pytest

from softmap import errors

RAISED = [
    errors.SoftmapError("a"),
    errors.ModelError("a"),
    errors.OptionError("a"),
    errors.CheckpointError("a"),
    errors.CheckpointWarning("a"),
    errors.ProofWarning("a", written=True),
    errors.FormatWarning("a"),
    errors.StageWarning("search", "ValueError: a"),
    errors.ConvergenceWarning("a"),
    errors.InfeasibleModel("a", 3, (errors.HardConstraint("pair", (1, 2)),)),
    errors.FormatError("a", "folder/file", 7, "a number"),
    errors.WriteError("folder/file", OSError(errno.ENOSPC, "no space left")),
    errors.NotEnoughMemory(5, 3, "less"),
    errors.MissingExtra("a chart", "plot"),
]


def test_the_list_names_every_exception():
    kinds = {one for one in vars(errors).values() if isinstance(one, type)}
    assert {type(one) for one in RAISED} == {one for one in kinds if issubclass(one, Exception)}


@pytest.mark.parametrize("raised", RAISED, ids=lambda one: type(one).__name__)
def test_a_copy_in_another_process_says_the_same(raised):
    copy = pickle.loads(pickle.dumps(raised))
    assert type(copy) is type(raised)
    assert str(copy) == str(raised)
    assert vars(copy) == vars(raised)
    assert getattr(copy, "errno", None) == getattr(raised, "errno", None)
