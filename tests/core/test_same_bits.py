"""Stored bits of small solves per family: the same for any number of threads, on every machine.

After a change that is meant to change last digits, `python tests/core/test_same_bits.py` prints the
digests to be stored. Costs are binary fractions from whole numbers, and everything that is stored
comes from the compiled core, so that no function of numpy decides on a bit.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest

from softmap import Model, core
from softmap.labels.decoding import TIE
from softmap.methods.sweeps.chains import Chains
from softmap.model.layout import layout
from softmap.model.potentials import (
    Potts,
    Projection,
    Tables,
    TruncatedLinear,
    TruncatedQuadratic,
)
from softmap.relaxation.bounds import dual_bound
from support.methods import proving_lam

STORED = {
    "tables": "c707961733ecd238",
    "potts": "a86540b65e9fb8ac",
    "linear": "e942e7bc1e32198a",
    "quadratic": "fa30da43fddad808",
    "projection": "eb7fbfb9a161574a",
}
LABELS = 5
EDGES = 150
NODES = 60


def model_of(family: str) -> Model:
    """A random graph whose costs are multiples of 2⁻⁸."""
    rng = np.random.default_rng(0)
    if family == "projection":
        joint = [rng.integers(-256, 256, 9) / 256 for _ in range(20)]
        members = [rng.integers(-256, 256, 3) / 256 for _ in range(40)]
        pairs = [(k % 20, 20 + int(rng.integers(40))) for k in range(80)]
        return Model(
            joint + members,
            pairs,
            Projection([np.arange(9) // 3], np.full(80, 3), np.zeros(80, int)),
        )
    ends = np.array([rng.permutation(NODES)[:2] for _ in range(EDGES)])
    weights = rng.integers(0, 256, EDGES) / 256
    cuts = rng.integers(256, 768, EDGES) / 256
    potential = {
        "tables": lambda: Tables(rng.integers(-256, 256, (EDGES, LABELS, LABELS)) / 256),
        "potts": lambda: Potts(weights),
        "linear": lambda: TruncatedLinear(weights, cuts),
        "quadratic": lambda: TruncatedQuadratic(weights, cuts),
    }[family]()
    unary = rng.integers(-256, 256, (NODES, LABELS)) / 256
    return Model(unary, ends, potential)


def digest_of(family: str, threads: int) -> str:
    """λ and its bound after smooth passes, then after hard ones, with the labels read off them."""
    model = model_of(family)
    chains = Chains(model.network, threads)
    state = chains.start(None)
    digest = hashlib.sha256()
    for eta in (4.0, 60.0, math.inf):
        chains.passes(state, 5, eta, momentum=eta < math.inf)
        lam = proving_lam(chains, state)
        digest.update(chains.loops.lam(state.msg).tobytes())
        digest.update(float(dual_bound(model.network, lam)).hex().encode())
    labels = np.empty(model.n, dtype=np.int64)
    core.read_labels(layout(model.network), chains.plan.native, state.msg, TIE, labels, threads)
    digest.update(labels.tobytes())
    return digest.hexdigest()[:16]


@pytest.mark.skipif(
    core.level() == "v2", reason="x86-64-v2 has no fused multiply-add: last digits differ there"
)
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("family", STORED)
def test_bits_are_those_stored(family, threads):
    assert digest_of(family, threads) == STORED[family]


if __name__ == "__main__":
    for name in STORED:
        print(f'    "{name}": "{digest_of(name, 1)}",')
