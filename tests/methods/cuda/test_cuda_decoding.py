"""Batches decoded with a device: the answers of the CPU, and no proof that depends on a device."""

import itertools
import re
from fractions import Fraction

import numpy as np
import pytest

from softmap import core
from softmap.codes import Decoder, device
from softmap.codes.device import CheckArrays
from softmap.errors import OptionError
from softmap.methods.cuda.cupy_device import sources

MANY = 12345  # iterations that only a proposal has
FIELDS = ("words", "costs", "bounds", "proved", "iterations", "observables")


def random_code(rng, m, n):
    """A matrix with two to five ones in each row, and a repeated row."""
    matrix = (rng.random((m, n)).argsort(axis=1) < rng.integers(2, 6, (m, 1))).astype(np.uint8)
    matrix[-1] = matrix[0]
    return matrix


def arrays_of(matrix):
    return CheckArrays.of([np.flatnonzero(row).tolist() for row in matrix], matrix.shape[1])


def assert_as_good(place, own, plain):
    """The same on the host; on a device rounding may differ, but no answer is worse."""
    if place == "host":
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(own, name), getattr(plain, name), name)
    assert (own.proved >= plain.proved).all()
    assert (own.costs <= plain.costs).all()
    assert (own.costs == plain.costs)[plain.proved].all()


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_those_of_the_cpu(place, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    matrix = random_code(rng, 24, 48)
    decoder = Decoder(matrix, rng.uniform(0.01, 0.15, 48))
    shots = (rng.random((50, 48)) < 0.06) @ matrix.T.astype(int) % 2
    shots[7, -1] ^= 1  # a contradiction
    plain = decoder.decode_batch(shots)
    assert 0 < plain.proved.sum() < 50
    monkeypatch.setattr(device, "AT_ONCE", 13)
    proposed = []
    original = device.DeviceDecoder._fetched
    monkeypatch.setattr(
        device.DeviceDecoder, "_fetched",
        lambda self, *part: proposed.append(original(self, *part)) or proposed[-1],
    )  # fmt: skip
    assert_as_good(place, decoder.decode_batch(shots, backend="cuda"), plain)
    assert [len(part.iterations) for part in proposed] == [13, 13, 13, 11]
    some = sum(int((part.iterations > 0).sum()) for part in proposed)
    assert 0 < some < 50
    ratios = rng.normal(1.0, 1.0, (50, 48))  # of each shot, some negative
    both = [decoder.decode_batch(shots, ratios=ratios, backend=b) for b in ("cuda", "cpu")]
    assert_as_good(place, *both)


def test_proofs_hold_against_enumeration(place):
    rng = np.random.default_rng(5)
    for _ in range(12):
        n = int(rng.integers(5, 11))
        matrix = random_code(rng, int(rng.integers(1, 7)), n)
        costs = rng.normal(0.7, 1.0, n)
        every = np.array(list(itertools.product((0, 1), repeat=n)))
        shots = every[rng.integers(0, len(every), 6)] @ matrix.T % 2
        found = Decoder(matrix, ratios=costs).decode_batch(shots, backend="cuda")
        assert found.found.all()
        for k, shot in enumerate(shots):
            allowed = every[(every @ matrix.T % 2 == shot).all(axis=1)]
            exact = [sum(map(Fraction, costs[word == 1].tolist()), Fraction(0)) for word in allowed]
            assert Fraction(float(found.bounds[k])) <= min(exact)
            own = exact[(allowed == found.words[k]).all(axis=1).argmax()]
            assert not found.proved[k] or own == min(exact)


def decoded(matrix, costs, shots, words, lam):
    """What the CPU makes of proposals."""
    out, found = words.copy(), np.empty((len(shots), 4))
    limits = core.DecodingLimits(rounds=20, steps=300, depth=10)
    given = core.Proposals(lam, np.full(len(shots), MANY, np.int32))
    core.decode(
        arrays_of(matrix).native(), costs[None], shots, limits, out,
        np.empty((0, lam.shape[1])), found, given, 1,
    )  # fmt: skip
    return out, found


def test_wrong_proposals_are_not_believed():
    rng = np.random.default_rng(0)
    matrix = random_code(rng, 5, 9)[:-1]
    costs = rng.gamma(2.0, size=9)
    every = np.array(list(itertools.product((0, 1), repeat=9)), np.uint8)
    shots = every[rng.integers(0, 512, 400)] @ matrix.T % 2
    words = every[rng.integers(0, 512, 400)]  # most violate a check
    lam = rng.normal(0.2, 0.4, (400, int(matrix.sum())))
    lam[::5] = np.nan
    lam[1::5] = -np.inf
    lam[2::5] = 1e300
    lam[3::5] -= 5.0  # below all costs, and far outside the cones
    allowed = [every[(every @ matrix.T % 2 == shot).all(axis=1)] for shot in shots]
    for k in range(0, 400, 2):
        words[k] = rng.choice(allowed[k])
    out, found = decoded(matrix, costs, shots, words, lam)
    assert (out @ matrix.T % 2 == shots).all()
    believed = found[:, 3] == MANY
    assert not believed.reshape(-1, 5)[:, :3].any()
    for k in range(400):
        best = min(costs[word == 1].sum() for word in allowed[k])
        assert found[k, 1] <= best + 1e-12
        if believed[k] or found[k, 2]:
            assert costs[out[k] == 1].sum() == pytest.approx(best, abs=1e-12)


def test_a_right_proposal_is_believed_and_a_better_word_refutes_it():
    matrix = np.array([[1, 1, 0], [0, 1, 1]], np.uint8)
    costs, shots = np.array([1.0, 3.0, 1.0]), np.array([[1, 1]] * 3, np.uint8)
    words = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 0]], np.uint8)
    # signs flipped by 101, the costs are -1, 3, -1: each check shares them with its cone
    lam = np.array([[-1.1, 1.2, 1.2, -1.1]] * 3)
    out, found = decoded(matrix, costs, shots, words, lam)
    np.testing.assert_array_equal(out, [[1, 0, 1]] * 3)
    np.testing.assert_array_equal(found[:, :3], [[2, 2, 1]] * 3)
    np.testing.assert_array_equal(found[:, 3] == MANY, [True, False, False])


def test_checks_of_a_level_share_no_bit_and_keep_their_order():
    rng = np.random.default_rng(1)
    start, member, _ = arrays_of(random_code(rng, 30, 60))
    level = device.levels_of(start, member, 60)
    rows = [set(member[a:b].tolist()) for a, b in itertools.pairwise(start)]
    for one, two in itertools.combinations(range(30), 2):
        assert level[one] < level[two] or not rows[one] & rows[two]


def test_the_record_of_the_driver_is_that_of_the_kernels():
    text = (sources() / "cuda" / "decoding.hpp").read_text()
    body = re.sub(r"//.*", "", re.search(r"struct CodeArrays \{(.*?)\};", text, re.S)[1])
    assert tuple(re.findall(r"(\w+)\s*[,;]", body)) == device.CODE.names


def test_extreme_batches_and_a_wrong_backend(place):
    decoder = Decoder(np.zeros((2, 3), int), 0.1)  # no entry
    assert decoder.decode_batch([[0, 0], [0, 1]], backend="cuda").proved.tolist() == [True, False]
    assert len(decoder.decode_batch(np.zeros((0, 2), int), backend="cuda").words) == 0
    with pytest.raises(OptionError, match="'cpu' or 'cuda'"):
        decoder.decode_batch([[0, 0]], backend="gpu")
