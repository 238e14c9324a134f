"""Factors over many variables that a model keeps whole, in files and fingerprints."""

from __future__ import annotations

import io
import math
import pickle
import warnings
from unittest import mock

import numpy as np
import pytest

import softmap
from softmap.errors import FormatError, FormatWarning, ModelError
from softmap.io.npz import model_arrays, model_from_arrays
from softmap.model import chains, raised
from softmap.model.lowered_checks import with_required
from softmap.model.many import Among, Many

N = 9
FACTORS = {
    "different": lambda: softmap.AllDifferent(range(5)),
    "different, two": lambda: softmap.AllDifferent([3, 1]),
    "sum": lambda: softmap.Linear(range(N), [1, 2, 3, 4, 5, 1, 2, 3, 4], low=20, high=40),
    "sum, one bound": lambda: softmap.Linear(range(N), np.arange(N) - 3, high=11),
    "sum, large": lambda: softmap.Linear(range(N), [2**k + 2**20 for k in range(N)], low=2**22),
    "sum, weights by label": lambda: softmap.Linear(
        range(N), [[0, k, 2, 5 - k, 1] for k in range(N)], low=8
    ),
    "count": lambda: softmap.Cardinality(
        range(N), 2, [math.inf, 0, 0, math.inf, *[math.inf] * (N - 3)]
    ),
    "at most one": lambda: softmap.AtMostOne(range(N), [k % 5 for k in range(N)]),
    "among": lambda: Among(range(N), [[0, 1]] * N, [math.inf, 0, 0, *[math.inf] * (N - 2)]),
}


def _model(factor: Many, more: tuple = ()) -> softmap.Model:
    rng = np.random.default_rng(1)
    factors = [((i,), rng.integers(0, 9, 5).astype(float)) for i in range(N)]
    factors += [((i, i + 1), rng.integers(0, 9, (5, 5)).astype(float)) for i in range(0, N - 1, 3)]
    return softmap.Model.from_factors([5] * N, [*factors, factor, *more])


def _read(model: softmap.Model) -> softmap.Model:
    buffer = io.BytesIO()
    softmap.write(model, buffer, format="npz")
    buffer.seek(0)
    return softmap.read(buffer)


@pytest.mark.parametrize("name", FACTORS)
def test_an_archive_keeps_what_a_model_keeps_whole(name: str) -> None:
    factor = FACTORS[name]()
    model = _model(factor)
    assert len(model.network.required) == 1
    twin = _read(model)
    assert twin.fingerprint() == model.fingerprint()
    assert twin.network.required_chains == model.network.required_chains
    (one,), sizes = twin.network.required, [5] * len(factor.variables)
    assert one.variables == factor.variables
    assert one.hard == factor.hard
    for mine, theirs in zip(factor.arrays(sizes), one.arrays(sizes), strict=True):
        assert mine.tolist() == theirs.tolist()


@pytest.mark.parametrize("name", FACTORS)
def test_models_that_differ_in_these_factors_alone_have_other_fingerprints(name: str) -> None:
    model = _model(FACTORS[name]())
    without = raised(model.network.replace(potentials=model.network.potentials))
    assert not without.network.required
    assert without.fingerprint() != model.fingerprint()
    assert _read(without).fingerprint() == without.fingerprint()


@pytest.mark.parametrize("seed", range(6))
def test_a_proof_is_one_of_the_model_that_is_read(tmp_path, seed: int) -> None:
    """Proofs by assignment problems and by sums name these factors."""
    rng = np.random.default_rng(seed)
    tables = [((i, j), rng.integers(0, 9, (5, 5)) * 1.0) for i in range(5) for j in range(i)]
    factors = [*tables, softmap.AllDifferent(range(5))]
    model = softmap.Model.from_factors([5] * 5, factors)
    result = softmap.solve(model, proof=tmp_path / "proof", threads=1)
    result.save(tmp_path / "result.npz")
    assert softmap.verify(_read(model), proof=tmp_path / "proof").checked
    assert softmap.verify(tmp_path / "result.npz").holds
    assert softmap.verify(tmp_path / "result.npz", proof=tmp_path / "proof").checked


def test_a_run_resumed_with_the_model_that_is_read_is_verified(tmp_path) -> None:
    """Of these, runs of some seeds ended with a claim that was called false."""
    resumed = 0
    for seed in range(3, 23):
        rng = np.random.default_rng(seed)
        factors = [((i,), rng.integers(0, 9, 5) * 1.0) for i in range(5)]
        factors.append(softmap.AllDifferent(range(5)))
        pairs = [(i, j) for i in range(5) for j in range(i) if rng.random() < 0.4]
        factors += [(pair, rng.integers(0, 9, (5, 5)) * 1.0) for pair in pairs]
        model = softmap.Model.from_factors([5] * 5, factors)
        path = tmp_path / f"{seed}.npz"
        softmap.solve(model, checkpoint=path, max_work=100, threads=1)
        if path.exists():
            resumed += 1
            assert softmap.verify(softmap.resume(path, _read(model), threads=1)).holds
    assert resumed > 5


def test_a_factor_that_files_cannot_hold_is_kept_as_tables_only() -> None:
    class Twice(softmap.AllDifferent):
        """One of a user, which forbids the same."""

    class Pairs(Many):
        """Different labels of neighbours in the list, as one automaton for each."""

        def automata(self, sizes):
            v = self.variables
            parts = [
                softmap.AtMostOne([v[t], v[t + 1]], x) for t in range(len(v) - 1) for x in range(5)
            ]
            return [part.automata([5, 5])[0] for part in parts]

    kept, table = _model(Twice(range(4))), _model(Pairs(range(4)))
    assert len(kept.network.required) == 1
    assert not table.network.required
    assert _read(kept).fingerprint() == kept.fingerprint()
    assert _read(table).fingerprint() == table.fingerprint()
    assert table.energy([0, 1, 1, 2, 3, 3, 3, 3, 3]) == math.inf


def _arrays(name: str = "sum") -> dict:
    return {
        key: np.array(value) for key, value in model_arrays(_model(FACTORS[name]()).network).items()
    }


@pytest.mark.parametrize(("changed", "message"), [
    ({"required.kind": [7]}, "damaged"),
    ({"required.kind": [-1]}, "damaged"),
    ({"required.sizes": [[9, 46, 3]]}, "damaged"),
    ({"required.sizes": [[9, 45]]}, "damaged"),
    ({"required.sizes": [[9, -45, 3]]}, "damaged"),
    ({"required.variables": [0, 1, 2, 3, 4, 5, 6, 7, 9999]}, "does not exist"),
    ({"required.variables": [0, 1, 2, 3, 4, 5, 6, 7, -1]}, "does not exist"),
    ({"required.variables": [0, 1, 2, 3, 4, 5, 6, 7, 7]}, "twice"),
    ({"required.costs": [np.nan, 3.0, np.inf]}, "nan"),
    ({"required.costs": [1.0, 3.0, -np.inf]}, "-inf"),
])  # fmt: skip
def test_damaged_factors_are_refused(changed: dict, message: str) -> None:
    arrays = _arrays() | {key: np.array(value) for key, value in changed.items()}
    with pytest.raises(FormatError, match=message):
        model_from_arrays(arrays, "m.npz")


@pytest.mark.parametrize("name", ["kind", "chain", "sizes", "variables", "integers", "costs"])
def test_a_missing_array_is_refused(name: str) -> None:
    arrays = _arrays()
    del arrays[f"required.{name}"]
    if name == "kind":  # the array that says that there are factors
        assert not model_from_arrays(arrays, "m.npz").network.required
        return
    with pytest.raises(FormatError, match=name):
        model_from_arrays(arrays, "m.npz")


def _forged(name: str, key: str, value: list) -> dict:
    return _arrays(name) | {f"required.{key}": np.array(value)}


@pytest.mark.parametrize("arrays", [
    _forged("sum", "costs", [30.0, 40.0, math.inf]),  # a bound that the chain does not have
    _forged("sum", "costs", [20.0, 30.0, math.inf]),
    _forged("sum", "chain", [[N + 1, N + 8]]),
    _forged("sum", "chain", [[0, 7]]),
    _forged("sum", "chain", [[N + 400, N + 407]]),
    _forged("sum", "variables", [1, 0, 2, 3, 4, 5, 6, 7, 8]),
    _forged("sum", "integers", [1 << 50] * 45),
    _forged("different", "variables", [0, 1, 2, 3, 5]),
    _forged("different, two", "variables", [3, 2]),
    _forged("count", "costs", [math.inf, 0.0] + [math.inf] * (N - 1)),
], ids=range(10))  # fmt: skip
def test_a_factor_that_the_tables_do_not_imply_is_not_taken_for_granted(arrays: dict) -> None:
    with pytest.warns(FormatWarning, match="kept as tables only"):
        model = model_from_arrays(arrays, "m.npz")
    assert not model.network.required


def test_a_chain_belongs_to_one_factor() -> None:
    """Else the work to compare factors with tables would not be bounded by the size of the file."""
    one = _arrays("sum")
    twice = {k: np.concatenate([a, a]) for k, a in one.items() if k.startswith("required.")}
    with pytest.warns(FormatWarning, match="kept as tables only"):
        assert not model_from_arrays(one | twice, "m.npz").network.required


def test_archives_of_other_chains_are_read_without_the_factors() -> None:
    """Another version may make other chains of a factor; energies and proofs of tables stay."""
    other = chains.ChainSizes(base=3, dense=8, convex_states=2, states=2, sum_entries=10)
    with mock.patch.object(chains, "SIZES", other):
        model = _model(FACTORS["count"]())
        arrays = {key: np.array(value) for key, value in model_arrays(model.network).items()}
        again = model_from_arrays(arrays, "m.npz")
    assert again.network.required
    with pytest.warns(FormatWarning):
        twin = model_from_arrays(arrays, "m.npz")
    assert not twin.network.required
    labels = np.random.default_rng(0).integers(0, 5, (50, N))
    assert twin.energy(labels).tolist() == model.energy(labels).tolist()
    result = softmap.solve(model, threads=1)
    assert softmap.verify(result).holds
    assert result.energy == softmap.solve(twin, threads=1).energy


def test_pickles_keep_them(tmp_path) -> None:
    for factor in FACTORS.values():
        model = _model(factor())
        assert pickle.loads(pickle.dumps(model)).fingerprint() == model.fingerprint()


def test_costs_of_the_same_variables_and_other_factors_are_no_obstacle() -> None:
    """Tables over the same variables are merged, and evidence forbids more."""
    table = np.arange(25.0).reshape(5, 5)
    more = (((0, 1), table), ((1, 0), table), ((0, 1, 2), np.ones((5, 5, 5))))
    for factor in FACTORS.values():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = _model(factor(), more).condition({8: 4})
            assert _read(model).fingerprint() == model.fingerprint()


def test_only_factors_that_the_tables_imply_can_be_added() -> None:
    model = _model(FACTORS["different, two"]())
    factor, chain = model.network.required[0], model.network.required_chains[0]
    with pytest.raises(ModelError, match="do not imply"):
        with_required(model.network, [softmap.AllDifferent([0, 5])], [chain])
    with pytest.raises(ModelError, match="each factor"):
        with_required(model.network, [factor], [])
    twin = with_required(model.network, [factor], [chain])
    assert twin.fingerprint() == model.network.fingerprint()
