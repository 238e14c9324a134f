"""Detector error models (`.dem`): independent errors, and detectors that measure parities."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import FormatError, ModelError
from softmap.io.limits import LIMITS
from softmap.io.streams import Content, Source, bare_suffixes, load, open_content
from softmap.io.tokens import quote
from softmap.model import Model
from softmap.model.factors import Assembly
from softmap.model.inputs import checked_labels
from softmap.model.model import assembled
from softmap.model.potentials.base import integers

_LINE = re.compile(
    rb"[ \t]*+([A-Za-z_]++)[ \t]*+(?:\[[^\]\n]*+\])?[ \t]*+(?:\(([^)\n]*+)\))?([^#{}\n]*+)(\{)?"
)
_KINDS = {b"D": 0, b"d": 0, b"L": 1, b"l": 1}


@dataclass(frozen=True)
class Detectors:
    """A detector error model: the probability of each error, and the detectors it flips.

    Attributes
    ----------
    probabilities : float64 array
        Probability of each error, in the order of the file.
    detectors, observables : tuple of tuples of int
        The detectors and observables that each error flips.
    num_detectors, num_observables : int
    name : str or None
        The file, for messages.
    """

    probabilities: NDArray[np.float64]
    detectors: tuple[tuple[int, ...], ...]
    observables: tuple[tuple[int, ...], ...]
    num_detectors: int
    num_observables: int
    name: str | None = field(default=None, repr=False)

    def model(self, seen: ArrayLike | None = None) -> Model:
        """Return the model of the most likely errors, given the detectors that fired.

        There is one variable per error (label 1: it happened), with cost -log of its probability. A
        detector is a `Parity` over its errors. Chain variables of large parities come after the
        errors.

        Parameters
        ----------
        seen : int array, optional
            1 for each detector that fired, else 0; none fired by default.
        """
        if not len(self.probabilities):
            raise FormatError("expected at least one error", self.name)
        fired = self._fired(seen)
        with np.errstate(divide="ignore"):
            costs = -np.log(np.column_stack([1.0 - self.probabilities, self.probabilities]))
        assembly = Assembly(np.full(len(costs), 2))
        assembly.add_flat_unary(0.0 + costs.ravel())
        seen_by = np.array([d for own in self.detectors for d in own], dtype=np.int64)
        error = np.repeat(np.arange(len(costs)), [len(own) for own in self.detectors])
        sizes = np.bincount(seen_by, minlength=self.num_detectors)
        if (fired[sizes == 0] != 0).any():
            raise ModelError("a detector fired that no error flips")
        members = error[np.argsort(seen_by, kind="stable")]
        assembly.add_parities(members, np.append(0, np.cumsum(sizes)), fired)
        return assembled(assembly.pieces())

    def _fired(self, seen: ArrayLike | None) -> NDArray[np.int64]:
        if seen is None:
            return np.zeros(self.num_detectors, dtype=np.int64)
        given: Any = seen
        if isinstance(given, np.ndarray) and given.dtype == bool:
            given = given.astype(np.int64)
        fired = integers(given, "detectors seen")
        if fired.shape != (self.num_detectors,) or not np.isin(fired, (0, 1)).all():
            raise ModelError(f"expected 0 or 1 for each of {self.num_detectors} detectors")
        return fired

    def _flipped(self, labels: ArrayLike, which: str, count: int) -> NDArray[np.int64]:
        given = integers(labels, "labels")
        if given.ndim != 1:
            raise ModelError(f"expected a list of labels, not an array of shape {given.shape}")
        errors = len(self.probabilities)
        chosen = checked_labels(given[:errors], np.full(errors, 2))
        total = np.zeros(count, dtype=np.int64)
        for k in np.flatnonzero(chosen):
            for d in getattr(self, which)[k]:
                total[d] ^= 1
        return total

    def syndrome(self, labels: ArrayLike) -> NDArray[np.int64]:
        """Return which detectors fire if these errors happen; chain variables may follow."""
        return self._flipped(labels, "detectors", self.num_detectors)

    def flips(self, labels: ArrayLike) -> NDArray[np.int64]:
        """Return which observables these errors flip; chain variables may follow."""
        return self._flipped(labels, "observables", self.num_observables)


def parse_dem(content: Content, *, seen: ArrayLike | None = None) -> Model:
    """Return the model of a detector error model; see `Detectors.model`."""
    return parse_detectors(content).model(seen)


def parse_stim(content: Content, *, seen: ArrayLike | None = None) -> Model:
    """Return the model of the errors of a circuit; see `Detectors.model`."""
    return parse_circuit(content).model(seen)


def read_detectors(source: Source) -> Detectors:
    """Read the errors and detectors of a `.dem` file, or of a circuit (`.stim`).

    Circuits are read by the package `stim`, if it is installed.

    Parameters
    ----------
    source : path, "-" or binary file

    Returns
    -------
    Detectors
    """
    content = load(source)
    circuit = bare_suffixes(content.name)[-1:] == [".stim"]
    return parse_circuit(content) if circuit else parse_detectors(content)


def parse_circuit(data: bytes | Content) -> Detectors:
    """Return the errors and detectors of a circuit (`.stim`) given as bytes."""
    content = open_content(data)
    try:
        import stim  # imported late
    except ImportError:
        message = (
            "circuits are read by the package stim, which is not installed (`.dem` needs none)"
        )
        raise FormatError(message, content.name) from None
    try:
        circuit = stim.Circuit(content.data.decode())
        model = circuit.detector_error_model()
    except ValueError as error:
        first = str(error).strip().splitlines()[0]
        raise FormatError(f"stim does not take this circuit: {first}", content.name) from error
    return parse_detectors(Content(str(model).encode(), content.name))


def parse_detectors(data: bytes | Content) -> Detectors:
    """Return the errors and detectors of a detector error model given as bytes."""
    content = open_content(data)
    program = _Program(content)
    program.parse()
    found = _FlatErrors(content)
    content.reserve(program.sizes[0] * LIMITS.error_target)
    found.run(program.blocks[0])
    content.release()
    top = [max((max(own, default=-1) for own in rows), default=-1) + 1 for rows in found.targets]
    counts = [max(a, b) for a, b in zip(top, found.declared, strict=True)]
    content.reserve(LIMITS.error_target * sum(counts))
    detectors, observables = (tuple(rows) for rows in found.targets)
    p = np.array(found.probabilities, dtype=np.float64)
    return Detectors(p, detectors, observables, counts[0], counts[1], content.name)


Step = tuple[str, Any, Any]


class _Program:
    """A parser of lines to steps (name, argument, targets), nested in `repeat` blocks."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.blocks: list[list[Step]] = [[]]
        self.words: dict[bytes, tuple[int, int]] = {}  # targets of the file so far
        self.counts: list[int] = [1]
        self.sizes: list[int] = [0]  # numbers of targets after all repetitions

    def error(self, number: int, expected: str, found: bytes) -> FormatError:
        return self.content.error(expected, quote(found.strip()), number)

    def parse(self) -> None:
        for number, line in enumerate(self.content.data.split(b"\n"), 1):
            text = line.partition(b"#")[0].strip()
            if not text:
                continue
            if text == b"}":
                self._close(number, text)
                continue
            match = _LINE.fullmatch(text)
            if match is None:
                raise self.error(number, "an instruction such as 'error(0.1) D0 L0'", text)
            self._step(number, text, match)
        if len(self.blocks) > 1:
            raise self.error(number, "'}'", b"the end of the file")

    def _close(self, number: int, text: bytes) -> None:
        if len(self.blocks) < 2:
            raise self.error(number, "an instruction", text)
        inner, times, size = self.blocks.pop(), self.counts.pop(), self.sizes.pop()
        self.blocks[-1].append(("repeat", times, inner))
        self.sizes[-1] += times * size
        self.content.reserve(self.sizes[-1] * LIMITS.error_target, number)

    def _step(self, number: int, text: bytes, match: re.Match[bytes]) -> None:
        name = match[1].lower().decode("latin-1")
        words = match[3].replace(b"^", b" ").split()
        if (name == "repeat") != (match[4] is not None):
            raise self.error(number, "'repeat count {', or no bracket", text)
        if name == "repeat":
            self._repeat(number, text, words)
            return
        self.sizes[-1] += 1 + len(words)
        if name == "error":
            self.blocks[-1].append(
                ("error", self._probability(number, match), self._targets(number, words))
            )
        elif name in ("detector", "logical_observable"):
            self.blocks[-1].append((name, None, self._targets(number, words)))
        elif name == "shift_detectors" and len(words) == 1 and re.fullmatch(rb"\d{1,12}", words[0]):
            self.blocks[-1].append((name, int(words[0]), None))
        else:
            raise self.error(number, "error, detector, logical_observable or shift_detectors", text)

    def _repeat(self, number: int, text: bytes, words: list[bytes]) -> None:
        if len(words) != 1 or not re.fullmatch(rb"\d{1,15}", words[0]):
            raise self.error(number, "the number of repetitions", text)
        if len(self.blocks) > LIMITS.repeat_depth:
            raise self.error(
                number, f"at most {LIMITS.repeat_depth} repetitions inside each other", text
            )
        self.blocks.append([])
        self.counts.append(int(words[0]))
        self.sizes.append(1)  # repeating an empty block takes time, too

    def _probability(self, number: int, match: re.Match[bytes]) -> float:
        try:
            p = float(match[2] or b"")
        except ValueError:
            p = np.nan
        lost = p == 0.0 and any(
            digit in match[2].lower().partition(b"e")[0] for digit in b"123456789"
        )
        if lost or not 0.0 <= p <= 1.0:
            raise self.error(number, "a probability in brackets after 'error'", match.group())
        return p

    def _targets(self, number: int, words: list[bytes]) -> tuple[list[int], list[int]]:
        """Return detectors and observables; targets that occur twice cancel."""
        found: tuple[list[int], list[int]] = ([], [])
        for word in words:
            known = self.words.get(word)
            if known is None:
                known = self.words[word] = self._target(number, word)
            found[known[0]].append(known[1])
        for own in found:
            if len(set(own)) < len(own):
                own[:] = [k for k, times in Counter(own).items() if times % 2]
        return found

    def _target(self, number: int, word: bytes) -> tuple[int, int]:
        """Return 0 and a detector, or 1 and an observable."""
        kind, digits = word[:1], word[1:]
        if kind not in _KINDS or not digits.isdigit() or len(digits) > 12:
            raise self.error(number, "a target such as D0 or L0", word)
        return _KINDS[kind], int(digits)


class _FlatErrors:
    """The errors after unrolling all repetitions."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.shift = 0
        self.probabilities: list[float] = []
        self.targets: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] = ([], [])
        self.declared = [0, 0]

    def run(self, block: list[Step]) -> None:
        for name, argument, targets in block:
            if name == "repeat":
                for _ in range(argument):
                    self.run(targets)
            elif name == "shift_detectors":
                self.shift += argument
            else:
                shift = self.shift
                detectors = [d + shift for d in targets[0]]
                if name == "error":
                    self.probabilities.append(argument)
                    self.targets[0].append(tuple(detectors))
                    self.targets[1].append(tuple(targets[1]))
                else:
                    self.declared[0] = max(self.declared[0], 1 + max(detectors, default=-1))
                    self.declared[1] = max(self.declared[1], 1 + max(targets[1], default=-1))
