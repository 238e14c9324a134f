"""XMLBIF: Bayesian networks as XML, `VARIABLE`s and `DEFINITION`s."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

import numpy as np

from softmap.io.atomic import write_text
from softmap.io.bayes import Network, check_names, conditionals, names_of
from softmap.io.blocks import plain_numbers
from softmap.io.named import Named
from softmap.io.streams import Content, Source, load, open_content
from softmap.io.xml_events import Elements, parse_xml
from softmap.model import Model

__all__ = ["format_xmlbif", "named_xmlbif", "parse_xmlbif", "read_xmlbif", "write_xmlbif"]

_NAME = re.compile(r"(?!\s)[^\x00-\x1f]+(?<!\s)")
_HEAD = """<?xml version="1.0"?>
<BIF VERSION="0.3">
<NETWORK>
<NAME>softmap</NAME>
"""


def parse_xmlbif(data: bytes | Content) -> Model:
    """Model from the text of an XMLBIF file."""
    return named_xmlbif(data).model


def read_xmlbif(source: Source) -> Model:
    """Model from an XMLBIF file; `softmap.io.read_named` keeps the names."""
    return parse_xmlbif(load(source))


def named_xmlbif(data: bytes | Content) -> Named:
    """The same with the names of variables and states."""
    content = open_content(data)
    reader = _Reader(content)
    parse_xml(content, reader)
    for child, parents, text in reader.definitions:
        reader.define(child, parents, text)
    return reader.network.named()


class _Reader(Elements):
    """Variables at once; definitions may stand before the variables they name."""

    heads = frozenset(("VARIABLE", "DEFINITION"))

    def __init__(self, content: Content) -> None:
        self.network = Network(content)
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
        """The table runs over the parents, then over the child, which is fastest."""
        network = self.network
        network.line = lambda: None
        i, others, shape = network.scope(child, parents)
        values = plain_numbers(text.encode())
        if values is None or len(values) != np.prod(shape):
            found = "something else" if values is None else f"{len(values)} numbers"
            raise network.error(f"{int(np.prod(shape))} probabilities of {child!r}", found)
        network.add_table(i, others, values.reshape(shape))


def write_xmlbif(model: Model | Named, target: Source) -> None:
    """Write an XMLBIF file; the model must be a Bayesian network."""
    write_text(target, format_xmlbif(model))


def format_xmlbif(model: Model | Named) -> Iterator[str]:
    """Text of an XMLBIF file, in pieces."""
    named = names_of(model)
    parts = conditionals(named.model)
    check_names(named, "XMLBIF", _NAME, _NAME)
    names = [escape(str(name)) for name in named.variables]
    yield _HEAD
    for name, own in zip(names, named.states, strict=True):
        states = "".join(f"  <OUTCOME>{escape(str(state))}</OUTCOME>\n" for state in own)
        yield f'<VARIABLE TYPE="nature">\n  <NAME>{name}</NAME>\n{states}</VARIABLE>\n'
    for part in parts:
        given = "".join(f"  <GIVEN>{names[j]}</GIVEN>\n" for j in part.parents)
        table = " ".join(map(repr, np.exp(-part.table).ravel().tolist()))
        yield f"<DEFINITION>\n  <FOR>{names[part.child]}</FOR>\n{given}"
        yield f"  <TABLE>{table}</TABLE>\n</DEFINITION>\n"
    yield "</NETWORK>\n</BIF>\n"
