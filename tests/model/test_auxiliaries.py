"""Tables of auxiliary variables are checked wherever they are attached to a model."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as any_array

import softmap
from softmap.io import parse
from softmap.io.npz import model_arrays
from softmap.model import Auxiliaries
from softmap.model.structure import unique_rows


def model():
    rng = np.random.default_rng(3)
    factors = [((0, 1, 2), rng.normal(size=(2, 2, 3))), ((2, 1, 3), rng.normal(size=(3, 2, 2)))]
    return softmap.Model.from_factors([2, 2, 3, 2], factors)


def archive(arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def swapped(array, a, b):
    other = array.copy()
    other[[a, b]] = other[[b, a]]
    return other


TAMPERED = {
    # members 0 and 1 have two labels each: every size fits, the projections do not
    "member order": lambda a: {"aux.member": swapped(a["aux.member"], 0, 1)},
    "stride order": lambda a: {"aux.stride": swapped(a["aux.stride"], 0, 1)},
    "huge stride": lambda a: {"aux.stride": np.full_like(a["aux.stride"], 2**63 - 1)},
    "one huge stride": lambda a: {"aux.stride": np.append(2**63 - 1, a["aux.stride"][1:])},
    "negative stride": lambda a: {"aux.stride": -a["aux.stride"]},
    "member twice": lambda a: {"aux.member": np.append(a["aux.member"][:1], a["aux.member"][:-1])},
    "member outside": lambda a: {"aux.member": a["aux.member"] + 4},
    "starts": lambda a: {"aux.start": np.array([0, 2, 6])},
    "descending starts": lambda a: {"aux.start": np.array([0, 7, 6])},
    "too few": lambda a: {"aux.start": np.array([0, 6])},
    "fewer variables": lambda a: {"num_variables": np.array(3)},
    "no variables": lambda a: {"num_variables": np.array(0)},
    "negative variables": lambda a: {"num_variables": np.array(-1)},
    "another map": lambda a: {"0.flat": a["0.flat"][::-1].copy()},
    "maps exchanged": lambda a: {"0.index": swapped(a["0.index"], 0, 1)},
    "an edge elsewhere": lambda a: {"edges": np.where(a["edges"] == 0, 3, a["edges"])},
    "an edge twice": lambda a: {"edges": a["edges"][[1, 1, 2, 3, 4, 5]]},
    "text": lambda a: {"aux.stride": np.array(["x"] * 6)},
    "fractions": lambda a: {"aux.stride": a["aux.stride"] + 0.5},
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampered_files_are_refused(name):
    arrays = model_arrays(model())
    assert parse(archive(arrays)).fingerprint() == model().fingerprint()
    with pytest.raises(softmap.FormatError):
        parse(archive(arrays | TAMPERED[name](arrays)))


def test_any_way_to_build_is_checked():
    sound = model()
    aux = sound.network.auxiliaries
    bare = softmap.Model(
        np.split(sound.network.unary, sound.network.node_offset[1:-1]),
        None,
        [(sound.network.edges, sound.network.potentials[0])],
    )
    assert bare.network.with_auxiliaries(aux).fingerprint() == sound.fingerprint()
    wrong = Auxiliaries(aux.start, aux.member[::-1], aux.stride)
    with pytest.raises(softmap.ModelError, match="auxiliary"):
        bare.network.with_auxiliaries(wrong)
    tie = sound.network.potentials[0]
    turned = softmap.Projection([m[::-1] for m in tie.maps], tie.num_labels, tie.index)
    with pytest.raises(softmap.ModelError, match="does not give the label of the member"):
        sound.network.replace(potentials=[turned])
    dense = softmap.Tables(list(sound.network.tables()))
    other = sound.network.replace(potentials=[dense])
    assert other.energy([0, 1, 2, 0]) == sound.energy([0, 1, 2, 0])
    loose = softmap.Tables([np.minimum(t, 9.0) for t in sound.network.tables()])
    with pytest.raises(softmap.ModelError, match="allows states that do not match"):
        sound.network.replace(potentials=[loose])
    with pytest.raises(softmap.ModelError, match="auxiliary"):  # an edge to an auxiliary variable
        softmap.Model.from_factors(
            [2, 2, 2], [((0, 1, 2), np.zeros((2, 2, 2)))], groups=[([[0, 3]], softmap.Potts([1.0]))]
        )


def test_members_with_one_label_and_any_order_of_members():
    rng = np.random.default_rng(0)
    shapes = [((3, 0, 1), (1, 2, 3)), ((1, 3, 2), (3, 1, 4)), ((2, 1, 0), (4, 3, 2))]
    parts = [(scope, rng.normal(size=shape)) for scope, shape in shapes]
    built = softmap.Model.from_factors([2, 3, 4, 1], parts)
    buffer = io.BytesIO()
    softmap.write(built, buffer, format="npz")
    again = parse(buffer.getvalue())
    x = np.array([1, 2, 3, 0])
    assert again.energy(x) == built.energy(x)
    assert built.energy(x) == pytest.approx(sum(t[tuple(x[list(s)])] for s, t in parts))


@given(
    any_array(
        np.int64,
        st.tuples(st.integers(0, 20), st.integers(1, 4)),
        elements=st.sampled_from([-(2**62), -1, 0, 1, 2**62]),
    )
)
def test_distinct_rows_are_those_of_numpy(rows):
    found, index = unique_rows(rows)
    expected, place = np.unique(rows, axis=0, return_inverse=True)
    assert np.array_equal(found, expected)
    assert np.array_equal(index, place.reshape(-1))
