"""`Decoder`: the most likely errors of a syndrome, always an answer, proved or with a gap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softmap.arguments import count, positive, wrong
from softmap.codes.checks import Bytes
from softmap.codes.inputs import errors_of
from softmap.codes.parity import Decoded, ParityCode, checked_syndrome
from softmap.errors import OptionError
from softmap.extend import Costs, core, machine, numbers, plain
from softmap.hints import suggesting


@dataclass(frozen=True)
class DecodingEffort:
    """Iterations per shot (decision 63 measured them).

    Attributes
    ----------
    rounds : int
        Largest number of iterations of belief propagation.
    steps : int
        Largest number of iterations per attempted proof.
    depth : int
        Ordered statistics try all pairs of this many bits outside the basis.
    visits : int
        Number of words that a search among those that λ does not exclude may visit.
    """

    rounds: int = 20
    steps: int = 300
    depth: int = 10
    visits: int = 1 << 14


class Decoder:
    """A decoder of one code: set up once, then it decodes many syndromes or received words.

    Belief propagation proposes a word; if it does not converge, ordered statistics do. Multipliers
    λ of the linear program are then improved to prove that no word is more likely. If that fails,
    the words that λ does not exclude are searched; if all were visited, the best is proved, too.

    Parameters
    ----------
    code : matrix, ParityCode, Detectors, stim.DetectorErrorModel, stim.Circuit, or path
        A parity-check matrix of 0 and 1, dense or of scipy.sparse; a code; a detector error model;
        a circuit; or the path of an `.alist`, `.dem` or `.stim` file. Rows without a one, equal
        rows and columns without a one are allowed.
    probabilities : float or float array (bits,), optional
        Probability of an error at each bit. Detector error models have their own.
    ratios : float or float array (bits,), optional
        Instead of probabilities: the cost of a 1 at each bit, log p(0) / p(1). By default all
        costs are 1, and the words of least weight are searched for.

    Attributes
    ----------
    num_checks, num_bits, num_observables : int

    Examples
    --------
    >>> import softmap
    >>> decoder = softmap.codes.Decoder([[1, 1, 0], [0, 1, 1]], 0.1)
    >>> found = decoder.decode([1, 0])
    >>> found.words, bool(found.proved)
    (array([1, 0, 0], dtype=uint8), True)
    """

    effort = DecodingEffort()

    @suggesting
    def __init__(
        self,
        code: Any,
        probabilities: ArrayLike | None = None,
        *,
        ratios: ArrayLike | None = None,
    ) -> None:
        errors = errors_of(code, probabilities, ratios)
        self.num_checks, self.num_bits = len(errors.checks), len(errors.costs)
        self.num_observables = errors.observables.shape[1]
        self._observables = errors.observables
        self._free = np.flatnonzero(np.isfinite(errors.costs))
        self._certain = (errors.costs == -np.inf).astype(np.uint8)
        place = np.full(self.num_bits, -1)
        place[self._free] = np.arange(len(self._free))
        rows = [[int(place[i]) for i in row if place[i] >= 0] for row in errors.checks]
        # without a bit that may be 0 or 1, one bit without checks stands for none
        self._code = ParityCode(rows, max(len(self._free), 1))
        costs = errors.costs[self._free] if len(self._free) else np.zeros(1)
        self._costs = self._code.checked_ratios(costs)
        self._shift = np.zeros(self.num_checks, np.uint8)
        if self._certain.any():
            self._shift = ParityCode(errors.checks, self.num_bits).syndrome(self._certain)

    def __repr__(self) -> str:
        return (
            f"Decoder({self.num_bits} bits, {self.num_checks} checks, "
            f"{self.num_observables} observables)"
        )

    def decode(
        self,
        syndrome: ArrayLike | None = None,
        *,
        ratios: ArrayLike | None = None,
        time_limit: float | None = None,
    ) -> Decoded:
        """Return the most likely word found for one syndrome.

        Parameters
        ----------
        syndrome : int array (checks,), optional
            1 for each check whose parity is odd; all even by default.
        ratios : float array (bits,), optional
            Costs of this word, such as the log-likelihood ratios of a channel, instead of the
            decoder's.
        time_limit : float, optional
            If the word is not proved, run an exact search (`softmap.solve`) for at most this many
            seconds. It proves words to a relative gap of 1e-9, since costs are rounded. By default
            there is no search.

        Returns
        -------
        Decoded
            Without the first axis. `lam` is None if an exact search gave the proof.
        """
        rows = None if syndrome is None else np.asarray(plain(syndrome))[None]
        found = self._decoded(rows, ratios, 1, keep=True)
        if time_limit is not None:
            found = self._searched(found, rows, ratios, positive("time_limit", time_limit))
        return found.first()

    def decode_batch(
        self,
        syndromes: ArrayLike | None = None,
        *,
        ratios: ArrayLike | None = None,
        threads: int | None = None,
        backend: str = "cpu",
    ) -> Decoded:
        """Decode many syndromes or received words; the results do not depend on `threads`.

        Parameters
        ----------
        syndromes : int array (shots, checks), optional
            1 for each check whose parity is odd; all even by default.
        ratios : float array (bits,) or (shots, bits), optional
            Costs instead of the decoder's.
        threads : int, optional
            Number of shots decoded in parallel; by default all cores.
        backend : {"cpu", "cuda"}, default "cpu"
            "cuda": belief propagation and proofs run on the GPU first (extra `cuda12` or `cuda13`).
            The CPU checks each proof, and decodes the shots that have none as usual.

        Returns
        -------
        Decoded
            One row per shot; `lam` is None.
        """
        if backend not in ("cpu", "cuda"):
            raise wrong("backend", backend, "'cpu' or 'cuda'")
        workers = machine.usable_cores() if threads is None else count("threads", threads, 1, 4096)
        return self._decoded(syndromes, ratios, workers, keep=False, device=backend == "cuda")

    def write_proof(self, path: str | Path, syndrome: ArrayLike | None = None) -> Decoded:
        """Decode one syndrome and write λ as a proof; return the word and the bound that λ proves.

        A word that a search among the remaining words proved has a higher bound in `decode`. Codes
        with a check of so many bits that its model has chain variables raise `OptionError`.
        `softmap.verification.check_proof(path, decoder.model(syndrome))` checks it.

        Parameters
        ----------
        path : str or Path
        syndrome : int array (checks,), optional
            1 for each check whose parity is odd; all even by default.
        """
        inner = self._inner(syndrome, 1)[0]
        found = self.decode(syndrome)
        assert found.lam is not None
        self._code.write_proof(path, self._costs, found.lam, inner)
        bound = self._code.bound(self._costs, found.lam, inner)
        return replace(found, bounds=np.array(bound))

    def model(self, syndrome: ArrayLike | None = None) -> Any:
        """Return the problem of one syndrome as a `Model`; its variables are the undecided bits.

        Parameters
        ----------
        syndrome : int array (checks,), optional
            1 for each check whose parity is odd; all even by default.
        """
        return self._code.model(self._costs, self._inner(syndrome, 1)[0])

    def _inner(self, syndrome: ArrayLike | None, shots: int) -> Bytes:
        """Return the checked syndromes without the effect of certain errors, one row per shot."""
        if syndrome is None:
            return np.tile(self._shift, (shots, 1))
        shapes = (self.num_checks,), (shots, self.num_checks)
        return np.atleast_2d(checked_syndrome(syndrome, shapes)) ^ self._shift

    def _own_costs(self, ratios: ArrayLike | None) -> Costs:
        """Return the costs of the undecided bits, one row for all shots or one per shot."""
        if ratios is None:
            return np.atleast_2d(self._costs)
        given = numbers(ratios, "ratios")
        if given.ndim not in (1, 2) or given.shape[-1] != self.num_bits:
            raise OptionError(f"expected ratios of {self.num_bits} bits, not {given.shape}")
        return np.atleast_2d(self._code.checked_ratios(given[..., self._free]))

    def _decoded(
        self, syndromes: ArrayLike | None, ratios: ArrayLike | None, workers: int, *, keep: bool,
        device: bool = False,
    ) -> Decoded:  # fmt: skip
        costs = self._own_costs(ratios)
        shots = len(costs) if syndromes is None else len(np.asarray(syndromes))
        if len(costs) not in (1, shots):
            raise OptionError(f"expected ratios for {shots} syndromes, not for {len(costs)}")
        parities = self._inner(syndromes, shots)
        effort = self.effort
        limits = core.DecodingLimits(
            rounds=effort.rounds, steps=effort.steps, depth=effort.depth, words=effort.visits
        )
        found, words, lam = self._code.distinct.decode_rows(
            costs, parities, limits, workers, keep=keep, device=device
        )
        whole = np.tile(self._certain, (shots, 1))
        whole[:, self._free] = words[:, : len(self._free)]
        return Decoded(
            whole, found[:, 0], found[:, 1], found[:, 2] > 0, lam, found[:, 3].astype(np.int64),
            whole @ self._observables % 2,
        )  # fmt: skip

    def _searched(
        self, found: Decoded, rows: Any, ratios: ArrayLike | None, time_limit: float
    ) -> Decoded:
        """Return the result of an exact search if the word is not proved."""
        if found.proved[0] or not found.found[0]:
            return found
        from softmap import Status, solve
        from softmap.extend import PROVED

        costs = self._own_costs(ratios)[0]
        model = self._code.model(costs, self._inner(rows, 1)[0])
        result = solve(
            model, goal="optimal", gap=PROVED, time_limit=time_limit,
            initial=found.words[0, self._free].astype(np.int64),
        )  # fmt: skip
        bound = np.maximum(found.bounds, result.bound)
        better = result.labels is not None and result.energy < found.costs[0]
        words = found.words.copy()
        if better:
            words[0, self._free] = result.labels[: len(self._free)]
        return replace(
            found,
            words=words,
            costs=np.array([result.energy if better else found.costs[0]]),
            bounds=bound,
            proved=np.array([result.status is Status.OPTIMAL]),
            lam=None,
            observables=words @ self._observables % 2,
        )
