"""OpenGM's HDF5 and our own NPZ: every function type, every family, every kind of damage."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given

import softmap
from softmap.io.formats import FORMATS
from support.files import flipped, labellings, same_energies
from support.samples import content
from support.strategies import models

h5py = pytest.importorskip("h5py")
parse_npz, parse_opengm = FORMATS["npz"].parse, FORMATS["opengm"].parse


def opengm(states, types, factors, /, *, old=False, group="gm", **changes) -> bytes:
    """An OpenGM file; `types` maps a type id to (count, indices, values)."""
    buffer = io.BytesIO()
    flat = [x for fid, kind, scope in factors for x in (fid, kind, len(scope), *scope)]
    pairs = [x for t, (count, _, _) in types.items() for x in (16000 + t, count)]
    header = [2, 0, len(states), len(factors), len(types), *pairs] + ([] if old else [1])
    with h5py.File(buffer, "w") as file:
        gm = file.create_group(group)
        arrays = {"header": header, "numbers-of-states": states, "factors": flat} | changes
        for name, array in arrays.items():
            if array is not None:
                gm[name] = np.array(array, dtype=np.uint64) if isinstance(array, list) else array
        for t, (count, indices, values) in types.items():
            if count:
                gm[f"function-id-{16000 + t}/indices"] = np.array(indices, dtype=np.uint64)
                gm[f"function-id-{16000 + t}/values"] = np.array(values, dtype=np.float64)
    return buffer.getvalue()


def potts_g(x):
    """Values of a generalised Potts function of order 3, written out by hand."""
    a, b, c = x
    return {
        (False, False, False): 10.0,
        (True, False, False): 11.0,
        (False, True, False): 12.0,
        (False, False, True): 13.0,
        (True, True, True): 14.0,
    }[a == b, a == c, b == c]


TYPES = {
    0: (1, [2, 2, 3], [0, 1, 2, 3, 4, 5], lambda x: x[0] + 2.0 * x[1]),
    1: (1, [2, 2, 3, 2, 3, 4], [7, -1, 5], lambda x: {(1, 1): -1.0, (0, 2): 5.0}.get(x, 7.0)),
    2: (1, [2, 3], [1.5], lambda x: 1.5 * abs(x[0] - x[1])),
    3: (1, [2, 3], [1.0, 2.5], lambda x: 2.5 * min(abs(x[0] - x[1]), 1.0)),
    4: (1, [2, 3], [0.5], lambda x: 0.5 * (x[0] - x[1]) ** 2),
    5: (1, [2, 3], [3.0, 2.0], lambda x: 2.0 * min((x[0] - x[1]) ** 2, 3.0)),
    6: (1, [2, 3], [0.25, 4.0], lambda x: 0.25 if x[0] == x[1] else 4.0),
    7: (1, [3, 2, 3, 2], [0.25, 4.0], lambda x: 0.25 if x[0] == x[1] == x[2] else 4.0),
    8: (1, [2, 2, 3], [6.5], lambda x: 6.5),
    11: (1, [3, 2, 3, 2], [10, 11, 12, 13, 14], potts_g),
}


@pytest.mark.parametrize("kind", TYPES)
def test_every_function_type(kind):
    count, indices, values, by_hand = TYPES[kind]
    arity = 3 if kind in (7, 11) else 2
    states = [2, 3, 2][:arity]
    scope = tuple(range(arity))
    model = parse_opengm(opengm(states, {kind: (count, indices, values)}, [(0, 0, scope)]))
    for x in labellings(model):
        assert model.energy(x) == pytest.approx(by_hand(tuple(x.tolist())))


def test_constants_unaries_and_old_headers():
    types = {0: (3, [0, 1, 2, 1, 2], [4.0, 1.0, 2.0, 10.0, 20.0])}
    factors = [(0, 0, ()), (1, 0, (0,)), (2, 0, (1,)), (1, 0, (1,))]
    model = parse_opengm(opengm([2, 2], types, factors, old=True, group="another"))
    assert model.energy([1, 0]) == 4 + 2 + 10 + 1


def test_type_index_is_the_position_in_the_header():
    types = {6: (1, [2, 2], [0.0, 3.0]), 0: (1, [1, 2], [1.0, 2.0])}
    model = parse_opengm(opengm([2, 2], types, [(0, 1, (0,)), (0, 0, (0, 1))]))
    assert model.energy([1, 0]) == 2 + 3


def test_shared_functions_and_families_stay():
    types = {0: (1, [2, 2, 2], [0, 1, 2, 3]), 6: (1, [2, 2], [0, 1]), 3: (1, [2, 2], [1, 2])}
    factors = [(0, 0, (0, 1)), (0, 0, (1, 2)), (0, 1, (0, 2)), (0, 2, (2, 3))]
    model = parse_opengm(opengm([2] * 4, types, factors))
    assert [p.family for p in model.potentials] == ["shared", "potts", "truncated-linear"]
    assert len(model.potentials[0].tables) == 1
    assert model.energy([0, 1, 0, 1]) == 2 + 1 + 0 + 2


def test_repeated_pairs_are_merged():
    types = {0: (1, [2, 2, 2], [0, 1, 2, 3]), 6: (1, [2, 2], [0, 10])}
    model = parse_opengm(opengm([2, 2], types, [(0, 0, (0, 1)), (0, 0, (1, 0)), (0, 1, (0, 1))]))
    assert model.m == 1
    assert model.energy([1, 0]) == 1 + 2 + 10


TABLE = {0: (1, [2, 2, 2], [0, 1, 2, 3])}
BAD = {
    "scope": opengm([2, 2], TABLE, [(0, 0, (0, 7))]),
    "twice": opengm([2, 2], TABLE, [(0, 0, (1, 1))]),
    "shape": opengm([2, 3], TABLE, [(0, 0, (0, 1))]),
    "order": opengm([2, 2], TABLE, [(0, 0, (0,))]),
    "function": opengm([2, 2], TABLE, [(5, 0, (0, 1))]),
    "type": opengm([2, 2], TABLE, [(0, 3, (0, 1))]),
    "unknown type": opengm([2, 2], {42: (1, [2], [1])}, [(0, 0, (0, 1))]),
    "values": opengm([2, 2], {0: (1, [2, 2, 2], [0, 1, 2])}, [(0, 0, (0, 1))]),
    "indices": opengm([2, 2], {0: (1, [3, 2, 2], [0, 1, 2, 3])}, [(0, 0, (0, 1))]),
    "nan": opengm([2, 2], {0: (1, [2, 2, 2], [0, 1, 2, np.nan])}, [(0, 0, (0, 1))]),
    "truncation": opengm([2, 2], {3: (1, [2, 2], [-1, 2])}, [(0, 0, (0, 1))]),
    "sparse key": opengm([2, 2], {1: (1, [2, 2, 2, 1, 9], [0, 1])}, [(0, 0, (0, 1))]),
    "sparse end": opengm([2, 2], {1: (1, [2, 2], [0, 1])}, [(0, 0, (0, 1))]),
    "no labels": opengm([2, 0], TABLE, []),
    "absurd labels": opengm([2, 10**15], TABLE, []),
    "absurd table": opengm([10**6] * 2, {6: (1, [10**6] * 2, [np.inf, 0])}, [(0, 0, (0, 1))]),
    "header": opengm([2, 2], TABLE, [], header=[2, 0, 2]),
    "version": opengm([2, 2], TABLE, [], header=[3, 0, 2, 0, 0]),
    "factors end": opengm([2, 2], TABLE, [(0, 0, (0, 1))], factors=[0, 0, 9, 0, 1]),
    "absurd count": opengm([2, 2], TABLE, [], header=[2, 0, 2, 0, 1, 16000, 2**60, 1]),
    "no factors": opengm([2, 2], TABLE, [(0, 0, (0, 1))], factors=None),
    "float factors": opengm([2, 2], TABLE, [(0, 0, (0, 1))], factors=np.zeros(5)),
    "text": opengm([2, 2], TABLE, [(0, 0, (0, 1))], factors=np.bytes_("junk")),
    "huge order": opengm([2, 2], {11: (1, [40, *[2] * 40], [0])}, []),
    "not HDF5": b"junk",
    "only magic": b"\x89HDF\r\n\x1a\n" + bytes(200),
    "no group": b"",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_opengm(name):
    with pytest.raises(softmap.FormatError):
        parse_opengm(BAD[name])


def test_a_dataset_that_was_never_stored_is_not_allocated():
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        gm = file.create_group("gm")
        gm["header"] = np.array([2, 0, 10**12, 0, 0, 1], dtype=np.uint64)
        gm.create_dataset("numbers-of-states", shape=(10**12,), dtype=np.uint64, chunks=(1024,))
    with pytest.raises(softmap.FormatError, match=r"costs|fit"):
        parse_opengm(buffer.getvalue())


GOOD = [
    opengm([2, 3, 2][: 3 if k in (7, 11) else 2], {k: t[:3]}, [(0, 0, (0, 1, 2)[: t[1][0] or 2])])
    for k, t in TYPES.items()
]


@given(flipped(GOOD))
def test_no_opengm_file_raises_anything_but_our_errors(data):
    try:
        model = parse_opengm(data)
    except softmap.SoftmapError:
        return
    assert not np.isnan(model.energy(labellings(model, 3))).any()


@given(models())
def test_opengm_round_trip(model):
    again = parse_opengm(content(model, "opengm"))
    assert same_energies(again, model)


@given(models(families=("potts", "truncated-linear", "truncated-quadratic"), graphs=("tree",)))
def test_opengm_round_trip_keeps_families(model):
    again = parse_opengm(content(model, "opengm"))
    assert {p.family for p in again.potentials} == {p.family for p in model.potentials}


@given(models())
def test_npz_keeps_everything(model):
    again = parse_npz(content(model, "npz"))
    assert again.fingerprint() == model.fingerprint()
    assert again.network.num_variables == model.network.num_variables
    assert same_energies(again, model, rtol=0)


def test_npz_keeps_the_shape(tmp_path):
    model = softmap.Model(np.zeros((6, 2)), [[0, 1]], softmap.Potts([1.0])).with_shape((2, 3))
    softmap.write(model, tmp_path / "m.npz")
    assert softmap.read(tmp_path / "m.npz").shape == (2, 3)


def archive(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


MODEL = softmap.Model.from_factors(
    [2, 3, 2], [((0, 1, 2), np.arange(12.0).reshape(2, 3, 2)), ((0, 1), np.ones((2, 3)))]
)
ARRAYS = dict(np.load(io.BytesIO(content(MODEL, "npz"))))


def without(*names, **changes) -> bytes:
    return archive(**({k: v for k, v in ARRAYS.items() if k not in names} | changes))


BROKEN = bytearray(content(MODEL, "npz"))
BROKEN[BROKEN.index(b"num_labels.npy") + 36] ^= 0xFF  # inside a compressed stream

BAD_NPZ = {
    "compressed stream": bytes(BROKEN),
    "junk": b"PK\x03\x04junk",
    "empty": b"",
    "pickle": archive(format=np.array([None, "x"], dtype=object)),
    "no format": without("format"),
    "another format": without(format=np.array("other")),
    "no unary": without("unary"),
    "no table": without("0.flat"),
    "short table": without(**{"0.flat": np.zeros(5)}),
    "unknown family": without(families=np.array(["tables", "magic"])),
    "few families": without(families=np.array(["tables"])),
    "edges": without(edges=ARRAYS["edges"] + 7),
    "labels": without(num_labels=np.array([2, 3, 3])),
    "negative labels": without(num_labels=np.array([2, 3, -1, 15])),
    "nan": without(unary=np.full(ARRAYS["unary"].shape, np.nan)),
    "no auxiliaries": without("aux.start"),
    "auxiliaries": without(**{"aux.member": np.array([0, 1, 9])}),
    "strides": without(**{"aux.stride": np.array([60, 2, 1])}),
    "variables": without(num_variables=np.array(77)),
    "grid": without(shape=np.array([7, 7])),
    "projection": without(**{"1.flat": np.full(36, 99)}),
    "constant": without(constant=np.array(np.inf)),
    "constants": without(constant=np.zeros(3)),
}


@pytest.mark.parametrize("name", BAD_NPZ)
def test_bad_npz(name):
    with pytest.raises(softmap.FormatError):
        parse_npz(BAD_NPZ[name])


def test_npz_sizes_are_checked_before_allocating():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        header = io.BytesIO()
        description = {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
        np.lib.format.write_array_header_1_0(header, description)
        file.writestr("format.npy", header.getvalue())
    with pytest.raises(softmap.FormatError, match="expected 10000000000000 numbers"):
        parse_npz(buffer.getvalue())
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        for k in range(40):  # the sizes add up
            file.writestr(f"{k}.npy", bytes(1 << 20))
    with pytest.raises(softmap.FormatError, match="expand"):
        parse_npz(bomb.getvalue())
