"""Results that were tampered with: as warm starts they are refused, or prove nothing false."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import Model, OptionError, load_result, solve, verify
from softmap.run.evidence import Stated
from softmap.run.trace import Status
from softmap.subsolvers.clusters.cluster_evidence import ClusterEvidence
from support.oracles import dense_lp

SEEDS = range(4)
GOALS = ("labels", "map", "optimal", "lp")  # "labels" rests its bound on clusters


class Case:
    """A small model with a loose relaxation, its true values, and a result per goal."""

    def __init__(self, seed):
        rng, pairs = np.random.default_rng(seed), np.transpose(np.triu_indices(6, 1))
        tables = rng.choice([-1.0, 1.0], (len(pairs), 3, 3))
        self.model = Model(rng.uniform(-0.01, 0.01, (6, 3)), pairs, tables)
        every = np.array(list(np.ndindex(*self.model.num_labels)))
        self.optimum = float(self.model.energy(every).min())
        self.relaxed = dense_lp(self.model)
        self.results = {goal: solve(self.model, goal=goal, threads=1) for goal in GOALS}


CASES = {}


def case(seed):
    if seed not in CASES:
        CASES[seed] = Case(seed)
    return CASES[seed]


def of_another_model(result, x, rng):
    other = case(x % len(SEEDS)).results["labels"]
    return replace(result, lam=other.lam, messages=other.messages, proof=other.proof)


def other_nodes(result, x, rng):
    shape = result.model.unary.shape
    point = replace(result.point, nodes=rng.uniform(0, 10.0 ** (x - 2), shape), labels=None)
    return replace(result, point=point)


def other_proof(result, x, rng):
    lam = getattr(result.proof, "lam", None)
    if lam is None:
        return result
    lam = 10.0**x * rng.normal(0, 1, lam.shape)
    return replace(result, proof=replace(result.proof, lam=lam))


def fewer_clusters(result, x, rng):
    if not result.proof.scopes:
        return result
    return replace(result, proof=replace(result.proof, clusters=result.proof.scopes[x:]))


def other_beliefs(result, x, rng):
    known = getattr(result.proof, "beliefs", None)
    if known is None:
        return result
    beliefs = replace(known, nodes=rng.uniform(0, 10.0 ** (x - 2), known.nodes.shape))
    return replace(result, proof=replace(result.proof, beliefs=beliefs))


TRICKS = {
    "beliefs": other_beliefs,
    "bound": lambda r, x, rng: replace(r, bound=r.bound + 10.0 ** (x - 2)),
    "bound and LP bound": lambda r, x, rng: replace(r, bound=r.energy, lp_bound=r.energy),
    "energy": lambda r, x, rng: replace(r, energy=r.energy - 10.0 ** (x - 2)),
    "primal": lambda r, x, rng: replace(r, primal=r.primal - 10.0 ** (x - 2)),
    "status": lambda r, x, rng: replace(r, status=list(Status)[x % len(Status)]),
    "λ": lambda r, x, rng: replace(r, lam=10.0 ** (4 * x) * rng.normal(0, 1, r.lam.shape)),
    "λ of another model": of_another_model,
    "labels": lambda r, x, rng: replace(r, labels=rng.integers(0, 3, r.labels.shape)),
    "labels out of range": lambda r, x, rng: replace(r, labels=r.labels + x),
    "a search": lambda r, x, rng: replace(r, bound=r.energy, proof=Stated(nodes=x)),
    "λ of clusters": other_proof,
    "clusters": fewer_clusters,
    "node marginals": other_nodes,
    "η": lambda r, x, rng: replace(r, eta=10.0 ** (30 * (x - 3))),
    "η of the point": lambda r, x, rng: replace(r, point=replace(r.point, eta=10.0 ** (20 * x))),
    "costs": lambda r, x, rng: replace(
        r, model=r.model.replace(unary=r.model.unary + rng.normal(0, 1, r.model.unary.shape))
    ),
}


@given(
    st.sampled_from(SEEDS),
    st.sampled_from(GOALS),
    st.lists(st.tuples(st.sampled_from(sorted(TRICKS)), st.integers(0, 6)), min_size=1, max_size=4),
    st.sampled_from(GOALS),
    st.sampled_from([1, 1_000, None]),
)
def test_nothing_false_is_claimed(seed, before, tricks, goal, work):
    known = case(seed)
    result, rng = known.results[before], np.random.default_rng(seed)
    for trick, x in tricks:
        result = TRICKS[trick](result, x, rng)
    found = attempt(known.model, result, goal, work)
    assert found is None or no_claim_is_false(found, known)


def attempt(model, start, goal, work):
    """The result of a run, or None where the start is refused as damaged."""
    try:
        return solve(model, warm_start=start, goal=goal, max_work=work, threads=1)
    except OptionError as error:
        if not str(error).startswith("warm_start: this result is damaged"):
            raise
        return None


def no_claim_is_false(found, known) -> bool:
    """No claim of a run contradicts enumeration and the plain LP."""
    rounding = 1e-9 * abs(known.optimum)
    assert found.bound <= known.optimum + rounding
    assert found.lp_bound <= known.relaxed + rounding
    assert found.primal >= known.relaxed - rounding
    assert found.energy == known.model.energy(found.labels) >= known.optimum - rounding
    assert found.status is not Status.OPTIMAL or found.energy <= known.optimum + rounding
    assert verify(found, known.model).holds
    if found.tightened is not None:
        assert found.tightened.primal >= max(known.relaxed, found.bound) - rounding
    return True


@pytest.mark.parametrize("trick", sorted(TRICKS))
def test_the_run_ends_as_it_would_have(trick):
    known = case(0)
    result = TRICKS[trick](known.results["map"], 1, np.random.default_rng(0))
    if trick == "labels out of range":
        with pytest.raises(OptionError, match="warm_start: this result is damaged"):
            solve(known.model, warm_start=result, threads=1)
        return
    found = solve(known.model, warm_start=result, goal="optimal", threads=1)
    assert found.energy == pytest.approx(known.optimum, rel=1e-9)
    assert found.bound == pytest.approx(known.optimum, rel=1e-6)


def test_what_a_file_claims_is_proved_anew(tmp_path):
    known = case(1)
    lying = replace(known.results["lp"], bound=known.optimum + 1.0, status=Status.OPTIMAL)
    lying.save(tmp_path / "result.npz")
    loaded = load_result(tmp_path / "result.npz")
    assert loaded.bound > known.optimum
    again = solve(known.model, warm_start=loaded, goal="lp", threads=1)
    assert again.bound <= known.relaxed + 1e-9 * abs(known.relaxed)


def test_clusters_of_absurd_size_are_left_aside():
    known = case(2)
    scope = tuple(range(6))
    proof = ClusterEvidence(clusters=(scope,) * 10**4, lam=np.zeros(3))
    found = solve(known.model, warm_start=replace(known.results["map"], proof=proof), threads=1)
    assert found.bound <= known.optimum + 1e-9 * abs(known.optimum)
