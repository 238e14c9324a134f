"""Small files that would hang a reader or eat the memory: each is read within limits.

Each file is read in a process of its own whose memory and processor time are bounded, so that a
reader that lost its checks fails the test instead of stopping the machine.
"""

import io
import subprocess
import sys

import numpy as np
import pytest

import softmap
from softmap.io.formats import FORMATS

parse_cfn, parse_dd, parse_opengm, parse_uai, parse_wcsp = (
    FORMATS[form].parse for form in ("cfn", "dd", "opengm", "uai", "wcsp")
)

READER = """
import os, resource, sys, traceback
import h5py, softmap, softmap.io
for path in sys.stdin:
    if child := os.fork():
        print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    try:
        print("read", softmap.read(path[:-1]).m, flush=True)
    except softmap.FormatError as error:
        print("refused", error, flush=True)
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        os._exit(1)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def within_limits():
    """What becomes of a file in a process of its own; all are forked from one that has begun."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", READER], **pipes) as reader:

        def read(path):
            print(path, file=reader.stdin, flush=True)
            said = ""
            for line in iter(reader.stdout.readline, ""):
                if line.startswith("ended "):
                    assert line == "ended 0\n", said[-2000:] or f"killed: {line}"
                    return said
                said += line
            pytest.fail("the process that starts readers has died")

        yield read
        reader.stdin.close()


def opengm(header, states, factors, **functions):
    h5py = pytest.importorskip("h5py")
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        gm = file.create_group("gm")
        gm["header"] = np.asarray(header)
        gm["numbers-of-states"] = np.array(states, np.uint64)
        gm["factors"] = np.array(factors, np.uint64)
        for name, (indices, values) in functions.items():
            gm[f"{name}/indices"] = np.array(indices, np.uint64)
            gm[f"{name}/values"] = np.array(values, np.float64)
    return buffer.getvalue()


def constants(arity, value, labels=2):
    """One function of type Constant over `arity` variables."""
    shape = [labels] * arity
    return opengm(
        np.array([2, 0, arity, 1, 1, 16008, 1, 1], np.uint64),
        shape,
        [0, 0, arity, *range(arity)],
        **{"function-id-16008": ([arity, *shape], [value])},
    )


def matching(n):
    """`n` left nodes that want the same right node: a clique."""
    return f"p {n} 1 {n} 0\n".encode() + b"".join(b"a %d %d 0 -1\n" % (i, i) for i in range(n))


def cfn(variables, functions):
    head = b'{ problem: { name: "x", mustbe: "<9.0" }, variables: { '
    return head + variables + b" }, functions: { " + functions + b" } }"


def huge_dataset():
    """A data set beside the model's group that declares 10^12 numbers and stores none."""
    h5py = pytest.importorskip("h5py")
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file.create_dataset("a", shape=(10**12,), dtype="f8", chunks=(1 << 16,))
        file.create_dataset("b", shape=(10**12,), dtype="S8", chunks=(1 << 16,))
    return buffer.getvalue()


REFUSED = {
    "constant.h5": lambda: constants(26, np.inf),
    "constants.h5": lambda: constants(2000, np.inf),
    "root.h5": huge_dataset,
    "clique.dd": lambda: matching(3000),
    "quotes.cfn": lambda: cfn(
        b"a: [x y]",
        b"f: { scope: [a], defaultcost: 0, costs: [" + b" " * 300_000 + b'" 1 ] }',
    ),
    "scope.cfn": lambda: cfn(
        b", ".join(b"v%d: 1" % i for i in range(60_000)),
        b"f: { scope: [" + b" ".join(b"v%d" % i for i in range(60_000)) + b"], costs: [1] }",
    ),
}

REFUSED |= {
    "claim.qpbo": lambda: b"2000000000 0\n",
    "claim.wcnf": lambda: b"h 2000000000 0\n",
    "claim.dat": lambda: b"30000\n1 2 3\n",
    "loops.dem": lambda: b"repeat 99999 {\n" * 9 + b"error(0.1) D0\n" + b"}\n" * 9,
    "entities.xmlbif": lambda: (
        b'<!DOCTYPE BIF [<!ENTITY a "aaaaaaaaaa">'
        + b"".join(b'<!ENTITY %c "&%c;&%c;">' % (c, c - 1, c - 1) for c in range(98, 120))
        + b"]><BIF>&w;</BIF>"
    ),
    "parents.bif": lambda: (
        b"".join(b"variable v%d { type discrete [2] { a, b }; }\n" % i for i in range(60))
        + b"probability ( v0 | "
        + b", ".join(b"v%d" % i for i in range(1, 60))
        + b" ) { default 0.5, 0.5; }\n"
    ),
}

ACCEPTED = {
    "blank.dd": lambda: b"\n" * 400_000 + matching(2),
    "spaces.dd": lambda: b" " * 400_000 + b"\n" + matching(2),
    "clique.dd": lambda: matching(300),
    "spaces.cfn": lambda: cfn(
        b"a: [x y]", b"f: { scope: [a], defaultcost: 0, costs: [x 1" + b" " * 300_000 + b"] }"
    ),
    "constant.h5": lambda: constants(26, 3.0),
}


ACCEPTED |= {
    "open.bif": lambda: (
        b"variable a { type discrete [2] { x, y }; }\nprobability ( a ) { table 0.5, 0.5; }\n"
        + b"/* " * 200_000
    ),
    "quotes.net": lambda: (
        b'node a { x = "a;" ' + b'"b;" ' * 100_000 + b'; states = ("x" "y"); }\n'
        b"potential (a) { data = (0.5 0.5); }"
    ),
    "clauses.wcnf": lambda: b"h 1 2 0\n" * 200_000,
    "stars.opb": lambda: b"* x\n" * 200_000 + b"min: 1 x1 ;",
}


@pytest.mark.parametrize("name", REFUSED)
def test_small_files_with_large_claims_are_refused(tmp_path, name, within_limits):
    path = tmp_path / name
    path.write_bytes(REFUSED[name]())
    assert within_limits(path).startswith("refused")


@pytest.mark.parametrize("name", ACCEPTED)
def test_odd_files_are_read_in_time(tmp_path, name, within_limits):
    path = tmp_path / name
    path.write_bytes(ACCEPTED[name]())
    assert within_limits(path).startswith("read")


def test_blank_lines_and_blocks_of_matchings():
    toy = b"p 1 1 1 0\na 0 0 0 -1\n"
    text = b"\n\n  gm 0 1 \r\n\n" + toy + b"\n\ngm 1 0\n" + toy
    with pytest.raises(softmap.FormatError, match="found 2"):
        parse_dd(text)
    assert parse_dd(text, block=1).n == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 2.5, 1e300])
@pytest.mark.parametrize("place", range(8))
def test_headers_of_opengm_files_are_whole_numbers(value, place):
    header = np.array([2, 0, 2, 1, 1, 16008, 1, 1], np.float64)
    header[place] = value
    data = opengm(header, [2, 2], [0, 0, 2, 0, 1], **{"function-id-16008": ([2, 2, 2], [1.0])})
    with pytest.raises(softmap.FormatError):
        parse_opengm(data)


@pytest.mark.parametrize("place", range(7))
def test_negative_headers_of_opengm_files(place):
    header = np.array([2, 0, 2, 1, 1, 16008, 1, 1], np.int64)
    header[place] = -1
    data = opengm(header, [2, 2], [0, 0, 2, 0, 1], **{"function-id-16008": ([2, 2, 2], [1.0])})
    with pytest.raises(softmap.FormatError):
        parse_opengm(data)


def test_links_to_other_files_are_not_followed(tmp_path):
    h5py = pytest.importorskip("h5py")
    (tmp_path / "a.h5").write_bytes(constants(2, 3.0))
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["gm"] = h5py.ExternalLink(str(tmp_path / "a.h5"), "gm")
    assert softmap.read(tmp_path / "a.h5").constant == 3.0
    with pytest.raises(softmap.FormatError, match="link to another file"):
        softmap.read(tmp_path / "b.h5")


def test_factors_of_more_than_64_variables():
    n = 65
    names = " ".join(map(str, range(n)))
    ones = " ".join(["1"] * n)
    cases = {
        parse_uai: f"MARKOV {n} {ones} 1 {n} {names} 1 0.5",
        parse_wcsp: f"x {n} 1 1 9\n{ones}\n{n} {names} 3 0\n",
    }
    for parse, text in cases.items():
        with pytest.raises(softmap.FormatError, match="at most 64 variables"):
            parse(text.encode())
    for value in (np.inf, 3.0):
        data = constants(n, value, labels=1)
        if value == np.inf:
            with pytest.raises(softmap.FormatError, match="at most 64 variables"):
                parse_opengm(data)
        else:
            assert parse_opengm(data).constant == 3.0


def test_a_label_twice_in_a_cfn_domain():
    text = cfn(b"a: [x y x]", b"f: { scope: [a], costs: [1 2 3] }")
    with pytest.raises(softmap.FormatError, match="label that the variable does not have yet"):
        parse_cfn(text)
    assert parse_cfn(text.replace(b"x y x", b"x y z")).num_labels.tolist() == [3]


@pytest.mark.parametrize("text", [b"MARKOV 1 2 2 1 0 1 0 2 0 1e308 2 0 1e308", b"1e308 1 1 1e308"])
@pytest.mark.filterwarnings("error")
def test_costs_of_files_beyond_the_range(text):
    """Two finite costs must not add up to a forbidden state."""
    with pytest.raises(softmap.FormatError):
        parse_uai(text, values="cost")


def test_costs_of_other_files_beyond_the_range():
    huge = str(10**305).encode()
    with pytest.raises(softmap.FormatError, match="1e"):
        parse_cfn(cfn(b"a: 2", b"f: { scope: [a], costs: [0 " + huge + b"] }"))
    with pytest.raises(softmap.FormatError, match="1e"):
        parse_dd(b"p 1 1 1 0\na 0 0 0 1e305\n")
    with pytest.raises(softmap.FormatError, match="1e"):
        parse_opengm(constants(2, 1e305))


@pytest.mark.parametrize("source", [None, b"MARKOV", 3, ["a.uai"], "", object(), bytearray(b"x")])
def test_sources_of_wrong_types(source):
    with pytest.raises(softmap.OptionError, match="expected a path"):
        softmap.read(source)


def test_files_that_are_none(tmp_path):
    class Strange:
        name = "strange"

        def read(self, size):
            raise RuntimeError("no")

    with pytest.raises(softmap.FormatError, match="strange: cannot be read: no"):
        softmap.read(Strange())
    with open(__file__, "rb") as closed:
        pass
    with pytest.raises(softmap.FormatError, match="closed"):
        softmap.read(closed)


@pytest.mark.parametrize("constant", [1e9, -1e9, 1e11, 1e300, -1e300])
def test_large_constants_in_uai_files(tmp_path, constant):
    model = softmap.Model([[1.0, 2.0]], [], [], constant=constant)
    with pytest.raises(softmap.ModelError, match=r"write logarithms \(\.uai\.LG\)"):
        softmap.write(model, tmp_path / "x.uai")
    assert not list(tmp_path.iterdir())
    softmap.write(model, tmp_path / "x.uai.LG")
    assert softmap.read(tmp_path / "x.uai.LG").energy([1]) == model.energy([1])
    softmap.write(model, tmp_path / "x.uai", values="cost")
    assert softmap.read(tmp_path / "x.uai", values="cost").energy([1]) == model.energy([1])


@pytest.mark.parametrize("constant", [1e4, -3e4])
def test_constants_that_potentials_can_hold(tmp_path, constant):
    model = softmap.Model([[1.0, 2.0]], [], [], constant=constant)
    softmap.write(model, tmp_path / "x.uai")
    assert (tmp_path / "x.uai").stat().st_size < 4000
    assert softmap.read(tmp_path / "x.uai").energy([1]) == pytest.approx(model.energy([1]))


def test_large_costs_in_every_table_of_a_uai_file(tmp_path):
    """Some factors without variables for each table: the file stays of the same order."""
    model = softmap.Model(np.full((500, 2), 800.0), [], [])
    softmap.write(model, tmp_path / "x.uai")
    assert softmap.read(tmp_path / "x.uai").energy(np.zeros(500, int)) == pytest.approx(4e5)
    with pytest.raises(softmap.ModelError, match="potentials cannot hold"):
        softmap.write(model.replace(unary=model.unary * 1e6), tmp_path / "y.uai")
