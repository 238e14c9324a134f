"""solve() and resume() over the processes of an MPI communicator."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count, not_negative, positive, time_limit_of
from softmap.errors import CheckpointWarning, NotEnoughMemory, OptionError, WriteError, shown
from softmap.machine import usable_cores
from softmap.model import Model
from softmap.model.partition import partition as partitioned
from softmap.run.memory import MemoryEstimate, memory_needed
from softmap.run.options import MOST_THREADS
from softmap.run.trace import Row, Status, Trace
from softmap.run.values import Tolerances
from softmap.scale.distributed import storage
from softmap.scale.distributed.run import PartsLimits, PartsRun
from softmap.scale.distributed.team import Team
from softmap.scale.parts import ModelPart, Whole, cut_model
from softmap.scale.processes import on_this_machine
from softmap.tuning import TUNING

OnCheck = Callable[[Row], Any] | None


@dataclass(frozen=True)
class PartsEach:
    """Default numbers of parts per process.

    Attributes
    ----------
    blocks : int
        For a grid, whose blocks have two colours. Passes over large parts are faster.
    others : int
        For other graphs: enough parts for each process to own some of every colour.
    """

    blocks: int = 2
    others: int = 8


@dataclass(frozen=True, eq=False)
class DistributedResult:
    """The result of a distributed run; all numbers refer to the whole model, in every process.

    Attributes
    ----------
    status : Status
        Why the run stopped.
    bound : float
        Certified lower bound on the LP optimum, and so on the MAP optimum.
    primal : float
        The cost of a point of the local polytope.
    energy : float
        The cost of the labelling.
    relative_lp_gap, relative_gap : float
        Defined as in `softmap.Result`.
    passes : int
        Number of passes.
    seconds : float
        Time of the run, in seconds.
    eta : float
        The last inverse temperature η.
    trace : Trace
        One row per check.
    variables, edges, parts, processes : int
        Numbers of variables, edges, parts and processes.
    labels : dict from int to (int64 array, int64 array)
        Variables (numbered as in the whole model) and their labels, for each part of this process.
    lam : dict from int to (int64 array, float64 array)
        Half-edges of own variables (numbered as in the whole model) and their λ, for each part of
        this process. λ of all processes together proves `bound`.
    halo_bytes : int
        Bytes that this process sends to others in one pass.
    """

    status: Status
    bound: float
    primal: float
    energy: float
    passes: int
    seconds: float
    eta: float
    trace: Trace
    variables: int
    edges: int
    parts: int
    processes: int
    relative_lp_gap: float
    relative_gap: float
    labels: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]
    lam: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]]
    halo_bytes: int

    @property
    def found(self) -> bool:
        """Whether the labels satisfy all hard constraints."""
        return bool(np.isfinite(self.energy))


def solve(  # noqa: PLR0913 - one keyword per thing a user may want to say
    model: Model | str | os.PathLike[str],
    comm: Any = None,
    *,
    parts: int | None = None,
    partition: str = "auto",
    lp_gap: float = 1e-4,
    gap: float = 1e-6,
    time_limit: float | None = None,
    max_passes: int | None = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    eta: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    on_check: OnCheck = None,
) -> DistributedResult:
    """Solve the LP relaxation of one model, and find labels, on all processes of a communicator.

    This is a collective call: all processes call it with the same arguments.

    Parameters
    ----------
    model : Model, str or Path
        A model, or the folder of a model in parts (`softmap convert --parts`). From a folder, each
        process reads its own parts only.
    comm : communicator of mpi4py, optional
        For example `MPI.COMM_WORLD`. By default, only this process takes part.
    parts : int, optional
        Number of parts into which the variables are partitioned. By default two per process for
        the blocks of a grid, eight per process for other graphs, and one if there is only one
        process. Runs with the same number of parts give the same result on any number of
        processes.
    partition : "auto", "grid", "metis" or "own"
        How the variables are partitioned; see `softmap.model.partition`.
    lp_gap, gap : float
        Relative tolerances, as in `softmap.solve`.
    time_limit : float, optional
        Stop after this many seconds.
    max_passes : int, optional
        Stop after this many passes.
    threads : int, optional
        Number of threads of each process.
    memory_limit : int, optional
        Bytes that each process may take, as in `softmap.solve`. A run whose estimate is larger
        raises `NotEnoughMemory` in all processes.
    eta : float, optional
        The first inverse temperature, as in `softmap.solve`.
    checkpoint : str or Path, optional
        Folder of the checkpoint, written at intervals and at the end; see `resume`.
    checkpoint_every : float
        Seconds between two checkpoints.
    on_check : function, optional
        Called with each row of the trace, in the first process only.

    Returns
    -------
    DistributedResult

    Examples
    --------
    >>> import softmap
    >>> from softmap import distributed
    >>> grid = softmap.generators.potts_grid(12, 12, 3, seed=1)
    >>> result = distributed.solve(grid, parts=4)
    >>> result.bound <= softmap.solve(grid).energy
    True
    """
    limits = _limits(lp_gap, gap, time_limit, max_passes)
    first_eta = None if eta is None else positive("eta", eta)
    team, whole, pieces = _begun(model, comm, parts, partition)
    _require_memory(team, pieces, memory_limit)
    run = PartsRun(team, whole, pieces, first_eta, _threads(team, threads))
    every = not_negative("checkpoint_every", checkpoint_every)
    return _loop(run, limits, _folder(checkpoint), every, on_check)


def resume(  # noqa: PLR0913 - the keywords of `solve`
    folder: str | os.PathLike[str],
    model: Model | str | os.PathLike[str],
    comm: Any = None,
    *,
    partition: str = "auto",
    lp_gap: float = 1e-4,
    gap: float = 1e-6,
    time_limit: float | None = None,
    max_passes: int | None = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    on_check: OnCheck = None,
) -> DistributedResult:
    """Resume a run from a checkpoint, on any number of processes, to the same result.

    Parameters
    ----------
    folder : path
        The folder of the checkpoint.
    model : Model or path
        The model of the stored run, or the folder of its parts.
    comm : mpi4py communicator, optional
        See `solve`.
    partition : str, default "auto"
        That of the stored run: a model in memory is partitioned again.
    lp_gap, gap, time_limit, max_passes, threads, memory_limit
        See `solve`.
    checkpoint, checkpoint_every, on_check
        See `solve`.
    """
    limits = _limits(lp_gap, gap, time_limit, max_passes)
    stored = storage.checked_folder(folder)
    manifest = storage.read_manifest(stored)
    team, whole, pieces = _begun(model, comm, len(manifest["digests"]), partition)
    _require_memory(team, pieces, memory_limit)
    run = PartsRun(team, whole, pieces, None, _threads(team, threads))
    storage.restore(stored, manifest, run)
    every = not_negative("checkpoint_every", checkpoint_every)
    return _loop(run, limits, _folder(checkpoint), every, on_check)


def _limits(lp_gap: Any, gap: Any, time_limit: Any, max_passes: Any) -> PartsLimits:
    return PartsLimits(
        Tolerances(not_negative("lp_gap", lp_gap), not_negative("gap", gap)),
        time_limit_of(time_limit),
        math.inf if max_passes is None else count("max_passes", max_passes),
    )


def _threads(team: Team, threads: Any) -> int:
    """Number of threads of this process; by default an equal share of the machine's cores."""
    if threads is not None:
        return count("threads", threads, 1, MOST_THREADS)
    return max(1, usable_cores() // on_this_machine(team.comm))


def _begun(
    model: Any, comm: Any, parts: int | None, partition: str
) -> tuple[Team, Whole, list[ModelPart]]:
    """Return the team, the properties of the model, and the parts of this process."""
    size = 1 if comm is None else int(getattr(comm, "size", 1))
    if isinstance(model, Model):
        blocks = model.shape is not None and partition in ("auto", "grid")
        usual = (PartsEach().blocks if blocks else PartsEach().others) * size if size > 1 else 1
        wanted = min(model.n, usual if parts is None else count("parts", parts, 1))
        # every process partitions the whole model, with the same outcome
        part = partitioned(model.network, wanted, partition)
        team = Team(comm, wanted)
        whole, pieces = cut_model(model.network, part, team.mine)
        return team, whole, pieces
    if not isinstance(model, str | os.PathLike):
        raise OptionError(f"expected a Model or the folder of its parts, not {shown(model)}")
    whole = storage.read_whole(Path(model))
    if parts is not None and count("parts", parts, 1) != whole.parts:
        raise OptionError(f"parts={parts}: the model in {model} has {whole.parts} parts")
    team = Team(comm, whole.parts)
    return team, whole, [storage.read_part(Path(model), number, whole) for number in team.mine]


def _require_memory(team: Team, pieces: list[ModelPart], limit: Any) -> None:
    """Raise `NotEnoughMemory` in all processes if one of them needs more than the limit."""
    if limit is None:
        return
    most = count("memory_limit", limit)
    own = TUNING.of(MemoryEstimate).small + sum(memory_needed(piece.model) for piece in pieces)
    needed = max(team.comm.allgather(own))
    if needed > most:
        raise NotEnoughMemory(needed, most, "for each process; more processes take less each")


def _folder(checkpoint: Any) -> Path | None:
    if checkpoint is None:
        return None
    path = storage.checked_folder(checkpoint)
    if not path.parent.is_dir() or (path.exists() and not path.is_dir()):
        raise OptionError(f"checkpoint={shown(str(path))}: expected a folder to write into")
    return path


def _loop(
    run: PartsRun, limits: PartsLimits, folder: Path | None, every: float, show: OnCheck
) -> DistributedResult:
    """Advance, check and store until something stops the run."""
    with run.interrupts:
        status = _advanced(run, limits, folder, every, show)
    return _result(run, status)


def _advanced(
    run: PartsRun, limits: PartsLimits, folder: Path | None, every: float, show: OnCheck
) -> Status:
    """Why the run has stopped."""
    run.start_clock()
    saved, status = time.perf_counter(), run.ended(limits)
    while status is None:
        limited = run.advance(limits)
        if limited is not None and folder is not None:
            _save(folder, run)  # before the last check, which a longer run would not do
        status = run.check(limits, last=limited is not None) or limited
        if show is not None and run.team.rank == 0:
            show(run.progress.trace[-1])
        if limited is None and folder is not None:
            due = run.team.together(time.perf_counter() - saved >= every)  # by one clock
            if due or status is not None:
                _save(folder, run)
                saved = time.perf_counter()
    return status


def _save(folder: Path, run: PartsRun) -> None:
    """Write a checkpoint. If that fails, the earlier one stays and the run continues."""
    try:
        storage.save(folder, run)
    except WriteError as error:  # raised by all processes
        if run.team.rank == 0:
            warnings.warn(
                f"{folder}: the checkpoint cannot be written ({error.reason}); the run continues, "
                "and an earlier checkpoint is unchanged",
                CheckpointWarning,
                stacklevel=4,
            )


def _result(run: PartsRun, status: Status) -> DistributedResult:
    state, whole, best = run.progress, run.whole, run.best
    labels, lam = {}, {}
    for number, chains in run.passes.chains.items():
        part = chains.part
        labels[number] = part.nodes[: part.own], best.labels[number][: part.own]
        node = part.model.edges.reshape(-1)
        own = np.flatnonzero(node < part.own)
        kept = np.repeat(node < part.own, part.model.num_labels[node])
        # taken out of the run: the λ of only one part is in memory twice
        lam[number] = 2 * part.edges[own >> 1] + (own & 1), best.lam.pop(number)[kept]
    return DistributedResult(
        status, best.bound, best.primal, best.energy, state.passes,
        run.team.together(run.seconds), state.cooling.eta, state.trace, whole.variables,
        whole.edges, whole.parts, run.team.size, *best.gaps(), labels, lam, run.passes.halo_bytes,
    )  # fmt: skip
