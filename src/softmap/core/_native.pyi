"""The compiled core of softmap."""

from typing import Annotated, overload

import numpy
from numpy.typing import NDArray

def use(table: object) -> None:
    """Use the inner loops of a table of kernels."""

def level() -> str:
    """Return the instruction set of the inner loops."""

def width() -> int:
    """
    Return the number of doubles in a vector register of that instruction set.
    """

def cpu_level() -> str:
    """Return the highest instruction set that this machine supports."""

def exponentials(
    values: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """
    Write exp(values) into `out` for values <= 0, with the function that passes use.
    """

def give_back() -> None:
    """Return freed heap memory to the operating system."""

class OutOfTime(Exception):
    pass

class Deadline:
    """When compiled loops have to stop: at a time, or once `stop` is called."""

    def __init__(self, seconds: float = float("inf")) -> None: ...
    def stop(self) -> None:
        """Stop all loops with this deadline, or with one made from it, for good."""

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""

    @property
    def passed(self) -> bool:
        """Whether loops have to stop."""

    def require(self) -> None:
        """Raise OutOfTime if loops have to stop."""

    @property
    def left(self) -> float:
        """Seconds until the end; 0 if it has passed."""

    @property
    def end(self) -> float:
        """The end, in seconds of time.perf_counter; +inf if there is none."""

    @end.setter
    def end(self, arg: float, /) -> None: ...
    def at(self, end: float) -> Deadline:
        """
        Return a deadline with this end if it is earlier; both are stopped together.
        """

    def within(self, seconds: float) -> Deadline:
        """
        Return a deadline that ends so many seconds from now, or earlier; both are stopped together.
        """

    def stop_after(self, looks: int) -> None:
        """For tests: let the k-th look of a loop from now on stop all loops."""

class Layout:
    """The flat arrays of a model that every kernel reads."""

    def __init__(self, arrays: dict) -> None: ...
    @property
    def widest(self) -> int: ...

KINDS: tuple = ...

LANES: int = 8

WORTHWHILE: int = 8192

def message(
    layout: Layout,
    h: int,
    a: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    eta: float,
) -> None:
    """
    Compute the message into half-edge h from costs `a` at the other endpoint.
    """

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
    threads: int = 1,
    deadline: Deadline | None = None,
) -> dict:
    """
    Return the arrays of a schedule that do not depend on costs, by name. Raises OutOfTime.
    """

class Schedule:
    """The order of updates in a pass, and its arrays."""

    def __init__(self, arrays: dict) -> None: ...

def pack_lanes(
    layout: Layout,
    blocks: Annotated[
        NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    edge: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    truncation: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
def to_messages(
    layout: Layout,
    schedule: Schedule,
    lam: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
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
) -> None:
    """Compute messages into early endpoints from λ of a coarser model."""

def to_lam(
    layout: Layout,
    schedule: Schedule,
    msg: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    lam: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...

class ChainArrays:
    """The arrays of a run of passes."""

    def __init__(
        self,
        msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        drift: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...

class Averaging:
    """When passes add node marginals to an average."""

    @overload
    def __init__(
        self,
        mean: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        done: int,
        every: int,
        longest: float,
        samples: int,
        recent: float,
    ) -> None: ...
    @overload
    def __init__(
        self,
        mean: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        done: int,
        every: int,
        longest: float,
        samples: int,
        recent: float,
    ) -> None: ...

def passes(
    layout: Layout,
    schedule: Schedule,
    arrays: ChainArrays,
    halves: int,
    eta: float,
    momentum: bool,
    threads: int,
    deadline: Deadline | None = None,
) -> int:
    """Make half passes; return how many were completed before the deadline."""

def sampled_passes(
    layout: Layout,
    schedule: Schedule,
    arrays: ChainArrays,
    count: int,
    eta: float,
    averaging: Averaging,
    threads: int,
    deadline: Deadline | None = None,
) -> int:
    """
    Make passes with momentum, and update a running average of the node marginals; return how many were completed before the deadline.
    """

@overload
def blend(
    layout: Layout,
    schedule: Schedule,
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    eta: float,
    weight: float,
    mean: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def blend(
    layout: Layout,
    schedule: Schedule,
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    eta: float,
    weight: float,
    mean: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None:
    """Move an average of node marginals towards the marginals of shares."""

@overload
def marginals(
    layout: Layout,
    schedule: Schedule,
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    eta: float,
    forward: bool,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> tuple[float, float]: ...
@overload
def marginals(
    layout: Layout,
    schedule: Schedule,
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    eta: float,
    forward: bool,
    out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> tuple[float, float]:
    """
    Compute the node marginals of shares; return sums of entropies and soft minima.
    """

@overload
def price(
    layout: Layout,
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
    deadline: Deadline | None = None,
) -> None: ...
@overload
def price(
    layout: Layout,
    schedule: Schedule,
    msg: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    nodes: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    eta: float,
    whole: bool,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
    deadline: Deadline | None = None,
) -> None:
    """
    Compute the cost (if `whole`, also entropy and slack) of couplings near κ = share - message.
    """

def half_pass(
    layout: Layout,
    schedule: Schedule,
    arrays: ChainArrays,
    forward: bool,
    eta: float,
    momentum: bool,
    threads: int,
) -> None: ...
def lowered_half(
    layout: Layout,
    schedule: Schedule,
    arrays: ChainArrays,
    threads: int,
    deadline: Deadline | None = None,
) -> None:
    """
    Make a forward half pass with hard minima, rounded down; raise OutOfTime if the deadline passes first.
    """

def chain_bound(
    schedule: Schedule,
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
    Return a lower bound on the bound of `cut_chains` after `lowered_half`.
    """

def portions(schedule: Schedule) -> int:
    """Return the number of rows that `price` writes."""

def read_labels(
    layout: Layout,
    schedule: Schedule,
    msg: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    margin: float,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None:
    """
    Decode labels of all nodes from the messages of a hard forward half pass.
    """

def extrapolate(
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    drift: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
def traced_passes(
    layout: Layout,
    schedule: Schedule,
    arrays: ChainArrays,
    count: int,
    threads: int,
    deadline: Deadline | None = None,
) -> None:
    """Make hard passes; what they subtract from messages is added to drift."""

def round_off(
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    drift: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """Round messages to single precision; the rests are added to drift."""

def put_back(
    msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    drift: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """Add drift to messages; it becomes 0."""

def exchange(
    first: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    second: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """Exchange the contents of two arrays."""

@overload
def copy_into(
    source: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    to: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def copy_into(
    source: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    to: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def copy_into(
    source: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    to: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def copy_into(
    source: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    to: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """Copy an array into another one."""

def shares(
    schedule: Schedule,
    msg: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
def by_node(
    layout: Layout,
    schedule: Schedule,
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
def cut_chains(
    layout: Layout,
    schedule: Schedule,
    msg: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    theta: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    lam: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
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

RELAX: float = 0.75

TURN: float = 0.3

def by_strip(
    layout: Layout,
    nodes: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    rows: Annotated[
        NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """Copy the costs of the nodes into the order of strips."""

def packed_size(arg0: int, arg1: int, arg2: int, /) -> int: ...

class StarArrays:
    """The arrays of a run of sweeps."""

    def __init__(
        self,
        msg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        drift: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        origin: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        bar: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        dot: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...

def star_sweeps(
    layout: Layout,
    schedule: Schedule,
    arrays: StarArrays,
    count: int,
    eta: float,
    momentum: bool,
    threads: int,
    deadline: Deadline | None = None,
) -> int:
    """Make sweeps; return how many were completed before the deadline."""

def diffusion_sweeps(
    layout: Layout,
    schedule: Schedule,
    arrays: StarArrays,
    count: int,
    eta: float,
    momentum: bool,
    threads: int,
    deadline: Deadline | None = None,
) -> int:
    """Make sweeps; return how many were completed before the deadline."""

def gradient_sweeps(
    layout: Layout,
    schedule: Schedule,
    arrays: StarArrays,
    count: int,
    eta: float,
    momentum: bool,
    threads: int,
    deadline: Deadline | None = None,
) -> int:
    """Make sweeps; return how many were completed before the deadline."""

def star_values(
    layout: Layout, schedule: Schedule, arrays: StarArrays, eta: float, threads: int
) -> None:
    """
    Write the soft minima of nodes and blocks at messages without momentum.
    """

def random_word(
    words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
) -> int:
    """Return the next 64 random bits."""

def random_below(
    words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
    bound: int,
) -> int:
    """Return an exactly uniform integer in 0..bound-1."""

class StarOrder:
    """The half-edges sorted by node, so that each star is contiguous."""

    def __init__(self, layout: Layout) -> None: ...

def draw_block(
    order: StarOrder,
    stars: bool,
    words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
) -> tuple[int, int]:
    """
    Draw a block as an update does; return its first position and its size.
    """

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
        """Compute all arrays from lam, and make lam the best iterate so far."""

    def run(
        self,
        eta: float,
        stars: bool,
        exact: bool,
        count: int,
        words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
        sums: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None = None,
    ) -> int:
        """
        Make `count` updates; return the number of messages sent. `sums` are the partial sums of the probabilities of the blocks, by default those of the paper.
        """

    def run_sampled(
        self,
        eta: float,
        stars: bool,
        count: int,
        sample: int,
        words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
    ) -> int:
        """The same, each update at the best of `sample` random blocks."""

    def plant(
        self,
        eta: float,
        stars: bool,
        tree: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """Fill the tournament of a greedy run from the current slack."""

    def run_greedy(
        self,
        eta: float,
        stars: bool,
        count: int,
        tree: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> int:
        """
        Make `count` updates of the blocks of largest slack; return the number of messages.
        """

class AcceleratedRun:
    """The arrays of a run of Algorithm 2 or 3."""

    def __init__(
        self,
        order: StarOrder,
        v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        gain: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None: ...
    def run(
        self,
        eta: float,
        stars: bool,
        exact: bool,
        printed: bool,
        count: int,
        theta: float,
        words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
    ) -> tuple[float, int]:
        """
        Make `count` updates; return the last theta and the number of messages sent.
        """

    def run_semi_greedy(
        self,
        eta: float,
        count: int,
        sample: int,
        theta: float,
        words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
    ) -> tuple[float, int]:
        """
        Make `count` semi-greedy updates of stars; return the last theta and the number of messages sent.
        """

def row_extremes(
    values: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    start: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """
    Write the smallest and largest finite value of each row; 0 if it has none.
    """

def cheapest(
    layout: Layout,
    costs: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """
    Write the label of least cost of each variable, ties to the first label.
    """

@overload
def most_likely(
    layout: Layout,
    mass: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    tie: float,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """
    Write the label of largest mass of each variable, ties to the first label.
    """

@overload
def most_likely(
    layout: Layout,
    mass: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    tie: float,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
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
    deadline: Deadline | None = None,
) -> None:
    """
    Fix the nodes sequentially in an order, each given those before it; those that are left at the deadline at once.
    """

def iterated_modes(
    layout: Layout,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    stride: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    num_variables: int,
    max_sweeps: int,
    deadline: Deadline | None = None,
) -> None:
    """
    Run ICM in place: minimise the violated constraints first, then the cost.
    """

def independent_modes(
    layout: Layout,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    max_rounds: int,
    threads: int = 1,
    deadline: Deadline | None = None,
) -> None:
    """
    As iterated_modes, but in rounds that change independent nodes on several threads.
    """

def energy(
    layout: Layout,
    labels: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    constant: float = 0.0,
    threads: int = 1,
) -> float:
    """Return the energy of a labelling, rounded once."""

def first_labels(
    layout: Layout,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
    deadline: Deadline | None = None,
) -> None:
    """
    Assign labels by one backward pass of messages, as far as time allows, and decoding.
    """

def tree_optimum(
    layout: Layout,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    lam: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> bool:
    """
    Labels of least cost, and λ that proves them, of a forest of finite costs; false if the graph has a cycle.
    """

def forest_rounds(
    layout: Layout,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
    count: int,
    heat: float,
    threads: int = 1,
    deadline: Deadline | None = None,
) -> None:
    """
    Run tree moves on random forests in place, with noise that decreases from heat to 0.
    """

def scattered_forest(
    layout: Layout,
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    seed: int,
    heat: float,
    level: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None:
    """
    Solve one forest that all threads draw together, as forest_rounds does on random graphs; fill in the levels of its nodes.
    """

def next_forest(
    layout: Layout,
    begin: int,
    end: int,
    words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
    nodes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    links: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    parent: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
) -> int:
    """
    Draw a forest of a range of nodes as forest_rounds does; return its number of nodes.
    """

def arc_consistency(
    layout: Layout,
    allowed: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
    deadline: Deadline | None = None,
) -> int:
    """
    Remove unsupported states from `allowed`; return a node without states, or -1.
    """

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
    deadline: Deadline | None = None,
) -> bool:
    """
    Fix labels sequentially, maintaining arc consistency; return whether it succeeded.
    """

class Neighbourhoods:
    def __init__(
        self,
        layout: Layout,
        stride: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        num_variables: int,
        words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")],
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
    ) -> None: ...
    def improve(
        self,
        labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
        work: int,
        threads: int = 1,
        deadline: Deadline | None = None,
    ) -> tuple[int, int, int]:
        """
        Go on with a large-neighbourhood search, in place; return (work, cycles, improvements), the last two of all calls.
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
    Take the connected components of the change to `other` that do not raise the cost; return whether it fell.
    """

def sort_halves(
    node: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    half: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """
    Sort the half-edges by node; start[i] is the index of the first one of node i.
    """

def grid_width(
    node: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> int:
    """
    Return the number of columns if the edges join neighbours of a grid, else 0.
    """

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
    """Compute a greedy (first-fit) colouring in node order."""

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
    """
    Compute the depth of each node in the graph whose edges point to higher rank.
    """

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
    Number the half-edges of each node, those to earlier nodes first, and count these.
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
    Compute the slots of half-edges in tiles of 32 nodes, and of their opposite half-edges.
    """

def order_by(
    key: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """
    Sort non-negative integers: write the stable ascending order to `order`.
    """

def spanning_forest(
    n: int,
    pairs: Annotated[
        NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    order: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    chosen: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """
    Mark the pairs of the spanning forest that Kruskal's algorithm takes in this order.
    """

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
    """
    Compute C_i - Σ λ of every node state, in plain floating-point arithmetic.
    """

def node_minima(
    layout: Layout,
    lam: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """Compute a lower bound on min C_i - Σ λ for each node."""

def edge_minima(
    layout: Layout,
    lam: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """
    Compute a lower bound on min C_e + λ_i + λ_j over allowed labels for each edge.
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
    Return a lower bound, in real numbers, on the dual objective at λ plus a constant.
    """

class CouplingArrays:
    """What `couple` writes, by edge."""

    def __init__(
        self,
        cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        entropy: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")]
        | None = None,
        slack: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")]
        | None = None,
        plan: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")]
        | None = None,
    ) -> None: ...

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
    out: CouplingArrays,
    threads: int = 1,
    deadline: Deadline | None = None,
) -> None:
    """
    Couple node marginals along edges (by default all); compute the couplings' costs.
    """

def soft_nodes(
    layout: Layout,
    share: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    eta: float,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    entropy: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    minimum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """
    Compute soft marginals of nodes, their entropies and their soft minima.
    """

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
    """Compute optimal transport plans of a stack of problems."""

def exchange_batch(
    cost: Annotated[
        NDArray[numpy.float64],
        dict(shape=(None, None, None), order="C", device="cpu", writable=False),
    ],
    plan: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")
    ],
) -> None:
    """
    Improve the couplings of a stack by moves among two rows and two columns.
    """

def cycle_gains(
    tables: Annotated[
        NDArray[numpy.float64],
        dict(shape=(None, None, None), order="C", device="cpu", writable=False),
    ],
    code: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    n: int,
    variables: Annotated[
        NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
    deadline: Deadline | None = None,
) -> None:
    """
    Compute, for each cycle, the smallest joint cost of its pairs minus the sum of their minima.
    """

def move_blocks(
    source: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    begin: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    size: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    target: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    threads: int = 1,
) -> None:
    """
    Copy blocks of an array, which start at `begin`, to blocks of another one, which start at `target` and do not overlap.
    """

def short_cycles(
    start: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    neighbour: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    longest: int,
    most: int,
    kept: int,
    first: int,
    last: int,
    threads: int = 1,
    deadline: Deadline | None = None,
) -> list:
    """
    Return the chordless cycles of 3 to `longest` vertices whose smallest vertex is in first..last - 1, one flat array per length.
    """

def lower_sum(
    values: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> float:
    """Return a lower bound on Σ values."""

def careful_sum(
    values: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    threads: int = 1,
) -> float:
    """Return Σ values, rounded once."""

def careful_product(
    costs: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    mass: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    threads: int = 1,
) -> float:
    """
    Return Σ costs · mass, with inf · 0 = 0; products and sum are rounded once.
    """

def careful_node_cost(
    layout: Layout,
    mass: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    threads: int = 1,
) -> float:
    """
    Return Σ unary costs · normalised mass, as careful_product of `normalise`.
    """

def normalise(
    layout: Layout,
    mass: Annotated[
        NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """Divide marginals in single precision by their sums, node by node."""

def elimination_order(
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
    deadline: Deadline | None = None,
    tries: int = 30,
) -> tuple:
    """
    Return the table entries of variable elimination, those of its results, and the order of the variables; inf, inf and [] above the limit, or if no order was found in time.
    """

def live_entries(
    num_labels: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    scope_start: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    scope: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    order: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> float:
    """Return how many entries of results are needed at one time."""

def cluster_tree(
    num_labels: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    scope_start: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    scope: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    order: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> tuple:
    """
    Return the variables of each cluster of a tree decomposition, the clusters joined to it, and a cluster of each variable.
    """

def best_labellings(
    model: FlatModel,
    order: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    m: int,
    upper: float,
    threads: int,
    deadline: Deadline | None = None,
) -> dict:
    """
    Return the m labellings of lowest cost, and a lower bound for each rank.
    """

class LogSums:
    """Sums of exp(values) over all labellings, and marginals."""

    def __init__(
        self,
        model: FlatModel,
        order: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        threads: int,
        keep: bool = True,
    ) -> None: ...
    def up(self, deadline: Deadline | None = None) -> bool:
        """
        Eliminate variables until a deadline; return whether all are eliminated.
        """

    def down(self, deadline: Deadline | None = None) -> bool:
        """Compute marginals until a deadline; return whether all are computed."""

    @property
    def log_sum(self) -> float:
        """The logarithm of the sum, after `up`."""

    @property
    def error(self) -> float:
        """A bound on the rounding error of `log_sum`."""

    def marginals(self) -> tuple:
        """Return the marginals of variables and of factors, after `down`."""

class FlatModel:
    """A model as factor tables."""

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
    ) -> None: ...

class Effort:
    """The numbers that decide how much of what an exact search does."""

    def __init__(self) -> None: ...
    @property
    def max_entries(self) -> float: ...
    @max_entries.setter
    def max_entries(self, arg: float, /) -> None: ...
    @property
    def max_stored(self) -> float: ...
    @max_stored.setter
    def max_stored(self, arg: float, /) -> None: ...
    @property
    def at_once(self) -> float: ...
    @at_once.setter
    def at_once(self, arg: float, /) -> None: ...
    @property
    def per_entry(self) -> float: ...
    @per_entry.setter
    def per_entry(self, arg: float, /) -> None: ...
    @property
    def search_first(self) -> float: ...
    @search_first.setter
    def search_first(self, arg: float, /) -> None: ...
    @property
    def longest_first(self) -> float: ...
    @longest_first.setter
    def longest_first(self, arg: float, /) -> None: ...
    @property
    def split_work(self) -> int: ...
    @split_work.setter
    def split_work(self, arg: int, /) -> None: ...

def plan_component(tables: float, eliminated: float, effort: Effort, first: bool) -> tuple:
    """
    Return how a component of so many table entries is solved: 'eliminate', 'search', or 'search first' and the work of that search. `eliminated` is the number of entries that elimination visits, +inf without an order; `first`: a first labelling is looked for.
    """

class ExactOptions:
    """The options of an exact search."""

    def __init__(self) -> None: ...
    @property
    def relative_gap(self) -> float: ...
    @relative_gap.setter
    def relative_gap(self, arg: float, /) -> None: ...
    @property
    def absolute_gap(self) -> float: ...
    @absolute_gap.setter
    def absolute_gap(self, arg: float, /) -> None: ...
    @property
    def presolve(self) -> bool: ...
    @presolve.setter
    def presolve(self, arg: bool, /) -> None: ...
    @property
    def ascent(self) -> bool: ...
    @ascent.setter
    def ascent(self, arg: bool, /) -> None: ...
    @property
    def threads(self) -> int: ...
    @threads.setter
    def threads(self, arg: int, /) -> None: ...
    @property
    def log(self) -> str: ...
    @log.setter
    def log(self, arg: str, /) -> None: ...
    @property
    def effort(self) -> Effort: ...
    @effort.setter
    def effort(self, arg: Effort, /) -> None: ...
    @property
    def open_bytes(self) -> float: ...
    @open_bytes.setter
    def open_bytes(self, arg: float, /) -> None: ...

class ExactSearch:
    """Branch and bound over one model."""

    def __init__(
        self,
        model: FlatModel,
        options: ExactOptions,
        lam: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        incumbent: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None: ...
    def run(
        self,
        incumbent: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        deadline: Deadline | None = None,
        end: Deadline | None = None,
        backtrack_limit: int = -1,
    ) -> dict:
        """
        Continue the search up to a deadline or a limit on backtracks; what cannot be resumed may run to `end`. Return the result so far.
        """

class PermutationCosts:
    def __init__(
        self,
        unary: Annotated[
            NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        pair: Annotated[
            NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
    ) -> None: ...

class SwapSearch:
    def __init__(self, costs: PermutationCosts, seed: int = 0) -> None: ...
    def offer(
        self,
        labels: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Continue from these labels if they cost less than the best ones."""

    def run(
        self,
        labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
        work: int,
        deadline: Deadline | None = None,
    ) -> int:
        """Continue the tabu search; write the best labels and return their cost."""

class AssignmentAscent:
    def __init__(self, costs: PermutationCosts, seed: int = 0) -> None: ...
    def run(self, work: int, deadline: Deadline | None = None) -> int:
        """Continue the ascent; return the best lower bound."""

    @property
    def coolings(self) -> int:
        """Number of times that passes have stalled."""

    def multipliers(
        self,
        rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
        columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
        labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """Write the multipliers that prove the best bound."""

class AssignmentSearch:
    def __init__(
        self,
        ascent: AssignmentAscent,
        exchanged: bool,
        maps: Annotated[
            NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        kind: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        most: int,
        step: int,
        barrier: int,
        seed: int = 0,
        logged: int = 0,
    ) -> None: ...
    @property
    def full(self) -> bool:
        """Whether the multipliers of all nodes were too many."""

    @property
    def logged(self) -> int: ...
    def read_log(
        self, out: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")]
    ) -> None:
        """
        Write the multipliers of all nodes: the number of fixed variables, these with their labels, rows, columns and labels.
        """

    def run(self, work: int, deadline: Deadline | None = None) -> bool:
        """Continue the search; return whether it has ended."""

    def limit(self, most: int) -> None:
        """Search for assignments of at most this cost."""

    def labels(
        self, labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")]
    ) -> bool:
        """Write the best labels that were found; return whether there are any."""

    @property
    def nodes(self) -> int: ...
    @property
    def bound(self) -> int:
        """Lower bound of the assignments not yet excluded."""

def decimals(
    text: bytes,
    values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> tuple[int, list[int]]:
    """
    Parse decimal numbers separated by blanks into `values`. Return the number of tokens (-1 if most were rejected), and the index, begin and end of each rejected token.
    """

def parity_messages(
    values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    odd: Annotated[
        NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> None:
    """
    Replace the costs sent to parity factors, one per row, by the factors' messages.
    """

def parity_minima(
    values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    odd: Annotated[
        NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """
    Write a lower bound on the cost of all labellings of each row's parity to `out`.
    """

def parity_hulls(
    values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    odd: Annotated[
        NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
) -> None:
    """Project each row onto the convex hull of all labellings of its parity."""

def parity_cones(
    values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
) -> None:
    """
    Project each row onto the cone of costs at which no even labelling costs less than 0.
    """

class ParityCode:
    """The checks of a code."""

    def __init__(
        self,
        start: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        member: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        degree: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None: ...

class DecodingLimits:
    """How much of what a decoder does with one word."""

    def __init__(
        self, *, rounds: int, steps: int, sweeps: int = 0, depth: int = -1, words: int = 0
    ) -> None: ...
    @property
    def rounds(self) -> int:
        """Iterations of min-sum belief propagation."""

    @property
    def steps(self) -> int:
        """Douglas-Rachford steps per attempted proof."""

    @property
    def sweeps(self) -> int:
        """ADMM iterations on the linear program."""

    @property
    def depth(self) -> int:
        """Depth of ordered statistics; -1: none."""

    @property
    def words(self) -> int:
        """Words that an exhaustive search may visit."""

class Proposals:
    """λ of each word with its number of iterations, or none."""

    def __init__(
        self,
        lam: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        iterations: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None: ...

def decode(
    code: ParityCode,
    costs: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    odd: Annotated[
        NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    limits: DecodingLimits,
    words: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu")],
    lam: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    found: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    proposals: Proposals,
    threads: int,
) -> None:
    """
    Decode words; a row of `found` is cost, bound, whether proved optimal, iterations. If a word has proposed iterations, the word and its λ may be a proof: it is checked.
    """

def ordered_statistics(
    code: ParityCode,
    costs: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    odd: Annotated[
        NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    keys: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    depth: int,
    word: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu")],
) -> bool:
    """
    Write the best word of ordered statistics; False if no word has the parities.
    """

def code_bound(
    code: ParityCode,
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
    """Return the dual bound at λ, rounded down."""

class BinaryCut:
    def __init__(self, layout: Layout, barrier: float, threads: int) -> None: ...
    def applies(self) -> bool:
        """
        Whether all nodes have at most two labels and all edges are submodular.
        """

    def run(self, deadline: Deadline | None = None) -> bool:
        """Compute the cut; False if time ran out: a further call continues."""

    def read(
        self,
        labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
        lam: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """
        Fill in the labels and λ of the flow so far: optimal ones if `run` returned True.
        """

class FusionMoves:
    def __init__(self, layout: Layout, barrier: float) -> None: ...
    def fuse(
        self,
        labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
        proposal: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        work: int,
        threads: int,
        deadline: Deadline | None = None,
    ) -> int:
        """
        Fuse labels with a proposal by a minimum cut; return the number of changes, or -1.
        """

class InteriorPoint:
    """An interior-point method for the LP of a model."""

    def __init__(
        self,
        labels: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        edges: Annotated[
            NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        unary: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        pairs: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        deadline: Deadline | None = None,
    ) -> None: ...
    def step(self, deadline: Deadline | None = None) -> bool:
        """Make a step; return False if rounding errors end the method."""

    @property
    def gap(self) -> float:
        """The cost of the current point minus the value of the current dual."""

    @property
    def work(self) -> float:
        """Number of multiplications of a step."""

    def nodes(self) -> object:
        """Return a copy of the node marginals."""

    def lam(self) -> object:
        """Return a copy of the multipliers."""

def mix(
    start: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    column: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    weight: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    vectors: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    sweeps: int,
    deadline: Deadline | None = None,
) -> int:
    """
    Sweep over unit vectors, each replaced by the best one; return the sweeps completed.
    """

def mix_triangles(
    matrix: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    vectors: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    triangles: Annotated[
        NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    multipliers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    averages: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    penalty: float,
    keep: float,
    steps: int,
    deadline: Deadline | None = None,
) -> int:
    """
    Make steps of vectors and multipliers of triangles; return the steps completed.
    """

def violated_triangles(
    gram: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    least: float,
    most: int,
    deadline: Deadline | None = None,
) -> object:
    """Return the most violated triangles: four numbers each, the signs last."""

def cholesky(
    matrix: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    deadline: Deadline | None = None,
) -> bool:
    """
    Replace the lower triangle by its Cholesky factor; False at a pivot that is not positive.
    """

def make_tridiagonal(
    matrix: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    beside: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    deadline: Deadline | None = None,
) -> None:
    """
    Replace a symmetric matrix by the reflections that make it tridiagonal.
    """

def multiply_by_reflections(
    matrix: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    vectors: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    deadline: Deadline | None = None,
) -> None:
    """
    Replace each vector, a row, by its product with the reflections of `make_tridiagonal`.
    """

class CoreSearch:
    def __init__(
        self,
        phases: Annotated[
            NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        logged: int = 0,
    ) -> None:
        """
        Variables with the values tried first, and the largest size of a proof, in integers; none is kept if it is 0.
        """

    def add_clauses(
        self,
        literals: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        start: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tables: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Add clauses, each of a table: at least one literal of each holds."""

    def add_sums(
        self,
        literals: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        start: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        weights: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        bounds: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        sources: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """
        Add sums: the weights of the literals that hold add up to the bound or more. Four integers per sum say for the proof where it comes from.
        """

    def add_costs(
        self,
        literals: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        weights: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Add costs of literals that hold."""

    def run(self, conflicts: int, deadline: Deadline | None = None) -> bool:
        """Continue; return whether the least cost is known."""

    def below(self, cost: int) -> None:
        """Look only for values that cost less."""

    def read(
        self, values: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu")]
    ) -> bool:
        """Write the best values so far; return whether there are any."""

    def write(self, path: str) -> int:
        """
        Write the records of the proof; return their size in bytes, 0 after an error.
        """

    @property
    def full(self) -> bool:
        """Whether the proof was too large to be kept."""

    @property
    def lower(self) -> int: ...
    @property
    def cores(self) -> int: ...
    @property
    def conflicts(self) -> int: ...

def linear_assignment(
    costs: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    prices: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    deadline: Deadline | None = None,
) -> bool:
    """
    Write different labels with the smallest sum of costs[i, labels[i]], -1 for rows that the rows before leave without a label, and the prices of the labels that prove the sum. Return whether the time sufficed.
    """

class FeasibleSearch:
    def __init__(
        self,
        num_labels: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        allowed: Annotated[
            NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None: ...
    def add_pairs(
        self,
        edges: Annotated[
            NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        tables: Annotated[
            NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Add edges with the row-major tables of their allowed pairs."""

    def add_tables(
        self,
        start: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        scope: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tables: Annotated[
            NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Add row-major tables of allowed joint states."""

    def add_different(
        self,
        scope: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Add variables whose labels must differ."""

    def add_sum(
        self,
        scope: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        weights: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        low: int,
        high: int,
        listed: Annotated[
            NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Add a sum of weights that must lie within bounds, or in a list."""

    def run(
        self,
        preference: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        conflicts: int,
        labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
        deadline: Deadline | None = None,
    ) -> int:
        """
        Continue the search. Return 0 if no labels exist, 1 if found, 2 if unknown.
        """

    def core(self) -> list[int]:
        """Return the constraints that the proof of infeasibility uses."""

    @property
    def conflicts(self) -> int: ...
    @property
    def decisions(self) -> int: ...

class LargeMoves:
    def __init__(
        self,
        model: FlatModel,
        words: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None: ...
    def improve(
        self,
        labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
        count: int,
        deadline: Deadline | None = None,
    ) -> int:
        """
        Improve labels in place by exact searches over some variables; return the number of improvements.
        """

    @property
    def free(self) -> float:
        """Number of free variables of the next move."""

class Annealing:
    def __init__(
        self,
        model: FlatModel,
        words: Annotated[
            NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None: ...
    def offer(
        self,
        labels: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Take labels over as the best ones if they cost less."""

    def run(self, work: int, deadline: Deadline | None = None) -> int:
        """Go on until a limit is reached; return the work done."""

    def best(
        self, labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")]
    ) -> bool:
        """Write the best labels; return whether there are any."""

    def state(
        self,
        labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
        costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> tuple[float, int]:
        """
        Write the current labels, and the cost of each label given all others; return their energy with penalties and the number of violated constraints.
        """

    @property
    def penalty(self) -> float:
        """Penalty of a violated constraint in the next run."""

    @property
    def runs(self) -> int:
        """Number of complete runs."""

    @property
    def least(self) -> float:
        """Cost of the best labels; +inf if none."""

class TransportNetwork:
    """Messages along a graph, some of whose nodes have given marginals."""

    def __init__(
        self,
        layout: Layout,
        mass: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        fixed: Annotated[
            NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None: ...
    def passes(
        self,
        count: int,
        eta: float,
        momentum: bool,
        ranges: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        deadline: Deadline | None = None,
    ) -> tuple[int, float]:
        """
        Make passes; return how many were completed before the deadline, and the misplaced mass of the edges times their ranges.
        """

    def multipliers(
        self,
        eta: float,
        lam: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        deadline: Deadline | None = None,
    ) -> bool:
        """
        Write λ of a hard backward half pass; return whether there was time for it.
        """

    def sides(
        self,
        eta: float,
        out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        deadline: Deadline | None = None,
    ) -> bool:
        """
        Write the marginals of all edges at both endpoints; return whether there was time.
        """

    def coupled(
        self,
        edge: int,
        eta: float,
        p: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        q: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        plan: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")]
        | None = None,
    ) -> tuple[float, float]:
        """
        Return the cost of a coupling of p and q along an edge, and the rounded mass; add the coupling to `plan`. At η = 0 the coupling does not depend on messages.
        """

    def sent(
        self,
        eta: float,
        out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """Write what every endpoint sends along its edges."""

    def messages(
        self, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")]
    ) -> None:
        """Write the messages into all half-edges."""

    def set_messages(
        self,
        msg: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Set the messages into all half-edges."""
