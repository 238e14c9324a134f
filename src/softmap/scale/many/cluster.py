"""The connection to a Dask scheduler: a client, an address, or a local cluster."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from softmap.errors import OptionError, SoftmapError, needs_extra, shown
from softmap.extend import machine


@dataclass(frozen=True)
class Patience:
    """Timeouts for a scheduler, in seconds.

    Attributes
    ----------
    away : float
        Timeout for a scheduler that is lost during a run.
    first : float
        Timeout for the first connection.
    each : float
        Timeout of one attempt to connect.
    """

    away: float = 300.0
    first: float = 15.0
    each: float = 5.0


def distributed_module() -> Any:
    """Return the module `dask.distributed`, or raise an error that names the extra."""
    with needs_extra("softmap.solve_many", "dask"):
        import distributed
    return distributed


class Connection:
    """A client that reconnects after its scheduler was lost.

    Parameters
    ----------
    given : Client, str or None
        A client, which is not closed at the end; the address of a scheduler; or None for a cluster
        of processes on this machine, which is closed at the end.
    workers : int, optional
        Number of processes of a local cluster; one per core by default.
    """

    patience = Patience()

    def __init__(self, given: Any = None, workers: int | None = None) -> None:
        if given is not None and not isinstance(given, str | distributed_module().Client):
            raise OptionError(f"client={shown(given)}: expected a dask Client or an address")
        if getattr(given, "asynchronous", False):
            raise OptionError("client: expected a dask Client that is not asynchronous")
        self._given, self._workers = given, workers
        self._cluster: Any = None
        self.client: Any = None

    @property
    def threads(self) -> int:
        """Number of threads of this process that solve models before a local cluster starts."""
        return 0 if self._given is not None else self._workers or machine.usable_cores()

    @cached_property
    def _dask(self) -> Any:
        """The module `dask.distributed`, imported lazily because that takes a second."""
        return distributed_module()

    def __enter__(self) -> Connection:
        if self._given is None:
            self._cluster = self._dask.LocalCluster(
                n_workers=self._workers or machine.usable_cores(), threads_per_worker=1,
                processes=True, dashboard_address=None,
            )  # fmt: skip
            self.client = self._dask.Client(self._cluster)
        elif isinstance(self._given, str):
            self.client = self._reached(self._given, None, self.patience.first)
        else:
            self.client = self._given
        # a closed client no longer has its address and security
        self._address, self._security = self.client.scheduler.address, self.client.security
        return self

    def __exit__(self, *error: Any) -> None:
        if self.client is not None and self.client is not self._given:
            self.client.close()
        if self._cluster is not None:
            self._cluster.close()

    @property
    def ready(self) -> bool:
        """Whether the scheduler accepts work now."""
        return bool(self.client.status == "running")

    def workers(self) -> dict[str, int]:
        """Return the number of threads of each current worker."""
        found: dict[str, int] = self.client.nthreads()
        return found

    def restored(self) -> None:
        """Block until the scheduler is available again, or raise `SoftmapError` after a timeout."""
        lost = time.monotonic()
        while not self.ready and time.monotonic() - lost < self.patience.away:
            if self.client.status == "closed":  # Dask has given up: make a new client
                self.client = self._reached(self._address, self._security, self.patience.away)
            time.sleep(0.05)
        if not self.ready:
            raise SoftmapError(
                f"the Dask scheduler has been unreachable for {self.patience.away:.0f} s"
            )

    def _reached(self, address: str, security: Any, patience: float) -> Any:
        self._check_certificate(address, security)
        begun = time.monotonic()
        while True:
            try:
                return self._dask.Client(
                    address, security=security, timeout=self.patience.each, set_as_default=False
                )
            except (OSError, TimeoutError) as error:
                if time.monotonic() - begun > patience:
                    raise SoftmapError(
                        f"no Dask scheduler answers at {address}: {error}"
                    ) from error
                time.sleep(0.2)
            except ValueError as error:
                raise OptionError(f"client={shown(address)}: {error}") from error

    def _check_certificate(self, address: str, security: Any) -> None:
        """Raise `OptionError` if the address needs TLS and no certificate is configured."""
        known = security or self._dask.Security()
        if address.startswith("tls://") and not known.get_connection_args("client")["ssl_context"]:
            raise OptionError(
                f"client={shown(address)}: no certificate for TLS; give a dask Client with its "
                "Security, or set distributed.comm.tls in Dask's configuration"
            )
