"""Messages of sixteen half-edges at a time, one per SIMD lane.

`a[x, lane]` are costs on the sending labels, `out[y, lane]` the messages. The values equal
`kernels.messages` to rounding.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.distances import SAFE
from softmap.kernels.fastmath import FAST, exp_nonpositive, log_positive

LANES = 16
unsigned = np.uint64  # an index that cannot be negative needs no test, and then loops vectorise
jit = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", _nrt=False)


@jit
def hard_tables(table, begin, step_x, step_y, a, out, senders, receivers):
    """Dense tables: entry (x, y) of lane k is `table[begin + x step_x + y step_y + k]`."""
    for y in range(receivers):
        entry = unsigned(begin + y * step_y)
        for k in range(LANES):
            out[y, k] = a[0, k] + table[entry + unsigned(k)]
    for x in range(1, senders):
        for y in range(receivers):
            entry = unsigned(begin + x * step_x + y * step_y)
            for k in range(LANES):
                out[y, k] = min(out[y, k], a[x, k] + table[entry + unsigned(k)])


@jit
def soft_tables(table, begin, step_x, step_y, a, out, total, senders, receivers, eta):
    """`hard_tables`, soft at η."""
    hard_tables(table, begin, step_x, step_y, a, out, senders, receivers)
    for y in range(receivers):
        for k in range(LANES):
            total[0, k] = 0.0
            # inf - inf would be NaN: an unsupported label has no reference point of its own
            total[1, k] = min(out[y, k], 1e300)
        for x in range(senders):
            entry = unsigned(begin + x * step_x + y * step_y)
            for k in range(LANES):
                excess = a[x, k] + table[entry + unsigned(k)] - total[1, k]
                total[0, k] += exp_nonpositive(-eta * excess)
        for k in range(LANES):
            out[y, k] -= log_positive(total[0, k]) / eta


@jit
def _least(a, least, labels):
    for k in range(LANES):
        least[k] = a[0, k]
    for x in range(1, labels):
        for k in range(LANES):
            least[k] = min(least[k], a[x, k])


@jit
def soft_potts(weight, a, out, total, labels, eta):
    """Weights >= 0. One exponential and one logarithm per label while exp(-η w) is a number."""
    least, together, q = total[0], total[1], total[2]
    _least(a, least, labels)
    small = True
    for k in range(LANES):
        together[k] = 0.0
        small = small and eta * weight[k] <= SAFE
        q[k] = exp_nonpositive(-eta * weight[k])
    for x in range(labels):
        for k in range(LANES):
            out[x, k] = exp_nonpositive(-eta * (a[x, k] - least[k]))
            together[k] += out[x, k]
    if small:
        for y in range(labels):
            for k in range(LANES):
                own = out[y, k]
                out[y, k] = least[k] - log_positive(own + q[k] * (together[k] - own)) / eta
        return
    for y in range(labels):
        for k in range(LANES):
            others = max(together[k] - out[y, k], 1e-300)
            ahead = a[y, k] - least[k] - weight[k]
            t = exp_nonpositive(-eta * abs(ahead))
            both = 1.0 + t * others if ahead <= 0.0 else t + others
            out[y, k] = least[k] + weight[k] + min(ahead, 0.0) - log_positive(both) / eta


@jit
def hard_potts(weight, a, out, total, labels):
    """Weights >= 0."""
    least = total[0]
    _least(a, least, labels)
    for y in range(labels):
        for k in range(LANES):
            out[y, k] = min(a[y, k], least[k] + weight[k])


@jit
def hard_linear(weight, truncation, a, out, total, labels):
    """Distance transform, then the truncation; weights >= 0."""
    least = total[0]
    _least(a, least, labels)
    for k in range(LANES):
        out[0, k] = a[0, k]
    for y in range(1, labels):
        for k in range(LANES):
            out[y, k] = min(a[y, k], out[y - 1, k] + weight[k])
    for y in range(labels - 2, -1, -1):
        for k in range(LANES):
            out[y, k] = min(out[y, k], out[y + 1, k] + weight[k])
    for y in range(labels):
        for k in range(LANES):
            ceiling = least[k] + weight[k] * min(truncation[k], float(labels))
            out[y, k] = min(out[y, k], ceiling)


@jit
def hard_window(profile, reach, a, out, total, labels):
    """`soft_window` as η → ∞."""
    least = total[0]
    _least(a, least, labels)
    for y in range(labels):
        for k in range(LANES):
            out[y, k] = least[k] + profile[reach, k]
        for x in range(max(y - reach + 1, 0), min(y + reach, labels)):
            step = abs(x - y)
            for k in range(LANES):
                out[y, k] = min(out[y, k], a[x, k] + profile[step, k])


@jit
def soft_window(profile, reach, a, out, total, work, labels, eta):
    """Costs of the label difference that are constant from `reach` on; weights >= 0.

    `profile[k, lane]` is the cost of difference k (`profile[reach]` the constant one). Near labels
    one by one, far ones through sums of exponentials: O(labels · reach).
    """
    least, before, after = total[0], work[: labels + 1], work[labels + 1 :]
    _least(a, least, labels)
    for k in range(LANES):
        before[0, k] = 0.0
        after[labels, k] = 0.0
    for x in range(labels):
        for k in range(LANES):
            after[x, k] = exp_nonpositive(-eta * (a[x, k] - least[k]))
            before[x + 1, k] = before[x, k] + after[x, k]
    for x in range(labels - 1, -1, -1):
        for k in range(LANES):
            after[x, k] += after[x + 1, k]
    for y in range(labels):
        first, last = max(y - reach + 1, 0), min(y + reach, labels)
        for k in range(LANES):
            out[y, k] = least[k] + profile[reach, k]
        for x in range(first, last):
            step = abs(x - y)
            for k in range(LANES):
                out[y, k] = min(out[y, k], a[x, k] + profile[step, k])
        for k in range(LANES):
            far = exp_nonpositive(-eta * (least[k] + profile[reach, k] - out[y, k]))
            total[1, k] = far * (before[first, k] + after[last, k])
        for x in range(first, last):
            step = abs(x - y)
            for k in range(LANES):
                total[1, k] += exp_nonpositive(-eta * (a[x, k] + profile[step, k] - out[y, k]))
        for k in range(LANES):
            out[y, k] -= log_positive(total[1, k]) / eta


@jit
def soft_linear(weight, ceiling, reach, a, out, total, work, labels, eta):
    """O(labels) recursion over sums of exponentials, all lanes with one reach; η · ceiling <= SAFE.

    `out` holds the exponentials first; what the truncation replaces is taken out of the recursion
    again, by something smaller than what is put in, so nothing is lost.
    """
    size = labels + 1
    up, down = work[:size], work[size : 2 * size]
    before, after = work[2 * size : 3 * size], work[3 * size : 4 * size]
    least, q, cut, falling = total[0], total[1], total[2], total[3]
    _least(a, least, labels)
    for k in range(LANES):
        q[k] = exp_nonpositive(-eta * weight[k])
        cut[k] = exp_nonpositive(-eta * ceiling[k])
        falling[k] = exp_nonpositive(-eta * weight[k] * reach)
        up[0, k] = 0.0
        before[0, k] = 0.0
        down[labels, k] = 0.0
        after[labels, k] = 0.0
    for x in range(labels):
        for k in range(LANES):
            out[x, k] = exp_nonpositive(-eta * (a[x, k] - least[k]))
            up[x + 1, k] = out[x, k] + q[k] * up[x, k]
            before[x + 1, k] = before[x, k] + out[x, k]
    for x in range(labels - 1, -1, -1):
        for k in range(LANES):
            down[x, k] = out[x, k] + q[k] * down[x + 1, k]
            after[x, k] = after[x + 1, k] + out[x, k]
    for y in range(labels):
        low, high = max(y - reach + 1, 0), min(y + reach, labels)
        for k in range(LANES):
            near = up[y + 1, k] + q[k] * down[y + 1, k]
            near -= falling[k] * (up[low, k] + down[high, k])
            far = cut[k] * (before[low, k] + after[high, k])
            out[y, k] = least[k] - log_positive(max(near + far, 1e-300)) / eta
