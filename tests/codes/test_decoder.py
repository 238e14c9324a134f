"""`Decoder` against enumeration, ordered statistics against a plain twin."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.codes import Decoder, ParityCode
from softmap.codes.decoder import DecodingEffort
from softmap.codes.device import CheckArrays
from softmap.io.dem import parse_detectors
from softmap.verification import check_proof
from support import numpy_twins

SEEDS = st.integers(0, 2**32 - 1)
DEM = b"""error(0.1) D0 L0
error(0.2) D0 D1
error(0.15) D1 D2 L1
error(0) D2
error(1) D1 L0
error(0.3) D2 L0
error(0.05) D0 D1 D2
detector D3
"""


def random_matrix(rng: np.random.Generator) -> np.ndarray:
    """A matrix with zero rows, equal rows and zero columns among others."""
    m, n = int(rng.integers(1, 7)), int(rng.integers(1, 11))
    matrix = (rng.random((m, n)) < rng.choice([0.2, 0.5])).astype(np.int64)
    if m > 2 and rng.random() < 0.5:
        matrix[1] = matrix[0]
    return matrix


def short_rows(rng: np.random.Generator, m: int, n: int) -> np.ndarray:
    """A matrix with four ones in each row: the models of its words have no chain variables."""
    return (rng.random((m, n)).argsort(axis=1) < 4).astype(int)


def all_words(n: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=n)))


def exact_cost(costs: np.ndarray, word: np.ndarray) -> Fraction:
    return sum(map(Fraction, costs[word == 1].tolist()), Fraction(0))


@given(SEEDS, st.booleans())
@settings(max_examples=80, deadline=None)
def test_there_is_always_an_answer_and_no_false_proof(seed, signed):
    rng = np.random.default_rng(seed)
    matrix = random_matrix(rng)
    n = matrix.shape[1]
    costs = rng.normal(0.5, 1.5, n) if signed else rng.gamma(2.0, size=n)
    decoder = Decoder(matrix, ratios=costs)
    every = all_words(n)
    shots = rng.integers(0, 2, (6, len(matrix)))
    shots[:3] = every[rng.integers(0, len(every), 3)] @ matrix.T % 2
    found = decoder.decode_batch(shots, threads=1)
    for k, shot in enumerate(shots):
        allowed = every[(every @ matrix.T % 2 == shot).all(axis=1)]
        assert found.found[k] == (len(allowed) > 0)
        if not len(allowed):
            assert not found.proved[k]
            continue
        best = min(exact_cost(costs, word) for word in allowed)
        own = exact_cost(costs, found.words[k])
        assert (matrix @ found.words[k] % 2 == shot).all()
        assert found.costs[k] == pytest.approx(float(own), abs=1e-12)
        assert Fraction(float(found.bounds[k])) <= best <= own
        assert found.gaps[k] >= 0
        if found.proved[k]:
            assert own == best
            assert found.gaps[k] == 0


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_ordered_statistics_are_those_of_the_twin(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 80)), int(rng.integers(1, 40))
    matrix = (rng.random((m, n)) < rng.choice([0.1, 0.4])).astype(np.int64)
    arrays = CheckArrays.of([np.flatnonzero(row).tolist() for row in matrix], n)
    costs, keys = rng.normal(0.5, 1.0, n), rng.normal(size=n).round(1)
    syndrome = matrix @ rng.integers(0, 2, n) % 2 if seed % 4 else rng.integers(0, 2, m)
    word, odd = np.empty(n, np.uint8), syndrome.astype(np.uint8)
    found = core.ordered_statistics(arrays.native(), costs, odd, keys, 4, word)
    twin = numpy_twins.ordered_statistics(matrix, costs, syndrome, keys, 4)
    assert found == (twin is not None)
    if twin is not None:
        np.testing.assert_array_equal(word, twin)
        assert (matrix @ word % 2 == syndrome).all()


def test_batches_are_single_shots_whatever_the_threads():
    rng = np.random.default_rng(0)
    matrix = (rng.random((12, 30)) < 0.15).astype(int)
    decoder = Decoder(matrix, rng.uniform(0.01, 0.2, 30))
    shots = (rng.random((40, 30)) < 0.1) @ matrix.T % 2
    both = decoder.decode_batch(shots, threads=2)
    assert both.lam is None
    alone = [decoder.decode(shot) for shot in shots]
    for name in ("words", "costs", "bounds", "proved", "iterations", "observables"):
        np.testing.assert_array_equal(getattr(both, name), [getattr(a, name) for a in alone])
    assert len(decoder.decode_batch(np.zeros((0, 12), int)).words) == 0


def test_a_detector_error_model_with_impossible_and_certain_errors():
    model = parse_detectors(DEM)
    decoder = Decoder(model)
    assert repr(decoder) == "Decoder(7 bits, 4 checks, 2 observables)"
    assert repr(Decoder(DEM_PATH_FREE)) == repr(decoder)
    every = all_words(7)
    every = every[(every[:, 3] == 0) & (every[:, 4] == 1)]
    p = model.probabilities
    for fired in itertools.product((0, 1), repeat=3):
        seen = [*fired, 0]
        found = decoder.decode(seen)
        likely = [
            np.prod(np.where(word, p, 1 - p))
            for word in every
            if model.syndrome(word).tolist() == seen
        ]
        assert np.prod(np.where(found.words, p, 1 - p)) == pytest.approx(max(likely))
        assert model.syndrome(found.words).tolist() == seen
        assert model.flips(found.words).tolist() == found.observables.tolist()
    assert not decoder.decode([0, 0, 0, 1]).found


DEM_PATH_FREE = parse_detectors(DEM)


def test_files_are_taken_by_their_path(tmp_path):
    (tmp_path / "a.dem").write_bytes(DEM)
    assert Decoder(tmp_path / "a.dem").num_observables == 2
    (tmp_path / "a.alist").write_bytes(b"3 2\n2 2\n1 2 1\n2 2\n1 0\n1 2\n2 0\n1 2\n2 3\n")
    found = Decoder(str(tmp_path / "a.alist"), [0.1, 0.2, 0.05]).decode([1, 1])
    assert found.words.tolist() == [0, 1, 0]
    assert found.proved


class WithoutSearch(Decoder):
    effort = DecodingEffort(visits=0)


def loose_shot(kind: type[Decoder]) -> tuple[Decoder, np.ndarray]:
    """A decoder, and a syndrome at which the relaxation is not tight."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        matrix = short_rows(rng, 10, 16)
        costs = rng.gamma(2.0, size=16)
        shot = matrix @ rng.integers(0, 2, 16) % 2
        if not WithoutSearch(matrix, ratios=costs).decode(shot).proved:
            return kind(matrix, ratios=costs), shot
    raise AssertionError("every relaxation was tight")


def test_an_exact_search_on_request():
    decoder, shot = loose_shot(WithoutSearch)
    before, found = decoder.decode(shot), decoder.decode(shot, time_limit=60.0)
    assert before.gaps > 0
    assert found.proved
    assert found.lam is None
    best = softmap.solve(decoder.model(shot), goal="optimal").energy
    assert found.costs == pytest.approx(best)
    assert before.bounds <= found.bounds <= best + 1e-9


def test_words_that_the_multipliers_do_not_exclude_are_searched(tmp_path):
    decoder, shot = loose_shot(Decoder)
    found = decoder.decode(shot)
    assert found.proved
    best = softmap.solve(decoder.model(shot), goal="optimal").energy
    assert found.costs == pytest.approx(best)
    written = decoder.write_proof(tmp_path / "shot", shot)
    assert written.bounds < found.bounds
    bound = float(written.bounds)
    assert check_proof(tmp_path / "shot", decoder.model(shot)).proves(bound)


def test_a_proof_of_a_shot_is_checked(tmp_path):
    rng = np.random.default_rng(1)
    matrix = short_rows(rng, 10, 24)
    matrix[3], matrix[5] = matrix[4], 0
    decoder = Decoder(matrix, rng.uniform(0.01, 0.2, 24))
    shot = matrix @ (rng.random(24) < 0.1) % 2
    found = decoder.write_proof(tmp_path / "shot", shot)
    bound = float(found.bounds)
    assert check_proof(tmp_path / "shot", decoder.model(shot)).proves(bound)


def test_received_words_have_costs_of_their_own():
    rng = np.random.default_rng(2)
    code = ParityCode([[0, 1, 2], [2, 3, 4], [0, 4, 5]])
    costs = rng.normal(1.0, 1.0, (30, 6))
    found = Decoder(code).decode_batch(ratios=costs, threads=1)
    every = all_words(6)
    allowed = every[(code.syndrome(every) == 0).all(axis=1)]
    np.testing.assert_allclose(found.costs, (costs @ allowed.T).min(axis=1))
    one = Decoder(code).decode(ratios=costs[0])
    np.testing.assert_array_equal(one.words, found.words[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Decoder([[1, 1, 1]], 0.1, ratios=1.0), "not both"),
        (lambda: Decoder([[1, 1, 1]], 1.5), "from 0 to 1"),
        (lambda: Decoder([[1, 1, 1]], [0.1, 0.2]), "each of 3 bits"),
        (lambda: Decoder(DEM_PATH_FREE, 0.1), "of its own"),
        (lambda: Decoder([[1, 1, 1]]).decode([2]), "syndrome"),
        (lambda: Decoder([[1, 1, 1]]).decode([1, 0]), "each of 1 checks"),
        (lambda: Decoder([[1, 1, 1]]).decode_batch([[1]], threads=0), "threads"),
        (lambda: Decoder([[1, 1, 1]]).decode([1], ratios=[1.0]), "ratios of 3 bits"),
        (lambda: Decoder([[1, 1, 1]]).decode_batch([[1]], ratios=np.ones((2, 3))), "1 syndromes"),
        (lambda: Decoder([[1, 1, 1]]).decode([1], time_limit=0), "time_limit"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(softmap.SoftmapError, match=message):
        call()


def test_no_bit_is_left_to_decide():
    decoder = Decoder([[1, 1]], [0.0, 1.0])
    assert decoder.decode([1]).words.tolist() == [0, 1]
    assert not decoder.decode([0]).found
    empty = Decoder(parse_detectors(b"detector D0\nlogical_observable L1"))
    found = empty.decode_batch([[0], [1]])
    assert found.found.tolist() == [True, False]
    assert found.proved.tolist() == [True, False]
    assert found.observables.shape == (2, 2)
