"""The compiled core of softmap."""

from typing import Annotated, overload

import numpy
from numpy.typing import NDArray

def use(table: object) -> None:
    """Take the inner loops from a library of kernels."""

def level() -> str:
    """The instruction set of the inner loops."""

def width() -> int:
    """Doubles in one of its vector registers."""

def cpu_level() -> str:
    """The highest instruction set that this machine runs."""

def give_back() -> None:
    """Hand memory that was freed back to the system."""

class Layout:
    """The flat arrays of a model that every kernel reads."""

    def __init__(self, arrays: dict) -> None: ...
    @property
    def widest(self) -> int: ...

class SingleLayout:
    """The flat arrays of a model that every kernel reads."""

    def __init__(self, arrays: dict) -> None: ...
    @property
    def widest(self) -> int: ...

KINDS: tuple = ...

LANES: int = 8

def message(
    layout: Layout,
    h: int,
    a: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
) -> None:
    """Message into half-edge h from costs a on the labels of its far end."""

def plan(
    layout: Layout,
    rank: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    level: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    key: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    leading: bool,
) -> dict:
    """The arrays of a schedule that do not depend on costs, by name."""

class Schedule:
    """What one pass over the graph does."""

    def __init__(self, arrays: dict) -> None: ...

@overload
def pack_lanes(
    layout: Layout,
    blocks: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    edge: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    truncation: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None: ...
@overload
def pack_lanes(
    layout: SingleLayout,
    blocks: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    edge: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    truncation: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    table: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
) -> None: ...
@overload
def to_messages(
    layout: Layout,
    schedule: Schedule,
    lam: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def to_messages(
    layout: SingleLayout,
    schedule: SingleSchedule,
    lam: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    msg: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def spread(
    layout: Layout,
    schedule: Schedule,
    lam: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    source: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    part: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def spread(
    layout: SingleLayout,
    schedule: SingleSchedule,
    lam: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    source: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    part: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    msg: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """Messages into early ends from λ of a smaller model."""

@overload
def to_lam(
    layout: Layout,
    schedule: Schedule,
    msg: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    lam: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def to_lam(
    layout: SingleLayout,
    schedule: SingleSchedule,
    msg: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    lam: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def passes(
    layout: Layout,
    schedule: Schedule,
    halves: int,
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    momentum: bool,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def passes(
    layout: SingleLayout,
    schedule: SingleSchedule,
    halves: int,
    msg: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    momentum: bool,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def sampled_passes(
    layout: Layout,
    costs: Layout,
    schedule: Schedule,
    count: int,
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    done: int,
    every: int,
    longest: float,
    before: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    mean: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    samples: int,
    recent: float,
    threads: int,
) -> None: ...
@overload
def sampled_passes(
    layout: SingleLayout,
    costs: Layout,
    schedule: SingleSchedule,
    count: int,
    msg: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    done: int,
    every: int,
    longest: float,
    before: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    mean: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    samples: int,
    recent: float,
    threads: int,
) -> None:
    """Passes with momentum, and a running average of the node marginals."""

@overload
def half_pass(
    layout: Layout,
    schedule: Schedule,
    forward: bool,
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    momentum: bool,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def half_pass(
    layout: SingleLayout,
    schedule: SingleSchedule,
    forward: bool,
    msg: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    momentum: bool,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def lowered_half(
    layout: Layout,
    schedule: Schedule,
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def lowered_half(
    layout: SingleLayout,
    schedule: SingleSchedule,
    msg: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None:
    """A hard half pass forward, rounded down."""

@overload
def chain_bound(
    layout: Layout,
    schedule: Schedule,
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    shift: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    constant: float,
    threads: int,
) -> float: ...
@overload
def chain_bound(
    layout: SingleLayout,
    schedule: SingleSchedule,
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    shift: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    constant: float,
    threads: int,
) -> float:
    """
    A number certainly at most the bound of `cut_chains` after `lowered_half`.
    """

@overload
def portions(schedule: Schedule) -> int: ...
@overload
def portions(schedule: SingleSchedule) -> int:
    """How many portions `price` tells apart."""

@overload
def price(
    layout: Layout,
    costs: Layout,
    schedule: Schedule,
    msg: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    nodes: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    eta: float,
    whole: bool,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def price(
    layout: SingleLayout,
    costs: Layout,
    schedule: SingleSchedule,
    msg: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    nodes: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    eta: float,
    whole: bool,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None:
    """
    Cost, and if asked entropy and slack, of couplings near κ = share - message.
    """

@overload
def read_labels(
    layout: Layout,
    schedule: Schedule,
    msg: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    margin: float,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def read_labels(
    layout: Layout,
    schedule: SingleSchedule,
    msg: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    margin: float,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None:
    """Labels of all nodes by the messages of a hard half pass forward."""

@overload
def extrapolate(
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def extrapolate(
    msg: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def exchange(
    first: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    second: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None: ...
@overload
def exchange(
    first: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    second: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """Exchange the contents of two arrays."""

@overload
def shares(
    schedule: Schedule,
    msg: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def shares(
    schedule: SingleSchedule,
    msg: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def by_node(
    layout: Layout,
    schedule: Schedule,
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def by_node(
    layout: SingleLayout,
    schedule: SingleSchedule,
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def cut_chains(
    layout: Layout,
    schedule: Schedule,
    rank: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    msg: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    lam: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def cut_chains(
    layout: SingleLayout,
    schedule: SingleSchedule,
    rank: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    msg: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    lam: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def couplings(
    layout: Layout,
    schedule: Schedule,
    msg: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def couplings(
    layout: SingleLayout,
    schedule: SingleSchedule,
    msg: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...

class SingleSchedule:
    """What one pass over the graph does."""

    def __init__(self, arrays: dict) -> None: ...

RELAX: float = 0.75

def by_strip(
    layout: Layout,
    nodes: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    at: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    step: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """Costs of the nodes in the order of strips."""

def packed_size(arg0: int, arg1: int, arg2: int, /) -> int: ...
@overload
def star_sweeps(
    layout: Layout,
    schedule: Schedule,
    count: int,
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    origin: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    bar: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    momentum: bool,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def star_sweeps(
    layout: SingleLayout,
    schedule: SingleSchedule,
    count: int,
    msg: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    origin: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    bar: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    momentum: bool,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def diffusion_sweeps(
    layout: Layout,
    schedule: Schedule,
    count: int,
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    origin: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    bar: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    momentum: bool,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def diffusion_sweeps(
    layout: SingleLayout,
    schedule: SingleSchedule,
    count: int,
    msg: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    origin: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    bar: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    momentum: bool,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def gradient_sweeps(
    layout: Layout,
    schedule: Schedule,
    count: int,
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    origin: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    bar: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    momentum: bool,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def gradient_sweeps(
    layout: SingleLayout,
    schedule: SingleSchedule,
    count: int,
    msg: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    prev: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    origin: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    bar: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    momentum: bool,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def star_values(
    layout: Layout,
    schedule: Schedule,
    rank: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    origin: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    bar: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def star_values(
    layout: SingleLayout,
    schedule: SingleSchedule,
    rank: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    msg: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    origin: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    bar: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
    shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
def random_word(
    words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
) -> int:
    """The next 64 random bits."""

def random_below(
    words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
    bound: int,
) -> int:
    """An integer of 0..bound-1, exactly uniform."""

class StarOrder:
    """The half-edges of each node one after the other."""

    def __init__(self, layout: Layout) -> None: ...

def draw_block(
    order: StarOrder,
    stars: bool,
    words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
) -> tuple[int, int]:
    """Draw a block as an update does: its first position and its size."""

class StandardRun:
    """The arrays of a run of Algorithm 1."""

    def __init__(
        self,
        order: StarOrder,
        lam: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        incoming: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        S: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        mu: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        half: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        node_level: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        total: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        saved: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        stamp: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
        epoch: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    def begin(self, eta: float) -> None:
        """
        Fill everything that follows from lam, which is the best iterate so far.
        """

    def run(
        self,
        eta: float,
        stars: bool,
        exact: bool,
        count: int,
        words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
    ) -> int:
        """Make `count` updates; return the number of messages sent."""

def run_accelerated(
    order: StarOrder,
    eta: float,
    stars: bool,
    exact: bool,
    printed: bool,
    count: int,
    theta: float,
    v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    gain: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
) -> tuple[float, int]:
    """
    Make `count` updates of Algorithm 2 or 3; return the last theta and the number of messages sent.
    """

def sequential(
    layout: Layout,
    lam: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    reduced: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    order: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    num_variables: int,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """Decide the nodes in an order, each given those before it."""

def iterated_modes(
    layout: Layout,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    stride: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    num_variables: int,
    max_sweeps: int,
) -> None:
    """
    Coordinate descent in place: fewer broken constraints first, then less cost.
    """

def forest_rounds(
    layout: Layout,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
    count: int,
    heat: float,
) -> None:
    """Solve random forests in place, with noise that falls from heat to 0."""

def next_forest(
    layout: Layout,
    words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
    nodes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    links: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    parent: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
) -> int:
    """The first forest that forest_rounds solves; its size."""

def arc_consistency(
    layout: Layout,
    allowed: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu")],
) -> int:
    """Clear `allowed` in place; a node that ran out of states, or -1."""

def decide(
    layout: Layout,
    preference: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    allowed: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu")],
    order: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
) -> bool:
    """Labels one by one, arc consistency kept after each."""

def improve(
    layout: Layout,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    stride: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    num_variables: int,
    words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
    work: int,
    seconds: float,
    heat: float = 0.0,
    max_entries: int = 4096,
    max_total: int = 16777216,
    rounds: int = 3,
    guide: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None = None,
    penalty: float = float("inf"),
    open: Annotated[
        NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None = None,
) -> tuple[int, int, int]:
    """
    Large neighbourhoods solved exactly, in place; (work used, cycles, how often it fell).
    """

def feasible(
    layout: Layout,
    stride: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    num_variables: int,
    preference: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    allowed: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu")],
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    work: int,
    seconds: float,
) -> tuple[int, int, int]:
    """
    Labels that obey all hard constraints: (0 none exists, 1 found or 2 unknown; work; failures).
    """

def merge(
    layout: Layout,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    other: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    stride: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    num_variables: int,
) -> bool:
    """
    Take the connected parts of `other` that do not raise the cost; whether it fell.
    """

def sort_halves(
    node: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    half: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """The half-edges of each node, ascending, and where they begin."""

def greedy_colouring(
    node: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    start: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    half: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    colour: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """First-fit colours in node order."""

def depth_levels(
    node: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    start: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    half: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    rank: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    level: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """Depth of each node in the graph directed along rank."""

def order_halves(
    node: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    start: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    half: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    level: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    turn: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    number: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    early: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """
    The number of each half-edge at its node, earlier ends first; how many those are.
    """

def place_halves(
    node: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    number: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    early: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    place: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    group: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    most_early: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    slot: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu")],
    mate: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """
    Slots of half-edges in tiles of 32 nodes, and the slot of the other end of each.
    """

def order_by(
    key: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """A stable order of whole numbers from 0 on."""

FEASIBLE: float = 1e-12

EXCHANGED: int = 36

def reduced_unary(
    layout: Layout,
    lam: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """C_i - Σ λ of every node state, rounded as it comes."""

def node_minima(
    layout: Layout,
    lam: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """Numbers certainly at most min C_i - Σ λ, by node."""

def edge_minima(
    layout: Layout,
    lam: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """
    Numbers certainly at most min C_e + λ_i + λ_j over allowed labels, by edge.
    """

def dual_bound(
    layout: Layout,
    lam: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    constant: float,
    threads: int = 1,
) -> float:
    """
    A number certainly at most the dual objective at λ, in real numbers, plus a constant.
    """

def couple(
    layout: Layout,
    coupling: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    eta: float,
    nodes: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    edges: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ]
    | None,
    plan: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None,
    cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    entropy: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None,
    slack: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None,
    threads: int = 1,
) -> None:
    """
    Couplings of node marginals along edges (all, if None), and what they cost.
    """

def soft_nodes(
    layout: Layout,
    at: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    step: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    share: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    eta: float,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    entropy: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    minimum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """Soft marginals of nodes, their entropies and their soft minima."""

def transport_batch(
    cost: Annotated[
        NDArray[numpy.float64],
        dict(shape=(None, None, None), order="C", device="cpu", writable=False),
    ],
    p: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    q: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
    stranded: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """The cheapest couplings of a stack of problems."""

def exchange_batch(
    cost: Annotated[
        NDArray[numpy.float64],
        dict(shape=(None, None, None), order="C", device="cpu", writable=False),
    ],
    plan: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")
    ],
) -> None:
    """Cheaper couplings of a stack, by moves among two rows and two columns."""

def cycle_gains(
    tables: Annotated[
        NDArray[numpy.float64],
        dict(shape=(None, None, None), order="C", device="cpu", writable=False),
    ],
    place: Annotated[
        NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    turned: Annotated[
        NDArray[numpy.bool_], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """
    The least joint cost of each cycle's pairs less the sum of their least costs.
    """

def lower_sum(
    values: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> float:
    """A number certainly at most Σ values."""

def careful_sum(
    values: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> float:
    """Σ values, as good as rounded once."""

def elimination_entries(
    num_labels: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    scope_start: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    scope: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    limit: float,
) -> float:
    """Table entries of a greedy variable elimination; inf beyond the limit."""

class StopFlag:
    def __init__(self) -> None: ...
    def set(self) -> None: ...

class ExactSearch:
    """A branch and bound over one model."""

    def __init__(
        self,
        num_labels: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        unary: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        scope_start: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        scope: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tables: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        constant: float,
        lam: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        incumbent: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        relative_gap: float,
        absolute_gap: float,
        memory_limit: float,
        presolve: bool,
        ascent: bool,
        dp_limit: float,
        seconds: float,
        log: str,
    ) -> None: ...
    def go_on(
        self,
        incumbent: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        time_limit: float,
        end: float,
        backtrack_limit: int,
        stop: StopFlag | None = None,
    ) -> dict:
        """Search on, for so many seconds and backtracks; what is known then."""

def decimals(
    text: bytes,
    values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> tuple[int, list[int]]:
    """
    Decimal numbers between blanks; how many there are (-1: look elsewhere), and number, begin and end of each token that is none, or not exact.
    """

def parity_messages(
    values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    odd: Annotated[
        NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    eta: float,
) -> None:
    """
    Messages of parity factors, one per row, in place of the costs sent to them.
    """

def parity_minima(
    values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    odd: Annotated[
        NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """
    Numbers no larger than the least cost of a labelling of each row's parity.
    """

def parity_hulls(
    values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    odd: Annotated[
        NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> None:
    """Projects rows to the convex hull of all labellings of their parity."""

def parity_cones(
    values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
) -> None:
    """
    Projects rows to the costs at which no even labelling costs less than nothing.
    """

def decode(
    start: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    member: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    degree: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    costs: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    odd: Annotated[
        NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    rounds: int,
    steps: int,
    sweeps: int,
    words: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu")],
    lam: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    found: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None:
    """
    Decodes words; `found` gets cost, bound, whether it is proved, and the iterations.
    """

def code_bound(
    start: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    member: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    degree: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    costs: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    odd: Annotated[
        NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    lam: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> float:
    """A number no larger than the bound that λ proves."""

def cut_applies(layout: Layout, barrier: float) -> bool:
    """
    Whether all nodes have at most two labels and all edges are submodular.
    """

def binary_cut(
    layout: Layout,
    barrier: float,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    lam: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    seconds: float,
) -> bool:
    """
    Optimal labels and λ of a submodular model of two labels; False when time ran out.
    """

class FusionMoves:
    def __init__(self, layout: object, barrier: float) -> None: ...
    def fuse(
        self,
        labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
        proposal: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        seconds: float,
    ) -> int:
        """
        Take labels of the proposal where a minimum cut says so; how many changed, or -1.
        """
