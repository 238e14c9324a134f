"""Bayesian networks as XML: XMLBIF, and XDSL of GeNIe and SMILE.

The parser is restricted for safety: no entities, no external content, no deep nesting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from softmap.errors import FormatError
from softmap.io.bayes import BayesNetwork, conditionals, in_order, names_of
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.model import Model, Network
from softmap.model.potentials.base import Costs

_BIF_HEAD = """<?xml version="1.0"?>
<BIF VERSION="0.3">
<NETWORK>
<NAME>softmap</NAME>
"""
_SMILE_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<smile version="1.0" id="softmap">\n<nodes>\n'
)
_SMILE_NODES = ("cpt", "deterministic")
_PADDED_NAME = re.compile(r"(?!\s)[^\x00-\x1f]+(?<!\s)")
_WORD = re.compile(r"[^\s\x00-\x1f]+")


class _Elements:
    """The callbacks of a reader; `line` returns the current line of the parser."""

    line: Any = staticmethod(lambda: None)
    heads: frozenset[str] | None = None  # elements for which `start` is called; None: all

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Called when an element begins."""
        raise NotImplementedError

    def end(self, name: str, text: str) -> None:
        """Called when an element ends; `text` is its text without that of inner elements."""
        raise NotImplementedError


def _parse_xml(content: Content, elements: _Elements) -> None:
    """Parse XML and call the callbacks; raise an error for entities and for deep nesting."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.buffer_size = LIMITS.xml_text
    texts: list[list[str]] = []
    heads = elements.heads

    def refuse(what: str) -> FormatError:
        return content.error("a plain document", what, parser.CurrentLineNumber)

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(texts) >= LIMITS.xml_depth:
            raise refuse(f"more than {LIMITS.xml_depth} elements inside each other")
        if heads is None or name in heads or not texts:
            elements.start(name, attributes)
        texts.append([])

    def end(name: str) -> None:
        elements.end(name, "".join(texts.pop()))

    def text(data: str) -> None:
        if texts:
            texts[-1].append(data)

    def entity(*_: object) -> None:
        raise refuse("the declaration of an entity")

    elements.line = lambda: parser.CurrentLineNumber
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = entity
    try:
        for at in range(0, len(content.data), LIMITS.xml_bytes):
            parser.Parse(content.data[at : at + LIMITS.xml_bytes], False)
        parser.Parse(b"", True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        # LookupError and ValueError: the declared encoding is unknown or impossible
        if isinstance(error, FormatError):
            raise
        line = getattr(error, "lineno", None)
        raise FormatError(f"expected XML: {error}", content.name, line, expected="XML") from error
    finally:
        parser.StartElementHandler = parser.EndElementHandler = None
        parser.CharacterDataHandler = parser.EntityDeclHandler = None


# --- XMLBIF -------------------------------------------------------------------------------------


def parse_xmlbif(content: Content) -> Model:
    """Return the model of an XMLBIF file, with the names of variables and states."""
    reader = _BifReader(content)
    _parse_xml(content, reader)
    for child, parents, text in reader.definitions:
        reader.define(child, parents, text)
    return reader.network.model()


class _BifReader(_Elements):
    """Reader of XMLBIF; definitions may come before the variables that they name."""

    heads = frozenset(("VARIABLE", "DEFINITION"))

    def __init__(self, content: Content) -> None:
        self.network = BayesNetwork(content)
        self.definitions: list[tuple[str, list[str], str]] = []
        self.texts: dict[str, list[str]] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name not in self.heads:
            if name != "BIF":
                raise self._error("the element BIF", name)
            return
        self.texts = {"NAME": [], "OUTCOME": [], "FOR": [], "GIVEN": [], "TABLE": []}
        self.texts["VALUE"] = self.texts["OUTCOME"]
        kind = attributes.get("TYPE", "nature")
        if name == "VARIABLE" and kind != "nature":
            raise self._error("variables of TYPE nature", kind)

    def end(self, name: str, text: str) -> None:
        found = self.texts
        if name in found:
            found[name].append(text.strip())
        elif name == "VARIABLE":
            self.network.line = self.line
            if len(found["NAME"]) != 1:
                raise self._error("a variable with one NAME", str(len(found["NAME"])))
            self.network.add_variable(found["NAME"][0], found["OUTCOME"])
        elif name == "DEFINITION":
            if len(found["FOR"]) != 1 or len(found["TABLE"]) != 1:
                raise self._error("a definition FOR one variable with one TABLE", "another")
            self.definitions.append((found["FOR"][0], found["GIVEN"], found["TABLE"][0]))

    def _error(self, expected: str, found: str) -> Exception:
        self.network.line = self.line
        return self.network.error(expected, found)

    def define(self, child: str, parents: list[str], text: str) -> None:
        """Add a table; the child's states vary fastest."""
        network = self.network
        network.line = lambda: None
        i, others, shape = network.scope(child, parents)
        network.add_text(i, others, shape, text.encode())


def format_xmlbif(model: Network) -> Iterator[str]:
    """Yield the text of an XMLBIF file, in pieces."""
    parts = conditionals(model)
    names, states = names_of(model, _PADDED_NAME, _PADDED_NAME)
    names = [escape(name) for name in names]
    yield _BIF_HEAD
    for name, own in zip(names, states, strict=True):
        outcomes = "".join(f"  <OUTCOME>{escape(state)}</OUTCOME>\n" for state in own)
        yield f'<VARIABLE TYPE="nature">\n  <NAME>{name}</NAME>\n{outcomes}</VARIABLE>\n'
    for part in parts:
        given = "".join(f"  <GIVEN>{names[j]}</GIVEN>\n" for j in part.parents)
        table = " ".join(map(repr, np.exp(-part.costs).ravel().tolist()))
        yield f"<DEFINITION>\n  <FOR>{names[part.child]}</FOR>\n{given}"
        yield f"  <TABLE>{table}</TABLE>\n</DEFINITION>\n"
    yield "</NETWORK>\n</BIF>\n"


# --- XDSL ---------------------------------------------------------------------------------------


def parse_xdsl(content: Content) -> Model:
    """Return the model of an XDSL file, with the names of variables and states."""
    reader = _SmileReader(content)
    _parse_xml(content, reader)
    for node in reader.nodes:
        reader.define(*node)
    return reader.network.model()


class _SmileReader(_Elements):
    """Reader of XDSL: nodes are children of `nodes`; other content (layout, cases) is skipped."""

    def __init__(self, content: Content) -> None:
        self.network = BayesNetwork(content)
        self.nodes: list[tuple[str, str, str, str]] = []
        self.path: list[str] = []
        self.id = ""
        self.states: list[str] = []
        self.texts: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.network.line = self.line
        if not self.path and name != "smile":
            raise self.network.error("the element smile", name)
        if self.path == ["smile", "nodes"]:
            if name not in _SMILE_NODES:
                raise self.network.error("nodes cpt or deterministic", name)
            self.id = attributes.get("id", "")
            self.states, self.texts = [], {}
        elif name == "state" and len(self.path) == 3:
            self.states.append(attributes.get("id", ""))
        self.path.append(name)

    def end(self, name: str, text: str) -> None:
        self.path.pop()
        self.network.line = self.line
        if self.path == ["smile", "nodes"]:
            self.network.add_variable(self.id, self.states)
            parents = self.texts.get("parents", "")
            key = "probabilities" if name == "cpt" else "resultingstates"
            if key not in self.texts:
                raise self.network.error(f"{key} of {self.id!r}", "none")
            self.nodes.append((name, self.id, parents, self.texts[key]))
        elif len(self.path) == 3 and self.path[1] == "nodes":
            self.texts[name] = text

    def define(self, kind: str, child: str, parents: str, text: str) -> None:
        """Add a table; the child's states vary fastest."""
        network = self.network
        network.line = lambda: None
        i, others, shape = network.scope(child, parents.split())
        if kind == "deterministic":
            network.add_table(i, others, self._results(i, text.split(), shape))
            return
        network.add_text(i, others, shape, text.encode())

    def _results(self, i: int, words: list[str], shape: tuple[int, ...]) -> Costs:
        number = {name: k for k, name in enumerate(self.network.states[i])}
        rows = int(np.prod(shape[:-1]))
        odd = [word for word in words if word not in number]
        if odd or len(words) != rows:
            found = odd[0] if odd else f"{len(words)} of them"
            raise self.network.error(f"{rows} states of the node", found)
        table = np.zeros((rows, shape[-1]))
        table[np.arange(rows), [number[word] for word in words]] = 1.0
        return table.reshape(shape)


def format_xdsl(model: Network) -> Iterator[str]:
    """Yield the text of an XDSL file, in pieces, parents before their children.

    The format wants this order; other variables keep theirs.
    """
    parts = conditionals(model)
    names, states = names_of(model, _WORD, _WORD)
    yield _SMILE_HEAD
    for part in in_order(parts):
        yield f" <cpt id={quoteattr(names[part.child])}>\n"
        for state in states[part.child]:
            yield f"  <state id={quoteattr(state)} />\n"
        if part.parents:
            parents = " ".join(escape(names[j]) for j in part.parents)
            yield f"  <parents>{parents}</parents>\n"
        table = " ".join(map(repr, np.exp(-part.costs).ravel().tolist()))
        yield f"  <probabilities>{table}</probabilities>\n </cpt>\n"
    yield "</nodes>\n</smile>\n"
