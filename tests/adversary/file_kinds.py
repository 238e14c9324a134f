"""Trials of files: a model that is written and read is proved and verified as the first one is.

Each is a function of random numbers that says which promise was broken, as in kinds.py; None if
none was.
"""

from __future__ import annotations

import contextlib
import copy
import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import softmap
from adversary.making import spec as random_spec
from adversary.making import written_out
from adversary.proofs import random_model
from softmap.io import FORMATS
from support.logical import logical_model
from support.permutations import permutation_model, random_factors

__all__ = ["FILE_KINDS", "random_network"]

PROGRAMS = ("lp", "mps")  # of real variables, which are no labels
OTHERS = [
    name
    for name, form in FORMATS.items()
    if form.writer and form.reader and name not in ("npz", *PROGRAMS)
]
FAITHFUL = ("npz", "plain npz", "result", "pickle", "copy")  # they keep every fingerprint


# --- models of all kinds --------------------------------------------------------------------------


def _permuted(rng: np.random.Generator) -> softmap.Model:
    """Labels that all differ, with costs of pairs or, as a linear assignment, without."""
    n, d, factors = random_factors(rng)
    if rng.random() < 0.3:
        factors = [(scope, table) for scope, table in factors if len(scope) == 1]
    return permutation_model(n, d, factors, many=rng.random() < 0.8)


def _grid(rng: np.random.Generator) -> softmap.Model:
    rows, cols, labels = (int(k) for k in rng.integers(1, 4, 3))
    return softmap.Model.grid(rng.normal(size=(rows, cols, labels)), float(rng.uniform(0, 2)))


def random_network(rng: np.random.Generator) -> softmap.Model:
    """A Bayesian network, whose variables need not come after their parents."""
    n = int(rng.integers(1, 6))
    sizes, order = rng.integers(1, 4, n), rng.permutation(n)
    factors = []
    for place, i in enumerate(order.tolist()):
        parents = rng.permutation(order[:place])[: int(rng.integers(0, 3))].tolist()
        table = rng.dirichlet(np.ones(sizes[i]), size=sizes[parents].tolist())
        factors.append(([*parents, i], -np.log(table)))
    return softmap.Model.from_factors(sizes.tolist(), factors)


def _any_model(rng: np.random.Generator) -> softmap.Model:
    some: list[Callable[[np.random.Generator], softmap.Model]] = [
        logical_model, logical_model, _permuted, _permuted, random_model, _grid, random_network,
        lambda rng: random_spec(rng).model(),
    ]  # fmt: skip
    model = some[rng.integers(len(some))](rng)
    if rng.random() < 0.2:
        states = [
            [f"s{x}" for x in range(d)] for d in model.num_labels[: model.network.num_visible]
        ]
        model = model.with_names([f"v{i}" for i in range(model.network.num_visible)], states)
    if rng.random() < 0.2:
        model = model.condition({0: int(rng.integers(model.num_labels[0]))})
    return model


# --- their copies ---------------------------------------------------------------------------------


def _copied(
    rng: np.random.Generator, model: softmap.Model, folder: Path
) -> Iterator[tuple[str, softmap.Model]]:
    """The model by other ways, and the names of these."""
    softmap.write(model, folder / "m.npz")
    yield "npz", softmap.read(folder / "m.npz")
    softmap.write(model, folder / "plain.npz", compress=False)
    yield "plain npz", softmap.read(folder / "plain.npz")
    yield "pickle", pickle.loads(pickle.dumps(model))
    yield "copy", copy.deepcopy(model)
    for name in rng.permutation(OTHERS)[:4].tolist():
        path = folder / f"m{FORMATS[name].suffixes[0]}"
        with contextlib.suppress(softmap.ModelError, softmap.OptionError, softmap.MissingExtra):
            softmap.write(model, path, format=name)
            yield name, softmap.read(path, format=name)


def _round_trips(rng: np.random.Generator) -> str | None:
    """Copies with the fingerprint of a model: their proofs, results and runs are those of it."""
    with written_out(rng), tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            model = _any_model(rng)
            options: dict[str, Any] = {"goal": str(rng.choice(["map", "optimal", "lp"]))}
            if rng.random() < 0.5:
                options["max_work"] = int(rng.integers(1, 2_000))
            files = {"proof": folder / "p", "checkpoint": folder / "c"}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", softmap.ProofWarning)
                result = softmap.solve(model, threads=1, **files, **options)
        except softmap.InfeasibleModel:
            return None
        result.save(folder / "r")
        loaded = softmap.load_result(folder / "r")
        copies = [("result", loaded.model)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what the other formats cannot hold
            copies += _copied(rng, model, folder)
        for way, twin in copies:
            if twin.fingerprint() != model.fingerprint():
                if way in FAITHFUL:
                    return f"{way}: another fingerprint"
                continue
            if problem := _differs(rng, model, twin, result, folder):
                return f"{way}: {problem}"
    return None


def _differs(
    rng: np.random.Generator,
    model: softmap.Model,
    twin: softmap.Model,
    result: softmap.Result,
    folder: Path,
) -> str | None:
    """What holds for a model but not for its twin of the same fingerprint."""
    checks = {
        "the result": lambda: softmap.verify(result),
        "the result with its proof": lambda: softmap.verify(result, proof=folder / "p"),
        "the proof": lambda: softmap.verify(twin, proof=folder / "p"),
        "the saved result": lambda: softmap.verify(folder / "r"),
        "the saved result with its proof": lambda: softmap.verify(folder / "r", proof=folder / "p"),
        "the saved result of the twin": lambda: softmap.verify(folder / "r", twin),
        "a run of the twin": lambda: _again(twin, model, folder),
        "a resumed run": lambda: _resumed(twin, folder),
    }
    if result.energy != twin.energy(result.labels.reshape(-1)):
        return "another energy"
    for what in rng.permutation([*checks])[:3].tolist():
        try:
            if not checks[what]().holds:
                return f"{what} is called false"
        except softmap.InfeasibleModel:  # what a run with a limit may miss
            if result.found:
                return f"{what}: a feasible model called infeasible"
    return None


def _again(twin: softmap.Model, model: softmap.Model, folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", softmap.ProofWarning)
        softmap.solve(twin, threads=1, proof=folder / "q")
    return softmap.verify(model, proof=folder / "q")


def _resumed(twin: softmap.Model, folder: Path) -> Any:
    if not (folder / "c").exists():
        return softmap.verify(folder / "r")
    return softmap.verify(softmap.resume(folder / "c", twin, threads=1))


FILE_KINDS: dict[str, Callable[[np.random.Generator], str | None]] = {"round trips": _round_trips}
