"""`read` and `write`: names, compression, bombs, standard streams, interrupted writes."""

import bz2
import gzip
import io
import lzma
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

import softmap
from softmap.io import format_of, read_evidence, write_labels
from softmap.io.atomic import replacing
from support.files import same_energies

MODEL = softmap.Model(
    [[0.0, 1.0], [2.0, 0.0, 1.0]], [[0, 1]], softmap.Tables([[[0.0, 1, 2], [3, 4, 5]]])
)
SUFFIXES = [".uai", ".LG", ".uai.LG", ".wcsp", ".cfn", ".h5", ".npz"]
PACKERS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_write_and_read_by_suffix(tmp_path, suffix, packing):
    path = tmp_path / f"model{suffix}{packing}"
    softmap.write(MODEL, path)
    assert same_energies(softmap.read(path), MODEL)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("suffix", [".uai", ".wcsp", ".cfn", ".h5", ".npz"])
def test_content_tells_where_the_name_does_not(tmp_path, suffix, packing):
    softmap.write(MODEL, tmp_path / f"model{suffix}")
    blank = tmp_path / "blank"
    blank.write_bytes(PACKERS[packing]((tmp_path / f"model{suffix}").read_bytes()))
    assert same_energies(softmap.read(blank), MODEL)


def test_format_of_names():
    assert format_of("a/b.c/x.UAI.xz") == "uai"
    assert format_of("x.uai.LG.gz") == "uai"
    assert format_of("x.txt", b"p 1 1 0 0\n") == "dd"
    assert format_of("x.txt", b"junk") is None


def test_file_objects_and_standard_streams(tmp_path, monkeypatch):
    softmap.write(MODEL, tmp_path / "m.uai.gz")
    data = (tmp_path / "m.uai.gz").read_bytes()
    assert same_energies(softmap.read(io.BytesIO(data)), MODEL)
    with (tmp_path / "m.uai.gz").open("rb") as file:
        assert same_energies(softmap.read(file), MODEL)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert same_energies(softmap.read("-"), MODEL)
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=out))
    softmap.write(MODEL, "-", format="cfn")
    write_labels([1, 2], "-")
    assert out.getvalue().endswith(b"MPE\n2 1 2\n")
    with pytest.raises(softmap.FormatError, match="binary"):
        softmap.read(io.StringIO("MARKOV"))


def test_evidence_fixes_labels(tmp_path):
    softmap.write(MODEL, tmp_path / "m.uai")
    (tmp_path / "m.uai.evid").write_text("1 0 1\n")
    model = softmap.read(tmp_path / "m.uai", evidence=tmp_path / "m.uai.evid")
    assert model.energy([0, 0]) == np.inf
    assert model.energy([1, 0]) == pytest.approx(MODEL.energy([1, 0]))
    assert read_evidence(tmp_path / "m.uai.evid") == {0: 1}
    assert softmap.read(tmp_path / "m.uai", evidence={1: 2}).energy([0, 0]) == np.inf
    with pytest.raises(softmap.FormatError, match="variable 7"):
        softmap.read(tmp_path / "m.uai", evidence={7: 0})


def test_wrong_options_and_names(tmp_path):
    with pytest.raises(softmap.OptionError, match="format"):
        softmap.read(tmp_path / "x", format="xml")
    with pytest.raises(softmap.OptionError, match="written"):
        softmap.write(MODEL, tmp_path / "x.dd")
    with pytest.raises(softmap.OptionError, match="cannot tell"):
        softmap.write(MODEL, tmp_path / "x")
    with pytest.raises(softmap.FormatError, match="No such file"):
        softmap.read(tmp_path / "missing.uai")
    with pytest.raises(softmap.FormatError, match="cannot be read"):
        softmap.read(tmp_path)
    with pytest.raises(softmap.FormatError, match="cannot be read"):
        softmap.read("a\0b")
    (tmp_path / "junk.bin").write_bytes(b"\x00\x01")
    with pytest.raises(softmap.FormatError, match="neither name nor content"):
        softmap.read(tmp_path / "junk.bin")
    softmap.write(MODEL, tmp_path / "m.cfn")
    with pytest.raises(softmap.OptionError, match="'values' is no option of cfn files"):
        softmap.read(tmp_path / "m.cfn", values="log")


OPTIONS = {
    "npz": "'values' is no option of npz files; they take compress",
    "wcsp": "'values' is no option of wcsp files; they take scale",
    "cfn": "'values' is no option of cfn files; they take none",
}


@pytest.mark.parametrize("form", OPTIONS)
def test_options_of_other_formats_are_refused(tmp_path, form):
    with pytest.raises(softmap.OptionError, match=OPTIONS[form]):
        softmap.write(MODEL, tmp_path / f"x.{form}", values="cost")
    assert not list(tmp_path.iterdir())
    with pytest.raises(softmap.OptionError, match="'one_to_one' is no option of uai files"):
        softmap.io.parse(b"MARKOV 1 2 0", one_to_one=True)


@pytest.mark.parametrize("packing", [".gz", ".xz", ".bz2"])
def test_damaged_compression(tmp_path, packing):
    data = PACKERS[packing](b"MARKOV 1 2 0 " + bytes(range(256)) * 40)
    for broken in (data[: len(data) // 2], data[:20], data[:30] + b"\xff\x00" + data[32:]):
        path = tmp_path / "m.uai"
        path.write_bytes(broken)
        with pytest.raises(softmap.FormatError):
            softmap.read(path)


@pytest.mark.parametrize("packing", [".gz", ".xz", ".bz2"])
def test_decompression_bombs_are_refused_early(tmp_path, packing):
    piece = PACKERS[packing](b"0 " * (1 << 18))
    path = tmp_path / f"bomb.uai{packing}"
    path.write_bytes(piece * 1600)  # members one after the other: 800 MB
    begin = time.perf_counter()
    with pytest.raises(softmap.FormatError, match=r"bomb|expected MARKOV"):
        softmap.read(path)
    assert time.perf_counter() - begin < 20  # far less in fact; the machine may be busy


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.uai"
    path.write_text("old")

    def interrupted():
        with replacing(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["m.uai"]


def test_a_model_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.wcsp"
    path.write_text("old")
    with pytest.raises(softmap.ModelError):
        softmap.write(softmap.Model([[0.5, 0.0]], None, []), path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_permissions_survive(tmp_path):
    path = tmp_path / "m.uai"
    path.touch(mode=0o640)
    path.chmod(0o640)
    softmap.write(MODEL, path)
    assert path.stat().st_mode & 0o777 == 0o640
