"""Bayesian networks as text of named blocks: BIF and NET (Hugin).

BIF has blocks `variable` and `probability`, with a row for each state of the parents; NET has
blocks `node` and `potential`, with tables in nested brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from softmap.errors import FormatError
from softmap.io.bayes import BayesNetwork, conditionals, names_of
from softmap.io.streams import Content
from softmap.io.tokens import quote
from softmap.model import Model, Network
from softmap.model.potentials.base import Costs

_NO_QUOTES = re.compile(r"[^\"\n,;(){}/*%\\\x00-\x1f]+")


_WORD = re.compile(rb"""\s*(?:"([^"\n]*)"|([{}()\[\],;|])|([^\s{}()\[\],;|"]+))""")
_SKIP = re.compile(rb"\s*")


def _blank_comments(
    data: bytes, line_mark: bytes, pair: tuple[bytes, bytes] | None = None
) -> bytes:
    """Replace comments by blanks; line numbers do not change. The time is linear in the text."""
    if line_mark in data:
        data = re.sub(re.escape(line_mark) + rb"[^\n]*", b" ", data)
    if pair is None or pair[0] not in data:
        return data
    parts, at = [], 0
    while (begin := data.find(pair[0], at)) >= 0:
        end = data.find(pair[1], begin + 2)
        end = len(data) if end < 0 else end + 2
        parts += [data[at:begin], b" " + b"\n" * data.count(b"\n", begin, end)]
        at = end
    return b"".join([*parts, data[at:]])


class _Declarations:
    """A cursor over the text; every error names the line."""

    def __init__(self, content: Content, data: bytes) -> None:
        self.content = content
        self.data = data
        self.at = 0

    def line(self) -> int:
        """The line of the next word."""
        begin = _SKIP.match(self.data, self.at)
        assert begin is not None
        return self.data.count(b"\n", 0, begin.end()) + 1

    def error(self, expected: str) -> FormatError:
        """Return an error at the cursor; the caller raises it."""
        match = _WORD.match(self.data, self.at)
        found = quote(match.group().strip()) if match else "the end of the file"
        if not match and (rest := self.data[self.at : self.at + 60].strip()):
            found = quote(rest)
        return self.content.error(expected, found, self.line())

    def done(self) -> bool:
        """Whether only blanks are left."""
        begin = _SKIP.match(self.data, self.at)
        return begin is not None and begin.end() == len(self.data)

    def sign(self, sign: bytes) -> bool:
        """Whether this character comes next; if so, skip it."""
        match = _WORD.match(self.data, self.at)
        if match is None or match[2] != sign:
            return False
        self.at = match.end()
        return True

    def expect(self, sign: bytes) -> None:
        """Skip this character, or raise an error."""
        if not self.sign(sign):
            raise self.error(repr(sign.decode()))

    def word(self, expected: str) -> str:
        """Return the next name, quoted or not."""
        match = _WORD.match(self.data, self.at)
        if match is None or match[2] is not None:
            raise self.error(expected)
        self.at = match.end()
        name = match[1] if match[1] is not None else match[3]
        return name.decode("utf-8", "backslashreplace")

    def words(self, closing: bytes, expected: str) -> list[str]:
        """Return the names up to a closing character, with or without commas."""
        found = []
        while not self.sign(closing):
            found.append(self.word(expected))
            self.sign(b",")
        return found

    def until(self, sign: bytes, expected: str) -> bytes:
        """Return the text up to a character, and skip both."""
        end = self.data.find(sign, self.at)
        if end < 0:
            raise self.error(expected)
        text = self.data[self.at : end]
        self.at = end + 1
        return text


def _open_blocks(
    content: Content, line_mark: bytes, pair: tuple[bytes, bytes] | None = None
) -> tuple[_Declarations, BayesNetwork]:
    """Return a cursor over the text without comments, and an empty network."""
    blocks = _Declarations(content, _blank_comments(content.data, line_mark, pair))
    return blocks, BayesNetwork(content, blocks.line)


# --- BIF ----------------------------------------------------------------------------------------


_COMMAS = bytes.maketrans(b",", b" ")
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def parse_bif(content: Content) -> Model:
    """Return the model of a BIF file, with the names of variables and states."""
    blocks, network = _open_blocks(content, b"//", (b"/*", b"*/"))
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
    return network.model()


def _variable(blocks: _Declarations, network: BayesNetwork) -> None:
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


def _scope(
    blocks: _Declarations, network: BayesNetwork, what: str
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Read `(child | parents)`; return their numbers and their numbers of states."""
    blocks.expect(b"(")
    child, parents = blocks.word(what), list[str]()
    if blocks.sign(b"|"):
        parents = blocks.words(b")", "the name of a parent")
    else:
        blocks.expect(b")")
    return network.scope(child, parents)


def _probability(blocks: _Declarations, network: BayesNetwork) -> None:
    i, others, shape = _scope(blocks, network, "the name of a variable")
    blocks.expect(b"{")
    rows = _Rows(network, [network.states[j] for j in others], shape)
    for statement in blocks.until(b"}", "'}' after the probabilities").split(b";"):
        rows.add(statement.strip())
    network.add_costs(i, others, rows.costs())


def _numbers_of_words(names: tuple[str, ...]) -> dict[bytes, int]:
    """Return the number of each state by its name, quoted and unquoted."""
    plain = {name.encode(): k for k, name in enumerate(names)}
    return {b'"' + name + b'"': k for name, k in plain.items()} | plain


class _Rows:
    """The statements of one block; their numbers are converted together."""

    def __init__(
        self, network: BayesNetwork, states: list[tuple[str, ...]], shape: tuple[int, ...]
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
        elif key == b"property" and rest.split()[:1] == [b"function"]:
            function = rest.decode("utf-8", "backslashreplace")
            raise self.network.error("a table of probabilities", f"property {function}")
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
        return self.network.costs(text.translate(_COMMAS), count, f"{count} probabilities")

    def costs(self) -> Costs:
        """Return -log of the probabilities, child last."""
        size = int(np.prod(self.shape))
        if self.whole is not None:
            # in the form `table`, the child's axis comes first
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
        texts = [text.translate(_COMMAS) for text in self.texts]
        odd = next((t for t in texts if len(t.split()) != states), None)
        if odd is not None:
            self._numbers(odd, states)
        joined = b" ".join(texts)
        return self._numbers(joined, states * len(texts)).reshape(-1, states)


def _quoted(name: str) -> str:
    return name if _BARE.fullmatch(name) else f'"{name}"'


def format_bif(model: Network) -> Iterator[str]:
    """Yield the text of a BIF file, in pieces."""
    parts = conditionals(model)
    names, states = names_of(model, _NO_QUOTES, _NO_QUOTES)
    yield "network softmap {\n}\n"
    names = [_quoted(name) for name in names]
    states = [[_quoted(state) for state in own] for own in states]
    for name, own in zip(names, states, strict=True):
        yield f"variable {name} {{\n  type discrete [ {len(own)} ] {{ {', '.join(own)} }};\n}}\n"
    for part in parts:
        given = f" | {', '.join(names[j] for j in part.parents)}" if part.parents else ""
        yield f"probability ( {names[part.child]}{given} ) {{\n"
        table = np.exp(-part.costs)
        for place in np.ndindex(table.shape[:-1]):
            row = ", ".join(map(repr, table[place].tolist()))
            own = [states[j][x] for j, x in zip(part.parents, place, strict=True)]
            yield f"  ({', '.join(own)}) {row};\n" if own else f"  table {row};\n"
        yield "}\n"


# --- NET ----------------------------------------------------------------------------------------


_BRACKETS = bytes.maketrans(b"(),", b"   ")
_NODE_NAME = re.compile(r"[^\s{}()\[\],;|\"%=]+")
_VALUE = re.compile(rb"""\s*+=((?:[^";]++|"[^"]*+")*+);""")


def parse_net(content: Content) -> Model:
    """Return the model of a NET file, with the names of variables and states."""
    blocks, network = _open_blocks(content, b"%")
    while not blocks.done():
        kind = blocks.word("net, node or potential")
        if kind in ("net", "class"):
            blocks.until(b"{", "'{'")
            while not blocks.sign(b"}"):
                _attribute(blocks)
        elif kind in ("node", "discrete"):
            _node(blocks, network, kind)
        elif kind == "potential":
            _potential(blocks, network)
        else:
            raise network.error("net, node or potential (others are not supported)", kind)
    return network.model()


def _attribute(blocks: _Declarations) -> tuple[str, bytes]:
    """Return key and text of `key = text;`; quoted text may contain semicolons."""
    key = blocks.word("an attribute")
    match = _VALUE.match(blocks.data, blocks.at)
    if match is None:
        raise blocks.error("'=', a value and ';'")
    blocks.at = match.end()
    return key, match[1]


def _node(blocks: _Declarations, network: BayesNetwork, kind: str) -> None:
    if kind == "discrete":
        blocks.word("node")
    name = blocks.word("the name of a node")
    blocks.expect(b"{")
    states: list[str] = []
    while not blocks.sign(b"}"):
        key, text = _attribute(blocks)
        if key == "states":
            inner = _Declarations(blocks.content, text)
            if not inner.sign(b"("):
                raise network.error("states in brackets", text[:40].decode("latin-1"))
            states = inner.words(b")", "the name of a state")
    network.add_variable(name, states)


def _potential(blocks: _Declarations, network: BayesNetwork) -> None:
    i, others, shape = _scope(blocks, network, "the name of a node")
    blocks.expect(b"{")
    text = None
    while not blocks.sign(b"}"):
        key, value = _attribute(blocks)
        if key == "data":
            text = value
        elif key.startswith("model"):
            raise network.error("data (tables made by formulas are not supported)", key)
    if text is None:
        network.add_table(i, others, np.full(shape, 1.0 / shape[-1]))  # the default of the format
        return
    network.add_text(i, others, shape, text.translate(_BRACKETS))


def format_net(model: Network) -> Iterator[str]:
    """Yield the text of a NET file, in pieces; names of nodes are not quoted."""
    parts = conditionals(model)
    names, states = names_of(model, _NODE_NAME, _NO_QUOTES)
    yield "net\n{\n}\n"
    for name, own in zip(names, states, strict=True):
        quoted = " ".join(f'"{state}"' for state in own)
        yield f"node {name}\n{{\n  states = ( {quoted} );\n}}\n"
    for part in parts:
        given = " | " + " ".join(names[j] for j in part.parents)
        head = f"{names[part.child]}{given if part.parents else ''}"
        yield f"potential ( {head} )\n{{\n  data = "
        yield _nested(np.exp(-part.costs).tolist())
        yield ";\n}\n"


def _nested(values: list[object] | float) -> str:
    if not isinstance(values, list):
        return repr(values)
    return f"( {' '.join(_nested(v) for v in values)} )"  # type: ignore[arg-type]
