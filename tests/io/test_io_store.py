"""The store of arrays: what numpy writes it reads, and nothing that numpy would unpickle."""

from __future__ import annotations

import io

import numpy as np
import pytest

from softmap.errors import FormatError, SoftmapError
from softmap.io import store
from softmap.io.streams import Content

ARRAYS = {
    "costs": np.array([[0.5, np.inf], [-0.0, 1e300]]),
    "floats": np.arange(6, dtype=np.float32)[::2],
    "flags": np.array([True, False, True]),
    "counts": np.array(2**63 - 1),
    "words": np.array(["η", "slack"]),
    "empty": np.zeros((0, 3)),
    "columns": np.asfortranarray(np.arange(24).reshape(2, 3, 4)),
    "deep": np.arange(16).reshape(2, 2, 2, 2),
}


def same(found, expected=ARRAYS):
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        np.testing.assert_array_equal(found[name], array)


def test_an_archive_holds_what_it_was_given(tmp_path):
    store.write_archive(tmp_path / "a.npz", {"kind": "words", "version": 3}, ARRAYS)
    header, arrays = store.read_archive(tmp_path / "a.npz", "words", 3, SoftmapError)
    assert header == {"kind": "words", "version": 3}
    same(arrays)
    assert store.digest(header, arrays) == store.digest(header, ARRAYS)
    arrays["costs"][0, 0] = 7.0  # a resumed run goes on in place


@pytest.mark.parametrize("compress", [True, False])
def test_numpy_reads_and_writes_the_same_bytes(compress):
    data = bytes(store.packed(ARRAYS, compress=compress))
    with np.load(io.BytesIO(data)) as read:
        same({name: read[name] for name in read.files})
    same(store.unpacked(Content(data), "arrays"))


def test_a_mapped_archive_is_not_read(tmp_path):
    np.savez(tmp_path / "a.npz", **ARRAYS)
    arrays = store.mapped(tmp_path / "a.npz")
    same(arrays)
    assert not arrays["costs"].flags.writeable


def test_zeros_that_would_pass_for_a_bomb_are_stored_plainly():
    plain = store.packed({"zeros": np.zeros(1 << 23)}, compress=True)
    assert len(plain) > 8 << 23
    assert store.unpacked(Content(bytes(plain)), "zeros")["zeros"].size == 1 << 23


def test_objects_are_not_unpickled(tmp_path):
    np.savez(tmp_path / "a.npz", header=np.array([{}], dtype=object))
    with pytest.raises(FormatError, match="expected an array of plain numbers or text"):
        store.mapped(tmp_path / "a.npz")
    with pytest.raises(SoftmapError, match="not a softmap words"):
        store.read_archive(tmp_path / "a.npz", "words", 1, SoftmapError)
