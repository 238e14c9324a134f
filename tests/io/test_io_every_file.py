"""Every small file beside the repository is read, or refused with a sentence naming its line."""

from __future__ import annotations

from pathlib import Path

import pytest

import softmap
from softmap.io.formats import FORMATS
from softmap.io.streams import bare_suffixes
from support.data import shared_data

DATA = shared_data()
pytestmark = pytest.mark.skipif(DATA is None, reason="no benchmark instances")
ROOT = DATA if DATA is not None else Path()
LARGE = 60_000  # bytes as stored: larger files are read by the tests of their formats

# The files that are refused, and the sentence; all others of a known format are read.
REFUSED = {
    "arrays/rbm_mnist.npz": "expected an array 'format'",
    "more/cfn-globals/max.cfn": r"line \d+: expected one of .*'max'",
    "more/cfn-globals/sgcc2.cfn": r"line \d+: sgcc with 'var' is not supported",
    "more/cfn-globals/sgrammardp1.cfn": r"line \d+: expected one of .*'sgrammardp'",
    "more/cfn-globals/smaxdp.cfn": r"line \d+: expected one of .*'smaxdp'",
    "more/cfn-globals/woverlapc.cfn": r"line \d+: expected one of .*'woverlap'",
    "more/cfn-globals/wsame.cfn": r"line \d+: expected one of .*'wsame'",
    "more/cfn-globals/wsum_linc.cfn": r"line \d+: expected one of .*'wsum'",
    "more/opb-qplib/QPLIB_2017.opb": "a constraint with products or fractions",
    "more/opb-qplib/QPLIB_3562.opb": "a constraint with products or fractions",
    "more/wcsp-toulbar2/B1-LU04-dec.wcsp": r"line \d+: expected a number or one of .*'wregular'",
    "more/wcsp-toulbar2/latin.wcsp": r"line \d+: sgcc with 'var' is not supported",
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
        and path.stat().st_size <= LARGE
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
        assert softmap.read(ROOT / name).num_variables > 0
