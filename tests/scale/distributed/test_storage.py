"""Models and runs in parts on disk."""

import json
import signal
from importlib.util import find_spec

import numpy as np
import pytest

import softmap
from softmap import CheckpointError, FormatError, Model, Potts, distributed, generators
from softmap.app.cli import large
from softmap.app.cli.app import main
from softmap.io.store import mapped
from softmap.scale.distributed.storage import read_part, read_whole
from support.whole_runs import check, numbers

OPTIONS = {"threads": 1, "lp_gap": 0.0, "gap": 0.0, "max_passes": 60}


@pytest.mark.parametrize("kind", ["grid", "ragged"])
def test_a_folder_gives_what_the_model_gives(kind, tmp_path, capsys):
    model = (
        generators.random_grid(9, 10, 3, seed=1)
        if kind == "grid"
        else generators.ragged_constrained(30, max_labels=4, seed=2)
    ).replace(constant=3.0)
    softmap.write(model, tmp_path / "model.npz")
    command = ["convert", str(tmp_path / "model.npz"), str(tmp_path / "parts"), "--parts", "5"]
    assert main(command) == 0
    assert len(list((tmp_path / "parts").glob("part-*.npz"))) == 5
    found = distributed.solve(tmp_path / "parts", **OPTIONS)
    expected = distributed.solve(model, parts=5, **OPTIONS)
    assert numbers(found) == numbers(expected)
    check(model, found)
    with pytest.raises(softmap.OptionError, match="has 5 parts"):
        distributed.solve(tmp_path / "parts", parts=4)


def test_parts_are_mapped_not_read(tmp_path):
    distributed.write_parts(generators.random_grid(9, 10, 3, seed=1), tmp_path, 2)
    arrays = mapped(tmp_path / "part-00000.npz")
    numbers = [array for array in arrays.values() if array.size and array.dtype.kind != "U"]
    assert len(numbers) > 8
    assert not any(array.flags.owndata or array.flags.writeable for array in numbers)
    part = read_part(tmp_path, 0, read_whole(tmp_path))
    assert not part.model.unary.flags.writeable


def test_a_grid_is_written_part_by_part(tmp_path):
    distributed.write_grid(tmp_path, 11, 14, 3, tiles=(2, 3), seed=4)
    whole = read_whole(tmp_path)
    parts = [read_part(tmp_path, number, whole) for number in range(6)]
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
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    (tmp_path / "m" / "model.json").write_text(json.dumps(facts | {"form": "hdf5"}))
    with pytest.raises(FormatError, match="form 'hdf5'; expected npz"):
        distributed.solve(tmp_path / "m")
    (tmp_path / "m" / "model.json").write_text("{}")
    with pytest.raises(FormatError, match="expected a softmap model in parts"):
        distributed.solve(tmp_path / "m")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_with_its_result_and_a_checkpoint(tmp_path, number):
    model, seen = generators.potts_grid(12, 12, 3, seed=1), []
    options = {"parts": 4, "threads": 1, "lp_gap": 0.0, "gap": 0.0, "max_passes": 4000}

    def pressed(row):
        if not seen:
            signal.raise_signal(number)
        seen.append(row)

    found = distributed.solve(model, checkpoint=tmp_path / "c", on_snapshot=pressed, **options)
    assert found.status is softmap.Status.INTERRUPTED
    assert found.bound <= found.energy
    assert found.passes < 4000
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
    again = distributed.resume(tmp_path / "c", model, threads=1, max_passes=4000)
    assert again.bound >= found.bound


@pytest.mark.skipif(find_spec("mpi4py") is None, reason="needs mpi4py")
def test_a_signal_after_a_large_run_loses_nothing(tmp_path, monkeypatch, capsys):
    path, out = tmp_path / "m.npz", tmp_path / "out"
    softmap.write(generators.potts_grid(8, 8, 3, seed=1), path)
    usual = large._write

    def pressed(*given):
        signal.raise_signal(signal.SIGTERM)
        usual(*given)

    monkeypatch.setattr(large, "_write", pressed)
    assert main(["solve-large", str(path), "--out", str(out), "--no-progress"]) == 0
    assert (out / "result.json").exists()
    assert "energy" in capsys.readouterr().out
