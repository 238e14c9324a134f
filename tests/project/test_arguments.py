"""Absurd values for every parameter of every public callable: only our own exceptions come out.

A value may be accepted (True is a number, 2**40 is a seed); what may not happen is an exception of
another family, or one that is not raised at all but ends the process.
"""

import datetime
import decimal
import inspect
import io
from importlib import util

import numpy as np
import pytest

import softmap
from softmap import generators, interop, lp
from softmap import io as files
from support.samples import content

pytestmark = pytest.mark.filterwarnings("ignore")


class Broken:
    """Fails at whatever it is asked for."""

    def __repr__(self):
        raise RuntimeError("no repr")

    def __float__(self):
        raise RuntimeError("no float")

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")


ABSURD = {
    "None": lambda: None,
    "text": lambda: "2",
    "empty text": lambda: "",
    "bytes": lambda: b"2",
    "NUL": lambda: "a\0b",
    "NaN": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "10**400": lambda: 10**400,
    "10**5000": lambda: 10**5000,
    "2**40": lambda: 2**40,
    "2**63": lambda: 2**63,
    "-1": lambda: -1,
    "1.5": lambda: 1.5,
    "complex": lambda: 1 + 2j,
    "bool": lambda: True,
    "decimal": lambda: decimal.Decimal("1e400"),
    "date": lambda: datetime.datetime(2020, 1, 1),
    "object": object,
    "broken": Broken,
    "class": lambda: int,
    "function": lambda: len,
    "module": lambda: np,
    "set": lambda: {1, 2},
    "dict": lambda: {"a": 1},
    "generator": lambda: (x for x in [1, 2]),
    "ragged": lambda: [[1], [1, [2, 3]]],
    "empty list": list,
    "list of None": lambda: [None],
    "list of text": lambda: ["a", "b"],
    "NaN list": lambda: [[float("nan")]],
    "huge list": lambda: [[10**400, 1]],
    "object array": lambda: np.array([object(), None], dtype=object),
    "complex array": lambda: np.ones((2, 2), complex),
    "dates": lambda: np.array(["2020-01-01"], dtype="datetime64[D]"),
    "text array": lambda: np.array(["a"]),
    "uint64": lambda: np.array([2**64 - 1], np.uint64),
    "record": lambda: np.zeros(2, [("a", "f8")]),
    "0-d": lambda: np.array(3),
    "4-d": lambda: np.zeros((1, 1, 1, 1)),
    "empty": lambda: np.zeros((0, 0)),
    "model": lambda: TREE,
    "potential": lambda: softmap.Potts([1.0]),
}

TREE = generators.random_tree(4, 2, seed=1)
GRID = generators.potts_grid(2, 2, 2)
FACTORS = softmap.Model.from_factors([2, 2, 2], [((0, 1, 2), np.arange(8.0).reshape(2, 2, 2))])
LAM = np.zeros(int(TREE.network.half_offset[-1]))
DUAL = softmap.SmoothedDual(TREE, 1.0)
LABELS = np.zeros(4, int)
TABLES = np.zeros((1, 2, 2))
EDGE = [[0, 1]]
AUX = FACTORS.network.auxiliaries
SMALL = np.arange(12.0).reshape(3, 4)
MARKS = np.full((3, 4), -1)
MARKS[0, 0] = 1


def matching():
    return b"p 1 1 1 0\na 0 0 0 -1\n"


DEM = b"error(0.1) D0 L0\nerror(0.2) D0 D1\n"
NETWORK = softmap.Model([[0.0 - np.log(0.25), 0.0 - np.log(0.75)]], [], [])
TWO = softmap.Model([[0.0, 1.0]] * 2, EDGE, softmap.Potts([2.0]))
CUT = softmap.Model(np.zeros((2, 2)), EDGE, softmap.Potts([-2.0]))
OWN = {key: {"model": NETWORK} for key in ("bif", "net", "xmlbif", "xdsl")}
OWN |= {key: {"model": TWO} for key in ("qubo", "coo")}
OWN |= {key: {"model": TWO, "scale": 1.0} for key in ("wcnf", "opb", "wcsp")}
OWN |= {key: {"model": TREE} for key in ("cfn", "opengm")}
OWN |= {
    "uai": {"model": TREE, "values": "cost"},
    "npz": {"model": TREE, "compress": False},
    "qpbo": {"model": TWO, "drop_constant": True},
    "maxcut": {"model": CUT, "drop_constant": True},
}
WRITTEN = {form: {**own, "target": io.BytesIO(), "format": form} for form, own in OWN.items()}


SOLVE = {
    "model": TREE, "method": "anneal", "lp_gap": 1e-4, "gap": 1e-6, "time_limit": 5.0,
    "memory_limit": 1 << 30, "max_work": 1000, "threads": 1, "dtype": "float64",
    "seed": 0, "warm_start": LAM, "checkpoint": None, "on_snapshot": None, "backend": "cpu",
    "verbose": False, "progress": False,
}  # fmt: skip
PAPER = SOLVE | {"updates": 50, "eta": 1.0}

CALLS = {
    "Model": (
        softmap.Model,
        {"unary": np.zeros((2, 2)), "edges": EDGE, "pairwise": TABLES, "constant": 0.0},
    ),
    "Model, groups": (
        softmap.Model,
        {"unary": [[0, 1], [0]], "edges": None, "pairwise": [(EDGE, softmap.Potts([1]))]},
    ),
    "Model.from_factors": (
        softmap.Model.from_factors,
        {"num_labels": [2, 2], "factors": [((0, 1), TABLES[0])], "groups": [], "constant": 0.0},
    ),
    "Model, nothing": (softmap.Model, {"unary": np.zeros((2, 2))}),
    "Model.grid": (
        softmap.Model.grid,
        {"unary": np.zeros((2, 3, 2)), "pairwise": softmap.Potts(1.0), "connectivity": 4},
    ),
    "Model.with_names": (
        TREE.with_names,
        {"names": list("abcd"), "states": [["x", "y"]] * 4},
    ),
    "Model.from_factors, names": (
        softmap.Model.from_factors,
        {"num_labels": {"a": 2, "b": ["x", "y"]}, "factors": [(("a", "b"), TABLES[0])]},
    ),
    "Model.from_qubo": (softmap.Model.from_qubo, {"qubo": np.eye(2), "constant": 0.0}),
    "Model.from_ising": (
        softmap.Model.from_ising,
        {"h": np.zeros(2), "J": np.eye(2), "constant": 0.0},
    ),
    "contrast_weights": (
        softmap.contrast_weights,
        {"image": np.zeros((4, 4)), "connectivity": 4},
    ),
    "segment": (
        softmap.segment,
        {"image": SMALL, "num_labels": 2, "smoothness": 1.0, "markers": MARKS, "connectivity": 4},
    ),
    "denoise": (
        softmap.denoise,
        {"image": SMALL, "levels": 4, "smoothness": 1.0, "mask": MARKS > 0},
    ),
    "stereo": (
        softmap.stereo,
        {"left": SMALL, "right": SMALL, "disparities": 3, "smoothness": 1.0},
    ),
    "Model.energy": (TREE.energy, {"labels": LABELS}),
    "Model.complete": (FACTORS.network.complete, {"labels": [0, 0, 0]}),
    "Model.replace": (
        TREE.replace,
        {"unary": TREE.unary, "potentials": TREE.potentials, "constant": 1.0},
    ),
    "Model.condition": (TREE.condition, {"evidence": {0: 1}}),
    "Model.with_shape": (TREE.with_shape, {"shape": (2, 2)}),
    "Network.with_auxiliaries": (FACTORS.network.with_auxiliaries, {"auxiliaries": AUX}),
    "Model.table": (TREE.network.table, {"e": 0}),
    "Model.unary_of": (TREE.network.unary_of, {"i": 0}),
    "Model.node_slice": (TREE.network.node_slice, {"i": 0}),
    "Model.half_slice": (TREE.network.half_slice, {"h": 0}),
    "Potts": (softmap.Potts, {"weights": [1.0]}),
    "TruncatedLinear": (softmap.TruncatedLinear, {"weights": [1.0], "truncation": 2.0}),
    "TruncatedQuadratic": (softmap.TruncatedQuadratic, {"weights": [1.0], "truncation": [2.0]}),
    "Tables": (softmap.Tables, {"tables": TABLES}),
    "SharedTables": (softmap.SharedTables, {"tables": TABLES, "index": [0], "weights": [1.0]}),
    "Projection": (softmap.Projection, {"maps": [[0, 1]], "num_labels": [2], "index": [0]}),
    "solve": (softmap.solve, SOLVE),
    "paper.solve": (softmap.paper.solve, PAPER),
    "iterate": (lambda **given: list(softmap.iterate(**given)), SOLVE),
    "solve_batch": (
        softmap.solve_batch,
        {"models": [TREE], "threads": 1, "errors": "raise", "time_limit": [5.0], "gap": 1e-6},
    ),
    "solve_many": (  # without models, nothing is started
        lambda models_or_paths, **given: softmap.solve_many(models_or_paths, **given),
        {
            "models_or_paths": [],
            "client": None,
            "checkpoints": ".",
            "workers": 1,
            "threads": 1,
            "seed": 0,
        },
    ),
    "solve_mbest": (
        softmap.solve_mbest,
        {
            "model": TREE,
            "m": 2,
            "diversity": 1,
            "time_limit": 5.0,
            "gap": 1e-6,
            "threads": 1,
            "seed": 0,
        },
    ),
    "certificate": (
        softmap.certificate,
        {
            "model": TREE,
            "lam": LAM,
            "eta": 1.0,
            "node_marginals": np.full(8, 0.5),
            "exact": False,
        },
    ),
    "arc_consistency": (softmap.arc_consistency, {"model": TREE}),
    "SmoothedDual": (softmap.SmoothedDual, {"model": TREE, "eta": 1.0}),
    "load_result": (softmap.load_result, {"path": "missing.npz", "model": TREE}),
    "resume": (softmap.resume, {"path": "missing.npz", "model": TREE}),
    "lp.solve": (
        lp.solve,
        {
            "model": TREE,
            "method": "auto",
            "tolerance": 1e-7,
            "time_limit": 5.0,
            "threads": 1,
        },
    ),
    "read": (
        softmap.read,
        {"source": "missing.uai", "values": "log", "evidence": {0: 0}, "format": "uai"},
    ),
    "read, bytes": (
        lambda source, **given: softmap.read(io.BytesIO(content(TREE, "uai")), **given),
        {"source": None, "values": "log", "evidence": {0: 0}, "format": "uai"},
    ),
    "write": (softmap.write, {"model": TREE, "target": io.BytesIO(), "format": "uai"}),
    **{f"write, {form}": (softmap.write, given) for form, given in WRITTEN.items()},
    "write_labels": (files.write_labels, {"labels": LABELS, "target": io.BytesIO()}),
    "write_labellings": (
        files.write_labellings,
        {"labellings": [LABELS], "target": io.BytesIO(), "model": TREE},
    ),
    "format_of": (files.format_of, {"name": "a.uai", "data": b"MARKOV"}),
    "parse": (files.parse, {"data": content(TREE, "uai"), "format": "uai", "values": "log"}),
    "parse, dd": (files.parse, {"data": matching(), "format": "dd", "block": 0}),
    "parse, qap": (files.parse, {"data": b"1 2 3", "format": "qap", "one_to_one": True}),
    "parse, dem": (files.parse, {"data": DEM, "format": "dem", "seen": [1, 0]}),
    "read, dd": (files.read, {"source": "missing", "format": "dd", "block": 0}),
    "read_labels": (files.read_labels, {"source": "missing"}),
    "read_labellings": (files.read_labellings, {"source": "missing", "model": TREE}),
    "read_evidence": (files.read_evidence, {"source": "missing"}),
    "read_query": (files.read_query, {"source": "missing"}),
    "read_checks": (files.read_checks, {"source": "missing"}),
    "grid_edges": (generators.grid_edges, {"rows": 2, "cols": 2}),
    "erdos_renyi": (generators.erdos_renyi, {"n": 3, "d": 2, "c": 1.1, "seed": 0}),
    "potts_grid": (
        generators.potts_grid,
        {"rows": 2, "cols": 2, "d": 2, "weight": 0.3, "seed": 0},
    ),
    "random_grid": (generators.random_grid, {"rows": 2, "cols": 2, "d": 2, "seed": 0}),
    "stereo_grid": (
        generators.stereo_grid,
        {"rows": 2, "cols": 2, "d": 2, "weight": 0.3, "truncation": 1.0, "seed": 0},
    ),
    "random_tree": (generators.random_tree, {"n": 3, "d": 2, "seed": 0}),
    "planted": (
        generators.planted,
        {"n": 3, "d": 2, "degree": 1.0, "margin": 0.5, "seed": 0},
    ),
    "ragged_constrained": (
        generators.ragged_constrained,
        {"n": 3, "max_labels": 2, "degree": 1.0, "forbidden": 0.2, "seed": 0},
    ),
}
RESULT = softmap.solve(TREE, threads=1)
CALLS["verify"] = softmap.verify, {"result": RESULT, "model": TREE}
CALLS |= {
    "soft_map": (
        softmap.soft_map,
        {
            "unary": np.zeros((2, 2)),
            "pairwise": TABLES,
            "edges": EDGE,
            "eta": 1.0,
            "tolerance": 1e-9,
        },
    ),
    "exact_marginals": (softmap.exact_marginals, {"model": TREE, "eta": 1.0, "entries": 99}),
    "log_partition_bounds": (
        softmap.log_partition_bounds,
        {
            "model": GRID,
            "eta": 1.0,
            "labels": [0, 0, 0, 0],
            "rounds": 2,
            "entries": 1,
            "table": 4,
            "time_limit": 5.0,
        },
    ),
    "marginal_map": (
        softmap.marginal_map,
        {"model": GRID, "sum_over": [0], "gap": 0.1, "time_limit": 5.0, "table": 4, "entries": 9},
    ),
    "Result.marginals": (RESULT.marginals, {"eta": 1.0}),
    "Result.save": (RESULT.save, {"path": "a.npz", "with_model": True}),
    "Result.report": (RESULT.report, {"path": "a.html", "title": "a", "picture": SMALL}),
    "Result.plot": (RESULT.plot, {"path": "a.png"}),
    "Result[]": (lambda variable: RESULT[variable], {"variable": 0}),
    "Trace.to_csv": (RESULT.trace.to_csv, {"path": "a.csv"}),
    "interop.to_arrays": (interop.to_arrays, {"model": TREE}),
    "interop.to_sparse": (interop.to_sparse, {"model": GRID}),
    "interop.from_sparse": (
        interop.from_sparse,
        {"adjacency": interop.to_sparse(GRID), "unary": np.zeros((4, 2))},
    ),
}
DETECTORS = files.read_detectors(io.BytesIO(DEM))
CALLS |= {
    "read_sln": (files.read_sln, {"source": "missing"}),
    "read_detectors": (files.read_detectors, {"source": "missing"}),
    "Detectors": (DETECTORS.model, {"seen": [1, 0]}),
    "Detectors.syndrome": (DETECTORS.syndrome, {"labels": [1, 0]}),
    "Detectors.flips": (DETECTORS.flips, {"labels": [1, 0]}),
    "lp.write": (lp.write, {"model": TREE, "target": "a.lp", "integer": True}),
    "lp.read_solution": (lp.read_solution, {"model": TREE, "source": "missing"}),
    "AtMostOne": (softmap.AtMostOne, {"variables": [0, 1], "label": 1, "penalty": 2.0}),
    "ExactlyOne": (softmap.ExactlyOne, {"variables": [0, 1], "label": 1, "penalty": 2.0}),
    "Or": (softmap.Or, {"variables": [0, 1], "label": [0, 1], "penalty": 2.0}),
    "AllDifferent": (softmap.AllDifferent, {"variables": [0, 1]}),
    "Cardinality": (softmap.Cardinality, {"variables": [0, 1], "label": 1, "costs": [0, 1, 2]}),
    "Parity": (softmap.Parity, {"variables": [0, 1], "odd": True, "penalty": 2.0}),
    "ParityCode": (softmap.codes.ParityCode, {"checks": [[0, 1]], "num_bits": 3}),
    "ParityCode.decode": (
        softmap.codes.ParityCode([[0, 1]]).decode,
        {"ratios": [1.0, 2.0], "syndrome": [1], "rounds": 1, "steps": 1, "sweeps": 1, "threads": 1},
    ),
    "ParityCode.bound": (
        softmap.codes.ParityCode([[0, 1]]).bound,
        {"ratios": [1.0, 2.0], "lam": [0.0, 1.0], "syndrome": [1]},
    ),
    "Max": (softmap.Max, {"variables": [0, 1], "costs": [0.0, 1.0]}),
    "Linear": (
        softmap.Linear,
        {"variables": [0, 1], "weights": [1, 2], "low": 1, "high": 2, "penalty": 3.0},
    ),
}
if util.find_spec("networkx"):
    CALLS["interop.to_networkx"] = (
        interop.to_networkx,
        {"model": TREE, "costs": "costs", "weight": "weight"},
    )
    CALLS["interop.from_networkx"] = (
        interop.from_networkx,
        {"graph": interop.to_networkx(TREE), "costs": "costs", "weight": "weight"},
    )
if util.find_spec("pandas"):
    CALLS["interop.trace_frame"] = interop.trace_frame, {"run": RESULT}
if util.find_spec("pgmpy"):
    CALLS["interop.to_pgmpy"] = interop.to_pgmpy, {"model": TREE, "names": list("abcd")}
    CALLS["interop.from_pgmpy"] = interop.from_pgmpy, lambda: {"network": interop.to_pgmpy(TREE)}

for family in (
    softmap.Potts([1.0]),
    softmap.TruncatedLinear([1.0]),
    softmap.Tables(TABLES),
    softmap.SharedTables(TABLES, [0]),
    softmap.Projection([[0, 1]], [2]),
):
    CALLS[f"{type(family).__name__}.take"] = family.take, {"index": [0]}
    CALLS[f"{type(family).__name__}.scaled"] = family.scaled, {"factor": 2.0}
for verb in ("value", "node_marginals", "edge_marginals", "S", "slack", "gradient"):
    CALLS[f"SmoothedDual.{verb}"] = getattr(DUAL, verb), {"lam": LAM}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Files that absurd names lead to land in a folder of their own; standard input is empty."""
    monkeypatch.chdir(tmp_path)


def called(name):
    """The callable and good arguments; those that need a large package are made here."""
    call, good = CALLS[name]
    return call, good() if callable(good) else good


@pytest.mark.parametrize("name", CALLS)
def test_absurd_values_raise_our_exceptions_only(name):
    call, good = called(name)
    wrong = []
    for parameter in good:
        for kind, make in ABSURD.items():
            if parameter == "on_snapshot" and kind in ("class", "function"):
                continue  # callables: what they raise is theirs
            try:
                call(**{**good, parameter: make()})
            except softmap.SoftmapError:
                pass
            except Exception as error:
                wrong.append(f"{name}({parameter}={kind}): {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", CALLS)
def test_the_good_values_are_good(name):
    call, good = called(name)
    if "missing" in str(good):
        with pytest.raises((softmap.FormatError, softmap.CheckpointError)):
            call(**good)
    else:
        call(**good)


@pytest.mark.parametrize("call", [softmap.solve, softmap.iterate, softmap.Model])
def test_unknown_keywords_name_the_call(call):
    with pytest.raises(TypeError, match=call.__name__.replace("Model", "Model.__init__")):
        call(TREE, nonsense=1)


def test_every_public_callable_is_here():
    """Whoever adds one adds it to the list."""
    known = {name.partition(",")[0] for name in CALLS}
    public = {n for n in softmap.__all__ if inspect.isroutine(getattr(softmap, n))}
    public |= {n for n in generators.__all__ if callable(getattr(generators, n))}
    public |= {n for n in files.__all__ if callable(getattr(files, n))}
    public |= {
        n
        for n in softmap.__all__
        if inspect.isclass(cls := getattr(softmap, n))
        and cls.__module__.startswith("softmap.model")
    }
    assert public <= known
