"""A Dask scheduler and workers as processes of their own, on loopback, to be killed in tests.

Workers have a limit on their memory, and store what they are at many times a second.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

MEMORY = 500 << 20  # bytes of a worker

# One process loads everything, once, and forks whatever it is asked for.
NURSERY = """
import asyncio, os, signal, sys
import numpy.random, softmap.scale.many.work, softmap.app.cli.summary
from distributed import Scheduler, Worker
from distributed.security import Security

from softmap.drive.record import Checkpoints
Checkpoints.interval = 0.05

def security(folder):
    key, cert = f"{folder}/key.pem", f"{folder}/cert.pem"
    names = [f"tls_{who}_{what}" for who in ("scheduler", "worker") for what in ("key", "cert")]
    return Security(
        require_encryption=True, tls_ca_file=cert, **dict(zip(names, [key, cert] * 2))
    )

async def main(kind, place, *folder):
    options = dict(dashboard=False)
    if folder:
        options |= dict(security=security(*folder), protocol="tls")
    server = (
        Scheduler(host="127.0.0.1", port=int(place), **options)
        if kind == "scheduler"
        else Worker(place, nthreads=1, memory_limit=MEMORY, **options)
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
        self.more: list[int] = []
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._nursery = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", f"MEMORY = {MEMORY}\n{NURSERY}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.start()

    def start(self, workers: int = 2) -> None:
        self.scheduler = self._process("scheduler", str(self.port))
        self.workers = [self._process("worker", self.address) for _ in range(workers)]

    def secure(self, folder: str) -> str:
        """One more scheduler, with a worker, that talk by TLS only; its address."""
        port = free_port()
        address = f"tls://127.0.0.1:{port}"
        self.more = [
            self._process("scheduler", str(port), folder),
            self._process("worker", address, folder),
        ]
        return address

    def _process(self, *words: str) -> int:
        print(*words, file=self._nursery.stdin, flush=True)
        return int(self._nursery.stdout.readline())

    def kill_worker(self, process: int | None = None) -> None:
        """Kill a worker, any or a certain one."""
        if process is None:
            process = self.workers[-1]
        self.workers.remove(process)
        os.kill(process, signal.SIGKILL)

    def add_worker(self) -> None:
        self.workers.append(self._process("worker", self.address))

    def restart(self) -> None:
        """The scheduler dies, and all start again, as a job queue would see to."""
        self._kill_all()
        self.start()

    def _kill_all(self) -> None:
        for process in [self.scheduler, *self.workers, *self.more]:
            with suppress(ProcessLookupError):  # workers without a scheduler end by themselves
                os.kill(process, signal.SIGKILL)

    def close(self) -> None:
        self._kill_all()
        self._nursery.stdin.close()
        self._nursery.stdout.close()
        self._nursery.wait()
