"""Models, evidence and labellings from and to files.

`read` and `write` choose the format by the name and the content; each format also has its own
`parse_x(bytes)` and `read_x(path)`, and `write_x(model, path)` where it can be written.
"""

from softmap.io.bif import format_bif, parse_bif, read_bif, write_bif
from softmap.io.cfn import parse_cfn, read_cfn
from softmap.io.cfn_writer import format_cfn, write_cfn
from softmap.io.dd import parse_dd, read_dd
from softmap.io.dem import Detectors, parse_dem, parse_detectors, read_dem, read_detectors
from softmap.io.evidence import parse_evidence, read_evidence
from softmap.io.formats import FORMATS, format_of, read, read_named, write
from softmap.io.named import Named
from softmap.io.net import format_net, parse_net, read_net, write_net
from softmap.io.npz import parse_npz, read_npz, write_npz
from softmap.io.opb import format_opb, parse_opb, read_opb, write_opb
from softmap.io.opengm import parse_opengm, read_opengm
from softmap.io.opengm_writer import format_opengm, write_opengm
from softmap.io.qap import parse_qap, parse_sln, read_qap, read_sln
from softmap.io.qubo import (
    format_coo,
    format_maxcut,
    format_qpbo,
    format_qubo,
    parse_coo,
    parse_maxcut,
    parse_qpbo,
    parse_qubo,
    read_coo,
    read_maxcut,
    read_qpbo,
    read_qubo,
    write_coo,
    write_maxcut,
    write_qpbo,
    write_qubo,
)
from softmap.io.results import format_labels, parse_labels, read_labels, write_labels
from softmap.io.uai import parse_uai, read_uai
from softmap.io.uai_writer import format_uai, write_uai
from softmap.io.wcnf import format_wcnf, parse_wcnf, read_wcnf, write_wcnf
from softmap.io.wcsp import parse_wcsp, read_wcsp
from softmap.io.wcsp_writer import format_wcsp, write_wcsp
from softmap.io.xdsl import format_xdsl, parse_xdsl, read_xdsl, write_xdsl
from softmap.io.xmlbif import format_xmlbif, parse_xmlbif, read_xmlbif, write_xmlbif

__all__ = [
    "FORMATS",
    "Detectors",
    "Named",
    "format_bif",
    "format_cfn",
    "format_coo",
    "format_labels",
    "format_maxcut",
    "format_net",
    "format_of",
    "format_opb",
    "format_opengm",
    "format_qpbo",
    "format_qubo",
    "format_uai",
    "format_wcnf",
    "format_wcsp",
    "format_xdsl",
    "format_xmlbif",
    "parse_bif",
    "parse_cfn",
    "parse_coo",
    "parse_dd",
    "parse_dem",
    "parse_detectors",
    "parse_evidence",
    "parse_labels",
    "parse_maxcut",
    "parse_net",
    "parse_npz",
    "parse_opb",
    "parse_opengm",
    "parse_qap",
    "parse_qpbo",
    "parse_qubo",
    "parse_sln",
    "parse_uai",
    "parse_wcnf",
    "parse_wcsp",
    "parse_xdsl",
    "parse_xmlbif",
    "read",
    "read_bif",
    "read_cfn",
    "read_coo",
    "read_dd",
    "read_dem",
    "read_detectors",
    "read_evidence",
    "read_labels",
    "read_maxcut",
    "read_named",
    "read_net",
    "read_npz",
    "read_opb",
    "read_opengm",
    "read_qap",
    "read_qpbo",
    "read_qubo",
    "read_sln",
    "read_uai",
    "read_wcnf",
    "read_wcsp",
    "read_xdsl",
    "read_xmlbif",
    "write",
    "write_bif",
    "write_cfn",
    "write_coo",
    "write_labels",
    "write_maxcut",
    "write_net",
    "write_npz",
    "write_opb",
    "write_opengm",
    "write_qpbo",
    "write_qubo",
    "write_uai",
    "write_wcnf",
    "write_wcsp",
    "write_xdsl",
    "write_xmlbif",
]
