"""Models, evidence and labellings from and to files.

`read` and `write` choose the format by the name and the content; each format also has its own
`parse_x(bytes)` and `read_x(path)`, and `write_x(model, path)` where it can be written.
"""

from softmap.io.cfn import parse_cfn, read_cfn
from softmap.io.cfn_writer import format_cfn, write_cfn
from softmap.io.dd import parse_dd, read_dd
from softmap.io.evidence import parse_evidence, read_evidence
from softmap.io.formats import FORMATS, format_of, read, write
from softmap.io.npz import parse_npz, read_npz, write_npz
from softmap.io.opengm import parse_opengm, read_opengm
from softmap.io.opengm_writer import format_opengm, write_opengm
from softmap.io.results import format_labels, parse_labels, read_labels, write_labels
from softmap.io.uai import parse_uai, read_uai
from softmap.io.uai_writer import format_uai, write_uai
from softmap.io.wcsp import parse_wcsp, read_wcsp
from softmap.io.wcsp_writer import format_wcsp, write_wcsp

__all__ = [
    "FORMATS",
    "format_cfn",
    "format_labels",
    "format_of",
    "format_opengm",
    "format_uai",
    "format_wcsp",
    "parse_cfn",
    "parse_dd",
    "parse_evidence",
    "parse_labels",
    "parse_npz",
    "parse_opengm",
    "parse_uai",
    "parse_wcsp",
    "read",
    "read_cfn",
    "read_dd",
    "read_evidence",
    "read_labels",
    "read_npz",
    "read_opengm",
    "read_uai",
    "read_wcsp",
    "write",
    "write_cfn",
    "write_labels",
    "write_npz",
    "write_opengm",
    "write_uai",
    "write_wcsp",
]
