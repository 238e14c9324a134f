"""BIF: Bayesian networks as blocks `variable` and `probability`, a row for each parents' state."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from softmap.io.assembly import Costs
from softmap.io.atomic import write_text
from softmap.io.bayes import NO_QUOTES, Network, check_names, conditionals, names_of, open_blocks
from softmap.io.blocks import Blocks, plain_numbers
from softmap.io.named import Named
from softmap.io.streams import Content, Source, load
from softmap.model import Model

__all__ = ["format_bif", "named_bif", "parse_bif", "read_bif", "write_bif"]

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_PLAIN = bytes.maketrans(b",", b" ")


def parse_bif(data: bytes | Content) -> Model:
    """Model from the text of a BIF file."""
    return named_bif(data).model


def read_bif(source: Source) -> Model:
    """Model from a BIF file; `softmap.io.read_named` keeps the names."""
    return parse_bif(load(source))


def named_bif(data: bytes | Content) -> Named:
    """The same with the names of variables and states."""
    blocks, network = open_blocks(data, b"//", (b"/*", b"*/"))
    while not blocks.done():
        kind = blocks.word("network, variable or probability")
        if kind == "network":
            blocks.until(b"{", "'{'")
            blocks.until(b"}", "'}'")
        elif kind == "variable":
            _variable(blocks, network)
        elif kind == "probability":
            _probability(blocks, network)
        else:
            raise network.error("network, variable or probability", kind)
    return network.named()


def _variable(blocks: Blocks, network: Network) -> None:
    name = blocks.word("the name of a variable")
    blocks.expect(b"{")
    states: list[str] | None = None
    while not blocks.sign(b"}"):
        key = blocks.word("type or property")
        if key == "property":
            blocks.until(b";", "';' after a property")
            continue
        if key != "type" or states is not None:
            raise network.error("type (once) or property", key)
        kind = blocks.word("discrete")
        if kind != "discrete":
            raise network.error("discrete (others are not supported)", kind)
        blocks.expect(b"[")
        count = blocks.word("the number of states")
        blocks.expect(b"]")
        blocks.expect(b"{")
        states = blocks.words(b"}", "the name of a state")
        if count != str(len(states)):
            raise network.error(f"{len(states)}, the number of states of {name!r}", count)
        blocks.expect(b";")
    network.add_variable(name, states or [])


def _probability(blocks: Blocks, network: Network) -> None:
    blocks.expect(b"(")
    child = blocks.word("the name of a variable")
    parents = []
    if blocks.sign(b"|"):
        parents = blocks.words(b")", "the name of a parent")
    else:
        blocks.expect(b")")
    i, others, shape = network.scope(child, parents)
    blocks.expect(b"{")
    rows = _Rows(network, [network.states[j] for j in others], shape)
    for statement in blocks.until(b"}", "'}' after the probabilities").split(b";"):
        rows.add(statement.strip())
    network.add_table(i, others, rows.table())


def _numbers_of_words(names: tuple[str, ...]) -> dict[bytes, int]:
    """The number of each state, by its name as it may stand in the text."""
    plain = {name.encode(): k for k, name in enumerate(names)}
    return {b'"' + name + b'"': k for name, k in plain.items()} | plain


class _Rows:
    """The statements of one block, turned into numbers together."""

    def __init__(
        self, network: Network, states: list[tuple[str, ...]], shape: tuple[int, ...]
    ) -> None:
        self.network, self.shape = network, shape
        self.number = [_numbers_of_words(names) for names in states]
        self.places: list[list[int]] = []
        self.texts: list[bytes] = []
        self.whole: bytes | None = None
        self.default: bytes | None = None

    def add(self, statement: bytes) -> None:
        if statement.startswith(b"("):
            names, _, numbers = statement[1:].partition(b")")
            self.places.append(self._place(names.split(b",") if self.number else []))
            self.texts.append(numbers)
            return
        key, _, rest = statement.replace(b"\t", b" ").partition(b" ")
        if key == b"table":
            self.whole = rest
        elif key == b"default":
            self.default = rest
        elif key not in (b"property", b""):
            found = key.decode("utf-8", "backslashreplace")
            raise self.network.error("a row '(states) probabilities', table or default", found)

    def _place(self, words: list[bytes]) -> list[int]:
        try:
            pairs = zip(words, self.number, strict=True)
            return [number[word.strip()] for word, number in pairs]
        except (KeyError, ValueError):
            found = b",".join(words).decode("utf-8", "backslashreplace")
            expected = f"one state for each of {len(self.number)} parents"
            raise self.network.error(expected, found) from None

    def _numbers(self, text: bytes, count: int) -> Costs:
        values = plain_numbers(text.translate(_PLAIN))
        if values is None or len(values) != count:
            found = text[:60].decode("utf-8", "backslashreplace")
            raise self.network.error(f"{count} probabilities", found.strip())
        return values

    def table(self) -> Costs:
        """The table, child last."""
        size = int(np.prod(self.shape))
        if self.whole is not None:
            # the child's axis comes first in this form
            values = self._numbers(self.whole, size)
            table = values.reshape(self.shape[-1], *self.shape[:-1])
            return np.ascontiguousarray(np.moveaxis(table, 0, -1))
        states = self.shape[-1]
        table = np.full((size // states, states), np.nan)
        if self.default is not None:
            table[:] = self._numbers(self.default, states)
        if self.texts:
            rows = self._rows(states)
            shape = self.shape[:-1]
            at = np.ravel_multi_index(tuple(np.array(self.places).T), shape) if shape else [0]
            if len(np.unique(at)) != len(rows):
                raise self.network.error("each state of the parents once", "one of them twice")
            table[at] = rows
        if np.isnan(table).any():
            missing = int(np.argmax(np.isnan(table).any(axis=1)))
            expected = f"{size // states} rows of probabilities (or a default)"
            raise self.network.error(expected, f"none for state {missing} of the parents")
        return table.reshape(self.shape)

    def _rows(self, states: int) -> Costs:
        texts = [text.translate(_PLAIN) for text in self.texts]
        odd = next((t for t in texts if len(t.split()) != states), None)
        if odd is not None:
            self._numbers(odd, states)
        joined = b" ".join(texts)
        return self._numbers(joined, states * len(texts)).reshape(-1, states)


def _quoted(name: str) -> str:
    return name if _BARE.fullmatch(name) else f'"{name}"'


def write_bif(model: Model | Named, target: Source) -> None:
    """Write a BIF file; the model must be a Bayesian network."""
    write_text(target, format_bif(model))


def format_bif(model: Model | Named) -> Iterator[str]:
    """Text of a BIF file, in pieces."""
    named = names_of(model)
    parts = conditionals(named.model)
    check_names(named, "BIF", NO_QUOTES, NO_QUOTES)
    yield "network softmap {\n}\n"
    names = [_quoted(str(name)) for name in named.variables]
    states = [[_quoted(str(state)) for state in own] for own in named.states]
    for name, own in zip(names, states, strict=True):
        yield f"variable {name} {{\n  type discrete [ {len(own)} ] {{ {', '.join(own)} }};\n}}\n"
    for part in parts:
        given = f" | {', '.join(names[j] for j in part.parents)}" if part.parents else ""
        yield f"probability ( {names[part.child]}{given} ) {{\n"
        table = np.exp(-part.table)
        for place in np.ndindex(table.shape[:-1]):
            row = ", ".join(map(repr, table[place].tolist()))
            own = [states[j][x] for j, x in zip(part.parents, place, strict=True)]
            yield f"  ({', '.join(own)}) {row};\n" if own else f"  table {row};\n"
        yield "}\n"
