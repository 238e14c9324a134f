"""Sweeps over stars, colour by colour: smooth and hard-min block updates, diffusion, gradients.

Messages m = -λ lie as in a `Schedule` whose levels are colours. All half-edges of a colour's nodes
receive `μ_h(x) = softmin_y C(x, y) - m_{h^1}(y)` (min at η = ∞); then each node *settles*, by one
of the rules below, on what its half-edges hold. Nodes of one colour share no edge, so the result
is the same whatever the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.chains import block_total, extrapolate, portion, shares
from softmap.kernels.fastmath import FAST, exp_nonpositive, log_positive
from softmap.kernels.schedule import FIRST, NODES
from softmap.kernels.sending import buffers_for, send_blocks
from softmap.kernels.threads import wait

# STAR: minimise L over the star (η = ∞: MPLP, by nodes). DIFFUSION: one half-edge after the other,
# half way. GRADIENT: one step down ∇L, all at once. VALUE: change nothing, find the value of -L.
STAR, DIFFUSION, GRADIENT, VALUE = 0, 1, 2, 3

jit = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", _nrt=False)


@jit
def _normalised(cost, d):
    """Shift d costs to a least one of 0."""
    least = np.inf
    for x in range(d):
        least = min(least, cost[x])
    for x in range(d):
        cost[x] -= least


@jit
def _probabilities(cost, d, eta):
    """Turn d costs into probabilities ∝ exp(-η cost), in place."""
    _normalised(cost, d)
    mass = 0.0
    for x in range(d):
        cost[x] = exp_nonpositive(-eta * cost[x]) if cost[x] < np.inf else 0.0
        mass += cost[x]
    for x in range(d):
        cost[x] /= mass


@jit
def _soft_minimum(cost, d, eta):
    """-(1/η) log Σ exp(-η cost), or the least cost at η = ∞."""
    least = np.inf
    for x in range(d):
        least = min(least, cost[x])
    if eta == np.inf:
        return least
    mass = 0.0
    for x in range(d):
        mass += exp_nonpositive(-eta * (cost[x] - least))
    return least - log_positive(mass) / eta


@jit
def _take(costs, place, step, d, out):
    """The costs of one node, side by side."""
    for x in range(d):
        out[x] = costs[place + x * step]


@jit
def _share(msg, at, step, belief, d, part, out):
    """Star rule: every term of the star gets the same part of the belief θ̂."""
    for x in range(d):
        out[x] = msg[at + x * step] - part * belief[x]


@jit
def _average(msg, origin, at, step, belief, d, out):
    """Diffusion: the node's cost and the edge's least cost meet half way; θ̂ follows."""
    for x in range(d):
        y = origin[at + x * step]
        out[x] = 0.5 * (y + msg[at + x * step] - belief[x])
        if belief[x] < np.inf:
            belief[x] += out[x] - y


@jit
def _descend(msg, origin, at, step, barred, mu, d, rate, eta, out):
    """m - rate · ν with ν = S_h - μ_i."""
    for x in range(d):
        out[x] = barred[x] + msg[at + x * step] - origin[at + x * step]
    _probabilities(out, d, eta)
    for x in range(d):
        out[x] = origin[at + x * step] - rate * (out[x] - mu[x])


@jit
def _nodes(plan, first, last):
    """Which of `plan.nodes` the rows `first..last-1` hold."""
    if first == last:
        return 0, 0
    return plan.rows[first, FIRST], plan.rows[last - 1, FIRST] + plan.rows[last - 1, NODES]


@jit
def _settle(lay, plan, rule, msg, origin, prev, bar, theta, eta, dot, room, first, last):
    """The rule at the nodes of the rows `first..last-1`, from m (`origin`) and μ (`msg`).

    The result goes into `origin`, and into `msg` if later colours are to see it. `dot[i]` is the
    node's part of ⟨y - z, z - z_prev⟩.
    """
    start, ats, steps = plan.pull_start, plan.pull_at, plan.pull_step
    out, belief, barred = room[0], room[1], room[2]
    shares(lay, plan, msg if rule == STAR else origin, theta, first, last)
    low, high = _nodes(plan, first, last)
    for k in range(low, high):
        i = plan.nodes[k]
        d, degree = lay.num_labels[i], start[k + 1] - start[k]
        _take(theta, plan.node_at[i], plan.node_step[i], d, belief)
        _take(bar, plan.node_at[i], plan.node_step[i], d, barred)
        if rule == GRADIENT:
            _probabilities(belief, d, eta)
        else:
            _normalised(belief, d)
        product = 0.0
        for p in range(start[k], start[k + 1]):
            at, step = ats[p], steps[p]
            if rule == STAR:
                _share(msg, at, step, belief, d, 1.0 / (degree + 1.0), out)
            elif rule == DIFFUSION:
                _average(msg, origin, at, step, belief, d, out)
            else:
                rate = 1.0 / (eta * (0.5 * degree + 1.0))
                _descend(msg, origin, at, step, barred, belief, d, rate, eta, out)
            for x in range(d):
                q = at + x * step
                y, z = origin[q], out[x] if barred[x] == 0.0 else 0.0
                product += (y - z) * (z - prev[q])
                origin[q] = z
                msg[q] = y if rule == GRADIENT else z
        dot[i] = product


@jit
def _evaluate(lay, plan, msg, origin, bar, theta, eta, dot, room, first, last):
    """`dot[i]`: soft minimum of θ̂_i plus those of the edges to earlier nodes, less their shift."""
    start, ats, steps = plan.pull_start, plan.pull_at, plan.pull_step
    out, belief, barred = room[0], room[1], room[2]
    shares(lay, plan, origin, theta, first, last)
    low, high = _nodes(plan, first, last)
    for k in range(low, high):
        i = plan.nodes[k]
        d = lay.num_labels[i]
        _take(theta, plan.node_at[i], plan.node_step[i], d, belief)
        _take(bar, plan.node_at[i], plan.node_step[i], d, barred)
        value = _soft_minimum(belief, d, eta)
        for p in range(start[k], start[k + 1]):
            h = lay.half[lay.start[i] + p - start[k]]
            if lay.node[h ^ 1] < i:
                at, step = ats[p], steps[p]
                for x in range(d):
                    q = at + x * step
                    out[x] = barred[x] + msg[q] - origin[q]
                    msg[q] = origin[q]
                value += _soft_minimum(out, d, eta)
        dot[i] = value


@jit
def _copy(source, target, team):
    thread, threads, barrier = team
    for k in range(len(source) * thread // threads, len(source) * (thread + 1) // threads):
        target[k] = source[k]
    wait(barrier, threads)


@jit
def _receive(lay, plan, rule, level, msg, prev, bar, eta, shift, unused, buffers, team):
    """Send μ_h to every half-edge of the level's nodes (VALUE: from earlier nodes only)."""
    thread, threads, _ = team
    for way in range(1 if rule == VALUE else 2):
        forward = way == 0
        # blocks by the level of the end that receives
        start = plan.backward_start if forward else plan.forward_start
        listed = plan.backward if forward else plan.forward
        low, high = portion(start, level, thread, threads)
        send_blocks(
            lay, plan, listed, low, high, forward, bar, msg, prev, eta, False, shift, unused,
            buffers,
        )  # fmt: skip


@njit(cache=True, nogil=True)
def sweeps(
    lay, plan, rule, count, msg, prev, origin, bar, theta, eta, momentum, shift, dot, unused, sums,
    clock, team,
):  # fmt: skip
    """`count` sweeps over all colours by one rule, with momentum over whole sweeps if asked for.

    With momentum `prev` is where the last sweep started but for its extrapolation, and `clock[2]`
    the last product. `bar` is 0, or +inf on forbidden states; `origin`, `theta`, `unused`, `sums`
    are scratch. Rule VALUE: -L is Σ `dot` + Σ `shift`.
    """
    thread, threads, barrier = team
    buffers = buffers_for(lay)
    room = np.empty((3, len(buffers[1])))
    product = clock[2]
    for _ in range(count):
        if momentum:
            extrapolate(msg, prev, product, clock, team)
        _copy(msg, origin, team)
        for level in range(len(plan.row_start) - 1):
            _receive(lay, plan, rule, level, msg, prev, bar, eta, shift, unused, buffers, team)
            wait(barrier, threads)
            low, high = portion(plan.row_start, level, thread, threads)
            if rule == VALUE:
                _evaluate(lay, plan, msg, origin, bar, theta, eta, dot, room, low, high)
            else:
                _settle(lay, plan, rule, msg, origin, prev, bar, theta, eta, dot, room, low, high)
            wait(barrier, threads)
        if momentum:
            product = block_total(dot, sums, team)
        if rule == GRADIENT:
            _copy(origin, msg, team)
    if thread == 0:
        clock[2] = product
