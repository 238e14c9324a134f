"""A Dask scheduler and workers as processes of their own, on loopback, to be killed in tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

# One process loads everything, once, and forks whatever it is asked for.
NURSERY = """
import asyncio, os, signal, sys
import numpy.random, softmap.many.work, softmap.cli.summary
from distributed import Scheduler, Worker

async def main(kind, place):
    options = dict(dashboard=False)
    server = (
        Scheduler(host="127.0.0.1", port=int(place), **options)
        if kind == "scheduler" else Worker(place, nthreads=1, **options)
    )
    async with server:
        await server.finished()

signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead need no farewell
for line in sys.stdin:
    child = os.fork()
    if not child:
        asyncio.run(main(*line.split()))
        os._exit(0)
    print(child, flush=True)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """One scheduler and two workers, each a process."""

    def __init__(self) -> None:
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._nursery = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", NURSERY],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.start()

    def start(self, workers: int = 2) -> None:
        self.scheduler = self._process("scheduler", str(self.port))
        self.workers = [self._process("worker", self.address) for _ in range(workers)]

    def _process(self, kind: str, place: str) -> int:
        print(kind, place, file=self._nursery.stdin, flush=True)
        return int(self._nursery.stdout.readline())

    def kill_worker(self) -> None:
        os.kill(self.workers.pop(), signal.SIGKILL)

    def restart(self) -> None:
        """The scheduler dies, and all start again, as a job queue would see to."""
        self._kill_all()
        self.start()

    def _kill_all(self) -> None:
        for process in [self.scheduler, *self.workers]:
            with suppress(ProcessLookupError):  # workers without a scheduler end by themselves
                os.kill(process, signal.SIGKILL)

    def close(self) -> None:
        self._kill_all()
        self._nursery.stdin.close()
        self._nursery.stdout.close()
        self._nursery.wait()
