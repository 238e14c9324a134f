"""What is fuzzed: every reader, with small valid files to start from.

A reader may return a model or raise one of our exceptions; anything else is a finding.
"""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Callable

import numpy as np

import softmap
from softmap.io import (
    format_cfn,
    format_opengm,
    format_uai,
    format_wcsp,
    parse_bif,
    parse_cfn,
    parse_coo,
    parse_dd,
    parse_dem,
    parse_evidence,
    parse_labels,
    parse_maxcut,
    parse_net,
    parse_npz,
    parse_opb,
    parse_opengm,
    parse_qap,
    parse_qpbo,
    parse_qubo,
    parse_sln,
    parse_uai,
    parse_wcnf,
    parse_wcsp,
    parse_xdsl,
    parse_xmlbif,
    write_npz,
)


def _models() -> list[softmap.Model]:
    table = np.arange(6.0).reshape(2, 3)
    large = np.where(np.arange(12) == 5, np.inf, np.arange(12.0)).reshape(2, 3, 2)
    potts = softmap.Model(np.eye(3), [[0, 1], [1, 2]], softmap.Potts([1.0, 2.0]))
    far = softmap.TruncatedLinear([1.0, 2.0], [1.0, 2.0])
    shared = softmap.SharedTables([table], [0])
    return [
        softmap.Model.from_factors([2, 3, 2], [((0, 1, 2), large), ((0, 1), table)]),
        potts,
        softmap.Model(np.eye(3), [[0, 1], [1, 2]], far, constant=2.0),
        softmap.Model([[1.0, 2.0], [1.0, 0.0, 3.0]], [[0, 1]], shared),
    ]


def _npz(model: softmap.Model, compress: bool = False) -> bytes:
    buffer = io.BytesIO()
    write_npz(model, buffer, compress=compress)
    return buffer.getvalue()


def _members(data: bytes) -> None:
    """An archive whose members are sound by construction, their contents fuzzed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        parts = [part.partition(b"\n") for part in data.split(b"\nMEMBER ")]
        for name, body in {n.partition(b"\0")[0]: body for n, _, body in parts}.items():
            if name:
                archive.writestr(name.decode("latin-1"), body)
    parse_npz(buffer.getvalue())


def _member_text(archive: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        parts = [name.encode() + b"\n" + file.read(name) for name in file.namelist()]
    return b"\nMEMBER ".join(parts)


def _datasets(data: bytes) -> None:
    """A sound HDF5 file whose arrays are fuzzed: lines of a name and numbers."""
    import h5py

    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for line in data.split(b"\n"):
            name, _, rest = line.partition(b" ")
            numbers = np.array([_number(word) for word in rest.split()])
            odd = numbers.size and not (numbers >= 0).all()  # such as NaN, or a negative count
            kind = np.float64 if odd or name.endswith(b"values") else np.uint64
            unwritable = contextlib.suppress(ValueError, OSError, RuntimeError, TypeError)
            with unwritable, np.errstate(invalid="ignore"):
                file[f"gm/{name.decode('latin-1')}"] = numbers.astype(kind)
    parse_opengm(buffer.getvalue())


def _number(word: bytes) -> float:
    try:
        return float(word)
    except ValueError:
        return 0.0


def _dataset_text(file: bytes) -> bytes:
    import h5py

    lines: list[str] = []
    with h5py.File(io.BytesIO(file)) as opened:
        opened["gm"].visititems(
            lambda name, node: (
                lines.append(" ".join([name, *map(str, node[()].tolist())]))
                if isinstance(node, h5py.Dataset)
                else None
            )
        )
    return "\n".join(lines).encode()


def _uai(data: bytes) -> None:
    parse_uai(data, values=("potential", "log", "cost")[len(data) % 3])


def _read(data: bytes) -> None:
    softmap.read(io.BytesIO(data))


DD = b"c toy\np 2 2 3 2\na 0 0 0 -1.5\na 1 0 1 -1\na 2 1 1 -2\ne 0 2 -0.5\ne 1 2 100\n"
CFN = (
    b'# toy\n{ problem : { name: "toy", mustbe: "<20.00" },\n'
    b' variables: { "a": ["r", "g"], b: 3, c: [x y] },\n'
    b" functions: { c0: { scope: [], costs: [1.5] }, ab: { scope: [a b], costs: [1 2 3 4 5 6] },\n"
    b' bc: { scope: [b, c], defaultcost: 0.5, costs: [2 "x" -1.5, 0, y, inf] },\n'
    b' f1: { scope: [a, c], costs: "f2" }, f2: { scope: [c, a], costs: [0, 1, 2, 3] } } }\n'
)
WCSP = (
    b"toy 3 3 5 20\n2 3 2\n0 4 0\n1 0 1 1\n0 7\n2 0 1 2 2\n0 0 9\n1 2 20\n"
    b"-2 0 2 0 1\n1 1 5\n2 2 0 0 -1\n"
)


TYPES = [
    b"header 2 0 3 3 3 16001 1 16006 1 16011 1 1\nnumbers-of-states 2 2 2\n"
    b"factors 0 0 2 0 1 0 1 2 1 2 0 2 3 0 1 2\n"
    b"function-id-16001/indices 2 2 2 2 1 3\nfunction-id-16001/values 7 1 2\n"
    b"function-id-16006/indices 2 2\nfunction-id-16006/values 0 1\n"
    b"function-id-16011/indices 3 2 2 2\nfunction-id-16011/values 1 2 3 4 5",
    b"header 2 0 2 3 3 16002 1 16005 1 16008 1 1\nnumbers-of-states 3 3\n"
    b"factors 0 0 2 0 1 0 1 2 1 0 0 2 1 0\n"
    b"function-id-16002/indices 3 3\nfunction-id-16002/values 2\n"
    b"function-id-16005/indices 3 3\nfunction-id-16005/values 4 1\n"
    b"function-id-16008/indices 1 3\nfunction-id-16008/values 6",
    b"header 2 0 3 1 1 16007 1 1\nnumbers-of-states 3 2 3\nfactors 0 0 3 0 1 2\n"
    b"function-id-16007/indices 3 3 2 3\nfunction-id-16007/values 4 1",
]


BIF = (
    b"network x { }\nvariable a { type discrete [ 2 ] { y, n }; property p ; }\n"
    b'variable "b" { type discrete[2]{ "u v", w }; }\n'
    b"probability ( a ) { table 0.4, 0.6; } // c\n"
    b"probability ( b | a ) { default .5, .5 ; (y) 0.1, 0.9; } /* c */\n"
)
XMLBIF = (
    b'<?xml version="1.0"?><BIF VERSION="0.3"><NETWORK><NAME>x</NAME><VARIABLE TYPE="nature">'
    b"<NAME>a</NAME><OUTCOME>y</OUTCOME><OUTCOME>n</OUTCOME></VARIABLE><VARIABLE><NAME>b</NAME>"
    b"<OUTCOME>u</OUTCOME></VARIABLE><DEFINITION><FOR>a</FOR><TABLE>0.4 0.6</TABLE></DEFINITION>"
    b"<DEFINITION><FOR>b</FOR><GIVEN>a</GIVEN><TABLE>1 1</TABLE></DEFINITION></NETWORK></BIF>"
)
NET = (
    b'net { size = (1 2); }\nnode a { states = ("y" "n"); label = "x;y"; } % c\n'
    b"node b { states = (u v); }\npotential (a) { data = (0.4 0.6); }\n"
    b"potential ( b | a ) { data = ((0.1 0.9)(1 0)); }\n"
)
XDSL = (
    b'<smile version="1.0" id="x"><nodes><cpt id="a"><state id="y"/><state id="n"/>'
    b"<probabilities>0.4 0.6</probabilities></cpt><deterministic id='b'><state id='u'/>"
    b"<state id='v'/><parents>a</parents><resultingstates>v u</resultingstates></deterministic>"
    b"</nodes></smile>"
)
QPBO = [b"3 4\n1 1 3\n1 2 -5\n2 3 1.5\n3 1 2\n", b"-2 -1\n1 2 5\n"]
QUBO = b"c offset=2.5\np qubo 0 3 1 2\n0 0 3\n0 1 -5\nc x\n1 2 1.5\n"
COO = [b"# vartype=SPIN\n# offset=1\n0 0 3\n0 1 -2\n", b"0 0 1.5\n2 1 2\n"]
CUT = [b"3 2\n1 2 4\n2 3 -1\n", b"3 2\n1 2\n2 3\n"]
QAP = b"2\n\n0 1\n2 0\n\n0 5\n4 1\n"
WCNF = [
    b"c x\np wcnf 3 4 10\n10 1 -2 3 0\n3 -1 0\n4 2 -3 0\n2 1 1 -2 0\n",
    b"h 1 -2 3 0\n3 -1 0\n4 2 -3 0\n7 0\n2 1 2 3 4 5 6 7 8 0\n",
]
OPB = (
    b"* c\nmin: -3 x1 +2 x2 ~x3 ;\n+1 x1 +1 x2 +1 x3 >= 2 ;\n[4] x1 x2 = 0;\n"
    b"+1 x1 -2 x2 +3 x3 +1 x4 +1 x5 +1 x6 +2 x7 <= 4 ;\n"
)
DEM = (
    b"error(0.1) D0 D1 L0\nrepeat 3 {\n error[t](0.2) D0 D1 # x\n shift_detectors(1) 1\n}\n"
    b"error(0.3) D1 ^ D0\ndetector(1, 2) D3\nlogical_observable L1\n"
)


OTHERS = [BIF, XMLBIF, NET, XDSL, QUBO, COO[0], QAP, WCNF[0], OPB, DEM]


def _texts(form: Callable[..., object], **options: object) -> list[bytes]:
    return ["".join(form(m, **options)).encode() for m in _models()]  # type: ignore[arg-type]


def targets() -> dict[str, tuple[Callable[[bytes], object], list[bytes]]]:
    """By name: a function of bytes, and the files to start from."""
    uai = [*_texts(format_uai), *_texts(format_uai, values="log")]
    opengm = [format_opengm(m) for m in _models()]
    npz = [_npz(m) for m in _models()]
    return {
        "uai": (_uai, uai),
        "evidence": (parse_evidence, [b"2 0 1 3 2", b"1\n2 0 1 3 2\n", b"0"]),
        "labels": (parse_labels, [b"MPE\n1\n3 1 0 2\n", b"MAP 1 0\n-BEGIN-\nMAP\n1 1\n"]),
        "wcsp": (parse_wcsp, [WCSP, *_texts(format_wcsp)]),
        "cfn": (parse_cfn, [CFN, *_texts(format_cfn)]),
        "dd": (parse_dd, [DD, b"gm 0 1\n" + DD]),
        "opengm": (parse_opengm, opengm),
        "opengm-arrays": (_datasets, [*map(_dataset_text, opengm), *TYPES]),
        "npz": (parse_npz, [*npz, *(_npz(m, compress=True) for m in _models())]),
        "npz-arrays": (_members, [_member_text(x) for x in npz]),
        "bif": (parse_bif, [BIF]),
        "xmlbif": (parse_xmlbif, [XMLBIF]),
        "net": (parse_net, [NET]),
        "xdsl": (parse_xdsl, [XDSL]),
        "qpbo": (parse_qpbo, QPBO),
        "qubo": (parse_qubo, [QUBO]),
        "coo": (parse_coo, COO),
        "maxcut": (parse_maxcut, CUT),
        "qap": (parse_qap, [QAP]),
        "sln": (parse_sln, [b"3 17\n2,1,3\n"]),
        "wcnf": (parse_wcnf, WCNF),
        "opb": (parse_opb, [OPB]),
        "dem": (parse_dem, [DEM]),
        "read": (_read, [uai[0], WCSP, CFN, DD, opengm[0], npz[0], *OTHERS]),
    }
