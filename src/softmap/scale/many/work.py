"""The work of a Dask worker: read models, solve them, and return an outcome for each."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from softmap import Model, Result, read, resume, solve, solve_batch
from softmap.errors import CheckpointError, FormatError, SoftmapError, human
from softmap.extend import detached, machine, memory_needed
from softmap.scale.many.items import Item


@dataclass(frozen=True)
class Settings:
    """The settings of all items.

    Attributes
    ----------
    options : dict
        Options of `solve`, with `threads` if the user gave it.
    values : str or None
        Meaning of the tables of UAI files (see `softmap.read`).
    checkpoints : str or None
        A folder that all workers can access.
    pick : function or None
        Extracts what is sent back from a result; workers must be able to import it. None sends the
        result itself.
    proofs : str or None
        A folder that all workers can access, for a proof of each model.
    crowd : int
        Number of batches that may run on a worker at the same time.
    """

    options: dict[str, Any] = field(default_factory=dict)
    values: Any = None
    checkpoints: str | None = None
    pick: Callable[[Result], Any] | None = None
    proofs: str | None = None
    crowd: int = 1


@dataclass(frozen=True, eq=False)
class ModelOutcome:
    """The outcome of an item: a `value`, an `error`, or neither if the model is `unchanged`.

    `resumed` says whether the run continued from a checkpoint of a lost worker.
    """

    name: str
    value: Any = None
    error: Exception | None = None
    fingerprint: str = ""
    unchanged: bool = False
    resumed: bool = False


def work(items: list[Item], settings: Settings) -> list[ModelOutcome]:
    """Solve a batch on this worker; the failure of one model does not affect the others."""
    threads, limit = _worker(settings)
    found: dict[str, ModelOutcome] = {}
    models: dict[str, Model] = {}
    for item in items:
        try:
            model = _model(item, settings, limit)
            fingerprint = model.fingerprint() if settings.pick else ""
            found[item.name] = ModelOutcome(item.name, None, None, fingerprint, unchanged=True)
            if not item.known or item.known != fingerprint:
                models[item.name] = model
        except Exception as error:  # reported with its item
            found[item.name] = ModelOutcome(item.name, error=_sendable(error))
    sent = {item.name for item in items if isinstance(item.source, Model)}
    for name, (answer, resumed) in zip(models, _answers(models, settings, threads), strict=True):
        known = replace(found[name], resumed=resumed)
        found[name] = _outcome(known, answer, settings, name in sent)
    return list(found.values())


def _worker(settings: Settings) -> tuple[int, int | None]:
    """Return the number of threads for this batch, and the memory limit of this worker."""
    if (
        "distributed" not in sys.modules
    ):  # this process is no Dask worker; importing Dask would take a second
        return settings.options.get("threads") or machine.usable_cores(), None
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # called outside a worker
        return settings.options.get("threads") or machine.usable_cores(), None
    threads = worker.state.nthreads
    share = max(1, threads // max(1, min(threads, settings.crowd)))
    limit = getattr(getattr(worker, "memory_manager", None), "memory_limit", None)
    return settings.options.get("threads") or share, limit


def _model(item: Item, settings: Settings, limit: int | None) -> Model:
    if isinstance(item.source, Model):
        model = item.source
    else:
        if limit is not None and os.path.getsize(item.source) > limit:
            raise MemoryError(f"{item.source}: larger than a worker's memory, {human(limit)}")
        try:
            model = read(item.source, values=settings.values, evidence=item.evidence)
        except OSError as error:
            raise FormatError(error.strerror or str(error), item.source) from error
    need = memory_needed(model.network)
    if limit is not None and need > limit:
        raise MemoryError(
            f"{item.name}: a run needs about {human(need)}, a worker has {human(limit)}"
        )
    return model


def _answers(
    models: dict[str, Model], settings: Settings, threads: int
) -> list[tuple[Result | Exception, bool]]:
    """Return a result or an exception per model, and whether its run was resumed."""
    options = {name: value for name, value in settings.options.items() if name != "threads"}
    if len(models) > 1 and settings.checkpoints is None and settings.proofs is None:
        found = solve_batch(
            models.values(), threads=threads, processes=False, errors="return", **options
        )
        return [(answer, False) for answer in found]
    return [_one(name, model, settings, threads) for name, model in models.items()]


def checkpoint_of(folder: str, name: str) -> Path:
    """Return the path of the checkpoint of a model."""
    return Path(folder) / f"{name}.checkpoint.npz"


def _one(
    name: str, model: Model, settings: Settings, threads: int
) -> tuple[Result | Exception, bool]:
    """Solve one model; resume from the checkpoint of a lost worker if there is one."""
    options: dict[str, Any] = settings.options | {"threads": threads}
    if settings.proofs is not None:
        options["proof"] = Path(settings.proofs) / f"{name}.proof"
    try:
        if settings.checkpoints is None:
            return solve(model, **options), False
        path = checkpoint_of(settings.checkpoints, name)
        if path.exists():
            limits: dict[str, Any] = {key: options.get(key) for key in ("time_limit", "max_work")}
            try:
                return resume(path, model, threads=threads, checkpoint=path, **limits), True
            except CheckpointError:  # of another model, or damaged: start again
                path.unlink(missing_ok=True)
        return solve(model, checkpoint=path, **options), False
    except Exception as error:
        return error, False


def _outcome(before: ModelOutcome, answer: Any, settings: Settings, sent: bool) -> ModelOutcome:
    """Return the outcome to send back, without a model that was sent here."""
    if isinstance(answer, Exception):
        return replace(before, error=_sendable(answer), unchanged=False)
    if settings.pick is not None:
        return replace(before, value=settings.pick(answer), unchanged=False)
    return replace(before, value=detached(answer) if sent else answer, unchanged=False)


def _sendable(error: Exception) -> Exception:
    """Return an exception that can be pickled; another one with the same text if necessary."""
    for name in ("result", "__notes__"):
        error.__dict__.pop(name, None)
    try:
        if str(pickle.loads(pickle.dumps(error))) == str(error):
            return error.with_traceback(None)
    except Exception:  # some exceptions cannot be unpickled
        pass
    return SoftmapError(f"{type(error).__name__}: {error}")
