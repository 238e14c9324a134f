"""Processes that solve small models for this one, where Python would keep threads waiting.

Compiled loops of several threads run side by side, Python does not, and in a run over a model of a
hundred variables it takes half of the time.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from multiprocessing.spawn import get_executable
from typing import Any

from softmap.model import Model
from softmap.solving.result import Result
from softmap.solving.solve import solve
from softmap.solving.travelling import attached, detached

__all__ = ["Helpers", "serve"]

SMALL = 1 << 15  # entries of λ up to which Python takes much of a run
WORTHWHILE = 1.0  # seconds that are left to do, per thread, from which on helpers are started
MOST = 15  # helpers that one process keeps busy: it packs and unpacks for all of them


class Helper:
    """A process that solves models, once it has started."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        place = theirs.fileno()
        call = f"from softmap.solving.helpers import serve; serve({place})"
        self._process = subprocess.Popen(
            [os.fsdecode(get_executable()), "-P", "-c", call],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            pass_fds=(place,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        self._started = self._lost = False

    def ready(self) -> bool:
        """Whether it can be asked; never waits."""
        if not self._started and not self._lost:
            try:
                if self._connection.poll():
                    self._started = bool(self._connection.recv())
            except (EOFError, OSError):
                self._lost = True
        return self._started and not self._lost

    def solve(self, model: Model, options: Mapping[str, Any]) -> Result | None:
        """The result; None where anything was out of the ordinary, and is to be seen here."""
        try:
            packed = pickle.dumps((model, dict(options)))
        except Exception:  # potentials that users have made need not be picklable
            return None
        try:
            self._connection.send_bytes(packed)
            found: Result | None = self._connection.recv()
        except Exception:  # it was killed
            self._lost = True
            return None
        return None if found is None else attached(found, model)

    def kill(self) -> None:
        """End it at once; whoever waits for it gets no result."""
        self._process.kill()

    def close(self) -> None:
        """End it, when nobody waits for it any more."""
        self._connection.close()
        self._process.kill()
        self._process.wait()


class Helpers:
    """Helpers of the threads of a batch, one each but for the first, which solves by itself.

    They are started when some models have told how long the rest will take, and asked when they
    have started; threads solve by themselves until then.

    Parameters
    ----------
    models, each
        What is to be solved, and the options.
    threads : int
    allowed : bool
        Whether there may be any.
    """

    def __init__(
        self,
        models: Sequence[Model],
        each: Sequence[Mapping[str, Any]],
        threads: int,
        allowed: bool,
    ) -> None:
        small = sum(model.half_size <= SMALL for model in models)
        shown = any(options.get("verbose") or options.get("progress") for options in each)
        listened = logging.getLogger("softmap").isEnabledFor(logging.INFO)
        possible = os.name == "posix" and bool(get_executable())
        self._left = small if allowed and possible and not shown and not listened else 0
        self._threads, self._done, self._seconds = threads, 0, 0.0
        self._lock, self._own = threading.Lock(), threading.local()
        self._home: int | None = None
        self._started: list[Helper] = []
        self._ended = False

    def __enter__(self) -> Helpers:
        return self

    def __exit__(self, *_: object) -> None:
        for helper in self._started:
            helper.close()

    def solve(self, model: Model, options: Mapping[str, Any]) -> Result | None:
        """The result, if the helper of the calling thread has made it."""
        if model.half_size > SMALL or not self._left:
            return None
        helper = self._mine()
        return helper.solve(model, options) if helper is not None and helper.ready() else None

    def note(self, model: Model, began: float) -> None:
        """A model is solved, however, by a thread that began with it then."""
        if model.half_size <= SMALL:
            with self._lock:
                self._left, self._done = max(0, self._left - 1), self._done + 1
                self._seconds += time.perf_counter() - began

    def kill(self) -> None:
        """End all at once."""
        with self._lock:
            self._ended = True
            for helper in self._started:
                helper.kill()

    def _mine(self) -> Helper | None:
        """The helper of this thread; None for the first that asks, and while none is worth it."""
        with self._lock:
            if self._home is None:
                self._home = threading.get_ident()
            known: Helper | None = getattr(self._own, "helper", None)
            if known is not None or self._home == threading.get_ident() or not self._worthwhile():
                return known
            with suppress(OSError):  # no more processes, or no such program
                self._own.helper = known = Helper()
                self._started.append(known)
            return known

    def _worthwhile(self) -> bool:
        if self._ended or not self._done or len(self._started) >= MOST:
            return False
        return self._left * self._seconds / self._done > WORTHWHILE * self._threads


def serve(place: int) -> None:
    """What a helper does: solve what comes through a connection, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks decides when it ends
    with Connection(place) as connection, suppress(EOFError, OSError):
        connection.send(True)
        while True:
            connection.send(_solved(connection.recv_bytes()))


def _solved(packed: bytes) -> Result | None:
    """A result without its model; None where there is an exception, or a warning."""
    with warnings.catch_warnings(record=True) as seen, suppress(Exception):
        warnings.simplefilter("always")
        model, options = pickle.loads(packed)
        result = solve(model, threads=1, **options)
        return None if seen else detached(result)
    return None
