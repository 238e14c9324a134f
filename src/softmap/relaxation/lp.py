"""The exact LP over the local polytope, solved by HiGHS: a reference for bounds."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count, flag, not_negative, positive
from softmap.errors import FormatError, OptionError, shown
from softmap.model import Model, Network, checked_network
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats, Ints, edge_batches, half_states

if TYPE_CHECKING:
    from softmap.io.streams import Source

SUFFIXES = (".lp", ".mps")
_VALUE = re.compile(
    rb"(?<![^\s\"'=,])x(\d{1,10})_(\d{1,10})[ \t\"'=,]+([-+]?\d[\d.]*(?:[eE][-+]?\d+)?)"
)


@dataclass(frozen=True, eq=False)
class Imported:
    """A solution of another solver, read by `read_solution`.

    Attributes
    ----------
    node_marginals : float64 array
        Weight of each label of each node, flat over `model.node_offset`.
    labels : int64 array or None
        The labelling, if every variable has a label of weight (nearly) one.
    energy : float
        Energy of the labels in the model; NaN without labels.
    """

    node_marginals: Floats
    labels: NDArray[np.int64] | None
    energy: float


def write(model: Model, target: Source, *, integer: bool = False) -> None:
    """Write the relaxation over the local polytope as an LP or MPS file, by the suffix.

    Column `xi_k` is the weight of label k of node i, `ye_k_l` that of labels k and l on edge e.
    Forbidden labels and pairs have no columns. The constant of the model is the constant of the
    objective.

    Parameters
    ----------
    model : Model
        The model.
    target : str or Path
        The file: `.lp` or `.mps`, compressed if `.gz`, `.xz` or `.bz2` follows.
    integer : bool
        Whether to write the integer program, whose optimum is the best labelling: columns `xi_k`
        are binary.
    """
    from softmap.io.formats import write as write_model  # imported late
    from softmap.io.streams import bare_suffixes

    suffix = (bare_suffixes(target) or [""])[-1]
    if suffix not in SUFFIXES:
        raise OptionError(f"expected a path that ends in .lp or .mps, not {shown(target)}")
    write_model(model, target, integer=integer)


def format_lp(model: Network, *, integer: bool = False) -> Iterator[bytes]:
    """Yield the text of an LP file; see `write`."""
    program, names, whole = _named(model, integer)
    costs = zip(program.cost.tolist(), names, strict=True)
    terms = [*(f"{cost:+} {name}" for cost, name in costs if cost), f"{model.constant:+}"]
    yield f"min\n obj: {_wrapped(terms)}\nst\n".encode()
    rows = program.matrix.tocsr()
    for k, right in enumerate(program.rhs.tolist()):
        own = slice(rows.indptr[k], rows.indptr[k + 1])
        entries = zip(rows.data[own].tolist(), rows.indices[own].tolist(), strict=True)
        terms = [f"{value:+g} {names[column]}" for value, column in entries]
        yield f" r{k}: {_wrapped(terms)} = {right!r}\n".encode()
    if whole:
        yield f"bin\n {_wrapped(names[:whole])}\n".encode()
    yield b"end\n"


def format_mps(model: Network, *, integer: bool = False) -> Iterator[bytes]:
    """Yield the text of an MPS file; see `write`."""
    program, names, whole = _named(model, integer)
    matrix, rhs = program.matrix, program.rhs.tolist()
    yield b"NAME softmap\nROWS\n N obj\n"
    yield "".join(f" E r{k}\n" for k in range(len(rhs))).encode() + b"COLUMNS\n"
    marked = {0: "INTORG", whole: "INTEND"} if whole else {}
    for k, (name, cost) in enumerate(zip(names, program.cost.tolist(), strict=True)):
        if k in marked:
            yield f" M{k} 'MARKER' '{marked[k]}'\n".encode()
        own = slice(matrix.indptr[k], matrix.indptr[k + 1])
        entries = zip(matrix.indices[own].tolist(), matrix.data[own].tolist(), strict=True)
        lines = [f" {name} obj {cost!r}\n", *(f" {name} r{row} {x!r}\n" for row, x in entries)]
        yield "".join(lines).encode()
    if whole == len(names):
        yield f" M{whole} 'MARKER' 'INTEND'\n".encode()
    yield f"RHS\n RHS obj {-model.constant!r}\n".encode()
    yield "".join(f" RHS r{k} {x!r}\n" for k, x in enumerate(rhs) if x).encode()
    if whole:
        yield "".join(["BOUNDS\n", *(f" UP BND {name} 1\n" for name in names[:whole])]).encode()
    yield b"ENDATA\n"


def _named(model: Network, integer: bool) -> tuple[LinearProgram, list[str], int]:
    """Return the program, the names of its columns, and how many of the first are integer."""
    whole, tight = flag("integer", integer), tighten(model)
    program = program_of(tight)
    return program, _names(tight, program), len(program.states) if whole else 0


def _names(model: Network, program: LinearProgram) -> list[str]:
    node = np.searchsorted(model.node_offset, program.states, side="right") - 1
    label = program.states - model.node_offset[node]
    names = [f"x{i}_{k}" for i, k in zip(node.tolist(), label.tolist(), strict=True)]
    edge = np.searchsorted(model.edge_offset, program.pairs, side="right") - 1
    entry = program.pairs - model.edge_offset[edge]
    cols = model.num_labels[model.edges[edge, 1]] if len(edge) else edge
    pairs = zip(edge.tolist(), (entry // cols).tolist(), (entry % cols).tolist(), strict=True)
    return names + [f"y{e}_{k}_{j}" for e, k, j in pairs]


def _wrapped(terms: list[str]) -> str:
    """Join terms; a line of an LP file has a largest length."""
    return "\n ".join(" ".join(terms[k : k + 8]) for k in range(0, len(terms), 8))


def read_solution(model: Model | Network, source: Source) -> Imported:
    """Read the solution that another solver found for a file written by `write`.

    Parameters
    ----------
    model : Model or Network
        The model that was written.
    source : path or file
        A solution file of HiGHS (raw style), Gurobi or SCIP, or any text in which column names
        `xi_k` are followed by their values. Columns that do not occur have the value 0.

    Returns
    -------
    Imported
    """
    from softmap.io.streams import load  # imported late: few runs read solutions

    model = checked_network(model)
    content = load(source)
    begin = max(content.data.rfind(b"# Primal solution values"), 0)
    end = content.data.find(b"# Dual solution values", begin)
    text = content.data[begin : end if end >= 0 else len(content.data)]
    found = _VALUE.findall(text)
    if not found:
        expected = "columns such as x0_1 and their values"
        raise FormatError(f"expected {expected}, found none", content.name, expected=expected)
    table = np.array(found, dtype="S40")
    node, label = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
    try:
        value = table[:, 2].astype(np.float64)
    except ValueError as error:
        raise FormatError(f"expected values of columns: {error}", content.name) from error
    bad = (node >= model.n) | (label >= model.num_labels[np.minimum(node, model.n - 1)])
    if bad.any():
        k = int(np.argmax(bad))
        found_name = f"x{node[k]}_{label[k]}"
        raise FormatError(f"expected columns of this model, found {found_name}", content.name)
    marginals = np.zeros(int(model.node_offset[-1]))
    marginals[model.node_offset[node] + label] = value
    sums = np.add.reduceat(marginals, model.node_offset[:-1])
    if (wrong := ~(np.abs(sums - 1.0) <= 1e-3)).any():
        i = int(np.argmax(wrong))
        raise FormatError(
            f"the values of node {i} sum to {sums[i]:g}; expected 1 (a solution of this model, "
            "each name before its value)",
            content.name,
            expected="values that sum to 1",
        )
    labels = _labels(model, marginals)
    energy = float("nan") if labels is None else float(model.energy(labels))
    return Imported(marginals, labels, energy)


def _labels(model: Network, marginals: Floats) -> NDArray[np.int64] | None:
    """Return the labels of weight one, or None if a variable has no such label."""
    count = len(model.visible_counts)
    best = np.zeros(count, dtype=np.int64)
    for i in range(count):
        own = marginals[model.node_slice(i)]
        best[i] = int(np.argmax(own))
        if not own[best[i]] > 1.0 - 1e-4:
            return None
    return best


@dataclass(frozen=True)
class LinearProgram:
    """The LP `min cost·x, A x = rhs, x ≥ 0` over allowed states and pairs.

    Rows are first the normalisation of each node, then `S_{e,i}(x) - μ_i(x) = 0` for each allowed
    half-edge state.
    """

    cost: Floats
    matrix: Any
    rhs: Floats
    states: Ints  # the node state of each of the first columns
    pairs: Ints  # the edge entry of each further column
    halves: Ints  # the half-edge state of each row after the n normalisations


def program_of(model: Network) -> LinearProgram:
    """Return the sparse LP of a model; forbidden states and pairs have no columns and rows."""
    from scipy.sparse import coo_array

    allowed = np.isfinite(model.unary)
    states = np.flatnonzero(allowed)
    column = np.cumsum(allowed) - 1
    owner = np.repeat(np.arange(model.n), model.num_labels)
    below = half_states(model)
    halves = np.flatnonzero(allowed[below])
    row = model.n + np.cumsum(allowed[below]) - 1
    ones, minus = np.ones(len(states)), -np.ones(len(halves))
    rows = [owner[states], row[halves]]
    cols = [np.arange(len(states)), column[below[halves]]]
    data, cost, pairs = [ones, minus], [model.unary[states]], []
    width = len(states)
    for batch in edge_batches(model):
        k, x, y = np.nonzero(np.isfinite(batch.cost))
        place = width + np.arange(len(k))
        width += len(k)
        rows += [row[batch.rows[k, x]], row[batch.cols[k, y]]]
        cols += [place, place]
        data += [np.ones(len(k)), np.ones(len(k))]
        cost.append(batch.cost[k, x, y])
        pairs.append(batch.entries[k, x, y])
    height = model.n + len(halves)
    entries = (np.concatenate(data), (np.concatenate(rows), np.concatenate(cols)))
    matrix = coo_array(entries, shape=(height, width)).tocsc()
    rhs = np.zeros(height)
    rhs[: model.n] = 1.0
    joined = np.concatenate(pairs) if pairs else np.zeros(0, np.int64)
    return LinearProgram(np.concatenate(cost), matrix, rhs, states, joined, halves)


def highs_model(program: LinearProgram) -> Any:
    """Return the program as an `HighsLp` object."""
    import highspy

    lp = highspy.HighsLp()
    height, width = program.matrix.shape
    lp.num_col_, lp.num_row_ = width, height
    lp.col_cost_ = program.cost
    lp.col_lower_, lp.col_upper_ = np.zeros(width), np.full(width, highspy.kHighsInf)
    lp.row_lower_ = lp.row_upper_ = program.rhs
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = program.matrix.indptr
    lp.a_matrix_.index_ = program.matrix.indices
    lp.a_matrix_.value_ = program.matrix.data
    return lp


# Binary exponents of the largest cost with which HiGHS gets the costs as they are.
USUAL = range(-10, 21)
# The algorithms of HiGHS; "auto" leaves the choice to it.
METHODS = ("auto", "simplex", "ipm", "ipx", "pdlp", "hipdlp")


@dataclass(frozen=True, eq=False)
class LPSolution:
    """The solution of the LP relaxation by HiGHS.

    Attributes
    ----------
    value : float
        Optimal value, `model.constant` included; NaN if there is no solution.
    node_marginals : float64 array
        Flat over `model.node_offset`.
    edge_marginals : float64 array
        Flat over `model.edge_offset`.
    lam : float64 array
        Dual multipliers, flat over half-edges, with the sign of `Result.lam`:
        `dual_bound(model, lam)` equals `value` up to tolerances.
    seconds : float
        Time in HiGHS, in seconds.
    setup_seconds : float
        Time for building the LP, in seconds.
    status : str
        Status text of HiGHS; "Optimal" on success.
    """

    value: float
    node_marginals: Floats
    edge_marginals: Floats
    lam: Floats
    seconds: float
    setup_seconds: float
    status: str
    iterations: int


def solve(
    model: Model | Network,
    method: str = "auto",
    *,
    tolerance: float | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
) -> LPSolution:
    """Solve the LP relaxation over the local polytope with HiGHS.

    Parameters
    ----------
    model : Model or Network
    method : str, default "auto"
        One of `METHODS`. "auto" lets HiGHS choose. "simplex" and the interior-point methods ("ipm",
        "ipx") end at an optimal vertex. "pdlp" and "hipdlp" are first-order methods.
    tolerance : float, optional
        Feasibility and optimality tolerance; HiGHS's value by default.
    time_limit : float, optional
        Time limit of HiGHS in seconds; none by default.
    threads : int, optional
        Number of threads; HiGHS's value by default.

    Returns
    -------
    LPSolution

    Examples
    --------
    >>> import softmap
    >>> model = softmap.Model([[0, 1], [1, 0]], [[0, 1]], softmap.Potts(0.4))
    >>> round(softmap.lp.solve(model).value, 6)
    0.4
    """
    if not isinstance(method, str) or method not in METHODS:
        raise OptionError(f"method must be one of {', '.join(METHODS)}, not {shown(method)}")
    began = time.perf_counter()
    tight = tighten(model)
    program, exponent = _in_range(program_of(tight))
    highs = _highs("choose" if method == "auto" else method, tolerance, time_limit, threads)
    highs.passModel(highs_model(program))
    ready = time.perf_counter()
    highs.run()
    seconds = time.perf_counter() - ready
    return _solution(tight, program, highs, seconds, ready - began, exponent)


def _in_range(program: LinearProgram) -> tuple[LinearProgram, int]:
    """Return a program whose costs are neither tiny nor huge, and the exponent taken out of them.

    The tolerances of HiGHS are absolute: beside them, costs of 1e-30 are zeros.
    """
    exponent = math.frexp(float(np.abs(program.cost).max(initial=0.0)))[1]
    if exponent in USUAL:
        return program, 0
    return replace(program, cost=np.ldexp(program.cost, -exponent)), exponent


def _highs(
    solver: str, tolerance: float | None, time_limit: float | None, threads: int | None
) -> Any:
    options: dict[str, Any] = {"output_flag": False, "solver": solver}
    if tolerance is not None:
        tolerance = positive("tolerance", tolerance)
        for name in ("primal_feasibility", "dual_feasibility", "ipm_optimality", "pdlp_optimality"):
            options[f"{name}_tolerance"] = tolerance
    if time_limit is not None:
        options["time_limit"] = not_negative("time_limit", time_limit)
    if threads is not None:
        options["threads"] = count("threads", threads, 1, 4096)
    import highspy

    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in options.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise OptionError(f"HiGHS does not take {value!r} for its option {name!r}")
    return highs


def _solution(
    model: Network, program: LinearProgram, highs: Any, seconds: float, setup: float, exponent: int
) -> LPSolution:
    found, info = highs.getSolution(), highs.getInfo()
    nodes = np.zeros(int(model.node_offset[-1]))
    pairs = np.zeros(model.edge_size)
    lam = np.zeros(model.half_size)
    value = math.nan
    if found.value_valid:
        x = np.array(found.col_value)
        nodes[program.states] = x[: len(program.states)]
        pairs[program.pairs] = x[len(program.states) :]
        value = math.ldexp(float(info.objective_function_value), exponent) + model.constant
    if found.dual_valid:
        # HiGHS's reduced costs are C - Aᵀπ, ours are C_e + λ: hence λ = -π
        lam[program.halves] = np.ldexp(-np.array(found.row_dual)[model.n :], exponent)
    return LPSolution(
        value=value,
        node_marginals=nodes,
        edge_marginals=pairs,
        lam=lam,
        seconds=seconds,
        setup_seconds=setup,
        status=highs.modelStatusToString(highs.getModelStatus()),
        iterations=_iterations(info),
    )


def _iterations(info: Any) -> int:
    counts = (
        info.simplex_iteration_count,
        info.ipm_iteration_count,
        info.crossover_iteration_count,
        info.pdlp_iteration_count,
    )
    return sum(max(0, int(count)) for count in counts)
