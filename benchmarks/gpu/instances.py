"""The models that the GPU benchmarks are about, made quickly: arrays in bulk, no generators."""

from __future__ import annotations

import numpy as np

import softmap


def edges_of_grid(rows, cols):
    node = np.arange(rows * cols, dtype=np.int32).reshape(rows, cols)
    right = np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1)
    down = np.stack([node[:-1].ravel(), node[1:].ravel()], axis=1)
    return np.concatenate([right, down])


def potts(side=1024, labels=16, weight=0.3, seed=0):
    """The law of `softmap.generators.potts_grid`."""
    rng = np.random.default_rng(seed)
    edges = edges_of_grid(side, side)
    unary = rng.random((side * side, labels))
    return softmap.Model(unary, edges, softmap.Potts(np.full(len(edges), weight)))


def dense(side=1024, labels=16, seed=0):
    """The law of `softmap.generators.random_grid`, with tables of single precision."""
    rng = np.random.default_rng(seed)
    edges = edges_of_grid(side, side)
    unary = rng.standard_normal((side * side, labels), dtype=np.float32).astype(float)
    tables = rng.standard_normal((len(edges), labels, labels), dtype=np.float32)
    return softmap.Model(unary, edges, tables)


def stereo(rows=1024, cols=1024, labels=16, truncation=4.0, seed=0):
    """A scene of steps, as a stereo matcher sees it: noisy costs, truncated linear smoothness."""
    rng = np.random.default_rng(seed)
    edges = edges_of_grid(rows, cols)
    y, x = np.mgrid[:rows, :cols]
    depth = ((x * 7 // cols + y * 5 // rows) % 6) * (labels - 1) // 5
    unary = rng.random((rows * cols, labels), dtype=np.float32).astype(float)
    unary[np.arange(rows * cols), depth.ravel()] -= 0.35
    weights = np.full(len(edges), 0.1)
    return softmap.Model(unary, edges, softmap.TruncatedLinear(weights, truncation))


def random_graph(edges=10_000_000, degree=8, labels=3, seed=0):
    """A sparse random graph with dense tables, as in the paper."""
    rng = np.random.default_rng(seed)
    n = 2 * edges // degree
    ends = rng.integers(0, n, (edges + edges // 50, 2), dtype=np.int32)
    ends = ends[ends[:, 0] != ends[:, 1]]
    ends.sort(axis=1)
    key = np.unique(ends[:, 0].astype(np.int64) * n + ends[:, 1])
    key = rng.permutation(key)[:edges]
    pairs = np.stack([key // n, key % n], axis=1).astype(np.int32)
    unary = rng.standard_normal((n, labels), dtype=np.float32).astype(float)
    tables = rng.standard_normal((len(pairs), labels, labels), dtype=np.float32)
    return softmap.Model(unary, pairs, tables)
