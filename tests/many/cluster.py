"""A Dask scheduler and workers as processes of their own, on loopback, to be killed in tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

SCHEDULER = """
import asyncio, sys
from distributed import Scheduler

async def main():
    async with Scheduler(host="127.0.0.1", port=int(sys.argv[1]), dashboard=False) as scheduler:
        await scheduler.finished()

asyncio.run(main())
"""
WORKER = """
import asyncio, sys
import softmap.many.work  # what it will need, before work arrives
import softmap.cli.summary
from distributed import Worker

async def main():
    async with Worker(sys.argv[1], nthreads=1, dashboard=False) as worker:
        await worker.finished()

asyncio.run(main())
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
        self.processes: list[subprocess.Popen[bytes]] = []
        self.start()

    def start(self, workers: int = 2) -> None:
        self.scheduler = self._process(SCHEDULER, str(self.port))
        self.workers = [self._process(WORKER, self.address) for _ in range(workers)]

    def _process(self, code: str, argument: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code, argument],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def kill_worker(self) -> None:
        self._kill(self.workers.pop())

    def restart(self) -> None:
        """The scheduler dies, and all start again, as a job queue would see to."""
        for process in [self.scheduler, *self.workers]:
            self._kill(process)
        self.start()

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                self._kill(process)
