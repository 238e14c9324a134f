// Conversion between model order and the order of tiles.
#pragma once

#include "judging.hpp"
#include "placing.hpp"

namespace softmap {
namespace device {

// What `to_lam` writes in model order: λ = -M; λ of the bound (see `lam_of`); or κ = share - M of
// all half-edges.
enum : int { plain_lam, cut_lam, couplings_of };

// out = λ or κ in model order, as `what` says.
template <class H>
SOFTMAP_KERNEL to_lam(Arena<typename H::S> arena, const typename H::S *msg,
                      const long long *half_offset, double *out, int what, int count) {
    Node<H> node;
    if (!node.find(arena, 0, count))
        return;
    for (int x = 0; x < node.labels(); ++x) {
        const double share = what == plain_lam ? 0.0 : share_of(arena, node, msg, x);
        for (int j = 0; j < node.early + node.late; ++j) {
            const Place p = node.message(j);
            const double own = double(msg[p.at + (long long)x * p.step]);
            const bool cut = what == couplings_of || (what == cut_lam && j >= node.early);
            out[half_offset[node.slot(j)] + x] = lam_of(share, own, cut);
        }
    }
}

// msg = -λ, from λ in model order.
template <class H>
SOFTMAP_KERNEL from_lam(Arena<typename H::S> arena, const double *lam, const long long *half_offset,
                        typename H::S *msg, int count) {
    using S = typename H::S;
    Node<H> node;
    if (!node.find(arena, 0, count))
        return;
    for (int j = 0; j < node.early + node.late; ++j) {
        const Place p = node.message(j);
        for (int x = 0; x < node.labels(); ++x)
            msg[p.at + (long long)x * p.step] = S(-lam[half_offset[node.slot(j)] + x]);
    }
}

// Copies a node array from model order to the order of tiles, or back.
template <class H, class A>
SOFTMAP_KERNEL node_order(Arena<typename H::S> arena, const long long *node_offset, A *by_tile,
                          double *by_node, int back, int count) {
    Node<H> node;
    if (!node.find(arena, 0, count))
        return;
    for (int x = 0; x < node.labels(); ++x) {
        double &other = by_node[node_offset[node.place()] + x];
        if (back)
            other = double(by_tile[node.cost(x)]);
        else
            by_tile[node.cost(x)] = A(other);
    }
}

// Stores the tables of all edges, multiplied by their weights: one table per slot, with the slot's
// owner by rows; in linked shapes one table per edge, with its earlier endpoint by rows.
template <class H, class A> SOFTMAP_KERNEL arrange(Arena<typename H::S> arena, A *out, int count) {
    Node<H> node;
    if (!node.find(arena, 0, count))
        return;
    for (int j = H::Linked ? node.early : 0; j < node.early + node.late; ++j) {
        const auto table = raw_table<exact, 0>(arena, node.slot(j), H::N, H::N);
        A *begin = out + table_place<H>(table_of<H>(arena, node.slot(j)));
        SOFTMAP_UNROLL(1)
        for (int x = 0; x < H::N; ++x)
            for (int y = 0; y < H::N; ++y)
                begin[(long long)(x * H::N + y) * tile_size] = A(table.entry(x, y).part[0]);
    }
}

} // namespace device
} // namespace softmap
