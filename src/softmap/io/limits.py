"""What a file may make us allocate: decided from its size and the memory, before allocating."""

from __future__ import annotations

import os
from dataclasses import dataclass

from softmap.errors import FormatError
from softmap.model.potentials.base import LARGEST_COST, RANGE, Costs, beyond, largest

__all__ = [
    "LIMITS",
    "Limits",
    "available_memory",
    "check_arity",
    "check_entries",
    "check_range",
    "human",
]


@dataclass(frozen=True)
class Limits:
    """Tuning numbers of readers and writers. Memory is counted in costs of eight bytes.

    Attributes
    ----------
    free_bytes : int
        A file may describe more than it spells out (default costs, shared functions, constraints):
        this many bytes always.
    expansion : int
        Above `free_bytes`, at most this many bytes for each byte of the file.
    axes : int
        Largest number of variables of one table; NumPy arrays have no more axes.
    read_bytes : int
        Bytes read or unpacked at a time.
    decoder_memory : int
        Bytes that the header of an xz stream may ask for.
    trusted_bytes, compression : int
        Data that unpack to more than `trusted_bytes`, and to more than `compression` times their
        size, are refused. Models of many equal tables reach 200, decompression bombs 1000 and more.
    text_bytes : int
        Bytes of text turned into numbers at a time.
    word_bytes : int
        No number is longer than this.
    gathered : int
        Entries of tables gathered at a time, to keep the array of indices small.
    xml_depth, repeat_depth, list_depth : int
        How deep XML elements, `repeat` blocks of DEM files and lists of CFN parameters may nest.
    xml_bytes, xml_text : int
        Bytes handed to the XML parser at a time, and size of its buffer of text.
    clause_variables : int
        Clauses and sums over more variables than this become chains, which are as tight.
    joint_variables : int
        Largest number of variables of a pseudo-Boolean constraint that has to be a table.
    global_cost : float
        Largest cost of one violation of a global cost function.
    integer_values : int
        Largest number of values of one integer variable of dimod.
    partition_variables : int
        Largest order of OpenGM's PottsG functions, which have a value for each partition.
    matching_edge, assignment_edge, quadratic_edge, clause_edge : int
        Memory of an edge besides its table, in `.dd`, `.dat`, quadratic and Boolean problems.
    joint_state : int
        Memory of an auxiliary variable besides its table.
    running_variable : int
        Memory of one variable of a chain with its tables.
    error_target : int
        Memory of one target of an error in a DEM file.
    safe_exponent, smallest_exponent : float
        Potentials are exp(-cost). A table with costs beyond `safe_exponent` is shifted; an exponent
        below `smallest_exponent` underflows.
    constant_factors, constant_factors_per_table : int
        A constant beyond the range of exp is written as a product of at most this many factors.
    """

    free_bytes: int = 64 << 20
    expansion: int = 4096
    axes: int = 64
    read_bytes: int = 1 << 20
    decoder_memory: int = 256 << 20
    trusted_bytes: int = 32 << 20
    compression: int = 300
    text_bytes: int = 1 << 17
    word_bytes: int = 1 << 12
    gathered: int = 1 << 16
    xml_depth: int = 100
    repeat_depth: int = 50
    list_depth: int = 5
    xml_bytes: int = 1 << 22
    xml_text: int = 1 << 18
    clause_variables: int = 6
    joint_variables: int = 20
    global_cost: float = 1e15
    integer_values: int = 1 << 16
    partition_variables: int = 8
    matching_edge: int = 32
    assignment_edge: int = 8
    quadratic_edge: int = 4
    clause_edge: int = 8
    joint_state: int = 16
    running_variable: int = 40
    error_target: int = 24
    safe_exponent: float = 500.0
    smallest_exponent: float = -708.0
    constant_factors: int = 64
    constant_factors_per_table: int = 8


LIMITS = Limits()


def available_memory() -> int:
    """Bytes of memory that can still be had; a cautious guess where the system does not say."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") + _reclaimable()
    except (AttributeError, OSError, ValueError):
        return 4 << 30


def _reclaimable() -> int:
    """Page cache the kernel would give back (Linux), else 0."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("Cached:"):
                    return int(line.split()[1]) << 9  # half of it, in bytes
    except (OSError, ValueError, IndexError):
        pass
    return 0


def human(size: float) -> str:
    """A number of bytes in words."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} PB"


def check_arity(arity: int, name: object = None, line: int | None = None) -> None:
    """Refuse a factor whose table would have more axes than an array can have."""
    if arity > LIMITS.axes:
        raise FormatError(
            f"expected factors of at most {LIMITS.axes} variables, found one of {arity}",
            name,
            line,
            expected=f"at most {LIMITS.axes} variables",
        )


def check_entries(
    entries: int, file_size: int, name: object = None, line: int | None = None
) -> None:
    """Refuse a file that asks for `entries` costs of eight bytes each, if that is absurd."""
    need = 8 * int(entries)
    if need <= LIMITS.free_bytes // 16:
        return
    allowed = min(max(LIMITS.free_bytes, LIMITS.expansion * file_size), available_memory() // 3)
    if need > allowed:
        raise FormatError(
            f"the file ({human(file_size)}) declares {int(entries):.6g} costs, {human(need)}; "
            f"expected at most {human(allowed)}",
            name,
            line,
            expected=f"at most {human(allowed)} of costs",
        )


def check_range(costs: Costs, name: str | None) -> None:
    """Refuse costs so large that sums of them could pass for +inf; they hold no NaN, no -inf."""
    if largest(costs) > LARGEST_COST:
        raise FormatError(f"found a cost of {costs[beyond(costs)][0]:g}; {RANGE}", name)
