"""Between the order of half-edges and the order in which a pass reads (see `Schedule`)."""

from __future__ import annotations

from numba import njit

from softmap.kernels.messages import begin_of, weight_of
from softmap.kernels.schedule import COUNT, EARLY, GROUP, LANE, LATE, ORIENTATION, TABLE_AT
from softmap.kernels.vectors import LANES

jit = njit(cache=True, nogil=True, _nrt=False)


@jit
def pack_tables(lay, blocks, chosen, edge, out):
    """Copy the dense tables of tiles so that lanes lie side by side, rows by the early end."""
    for b in chosen:
        g, rows, cols = blocks[b, GROUP], blocks[b, EARLY], blocks[b, LATE]
        for k in range(blocks[b, COUNT]):
            e = edge[blocks[b, LANE] + k]
            begin, w = begin_of(lay, g, e), weight_of(lay, g, e)
            step_x, step_y = (cols, 1) if blocks[b, ORIENTATION] == 0 else (1, rows)
            place = blocks[b, TABLE_AT] + k
            for x in range(rows):
                for y in range(cols):
                    out[place] = w * lay.table[begin + x * step_x + y * step_y]
                    place += LANES


@jit
def pack(half_offset, half_at, half_step, flat, packed, first, last):
    """Messages of half-edges `first..last-1` from half-edge order to pass order."""
    for h in range(first, last):
        at, step = half_at[h], half_step[h]
        for k in range(half_offset[h], half_offset[h + 1]):
            packed[at] = flat[k]
            at += step


@jit
def unpack(half_offset, half_at, half_step, packed, flat, first, last):
    """Messages of half-edges `first..last-1` from pass order to half-edge order."""
    for h in range(first, last):
        at, step = half_at[h], half_step[h]
        for k in range(half_offset[h], half_offset[h + 1]):
            flat[k] = packed[at]
            at += step
