"""A pass over levels in plain numpy: one message at a time, from dense tables."""

from __future__ import annotations

from functools import cache

import numpy as np

RELAX, TURN = 0.75, 0.3


class Passes:
    """Messages M by half-edge, with momentum over whole passes."""

    def __init__(self, model, level):
        self.model, self.level = model, level
        self.node = model.edges.reshape(-1)
        self.costs = np.split(model.unary, model.network.node_offset[1:-1])
        self.msg = [np.zeros(model.num_labels[i]) for i in self.node]
        self.prev = [m.copy() for m in self.msg]
        self.shift = np.zeros(2 * model.m)
        self.clock = [0.0, -1.0]
        far = self.node.reshape(-1, 2)[:, ::-1].reshape(-1)
        self.onwards = level[far] > level[self.node]
        own = [np.flatnonzero(self.node == i).tolist() for i in range(model.n)]
        self.own = {
            later: [[h for h in halves if self.onwards[h] == later] for halves in own]
            for later in (False, True)
        }

    @cache  # noqa: B019 - a twin lives as long as its test
    def table(self, h):
        """The costs of the edge of h: rows for the end at h."""
        table = self._table(h // 2)
        return table if h % 2 == 0 else table.T

    def _table(self, e):
        for first, last, potential in self.model.network.groups():
            if first <= e < last:
                i, j = self.model.edges[e]
                rows, cols = (int(self.model.num_labels[k]) for k in (i, j))
                x, y = np.indices((rows, cols))
                return potential.value(e - first, x, y)
        raise IndexError(e)

    def halves(self, i, later):
        """Half-edges of node i to later (or earlier) levels."""
        return self.own[later][i]

    def share(self, i, msg=None):
        """θ̂_i / n_i."""
        msg = self.msg if msg is None else msg
        early, late = self.halves(i, False), self.halves(i, True)
        total = self.costs[i] + sum(msg[h] for h in early + late)
        return total / max(len(early), len(late), 1)

    def half(self, forward, eta, momentum=False):
        """One direction: every node sends along its onward edges, level by level."""
        product = 0.0
        order = np.argsort(self.level if forward else -self.level, kind="stable")
        for i in order:
            share = self.share(i)
            sent = {}
            for h in self.halves(i, forward):
                sent[h] = softmin(share[:, None] - self.msg[h][:, None] + self.table(h), eta)
            for h, out in sent.items():
                self.shift[h] = low = out.min()
                with np.errstate(invalid="ignore"):
                    new = out - low
                new[~(new < np.inf)] = 0.0
                if momentum and not forward:
                    step, before = self.msg[h ^ 1] - new, self.prev[h ^ 1]
                    product += float((step * (new - before - TURN * step)).sum())
                    self.prev[h ^ 1] = before + RELAX * step
                self.msg[h ^ 1] = new
        return product

    def passes(self, count, eta, longest=10.0):
        """Passes with momentum."""
        for k in range(count):
            t, product = self.clock
            if k and k % 5 == 0:
                t = min(t, longest)
            t = 1.0 if product > 0 else t
            following = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
            beta = (t - 1) / following
            for h in range(len(self.msg)):
                if self.onwards[h]:
                    old = self.msg[h]
                    self.msg[h] = old + beta * (old - self.prev[h])
                    self.prev[h] = old
            self.half(True, eta)
            self.clock = [following, self.half(False, eta, momentum=True)]

    def lam(self):
        """λ = -M, flat."""
        return -np.concatenate([*self.msg, np.zeros(0)])

    def cut(self):
        """λ with every share given to the edges that lead onwards."""
        out = []
        for h, message in enumerate(self.msg):
            i = self.node[h]
            share = self.share(i)
            cut = np.where(share < np.inf, share - message, 0.0)
            value = cut if self.onwards[h] else -message
            out.append(value)
        return np.concatenate([*out, np.zeros(0)])


def softmin(costs, eta):
    """Soft minimum over the rows (hard at η = ∞)."""
    low = costs.min(axis=0)
    if eta == np.inf:
        return low
    with np.errstate(invalid="ignore"):
        mass = np.where(costs < np.inf, np.exp(-eta * (costs - low)), 0.0).sum(axis=0)
    return np.where(low < np.inf, low - np.log(np.maximum(mass, 1e-300)) / eta, np.inf)
