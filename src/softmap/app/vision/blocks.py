"""Costs of pixels and of edges between them, in blocks of rows that stay in the cache.

Every loop looks at a deadline before each block, so that a time limit holds for images of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from softmap.app.vision.source import Image, Source
from softmap.extend import core, directions

BLOCK = 1 << 16  # entries of a block: half a megabyte


def row_blocks(
    shape: tuple[int, int], entries: int, deadline: core.Deadline
) -> Iterator[tuple[int, int]]:
    """Yield the first row of each block and the one after its last.

    Raises `core.OutOfTime` if the deadline passes.

    Parameters
    ----------
    shape : (int, int)
        The number of rows and of columns.
    entries : int
        Number of entries per pixel.
    deadline : Deadline
        When to stop.
    """
    size = max(1, BLOCK // (shape[1] * entries))
    for first in range(0, shape[0], size):
        deadline.require()
        yield first, min(first + size, shape[0])


def edge_values(
    source: Source,
    connectivity: int,
    measure: Callable[[Image, Image], Image],
    deadline: core.Deadline,
) -> NDArray[np.float64]:
    """Return a value for each edge of the grid, in the order of `neighbours`.

    Parameters
    ----------
    source : Source
        The image.
    connectivity : 4 or 8
        Number of neighbours of a pixel.
    measure : function
        Computes the values from the grey levels of both ends, arrays (channels, rows, columns).
    deadline : Deadline
        When to stop.
    """
    steps = directions(2, connectivity)
    rows, columns = source.shape
    sizes = [(rows - abs(down), columns - abs(right)) for down, right in steps]
    start = np.cumsum([0, *(height * width for height, width in sizes)])
    values = np.empty(int(start[-1]))
    parts = [values[a:b].reshape(size) for a, b, size in zip(start, start[1:], sizes, strict=False)]
    for first, last in row_blocks(source.shape, source.channels, deadline):
        grey = source.planes(first, last + 1)
        for (down, right), part in zip(steps, parts, strict=True):
            ends = part[first:last]
            left = max(0, -right)
            here = slice(left, left + ends.shape[1])
            there = slice(left + right, left + right + ends.shape[1])
            count = len(ends)
            ends[:] = measure(grey[:, :count, here], grey[:, down : down + count, there])
    return values


def window_sums(costs: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    """Return the sums over a window around each place of the first two axes, for inner rows.

    Beyond the left and right border, the nearest column counts again. The first and last
    `side // 2` rows of `costs` have no sums of their own.

    Parameters
    ----------
    costs : float64 array (rows + side - 1, columns, ...)
        The summands.
    side : int
        Side of the window, an odd number.
    """
    rows, columns = len(costs) - side + 1, costs.shape[1]
    down = costs[:rows].copy()
    for k in range(1, side):
        down += costs[k : k + rows]
    reach = side // 2
    nearest = np.clip(np.arange(-reach, columns + reach), 0, columns - 1)
    wide = down[:, nearest]
    sums = wide[:, :columns].copy()
    for k in range(1, side):
        sums += wide[:, k : k + columns]
    return sums


def rows_around(first: int, last: int, reach: int, rows: int) -> NDArray[np.int64]:
    """Return the rows `first - reach` to `last + reach - 1`, the nearest one beyond the border.

    Parameters
    ----------
    first, last : int
        A first row, and the one after the last.
    reach : int
        Number of rows before and after them.
    rows : int
        The number of rows of the image.
    """
    return np.clip(np.arange(first - reach, last + reach), 0, rows - 1)
