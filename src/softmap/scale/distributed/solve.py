"""solve() and resume() over the processes of an MPI communicator."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count, not_negative, positive
from softmap.errors import OptionError, shown
from softmap.machine import usable_cores
from softmap.model import Model
from softmap.model.partition import partition as partitioned
from softmap.scale.distributed import checkpoint as storage
from softmap.scale.distributed.parts import Part, Whole, cut_model
from softmap.scale.distributed.run import PartsLimits, PartsRun
from softmap.scale.distributed.storage import read_parts, read_whole
from softmap.scale.distributed.team import Team
from softmap.solving.options import MOST_THREADS
from softmap.solving.trace import Row, Status, Trace

__all__ = ["DistributedResult", "resume", "solve"]


@dataclass(frozen=True)
class PartsEach:
    """Parts per process unless given.

    Attributes
    ----------
    blocks : int
        Of a grid, whose blocks have two colours: passes are faster over large parts.
    others : int
        Of other graphs: enough for each process to have parts of every colour.
    """

    blocks: int = 2
    others: int = 8


@dataclass(frozen=True, eq=False)
class DistributedResult:
    """What a run over parts has found; numbers are of the whole model, in every process.

    Attributes
    ----------
    status, bound, primal, energy
        As in `softmap.Result`: a certified lower bound on the LP and MAP optimum, the cost of a
        point of the local polytope, the cost of the labelling.
    relative_lp_gap, relative_gap : float, as `Result.relative_gap` has them
    passes, seconds, eta, trace
        How it went.
    variables, edges, parts, processes : int
    labels, lam : dict
        Of this process's parts: (variables, labels) and (half-edges, λ) in numbers of the whole
        model. λ is given at half-edges of own variables; together they prove `bound`.
    halo_bytes : int
        What this process sends to others in one pass.
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
        """Whether the labels obey all hard constraints."""
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
    eta: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    on_check: Callable[[Row], Any] | None = None,
) -> DistributedResult:
    """Solve the relaxation of one model by all processes of a communicator, and look for labels.

    All processes call it with the same arguments.

    Parameters
    ----------
    model : Model, or the folder of a model in parts (`softmap convert --parts`)
        Of a folder, each process reads its own parts only.
    comm : communicator of mpi4py, such as `MPI.COMM_WORLD`; this process alone if None
    parts : int
        Parts the variables are cut into; eight per process if left out, two where they are
        blocks of a grid, one for a process alone.
        Runs with equally many parts give the same result on any number of processes.
    partition : "auto", "grid", "metis" or "own"
        How they are cut: see `softmap.model.partition`.
    lp_gap, gap, time_limit, threads, eta
        As in `softmap.solve`; threads are those of each process.
    max_passes : int, stop after so many
    checkpoint : folder, written at intervals and at the end; see `resume`
    checkpoint_every : float, seconds between two of them
    on_check : function, called with each row of the trace in the first process

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
    run = PartsRun(team, whole, pieces, first_eta, _threads(team, threads))
    store = _Store(_folder(checkpoint), not_negative("checkpoint_every", checkpoint_every))
    return _loop(run, limits, store, on_check)


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
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    on_check: Callable[[Row], Any] | None = None,
) -> DistributedResult:
    """Go on from a checkpoint, on any number of processes, to the same result.

    Takes what `solve` takes; a model in memory is cut as it was cut then, so `partition` has to be
    the same.
    """
    limits = _limits(lp_gap, gap, time_limit, max_passes)
    manifest = storage.read_manifest(_checked_folder(folder))
    team, whole, pieces = _begun(model, comm, manifest.parts, partition)
    run = PartsRun(team, whole, pieces, None, _threads(team, threads))
    storage.restore(manifest, run)
    store = _Store(_folder(checkpoint), not_negative("checkpoint_every", checkpoint_every))
    return _loop(run, limits, store, on_check)


def _limits(lp_gap: Any, gap: Any, time_limit: Any, max_passes: Any) -> PartsLimits:
    return PartsLimits(
        not_negative("lp_gap", lp_gap),
        not_negative("gap", gap),
        None if time_limit is None else not_negative("time_limit", time_limit),
        None if max_passes is None else count("max_passes", max_passes),
    )


def _threads(team: Team, threads: Any) -> int:
    """Threads of this process: its share of the machine's cores unless given."""
    if threads is not None:
        return count("threads", threads, 1, MOST_THREADS)
    return max(1, usable_cores() // team.on_this_machine())


def _begun(
    model: Any, comm: Any, parts: int | None, partition: str
) -> tuple[Team, Whole, list[Part]]:
    """The team, and this process's parts of the model."""
    size = 1 if comm is None else int(getattr(comm, "size", 1))
    if isinstance(model, Model):
        blocks = model.shape is not None and partition in ("auto", "grid")
        usual = (PartsEach().blocks if blocks else PartsEach().others) * size if size > 1 else 1
        wanted = min(model.n, usual if parts is None else count("parts", parts, 1))
        # every process cuts the whole model, in the same way
        part = partitioned(model, wanted, partition)
        team = Team(comm, wanted)
        whole, pieces = cut_model(model, part, team.mine)
        return team, whole, pieces
    if not isinstance(model, str | os.PathLike):
        raise OptionError(f"expected a Model or the folder of its parts, not {shown(model)}")
    whole = read_whole(Path(model))
    if parts is not None and count("parts", parts, 1) != whole.parts:
        raise OptionError(f"parts={parts}: the model in {model} has {whole.parts} parts")
    team = Team(comm, whole.parts)
    return team, whole, read_parts(Path(model), whole, team.mine)


def _checked_folder(folder: Any) -> Path:
    if not isinstance(folder, str | os.PathLike) or "\0" in str(folder):
        raise OptionError(f"expected a folder, not {shown(folder)}")
    return Path(folder)


def _folder(checkpoint: Any) -> Path | None:
    if checkpoint is None:
        return None
    path = _checked_folder(checkpoint)
    if not path.parent.is_dir() or (path.exists() and not path.is_dir()):
        raise OptionError(f"checkpoint={shown(str(path))}: expected a folder to write into")
    return path


@dataclass
class _Store:
    """Where checkpoints go, if anywhere, and when the next one is due."""

    folder: Path | None
    every: float

    def __post_init__(self) -> None:
        self._saved = time.perf_counter()

    def save(self, run: PartsRun) -> None:
        if self.folder is not None:
            storage.save(self.folder, run)
            self._saved = time.perf_counter()

    def due(self, run: PartsRun) -> bool:
        """Whether it is time, by the first process's clock."""
        return bool(run.team.together(time.perf_counter() - self._saved >= self.every))


def _loop(
    run: PartsRun, limits: PartsLimits, store: _Store, on_check: Callable[[Row], Any] | None
) -> DistributedResult:
    """Advance, check and store until something stops the run."""
    run.start_clock()
    status = run.ended(limits)
    while status is None:
        limited = run.advance(limits)
        if limited is not None:
            store.save(run)  # before this check, which a longer run would not make
        status = run.check(limits, last=limited is not None) or limited
        if on_check is not None and run.team.rank == 0:
            on_check(run.progress.trace[-1])
        if limited is None and (store.due(run) or status is not None):
            store.save(run)
    return _result(run, status)


def _result(run: PartsRun, status: Status) -> DistributedResult:
    state, whole = run.progress, run.whole
    lp_gap, gap = run.gaps()
    labels, lam = {}, {}
    for number, chains in run.passes.chains.items():
        part = chains.part
        labels[number] = part.nodes[: part.own], run.labels.labels[number][: part.own]
        lam[number] = _own_lam(part, run.release_lam(number))
    return DistributedResult(
        status, state.bound, run.primal, run.labels.energy, state.passes,
        run.team.together(run.seconds), state.cooling.eta, state.trace, whole.variables,
        whole.edges, whole.parts, run.team.size, lp_gap, gap, labels, lam, run.passes.halo_bytes,
    )  # fmt: skip


def _own_lam(part: Part, lam: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Half-edges of own variables, in numbers of the whole model, and their λ one after another."""
    node = part.model.edges.reshape(-1)
    own = np.flatnonzero(node < part.own)
    kept = np.repeat(node < part.own, part.model.num_labels[node])
    return 2 * part.edges[own >> 1] + (own & 1), lam[kept]
