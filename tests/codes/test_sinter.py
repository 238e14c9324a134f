"""The decoder in sinter, and circuits of stim, with the real packages."""

import csv
import io
import subprocess
import sys

import numpy as np
import pytest

import softmap
from softmap.codes import Decoder

stim = pytest.importorskip("stim", reason="stim is not installed; it has no wheel for aarch64")


def surface(distance: int = 3, p: float = 0.01):
    return stim.Circuit.generated(
        "surface_code:rotated_memory_z", distance=distance, rounds=3,
        after_clifford_depolarization=p, before_measure_flip_probability=p,
    )  # fmt: skip


def test_circuits_models_and_files_give_one_decoder(tmp_path):
    circuit = surface()
    model = circuit.detector_error_model()
    (tmp_path / "a.stim").write_text(str(circuit))
    shots, flips = circuit.compile_detector_sampler(seed=1).sample(200, separate_observables=True)
    found = [
        Decoder(given).decode_batch(shots)
        for given in (circuit, model, tmp_path / "a.stim", str(tmp_path / "a.stim"))
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].words, other.words)
    assert found[0].found.all()
    assert found[0].proved.mean() > 0.5
    assert (found[0].observables != flips).any(axis=1).mean() < 0.15
    read = softmap.read(tmp_path / "a.stim", seen=shots[0].astype(int))
    assert softmap.solve(read).energy <= read.energy(found[0].words[0].astype(int)) + 1e-9


def test_a_damaged_circuit_is_refused(tmp_path):
    (tmp_path / "a.stim").write_text("H 0\nNOSUCHGATE 1\n")
    with pytest.raises(softmap.FormatError, match="NOSUCHGATE"):
        softmap.read(tmp_path / "a.stim")


def test_packed_shots_are_those_of_the_decoder():
    sinter = pytest.importorskip("sinter", reason="sinter is not installed")
    from softmap.codes.sinter import decoders

    circuit = surface()
    model = circuit.detector_error_model()
    compiled = decoders()["softmap"].compile_decoder_for_dem(dem=model)
    assert isinstance(compiled, sinter.CompiledDecoder)
    packed, _ = circuit.compile_detector_sampler(seed=2).sample(
        1500, separate_observables=True, bit_packed=True
    )
    flips = compiled.decode_shots_bit_packed(bit_packed_detection_event_data=packed)
    shots = np.unpackbits(packed, axis=1, count=model.num_detectors, bitorder="little")
    expected = Decoder(model).decode_batch(shots).observables
    np.testing.assert_array_equal(flips, np.packbits(expected, axis=1, bitorder="little"))
    quiet = stim.Circuit("R 0\nM 0\nDETECTOR rec[-1]\nOBSERVABLE_INCLUDE(0) rec[-1]")
    silent = decoders()["softmap"].compile_decoder_for_dem(dem=quiet.detector_error_model())
    none = silent.decode_shots_bit_packed(
        bit_packed_detection_event_data=np.zeros((3, 1), np.uint8)
    )
    assert none.tolist() == [[0], [0], [0]]


def test_sinter_collects_with_this_decoder(tmp_path):
    pytest.importorskip("sinter", reason="sinter is not installed")
    (tmp_path / "d=3.stim").write_text(str(surface(p=0.02)))
    command = [
        sys.executable, "-c", "from sinter._command._main import main; raise SystemExit(main())",
        "collect", "--circuits", str(tmp_path / "d=3.stim"), "--decoders", "softmap",
        "--custom_decoders_module_function", "softmap.codes.sinter:decoders",
        "--max_shots", "500", "--max_errors", "400", "--processes", "1",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=240)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(done.stdout)) if row]
    named = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    assert {row["decoder"] for row in named} == {"softmap"}
    assert sum(int(row["shots"]) for row in named) == 500
    assert 0 < sum(int(row["errors"]) for row in named) < 150
