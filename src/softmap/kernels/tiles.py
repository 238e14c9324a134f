"""Messages of `LANES` half-edges at a time, one per SIMD lane.

`a[LANES x + lane]` are costs on the sending labels, `out[LANES y + lane]` the messages. The values
equal `kernels.messages` to rounding.
"""

from __future__ import annotations

from softmap.kernels.distances import LINEAR, SAFE
from softmap.kernels.vectors import LANES, exp, greatest, inlined, least, load, log, spread, store


@inlined
def hard_tables(table, begin, step_x, step_y, a, out, senders, receivers):
    """Dense tables: entry (x, y) of lane k is `table[begin + x step_x + y step_y + k]`."""
    for y in range(receivers):
        entry = begin + y * step_y
        low = load(a, 0) + load(table, entry)
        for x in range(1, senders):
            entry += step_x
            low = least(load(a, LANES * x) + load(table, entry), low)
        store(out, LANES * y, low)


@inlined
def soft_tables(table, begin, step_x, step_y, a, out, work, senders, receivers, eta):
    """`hard_tables`, soft at η. The least term of each sum is 1; only the others are computed."""
    cold, small = -eta, -1.0 / eta
    if senders == 2:  # worth lines of its own: such models have nothing but overhead
        first, second = load(a, 0), load(a, LANES)
        for y in range(receivers):
            entry = begin + y * step_y
            value, low = first + load(table, entry), second + load(table, entry + step_x)
            mass = 1.0 + exp(cold * (greatest(value, low) - least(value, low)))
            store(out, LANES * y, least(value, low) + small * log(mass))
        return
    for y in range(receivers):
        entry = begin + y * step_y
        low = load(a, 0) + load(table, entry)
        for x in range(1, senders):
            entry += step_x
            value = load(a, LANES * x) + load(table, entry)
            store(work, LANES * x, greatest(value, low))
            low = least(value, low)
        mass = spread(1.0)
        for x in range(1, senders):
            mass = mass + exp(cold * (load(work, LANES * x) - low))
        store(out, LANES * y, low + small * log(mass))


@inlined
def _least(a, labels):
    low = load(a, 0)
    for x in range(1, labels):
        low = least(load(a, LANES * x), low)
    return low


@inlined
def _exponentials(a, out, labels, low, cold):
    """`out = exp(-η (a - low))`; their sum is returned."""
    mass = spread(0.0)
    for x in range(labels):
        term = exp(cold * (load(a, LANES * x) - low))
        store(out, LANES * x, term)
        mass = mass + term
    return mass


@inlined
def soft_potts(weight, a, out, labels, steepest, eta):
    """Weights in 0..`steepest`. One exponential and one logarithm per label unless η w is large."""
    cold, small = -eta, -1.0 / eta
    low = _least(a, labels)
    mass = _exponentials(a, out, labels, low, cold)
    if eta * steepest <= SAFE:
        q = exp(cold * weight)
        stay, leave = 1.0 - q, q * mass
        for y in range(labels):
            store(out, LANES * y, low + small * log(stay * load(out, LANES * y) + leave))
        return
    far = low + weight
    for y in range(labels):
        near = load(a, LANES * y)
        others = greatest(mass - load(out, LANES * y), spread(1e-300))
        best = least(near, far)
        both = exp(cold * (near - best)) + exp(cold * (far - best)) * others
        store(out, LANES * y, best + small * log(both))


@inlined
def hard_potts(weight, a, out, labels):
    """Weights >= 0."""
    far = _least(a, labels) + weight
    for y in range(labels):
        store(out, LANES * y, least(load(a, LANES * y), far))


@inlined
def hard_linear(weight, ceiling, a, out, labels):
    """Distance transform, then the truncation; weights >= 0."""
    low = load(a, 0)
    value = low
    store(out, 0, value)
    for y in range(1, labels):
        own = load(a, LANES * y)
        low = least(own, low)
        value = least(own, value + weight)
        store(out, LANES * y, value)
    far = low + ceiling
    value = value + weight
    for y in range(labels - 1, -1, -1):
        value = least(load(out, LANES * y), value)
        store(out, LANES * y, least(value, far))
        value = value + weight


@inlined
def _profile(kind, weight, ceiling, reach, work):
    """Costs of label differences up to `reach`, from where on they are constant."""
    for step in range(reach):
        store(work, LANES * step, weight * float(step if kind == LINEAR else step * step))
    store(work, LANES * reach, ceiling)


@inlined
def hard_window(kind, weight, ceiling, reach, a, out, work, labels):
    """`soft_window` as η → ∞."""
    _profile(kind, weight, ceiling, reach, work)
    far = _least(a, labels) + ceiling
    for y in range(labels):
        low = far
        for x in range(max(y - reach + 1, 0), min(y + reach, labels)):
            low = least(load(a, LANES * x) + load(work, LANES * abs(x - y)), low)
        store(out, LANES * y, low)


@inlined
def soft_window(kind, weight, ceiling, reach, a, out, work, labels, eta):
    """Costs of the label difference that are constant from `reach` on; weights >= 0.

    Near labels one by one, far ones through sums of exponentials: O(labels · reach).
    """
    cold, small = -eta, -1.0 / eta
    _profile(kind, weight, ceiling, reach, work)
    before, after = LANES * (labels + 1), LANES * (2 * labels + 2)
    low = _least(a, labels)
    store(work, before, spread(0.0))
    store(work, after + LANES * labels, spread(0.0))
    for x in range(labels):
        term = exp(cold * (load(a, LANES * x) - low))
        store(work, after + LANES * x, term)
        store(work, before + LANES * (x + 1), load(work, before + LANES * x) + term)
    for x in range(labels - 1, -1, -1):
        more = load(work, after + LANES * (x + 1))
        store(work, after + LANES * x, load(work, after + LANES * x) + more)
    for y in range(labels):
        first, last = max(y - reach + 1, 0), min(y + reach, labels)
        best = low + ceiling
        for x in range(first, last):
            best = least(load(a, LANES * x) + load(work, LANES * abs(x - y)), best)
        mass = load(work, before + LANES * first) + load(work, after + LANES * last)
        mass = mass * exp(cold * (low + ceiling - best))
        for x in range(first, last):
            value = load(a, LANES * x) + load(work, LANES * abs(x - y))
            mass = mass + exp(cold * (value - best))
        store(out, LANES * y, best + small * log(mass))


@inlined
def soft_linear(weight, ceiling, reach, a, out, work, labels, eta):
    """O(labels) recursion over sums of exponentials; η · ceiling <= SAFE.

    What lies past the truncation is taken out of the recursion again, and put in at the truncated
    cost as the difference of two sums. Nothing is lost to cancellation: the total is at least the
    whole mass at the truncated cost.
    """
    cold, small = -eta, -1.0 / eta
    up, down, mass = 0, LANES * labels, 2 * LANES * labels
    low = _least(a, labels)
    q, cut = exp(cold * weight), exp(cold * ceiling)
    falling, shy = exp(cold * (weight * float(reach))), exp(cold * (weight * float(reach - 1)))
    near, total = spread(0.0), spread(0.0)
    store(work, mass, total)
    for x in range(labels):
        term = exp(cold * (load(a, LANES * x) - low))
        store(out, LANES * x, term)
        near = near * q + term
        total = total + term
        store(work, up + LANES * x, near)
        store(work, mass + LANES * (x + 1), total)
    behind = spread(0.0)  # Σ q^(x - y) over x > y
    for y in range(labels - 1, -1, -1):
        first, last = max(y - reach + 1, 0), min(y + reach, labels)
        inside = load(work, mass + LANES * last) - load(work, mass + LANES * first)
        near = load(work, up + LANES * y) + behind + cut * (total - inside)
        behind = (behind + load(out, LANES * y)) * q
        store(work, down + LANES * y, behind)  # Σ q^(x - y + 1) over x >= y
        if first > 0:
            near = near - falling * load(work, up + LANES * (first - 1))
        if last < labels:
            near = near - shy * load(work, down + LANES * last)
        store(out, LANES * y, low + small * log(greatest(near, spread(1e-300))))
