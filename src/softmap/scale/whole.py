"""The exact search of a model in parts: every process gets all tables, and all search together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass

import numpy as np

from softmap.errors import NotEnoughMemory, OptionError
from softmap.machine import available_memory
from softmap.model.inputs import within
from softmap.model.potentials.base import Costs, Ints
from softmap.proof.search.exact import OPEN_NODE_BYTES, ExactResult, ExactSearch
from softmap.proof.search.shared import Communicator, SharedSearch
from softmap.relaxation.bounds import lower_tables
from softmap.relaxation.flat import FlatModel
from softmap.scale.parts import Part
from softmap.scale.processes import on_this_machine
from softmap.solving.budget import Interrupts
from softmap.solving.stages import TUNING


@dataclass(frozen=True, eq=False)
class Piece:
    """Some variables and edges of a model, numbered as in the whole model.

    Attributes
    ----------
    variables, counts, labels : int64 array
        The variables, their numbers of labels, and their labels in the best labelling.
    unary : float64 array
        Their costs.
    edges, ends : int64 array
        The edges and their endpoints.
    tables, lam : float64 array
        Costs and λ of these edges, one after the other; λ of the first endpoint comes first.
    """

    variables: Ints
    counts: Ints
    labels: Ints
    unary: Costs
    edges: Ints
    ends: Ints
    tables: Costs
    lam: Costs


@dataclass(frozen=True, eq=False)
class Assembled:
    """A whole model with its labels and λ, as `ExactSearch` takes them."""

    model: FlatModel
    labels: Ints
    lam: Costs


def entries(part: Part) -> int:
    """Number of costs of the own variables and own edges of a part."""
    labels = part.model.num_labels[part.model.edges[part.counted]].astype(np.int64)
    return part.own_states + int(labels.prod(axis=1).sum())


def own_piece(part: Part, lam: Costs, labels: Ints) -> Piece:
    """The own variables and own edges of a part, with λ and labels of all its nodes."""
    model, own, k = part.model, part.own, np.flatnonzero(part.counted)
    counted = np.repeat(np.repeat(part.counted, 2), model.num_labels[model.edges.reshape(-1)])
    return Piece(
        part.nodes[:own], model.num_labels[:own].astype(np.int64), labels[:own],
        model.unary[: part.own_states], part.edges[k], part.nodes[model.edges[k]],
        lower_tables(model, k), lam[counted],
    )  # fmt: skip


def room(comm: Communicator) -> float:
    """The least memory that a process may use, in bytes: machines share theirs equally."""
    available = available_memory()
    own = math.inf if available is None else available / on_this_machine(comm)
    return float(min(comm.allgather(own)))


def takes(costs: int, size: int) -> float:
    """Memory of a search without open nodes and dynamic programming, in bytes."""
    return float(TUNING.entry_bytes * costs + TUNING.edge_bytes * size)


def require_room(comm: Communicator, costs: int, size: int) -> float:
    """Raise an error in all processes if one of them cannot hold the search of the whole model.

    Parameters
    ----------
    comm : communicator of mpi4py
        The processes.
    costs : int
        Number of costs of the model: those of labels and those of pairs of labels.
    size : int
        Number of variables and edges.

    Returns
    -------
    float
        The time to set up the search, in seconds, by an estimate.
    """
    if costs > TUNING.entries:
        raise OptionError(
            f"goal='map': every process searches the whole model, of at most {TUNING.entries:,} "
            f"table entries; this one has {costs:,} (goal='lp' has no such limit)"
        )
    needed, available = takes(costs, size), room(comm)
    if needed > available:
        advice = "in each process; fewer processes per machine, or goal='lp'"
        raise NotEnoughMemory(int(needed), int(available), advice)
    return (TUNING.entry_seconds + TUNING.flat_seconds) * costs + TUNING.edge_seconds * size


def assembled(comm: Communicator, pieces: list[Piece], constant: float) -> Assembled:
    """Put the pieces of all processes together, in the order of the whole model.

    Parameters
    ----------
    comm : communicator of mpi4py
        The processes; each of them gets the whole model.
    pieces : list of Piece
        The pieces of this process.
    constant : float
        The constant of the energy.
    """
    told = [piece for some in comm.allgather([astuple(p) for p in pieces]) for piece in some]
    whole = Piece(*(np.concatenate(arrays) for arrays in zip(*told, strict=True)))
    by_node, by_edge = np.argsort(whole.variables), np.argsort(whole.edges)
    counts, ends = whole.counts[by_node], whole.ends[by_edge]
    pairs = counts[whole.ends]  # labels of both ends of each edge, in the order of the pieces
    model = FlatModel(
        counts,
        _sorted(whole.unary, whole.counts, by_node),
        2 * np.arange(len(ends) + 1, dtype=np.int64),
        ends.reshape(-1),
        _sorted(whole.tables, pairs.prod(axis=1), by_edge),
        constant,
    )
    return Assembled(model, whole.labels[by_node], _sorted(whole.lam, pairs.sum(axis=1), by_edge))


def _sorted(values: Costs, sizes: Ints, order: Ints) -> Costs:
    """Blocks of these sizes in another order."""
    begin, sizes = (np.cumsum(sizes) - sizes)[order], sizes[order]
    return np.ascontiguousarray(values[np.repeat(begin, sizes) + within(sizes)])


def search_together(
    comm: Communicator,
    whole: Assembled,
    known: bool,
    *,
    threads: int,
    time_limit: float,
    enough: Callable[[float, float], bool],
) -> tuple[ExactResult, bool]:
    """Search a model with all processes; return the result, and whether Ctrl-C ended the search.

    Parameters
    ----------
    comm : communicator of mpi4py
        The processes.
    whole : Assembled
        The model, λ and labels, equal in all processes.
    known : bool
        Whether the labels satisfy the hard constraints.
    threads : int
        Number of threads of this process.
    time_limit : float
        Time limit in seconds.
    enough : function
        Called with the lowest energy and the best bound; the search ends if it returns True.
    """
    model, size = whole.model, len(whole.labels) + len(whole.model.scope) // 2
    spare = max(0.0, room(comm) - takes(model.unary.size + model.tables.size, size))
    copy = TUNING.entry_bytes * whole.lam.size + TUNING.copy_bytes * size
    with Interrupts() as interrupts:
        search = ExactSearch(
            model,
            incumbent=whole.labels if known else None,
            lam=whole.lam,
            relative_gap=TUNING.tight,
            dp_limit=min(1e9, spare / 4 / TUNING.dp_bytes),
            open_bytes=min(OPEN_NODE_BYTES, spare / 4),
            threads=1 + int(min(threads - 1, TUNING.copy_share * spare / copy)),
        )
        shared = SharedSearch(comm, search, enough=enough, stop=interrupts.stop)
        found = shared.run(time_limit)
        stopped: list[bool] = comm.allgather(interrupts.noted)
    return found, any(stopped)
