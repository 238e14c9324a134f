"""Models and runs in parts on disk."""

import json
import sys

import numpy as np
import pytest

import softmap
from softmap import CheckpointError, FormatError, Model, Potts, distributed, generators
from softmap.app.cli.app import main
from softmap.distributed.hdf5 import mapped_hdf5
from softmap.distributed.storage import FORMS, read_parts, read_whole
from whole_runs import check, numbers

OPTIONS = {"threads": 1, "lp_gap": 0.0, "gap": 0.0, "max_passes": 60}


@pytest.mark.parametrize("form", ["npz", "hdf5"])
@pytest.mark.parametrize("kind", ["grid", "ragged"])
def test_a_folder_gives_what_the_model_gives(kind, form, tmp_path, capsys):
    if form == "hdf5":
        pytest.importorskip("h5py")
    model = (
        generators.random_grid(9, 10, 3, seed=1)
        if kind == "grid"
        else generators.ragged_constrained(30, max_labels=4, seed=2)
    ).replace(constant=3.0)
    softmap.write(model, tmp_path / "model.npz")
    command = ["convert", str(tmp_path / "model.npz"), str(tmp_path / "parts"), "--parts", "5"]
    assert main([*command, "--parts-form", form]) == 0
    assert len(list((tmp_path / "parts").glob(f"part-*{FORMS[form][0]}"))) == 5
    found = distributed.solve(tmp_path / "parts", **OPTIONS)
    expected = distributed.solve(model, parts=5, **OPTIONS)
    assert numbers(found) == numbers(expected)
    check(model, found)
    with pytest.raises(softmap.OptionError, match="has 5 parts"):
        distributed.solve(tmp_path / "parts", parts=4)


@pytest.mark.parametrize("form", ["npz", "hdf5"])
def test_parts_are_mapped_not_read(form, tmp_path):
    if form == "hdf5":
        pytest.importorskip("h5py")
    distributed.write_parts(generators.random_grid(9, 10, 3, seed=1), tmp_path, 2, form=form)
    suffix, _, mapped = FORMS[form]
    arrays = mapped(tmp_path / f"part-00000{suffix}")
    numbers = [array for array in arrays.values() if array.size and array.dtype.kind != "U"]
    assert len(numbers) > 8
    assert not any(array.flags.owndata or array.flags.writeable for array in numbers)
    part = read_parts(tmp_path, read_whole(tmp_path), range(1))[0]
    assert not part.model.unary.flags.writeable


def test_damaged_hdf5_parts_are_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    distributed.write_grid(tmp_path / "m", 6, 6, 2, tiles=(1, 2), form="hdf5")
    file = tmp_path / "m" / "part-00001.h5"
    whole = file.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:8], b"", b"text"):
        file.write_bytes(damaged)
        with pytest.raises(FormatError, match="part-00001"):
            distributed.solve(tmp_path / "m")
    with h5py.File(file, "w") as other:
        other["unary"] = np.arange(3.0)
    with pytest.raises(FormatError, match="expected a part of a model"):
        distributed.solve(tmp_path / "m")
    file.unlink()
    with pytest.raises(FormatError, match="no such part"):
        distributed.solve(tmp_path / "m")
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    (tmp_path / "m" / "model.json").write_text(json.dumps(facts | {"form": "pickle"}))
    with pytest.raises(FormatError, match="form 'pickle'; expected npz or hdf5"):
        distributed.solve(tmp_path / "m")


def _packed(file) -> None:
    file.create_dataset("x", data=np.zeros(1000), compression="gzip")


def _elsewhere(file, h5py) -> None:
    file["x"] = h5py.ExternalLink("other.h5", "/x")


def test_only_plain_arrays_of_the_file_itself_are_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    cases = {
        "packed": _packed,
        "in the file itself": lambda file: _elsewhere(file, h5py),
        "plain numbers": lambda file: file.create_dataset("x", data=["text", "of any length"]),
        "an array in": lambda file: file.create_group("x"),
        "numbers or text": lambda file: file.create_dataset("x", data=np.zeros(3, ">f8")),
        "packed or elsewhere": lambda file: file.create_dataset(
            "x", shape=3, dtype="f8", external=[(str(tmp_path / "raw"), 0, 24)]
        ),
    }
    for number, (words, make) in enumerate(cases.items()):
        path = tmp_path / f"{number}.h5"
        with h5py.File(path, "w") as file:
            make(file)
        with pytest.raises(FormatError, match=words):
            mapped_hdf5(path)


def test_a_missing_h5py_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    model = generators.random_tree(10)
    with pytest.raises(softmap.MissingExtra, match="opengm"):
        distributed.write_parts(model, tmp_path / "m", 2, form="hdf5")
    with pytest.raises(softmap.OptionError, match="form='pickle'"):
        distributed.write_parts(model, tmp_path / "m", 2, form="pickle")


def test_a_grid_is_written_part_by_part(tmp_path):
    distributed.write_grid(tmp_path, 11, 14, 3, tiles=(2, 3), seed=4)
    whole = read_whole(tmp_path)
    parts = read_parts(tmp_path, whole, range(6))
    unary = np.full((11 * 14, 3), np.nan)
    for part in parts:  # copies of one variable agree
        given = part.model.unary.reshape(-1, 3)
        known = np.isfinite(unary[part.nodes]).all(axis=1)
        assert np.array_equal(unary[part.nodes][known], given[known])
        unary[part.nodes] = given
    edges = generators.grid_edges(11, 14)
    for part in parts:
        assert np.array_equal(part.nodes[part.model.edges], edges[part.edges])
    assert 0 <= unary.min() < 0.05 < 0.95 < unary.max() < 1
    model = Model(unary, edges, Potts(np.full(len(edges), 0.3)))
    found = distributed.solve(tmp_path, threads=1)
    check(model, found)
    assert found.energy >= softmap.solve(model).bound - 1e-9


def test_a_resumed_run_goes_on_as_if_never_stopped(tmp_path):
    model = generators.random_grid(9, 10, 3, seed=1)
    whole = distributed.solve(model, parts=4, **OPTIONS)
    part = OPTIONS | {"max_passes": 27}
    distributed.solve(model, parts=4, **part, checkpoint=tmp_path / "run", checkpoint_every=0.0)
    again = distributed.resume(tmp_path / "run", model, **OPTIONS)
    assert numbers(again) == numbers(whole)
    check(model, again)
    assert [row.bound for row in again.trace] == [row.bound for row in whole.trace]


def test_damaged_folders_are_refused(tmp_path):
    model = generators.random_grid(6, 6, 3, seed=1)
    distributed.write_parts(model, tmp_path / "m", 3)
    distributed.solve(tmp_path / "m", **OPTIONS, checkpoint=tmp_path / "run")
    other = generators.random_grid(6, 6, 3, seed=2)
    with pytest.raises(CheckpointError, match="another model"):
        distributed.resume(tmp_path / "run", other)
    file = next((tmp_path / "run").glob("part-00001-*.npz"))
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    with pytest.raises(CheckpointError, match="part-00001"):
        distributed.resume(tmp_path / "run", tmp_path / "m")
    facts = json.loads((tmp_path / "run" / "checkpoint.json").read_text())
    facts["progress"]["bound"] = 1e6  # a bound nobody has proved
    (tmp_path / "run" / "checkpoint.json").write_text(json.dumps(facts))
    with pytest.raises(CheckpointError, match="changed since"):
        distributed.resume(tmp_path / "run", tmp_path / "m")
    (tmp_path / "m" / "part-00002.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(FormatError, match="part-00002"):
        distributed.solve(tmp_path / "m")
    (tmp_path / "m" / "part-00002.npz").unlink()
    with pytest.raises(FormatError, match="no such part"):
        distributed.solve(tmp_path / "m")
    (tmp_path / "m" / "model.json").write_text("{}")
    with pytest.raises(FormatError, match="expected a softmap model in parts"):
        distributed.solve(tmp_path / "m")
