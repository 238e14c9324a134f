"""Limits on the memory that reading a file may allocate, from its size and the free memory."""

from __future__ import annotations

from dataclasses import dataclass

from softmap import machine


@dataclass(frozen=True)
class Limits:
    """Tuning numbers of readers and writers. Memory is counted in costs of eight bytes.

    Attributes
    ----------
    free_bytes : int
        A model may take this many bytes, whatever the size of its file. (Default costs, shared
        functions and constraints take more memory than text.)
    expansion : int
        A larger model may take at most this many bytes per byte of the file.
    axes : int
        Largest number of variables of one table, the largest number of axes of a NumPy array.
    read_bytes : int
        Number of bytes that are read or decompressed at a time.
    decoder_memory : int
        Largest memory, in bytes, that the header of an xz stream may request.
    trusted_bytes, compression : int
        Data that decompress to more than `trusted_bytes` bytes, and to more than `compression`
        times their size, are rejected. Models of many equal tables reach a factor of 200,
        decompression bombs 1000 and more.
    text_bytes : int
        Number of bytes of text that are converted to numbers at a time.
    word_bytes : int
        Largest length of a number, in bytes.
    gathered : int
        Number of table entries that are gathered at a time, to keep the array of indices small.
    xml_depth, repeat_depth, list_depth : int
        Largest nesting depth of XML elements, `repeat` blocks of DEM files and lists of CFN
        parameters.
    xml_bytes, xml_text : int
        Number of bytes that the XML parser gets at a time, and the size of its text buffer.
    clause_variables : int
        Clauses and sums over more variables than this become chains, which are as tight.
    joint_variables : int
        Largest number of variables of a pseudo-Boolean constraint that has to be a table.
    layered_states : int
        Largest number of states, times labels, of the automaton of a global cost function.
    global_cost : float
        Largest cost of one violation of a global cost function.
    integer_values : int
        Largest number of values of one integer variable of dimod and CPMpy.
    small_table, table_states, listed_states : int
        Constraints of CPMpy over at most `small_table` joint states become tables before any other
        form is tried, at most `table_states` if no factor fits; up to `listed_states` are visited
        to list the allowed ones, if CPMpy has no decomposition.
    partition_variables : int
        Largest order of OpenGM's PottsG functions, which have a value for each partition.
    matching_edge, assignment_edge, quadratic_edge, clause_edge : int
        Memory of an edge besides its table, in `.dd`, `.dat`, quadratic and Boolean problems.
    joint_state : int
        Memory of an auxiliary node besides its table.
    running_variable : int
        Memory of one chain variable with its tables.
    error_target : int
        Memory of one target of an error in a DEM file.
    safe_exponent, smallest_exponent : float
        Potentials are exp(-cost). A table with costs beyond `safe_exponent` is shifted; an exponent
        below `smallest_exponent` underflows.
    constant_factors, constant_factors_per_table : int
        A constant beyond the range of exp is written as a product of at most this many factors.
    """

    free_bytes: int = 128 << 20
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
    layered_states: int = 1 << 20
    global_cost: float = 1e15
    integer_values: int = 1 << 16
    small_table: int = 1 << 8
    table_states: int = 1 << 12
    listed_states: int = 1 << 20
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
    """Return the available memory in bytes; a cautious estimate if the system does not say."""
    found = machine.available_memory()
    return 4 << 30 if found is None else found
