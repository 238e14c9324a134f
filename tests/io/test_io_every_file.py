"""Every file beside the repository is read, or refused with a sentence that names its line.

`make test` reads the small files; `make data-report` reads all of them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import softmap
from softmap.io.formats import FORMATS
from softmap.io.streams import bare_suffixes
from support.data import shared_data

DATA = shared_data()
pytestmark = pytest.mark.skipif(DATA is None, reason="no benchmark instances")
ROOT = DATA if DATA is not None else Path()
LARGE = 2**40 if os.environ.get("SOFTMAP_EVERY_FILE") else 3_000  # bytes as stored

# The files that are refused, and the sentence; all others of a known format are read.
REFUSED = {
    "arrays/rbm_mnist.npz": "expected an array 'format'",
    "refused/carpo.bif.xz": "expected a table of probabilities, found 'property function max'",
    "more/wcsp-toulbar2/B1-LU04-test.wcsp": r"line 75: expected states below 2 in wregular",
}


def candidates() -> list[str]:
    """The files whose last suffix is that of a format that can be read."""
    if DATA is None:
        return []
    known = {suffix for form in FORMATS.values() if form.reader for suffix in form.suffixes}
    return [
        str(path.relative_to(ROOT))
        for path in sorted(ROOT.rglob("*"))
        if path.is_file()
        and set(bare_suffixes(path)[-1:]) <= known
        and bare_suffixes(path)
        and (path.stat().st_size <= LARGE or str(path.relative_to(ROOT)) in REFUSED)
    ]


@pytest.mark.parametrize("name", candidates())
def test_a_file_is_read_or_refused_with_its_line(name):
    if name.endswith(".stim"):
        pytest.importorskip("stim", reason="stim is not installed; it has no wheel for aarch64")
    if name.endswith((".h5", ".hdf5")):
        pytest.importorskip("h5py", reason="h5py is not installed")
    if name in REFUSED:
        with pytest.raises(softmap.FormatError, match=REFUSED[name]):
            softmap.read(ROOT / name)
    else:
        assert softmap.read(ROOT / name).network.num_variables > 0
