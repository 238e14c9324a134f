"""XDSL (GeNIe, SMILE): Bayesian networks as XML, `cpt` and `deterministic` nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from softmap.io.assembly import Costs
from softmap.io.atomic import write_text
from softmap.io.bayes import Network, check_names, conditionals, names_of
from softmap.io.blocks import plain_numbers
from softmap.io.named import Named
from softmap.io.streams import Content, Source, load, open_content
from softmap.io.xml_events import Elements, parse_xml
from softmap.model import Model

__all__ = ["format_xdsl", "named_xdsl", "parse_xdsl", "read_xdsl", "write_xdsl"]

_NODES = ("cpt", "deterministic")
_NAME = re.compile(r"[^\s\x00-\x1f]+")
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<smile version="1.0" id="softmap">\n<nodes>\n'


def parse_xdsl(data: bytes | Content) -> Model:
    """Model from the text of an XDSL file."""
    return named_xdsl(data).model


def read_xdsl(source: Source) -> Model:
    """Model from an XDSL file; `softmap.io.read_named` keeps the names."""
    return parse_xdsl(load(source))


def named_xdsl(data: bytes | Content) -> Named:
    """The same with the names of variables and states."""
    content = open_content(data)
    reader = _Reader(content)
    parse_xml(content, reader)
    for node in reader.nodes:
        reader.define(*node)
    return reader.network.named()


class _Reader(Elements):
    """Nodes are children of `nodes`; what else a file holds (pictures, cases) is passed over."""

    def __init__(self, content: Content) -> None:
        self.network = Network(content)
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
            if name not in _NODES:
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
        """Tables run over the parents, then over the child, which is fastest."""
        network = self.network
        network.line = lambda: None
        i, others, shape = network.scope(child, parents.split())
        if kind == "deterministic":
            network.add_table(i, others, self._results(i, text.split(), shape))
            return
        values = plain_numbers(text.encode())
        if values is None or len(values) != np.prod(shape):
            found = "something else" if values is None else f"{len(values)} numbers"
            raise network.error(f"{int(np.prod(shape))} probabilities of {child!r}", found)
        network.add_table(i, others, values.reshape(shape))

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


def write_xdsl(model: Model | Named, target: Source) -> None:
    """Write an XDSL file; the model must be a Bayesian network."""
    write_text(target, format_xdsl(model))


def format_xdsl(model: Model | Named) -> Iterator[str]:
    """Text of an XDSL file, in pieces: parents before their children."""
    named = names_of(model)
    parts = conditionals(named.model)
    check_names(named, "XDSL", _NAME, _NAME)
    yield _HEAD
    for part in reversed(parts):
        yield f" <cpt id={quoteattr(str(named.variables[part.child]))}>\n"
        for state in named.states[part.child]:
            yield f"  <state id={quoteattr(str(state))} />\n"
        if part.parents:
            parents = " ".join(escape(str(named.variables[j])) for j in part.parents)
            yield f"  <parents>{parents}</parents>\n"
        table = " ".join(map(repr, np.exp(-part.table).ravel().tolist()))
        yield f"  <probabilities>{table}</probabilities>\n </cpt>\n"
    yield "</nodes>\n</smile>\n"
