"""The table of formats: names, how contents begin, readers and writers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from softmap.io.bif import named_bif, parse_bif, write_bif
from softmap.io.cfn import parse_cfn
from softmap.io.cfn_writer import write_cfn
from softmap.io.dd import parse_dd
from softmap.io.dem import parse_dem
from softmap.io.named import Named
from softmap.io.net import named_net, parse_net, write_net
from softmap.io.npz import parse_npz, write_npz
from softmap.io.opb import parse_opb, write_opb
from softmap.io.opengm import parse_opengm
from softmap.io.opengm_writer import write_opengm
from softmap.io.qap import parse_qap
from softmap.io.qubo import (
    parse_coo,
    parse_maxcut,
    parse_qpbo,
    parse_qubo,
    write_coo,
    write_maxcut,
    write_qpbo,
    write_qubo,
)
from softmap.io.uai import parse_uai
from softmap.io.uai_writer import write_uai
from softmap.io.wcnf import parse_wcnf, write_wcnf
from softmap.io.wcsp import parse_wcsp
from softmap.io.wcsp_writer import write_wcsp
from softmap.io.xdsl import named_xdsl, parse_xdsl, write_xdsl
from softmap.io.xmlbif import named_xmlbif, parse_xmlbif, write_xmlbif
from softmap.model import Model

__all__ = ["FORMATS", "Format"]


@dataclass(frozen=True)
class Format:
    """A format: the names it goes by, how its content begins, its two halves.

    `only` says which models it can hold, where that is not all of them; `named` reads the names of
    variables and labels, too.
    """

    name: str
    suffixes: tuple[str, ...]
    begins: re.Pattern[bytes]
    parse: Callable[..., Model]
    write: Callable[..., None] | None
    only: str = ""
    named: Callable[..., Named] | None = None


_SKIP = rb"(?:\s|#[^\n]*\n|c[ \t][^\n]*\n)*"
_NEVER = re.compile(rb"(?!)")  # lists of numbers: only the name tells what they are
_TWO = "variables with two labels each"
_BAYES = "Bayesian networks"
_XML = rb"\s*(?:<\?[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*"


def _begins(pattern: bytes, flags: int = 0) -> re.Pattern[bytes]:
    return re.compile(pattern, flags)


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("npz", (".npz",), _begins(rb"PK\x03\x04"), parse_npz, write_npz),
        Format("opengm", (".h5", ".hdf5"), _begins(rb"\x89HDF"), parse_opengm, write_opengm),
        Format(
            "uai",
            (".uai", ".lg"),
            _begins(_SKIP + rb"(?:MARKOV|BAYES)\s", re.IGNORECASE),
            parse_uai,
            write_uai,
        ),
        Format("cfn", (".cfn",), _begins(rb"(?:\s|#[^\n]*\n)*\{"), parse_cfn, write_cfn),
        Format("dd", (".dd",), _begins(_SKIP + rb"(?:p|gm)\s+\d"), parse_dd, None),
        Format(
            "bif",
            (".bif",),
            _begins(rb"(?:\s|//[^\n]*\n)*(?:network|variable)\s[^{;]*\{"),
            parse_bif,
            write_bif,
            _BAYES,
            named_bif,
        ),
        Format(
            "xmlbif",
            (".xmlbif", ".xbif", ".xml"),
            _begins(_XML + rb"<(?:!DOCTYPE\s+)?BIF[\s>]", re.DOTALL),
            parse_xmlbif,
            write_xmlbif,
            _BAYES,
            named_xmlbif,
        ),
        Format(
            "net",
            (".net", ".hugin"),
            _begins(rb"(?:\s|%[^\n]*\n)*(?:net|class)\s*\{"),
            parse_net,
            write_net,
            _BAYES,
            named_net,
        ),
        Format(
            "xdsl",
            (".xdsl",),
            _begins(_XML + rb"<smile[\s>]", re.DOTALL),
            parse_xdsl,
            write_xdsl,
            _BAYES,
            named_xdsl,
        ),
        Format("qpbo", (".qpbo",), _NEVER, parse_qpbo, write_qpbo, _TWO),
        Format("qubo", (".qubo",), _begins(_SKIP + rb"p\s+qubo\s"), parse_qubo, write_qubo, _TWO),
        Format("coo", (".coo",), _begins(rb"#\s*vartype"), parse_coo, write_coo, _TWO),
        Format("maxcut", (".mc", ".rud"), _NEVER, parse_maxcut, write_maxcut, "cuts of graphs"),
        Format("wcnf", (".wcnf",), _begins(_SKIP + rb"p\s+wcnf\s"), parse_wcnf, write_wcnf, _TWO),
        Format(
            "opb",
            (".opb", ".wbo"),
            _begins(rb"(?:\s|\*[^\n]*\n)*(?:min:|max:|soft:|[-+]\d+\s+~?x\d)"),
            parse_opb,
            write_opb,
            _TWO,
        ),
        Format(
            "dem",
            (".dem",),
            _begins(_SKIP + rb"(?:error\s*[\[(]|detector\s*[\[( ]|shift_detectors)", re.IGNORECASE),
            parse_dem,
            None,
        ),
        Format(
            "wcsp",
            (".wcsp",),
            # a name, or numbers of which five stand on the first line
            _begins(
                rb"\s*(?:[^\s\d]\S*\s+\d+\s+\d+\s+\d+\s+\d+\s"
                rb"|\S+[ \t]+\d+[ \t]+\d+[ \t]+\d+[ \t]+\d+[ \t\r]*\n)"
            ),
            parse_wcsp,
            write_wcsp,
        ),
        Format(
            "qap",
            (".dat",),
            _begins(rb"\s*\d+[ \t\r]*\n\s*-?\d[-\d. \t]*\r?\n"),
            parse_qap,
            None,
        ),
    )
}
