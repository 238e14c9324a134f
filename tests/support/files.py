"""Shared by the tests of readers and writers: same energies, mutations."""

from __future__ import annotations

import itertools
import random

import numpy as np
from hypothesis import strategies as st

from softmap.model import Model, checked_network


def labellings(model: Model, limit: int = 400) -> np.ndarray:
    """All labellings of a small model, or the first `limit` of them."""
    ranges = [
        range(int(d))
        for d in checked_network(model).num_labels[: checked_network(model).num_variables]
    ]
    return np.array(list(itertools.islice(itertools.product(*ranges), limit)))


def same_energies(first: Model, second: Model, rtol: float = 1e-9) -> bool:
    """Whether two models agree on every labelling, hard constraints included."""
    n = first.network.num_variables
    if (
        n != second.network.num_variables
        or (first.network.num_labels[:n] != second.network.num_labels[:n]).any()
    ):
        return False
    x = labellings(first)
    return np.allclose(first.energy(x), second.energy(x), rtol=rtol, atol=1e-8)


TOKENS = [
    b"0", b"-1", b"1", b"2", b"3", b"1e999", b"-inf", b"inf", b"nan", b"999999999999999999", b"1.5",
    b"MARKOV", b"x", b"\xff\xfe", b"\x00", b"", b"#", b"c", b"4294967296", b"[", b"}", b'"', b"a",
    b"e",
]  # fmt: skip


def damaged(texts: list[bytes]) -> st.SearchStrategy[bytes]:
    """A valid file with a few tokens replaced, removed, doubled, or bytes cut and flipped.

    One number is drawn for all changes of a file: to draw each took longer than to read it.
    """
    return st.integers(0, 2**64 - 1).map(lambda seed: _damaged(texts, random.Random(seed)))


def _damaged(texts: list[bytes], rng: random.Random) -> bytes:
    data = rng.choice(texts)
    for _ in range(rng.randint(1, 4)):
        kind = rng.randint(0, 4)
        words = data.split(b" ")
        at = rng.randrange(len(words))
        if kind == 0:
            words[at] = rng.choice(TOKENS)
        elif kind == 1:
            del words[at]
        elif kind == 2:
            words.insert(at, rng.choice(TOKENS))
        data = b" ".join(words)
        if kind == 3:
            data = data[: rng.randint(0, len(data))]
        elif kind == 4 and data:
            place = rng.randrange(len(data))
            data = data[:place] + rng.randbytes(rng.randint(0, 3)) + data[place + 1 :]
    return data


@st.composite
def flipped(draw, texts):
    """A binary file with bytes changed or its end cut off."""
    data = bytearray(draw(st.sampled_from(texts)))
    for _ in range(draw(st.integers(1, 6))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.sampled_from([len(data), draw(st.integers(0, len(data)))]))])
