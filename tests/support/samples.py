"""Small valid files of every format, to be read, damaged and fuzzed."""

from __future__ import annotations

import io

import softmap


def content(model: softmap.Model, form: str, **options: object) -> bytes:
    """The bytes of a file of this format that holds the model."""
    file = io.BytesIO()
    softmap.write(model, file, format=form, **options)
    return file.getvalue()


UAI = b"""MARKOV
3
2 2 3
3
1 0
2 0 1
2 2 1

2
 0.25 1

4
 1 2
 3 4
6
 1 2 3 4
 5 6
"""
UAI_BAYES = (
    b"BAYES\n3\n2 2 2\n3\n1 0\n2 0 1\n3 0 1 2\n2 .5 .5\n4 .1 .9 .2 .8\n8 1 0 0 1 .5 .5 .3 .7\n"
)
WCSP = b"""toy 3 3 5 20
2 3 2
0 4 0
1 0 1 1
0 7
2 0 1 2 2
0 0 9
1 2 20
-2 0 2 0 1
1 1 5
2 2 0 0 -1
"""
CFN = b"""# a comment
{ problem : { name: "toy", mustbe: "<20.00" },
  variables: { "a": ["r", "g"], b: 3, c: [x y] },
  functions: {
    c0: { scope: [], costs: [1.5] },
    ua: { scope: ["a"], costs: [0.25, 7] },
    ab: { scope: ["a" "b"], costs: [1 2 3, 4, 5, 25] },
    bc: { scope: [b, c], defaultcost: 0.5, costs: [2 "x" -1.5, 0, y, inf] },
    f1: { scope: [a, c], costs: "f2" },
    f2: { scope: [c, a], costs: [0, 1, 2, 3] }
  }
}
"""
DD = b"""c two left nodes, two right nodes
p 2 2 3 2
a 0 0 0 -1.5
a 1 0 1 -1
a 2 1 1 -2
e 0 2 -0.5
e 1 2 100
"""
BIF = b"""// a toy
network "toy" { property author "x"; }
variable rain { type discrete [ 2 ] { no, yes }; property position = (1, 2); }
variable "wet grass" { type discrete[3]{dry, "a bit", soaked}; }
/* in between
 */
variable mood { type discrete [ 2 ] { good, bad }; }
probability ( rain ) { table 0.8, 0.2; }
probability ( "wet grass" | rain ) {
  (no) 0.9, 0.1, 0.0;
  (yes) 0.2, 0.3, 0.5;
}
probability ( mood | "wet grass", rain ) {
  default 0.5, 0.5;
  (soaked, yes) 0.1, 0.9;
}
"""
XMLBIF = b"""<?xml version="1.0" encoding="US-ASCII"?>
<!DOCTYPE BIF [ <!ELEMENT BIF ( NETWORK )*> <!ATTLIST BIF VERSION CDATA #REQUIRED> ]>
<BIF VERSION="0.3"><NETWORK><NAME>toy</NAME>
<VARIABLE TYPE="nature"><NAME>rain</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>wet grass</NAME><OUTCOME>dry</OUTCOME><OUTCOME>a bit</OUTCOME>
<OUTCOME>soaked</OUTCOME><PROPERTY>x &lt; y</PROPERTY></VARIABLE>
<VARIABLE TYPE="nature"><NAME>mood</NAME><OUTCOME>good</OUTCOME><OUTCOME>bad</OUTCOME></VARIABLE>
<DEFINITION><FOR>rain</FOR><TABLE>0.8 0.2</TABLE></DEFINITION>
<DEFINITION><FOR>wet grass</FOR><GIVEN>rain</GIVEN>
<TABLE>0.9 0.1 0.0 <!-- yes --> 0.2 0.3 0.5</TABLE></DEFINITION>
<DEFINITION><FOR>mood</FOR><GIVEN>wet grass</GIVEN><GIVEN>rain</GIVEN>
<TABLE>.5 .5 .5 .5 .5 .5 .5 .5 .5 .5 0.1 0.9</TABLE></DEFINITION>
</NETWORK></BIF>
"""
NET = b"""net { node_size = (80 40); name = "a; toy"; }
node rain { states = ("no" "yes"); label = "Rain; or not"; position = (1 2); }
node wet { states = ( "dry" "a bit" "soaked" ); }
node mood { states = ("good" "bad"); } % a comment
potential (rain) { data = (0.8 0.2); }
potential (wet | rain) { data = ((0.9 0.1 0.0)(0.2 0.3 0.5)); }
potential (mood | wet rain) {
  data = (((.5 .5)(.5 .5)) % dry
          ((.5 .5)(.5 .5)) ((.5 .5)(.1 .9)));
}
"""
XDSL = b"""<?xml version="1.0" encoding="UTF-8"?>
<smile version="1.0" id="toy" numsamples="1000">
<nodes>
<cpt id="rain"><state id="no"/><state id="yes"/><probabilities>0.8 0.2</probabilities></cpt>
<cpt id="wet"><state id="dry"/><state id="bit"/><state id="soaked"/><parents>rain</parents>
<probabilities>0.9 0.1 0 0.2 0.3 0.5</probabilities></cpt>
<deterministic id="boots"><state id="on"/><state id="off"/><parents>rain</parents>
<resultingstates>off on</resultingstates></deterministic>
</nodes>
<extensions><genie><node id="rain"><name>Rain</name><state id="no"/></node></genie></extensions>
</smile>
"""
QUADRATIC = [(1, 1, 3.0), (1, 2, -5.0), (2, 2, 1.5), (3, 1, 2.0), (2, 1, 1.0)]
_ROWS = "".join(f"{i} {j} {w}\n" for i, j, w in QUADRATIC).encode()
_FROM_ZERO = "".join(f"{i - 1} {j - 1} {w}\n" for i, j, w in QUADRATIC).encode()
QPBO = b"3 5\n" + _ROWS
QUBO = b"c offset=2.5\np qubo 0 3 2 3\n" + _FROM_ZERO
COO = b"# vartype=BINARY\n" + _FROM_ZERO
MAXCUT = b"3 3\n1 2 4\n2 3 -1.5\n1 3 2\n"
QAP = b"3\n\n0 1 2\n1 0 3\n2 3 1\n\n0 5 2\n4 0 3\n2 3 2\n"
WCNF_TOP = b"c toy\np wcnf 4 5 20\n20 1 -2 3 0\n3 -1 0\n4 2 -3 0\n2 1 1 -2 0\n5 4 -4 1 0\n"
WCNF = b"c toy\nh 1 -2 3 0\n3 -1 0\n4 2 -3 0\n2 1 1 -2 0\n5 4 -4 1 0\n1 0\n"
OPB = (
    b"* #variable= 4 #constraint= 2\nmin: -3 x1 +2 x2 ~x3 +1 x4 ;\n"
    b"+1 x1 +1 x2 +1 x3 >= 2 ;\n[4] +1 x1 x2 = 0 ;\n"
)
DEM = (
    b"error(0.1) D0 D1 L0\nrepeat 3 {\n    error[tag](0.2) D0 D1 # x\n"
    b"    shift_detectors(1, 0) 1\n}\n"
    b"ERROR(0.3) D1 ^ D0 L0\ndetector(1, 2) D3\nlogical_observable L1\n"
)

# Text formats: the first file of each is the plainest.
LP = b"""\\ two rows
minimize
 cost: 3 a + b - 2 c + 1
subject to
 some: a + b + c >= 1
 weight: 2 a + 3 b + 4 c <= 6
bounds
 0 <= c <= 3
binary
 a b
general
 c
end
"""
MPS = b"""NAME toy
ROWS
 N cost
 G some
COLUMNS
 M1 'MARKER' 'INTORG'
 a cost 3 some 1
 b cost 1 some 1
 M2 'MARKER' 'INTEND'
RHS
 R some 1
BOUNDS
 UP B a 1
 UP B b 1
ENDATA
"""
SAMPLES: dict[str, list[bytes]] = {
    "uai": [UAI, UAI_BAYES],
    "cfn": [CFN],
    "dd": [DD, b"gm 0 1\n" + DD],
    "bif": [BIF],
    "xmlbif": [XMLBIF],
    "net": [NET],
    "xdsl": [XDSL],
    "qpbo": [QPBO, b"-2 -1\n1 2 5\n"],
    "qubo": [QUBO],
    "coo": [COO, b"# vartype=SPIN\n# offset=1\n0 0 3\n0 1 -2\n"],
    "maxcut": [MAXCUT, b"3 2\n1 2\n2 3\n"],
    "wcnf": [WCNF, WCNF_TOP, b"2 1 2 3 4 5 6 7 8 0\n"],
    "opb": [OPB, b"min: x1;\n+1 x1 -2 x2 +3 x3 +1 x4 +1 x5 +1 x6 +2 x7 <= 4 ;\n"],
    "dem": [DEM],
    "alist": [b"3 2\n2 2\n1 2 1\n2 2\n1 0\n1 2\n2 0\n1 2\n2 3\n"],
    "wcsp": [WCSP],
    "qap": [QAP],
    "lp": [LP],
    "mps": [MPS],
}

# Files that hold no models.
RESULTS: dict[str, list[bytes]] = {
    "evidence": [b"2 0 1 3 2", b"1\n2 0 1 3 2\n", b"0"],
    "labels": [b"MPE\n1\n3 1 0 2\n", b"MAP 1 0\n-BEGIN-\nMAP\n1 1\n"],
    "sln": [b"3 17\n2,1,3\n"],
}
