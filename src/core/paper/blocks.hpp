// Blocks of λ that the paper's randomised methods update, and the two rules that change them.
//
// A block is a set B of half-edges at one node i: a single one (the paper's edge update) or all of
// them (its star update). An update is so small that memory decides its time. So λ-like arrays are
// kept in *star order*: the half-edges of a node one after the other, and a block is one stretch of
// memory. A half-edge is known by its position in that order, which is its place in Layout::half.
//
// sigma holds -(1/η) log S_h for h in B, one after the other, and rho holds -(1/η) log μ_i: costs,
// +inf on forbidden states.
#pragma once

#include "base/random.hpp"
#include "passes/sending.hpp"

#include <algorithm>
#include <vector>

namespace softmap::paper {

struct Position {
    Index half;  // which half-edge (2e + side)
    Index twin;  // position of the other end of the edge
    Index place; // where its labels begin in arrays in star order
    std::int32_t node, group;
};

struct Vertex {
    Index start, degree; // its half-edges have the positions start..start+degree-1
    Index states;        // where its labels begin in node arrays
    Index labels;
};

// The star order of a model.
struct StarOrder {
    Layout<double> lay;
    std::vector<Position> position; // [2m]
    std::vector<Vertex> vertex;     // [n]
    Index widest = 1;               // max |N_i| · d_i: room for the largest star
    bool hard = false;              // whether any state is forbidden

    explicit StarOrder(const Layout<double> &layout) : lay(layout), position(2 * lay.m) {
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
    // Where λ of a node's star begins.
    Index star_place(const Vertex &v) const { return v.degree ? position[v.start].place : 0; }
};

struct DrawnBlock {
    Index first, size; // positions first..first+size-1
};

// Which blocks there are, and how one is drawn: a half-edge uniformly, or the star of the node of
// such a half-edge, which so has probability |N_i| / 2m.
struct EdgeBlocks {
    static DrawnBlock draw(const StarOrder &order, Random &random) {
        return {random.below(Index(order.position.size())), 1};
    }
};

struct StarBlocks {
    static DrawnBlock draw(const StarOrder &order, Random &random) {
        const Index k = random.below(Index(order.position.size()));
        const Vertex &v = order.owner(order.position[k]);
        return {v.start, v.degree};
    }
};

// +inf on the forbidden states of a node.
inline void bar_forbidden(const StarOrder &order, const Vertex &v, double *costs) {
    if (!order.hard)
        return;
    for (Index x = 0; x < v.labels; ++x)
        if (order.lay.unary[v.states + x] == infinity)
            costs[x] = infinity;
}

// Sends soft messages, one at a time.
class Messenger {
  public:
    Messenger(const StarOrder &order, double eta)
        : order_(order), eta_(eta), room_(message_room(order.lay.widest, 1)) {}

    // Message into `to` from costs a on the labels of its far end:
    // out(x) = softmin_y [C(x, y) + a(y)].
    void send(const Position &to, const double *a, double *out) {
        send_one(order_.lay, to.group, to.half, a, out, room_.numbers(), eta_);
    }

  private:
    const StarOrder &order_;
    double eta_;
    Room room_;
};

inline double least_of(const double *cost, Index d) {
    double least = infinity;
    for (Index x = 0; x < d; ++x)
        least = cost[x] < least ? cost[x] : least;
    return least;
}

// Shift d costs so that exp(-η cost) sums to one.
inline void normalise(double *cost, Index d, double eta) {
    const double least = least_of(cost, d);
    double total = 0.0;
    for (Index x = 0; x < d; ++x)
        total += exp_one(-eta * (cost[x] - least));
    const double shift = least - log_one(total) / eta;
    for (Index x = 0; x < d; ++x)
        cost[x] -= shift;
}

// Turn d costs into probabilities ∝ exp(-η cost); return what `normalise` would subtract.
inline double to_probabilities(double *cost, Index d, double eta) {
    const double least = least_of(cost, d);
    double total = 0.0;
    for (Index x = 0; x < d; ++x) {
        const double weight = exp_one(-eta * (cost[x] - least));
        cost[x] = cost[x] < infinity ? weight : 0.0;
        total += cost[x];
    }
    for (Index x = 0; x < d; ++x)
        cost[x] /= total;
    return least - log_one(total) / eta;
}

// ν_h = S_h - μ_i for the half-edges of the block; 0 on forbidden states.
inline void slack(Index size, Index d, const double *sigma, const double *rho, double *nu,
                  double eta) {
    for (Index x = 0; x < d; ++x) {
        const double mu = exp_one(-eta * rho[x]);
        for (Index k = x; k < size * d; k += d)
            nu[k] = rho[x] < infinity ? exp_one(-eta * sigma[k]) - mu : 0.0;
    }
}

// Minimise L over the block: Propositions "emp-update" and "smp-update" in one.
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

// Gradient step on the block, of one over its curvature η (|B| + 1) / 2.
inline void descend(Index size, Index d, double *y, const double *nu, double eta) {
    const double step = 2.0 / (eta * double(size + 1));
    for (Index k = 0; k < size * d; ++k)
        y[k] += step * nu[k];
}

// The two rules, by name.
struct Minimise {};
struct Descend {};

// So many updates: of stars or single half-edges, by exact minimisation or a gradient step.
struct Updates {
    bool stars, exact;
    Index count;
};

} // namespace softmap::paper
