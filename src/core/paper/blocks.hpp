// Blocks of λ that the paper's randomised methods update, and the two rules that change them.
//
// A block is a set B of half-edges at one node i: one half-edge (the paper's edge update) or all of
// them (its star update). Memory access dominates the time of such a small update. Therefore λ-like
// arrays are in *star order*: the half-edges of a node are contiguous, and so is a block. The
// position of a half-edge in star order is its index in Layout::half.
//
// sigma holds the costs -(1/η) log S_h of the half-edges h in B, one after the other; rho holds
// -(1/η) log μ_i. Both are +inf on forbidden states.
#pragma once

#include "base/random.hpp"
#include "base/softmin.hpp"
#include "passes/sending.hpp"

#include <algorithm>
#include <vector>

namespace softmap::paper {

struct Position {
    Index half;  // the half-edge (2e + side)
    Index twin;  // position of the edge's other half-edge
    Index place; // first entry in λ-like arrays in star order
    std::int32_t node, group;
};

struct Vertex {
    Index start, degree; // its half-edges are at positions start..start+degree-1
    Index states;        // first entry in arrays over node states
    Index labels;
};

// The star order of a model.
struct StarOrder {
    Layout lay;
    std::vector<Position> position; // [2m]
    std::vector<Vertex> vertex;     // [n]
    Index widest = 1;               // max |N_i| · d_i: entries of the largest star
    bool hard = false;              // whether any state is forbidden

    explicit StarOrder(const Layout &layout) : lay(layout), position(2 * lay.m) {
        std::vector<Index> where(2 * lay.m);
        for (Index k = 0; k < 2 * lay.m; ++k)
            where[lay.half[k]] = k;
        Index place = 0;
        for (Index i = 0; i < lay.n; ++i) {
            const Vertex v{lay.start[i], lay.start[i + 1] - lay.start[i], lay.node_offset[i],
                           lay.num_labels[i]};
            for (Index k = v.start; k < v.start + v.degree; ++k, place += v.labels) {
                const Index h = lay.half[k];
                position[k] = {h, where[h ^ 1], place, std::int32_t(i),
                               std::int32_t(lay.group_of(h >> 1))};
            }
            vertex.push_back(v);
            widest = std::max(widest, v.degree * v.labels);
        }
        for (Index s = 0; s < lay.node_offset[lay.n]; ++s)
            hard = hard || lay.unary[s] == infinity;
    }

    const Vertex &owner(const Position &p) const { return vertex[p.node]; }
    // First entry of λ of a node's star.
    Index star_place(const Vertex &v) const { return v.degree ? position[v.start].place : 0; }
};

struct DrawnBlock {
    Index first, size; // positions first..first+size-1
};

// A distribution over numbered blocks: block k has the probability sums[k] - sums[k - 1].
struct Distribution {
    const double *sums = nullptr; // [count], not decreasing
    Index count = 0;

    // A block of positive probability.
    Index draw(Random &random) const {
        const double at = uniform(random.word) * sums[count - 1];
        return std::min<Index>(std::upper_bound(sums, sums + count, at) - sums, count - 1);
    }
};

// The two kinds of blocks and how a block is drawn: EdgeBlocks draws a half-edge uniformly;
// StarBlocks draws the star of that half-edge's node, hence with probability |N_i| / 2m. `at`
// returns the block of a number: a position, or a node.
struct EdgeBlocks {
    static Index count(const StarOrder &order) { return Index(order.position.size()); }
    static DrawnBlock at(const StarOrder &, Index k) { return {k, 1}; }
    static DrawnBlock draw(const StarOrder &order, Random &random) {
        return {random.below(Index(order.position.size())), 1};
    }
};

struct StarBlocks {
    static Index count(const StarOrder &order) { return Index(order.vertex.size()); }
    static DrawnBlock at(const StarOrder &order, Index i) {
        return {order.vertex[i].start, order.vertex[i].degree};
    }
    static DrawnBlock draw(const StarOrder &order, Random &random) {
        const Index k = random.below(Index(order.position.size()));
        return at(order, order.position[k].node);
    }
};

// Sets the costs of a node's forbidden states to +inf.
inline void bar_forbidden(const StarOrder &order, const Vertex &v, double *costs) {
    if (!order.hard)
        return;
    for (Index x = 0; x < v.labels; ++x)
        if (order.lay.unary[v.states + x] == infinity)
            costs[x] = infinity;
}

// Computes soft messages, one at a time.
class Messenger {
  public:
    Messenger(const StarOrder &order, double eta)
        : order_(order), eta_(eta), room_(message_room(order.lay.widest, 1)) {}

    // Message into `to` from costs a on the labels of the other endpoint:
    // out(x) = softmin_y [C(x, y) + a(y)].
    void send(const Position &to, const double *a, double *out) {
        send_one(order_.lay, to.group, to.half, a, out, room_.numbers(), eta_);
    }

  private:
    const StarOrder &order_;
    double eta_;
    Room room_;
};

// ν_h = S_h - μ_i for the half-edges of the block; 0 on forbidden states.
inline void slack(Index size, Index d, const double *sigma, const double *rho, double *nu,
                  double eta) {
    for (Index x = 0; x < d; ++x) {
        const double mu = exp_one(-eta * rho[x]);
        for (Index k = x; k < size * d; k += d)
            nu[k] = rho[x] < infinity ? exp_one(-eta * sigma[k]) - mu : 0.0;
    }
}

// Minimises L over the block exactly (Propositions "emp-update" and "smp-update" of the paper):
// λ'_h = y_h - σ_h + (ρ + Σ_{h'∈B} σ_h') / (|B| + 1), with σ and ρ normalised.
inline void minimise(Index size, Index d, double *y, const double *sigma, const double *rho) {
    for (Index x = 0; x < d; ++x) {
        double shared = rho[x];
        for (Index k = x; k < size * d; k += d)
            shared += sigma[k];
        shared /= double(size + 1);
        for (Index k = x; k < size * d; k += d)
            y[k] = rho[x] < infinity ? y[k] - sigma[k] + shared : 0.0;
    }
}

// Gradient step on the block; the step size is 1 over the curvature bound η (|B| + 1) / 2.
inline void descend(Index size, Index d, double *y, const double *nu, double eta) {
    const double step = 2.0 / (eta * double(size + 1));
    for (Index k = 0; k < size * d; ++k)
        y[k] += step * nu[k];
}

// Tags of the two rules: exact minimisation and gradient step.
struct Minimise {};
struct Descend {};

// `count` updates of stars or (if not `stars`) single half-edges, by exact minimisation or (if not
// `exact`) a gradient step. Blocks are drawn from `distribution` if it has any, else as the paper
// draws them.
struct Updates {
    bool stars, exact;
    Index count;
    Distribution distribution{};
};

} // namespace softmap::paper
