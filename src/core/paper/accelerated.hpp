// The paper's Algorithms 2 and 3: an update of a random block at y_k and a step of v, either as
// printed in the paper or as its proof requires.
//
// Both keep two arrays v and w. y_k is a linear combination of them that is computed only on the
// entries that an update reads. `theta` is the momentum parameter θ.
#pragma once

#include "blocks.hpp"

#include <cmath>

namespace softmap::paper {

// y = v · `v` + w · `w`.
struct Combination {
    double v, w;
};

// As printed, λ does not change outside the block: w = λ and y = θ v + (1 - θ) λ.
struct Printed {
    static Combination at(double theta) { return {theta, 1.0 - theta}; }
    // w after the update, from λ and v on the block.
    static double second(double lam, double, double) { return lam; }
};

// In the proof, λ_{k+1} = y_k outside the block, so λ - v is multiplied by 1 - θ_k everywhere. With
// λ = v + θ_{k-1}² w this gives y_k = v + θ_k² w, and an update changes v and w only on its block.
struct Proved {
    static Combination at(double theta) { return {1.0, theta * theta}; }
    static double second(double lam, double v, double at_w) { return (lam - v) / at_w; }
};

// θ_k from θ_{k-1}: the root of θ_k² = (1 - θ_k) θ_{k-1}², without cancellation.
inline double next_theta(double theta) {
    return 2.0 * theta / (theta + std::sqrt(theta * theta + 4.0));
}

// A block with its λ and slack at y: costs σ and ρ, ν, and the rank Σ ‖ν_h‖₁² / (|B| + 1).
struct BlockAtY {
    BlockAtY(Index widest, Index labels) : y(widest), sigma(widest), nu(widest), rho(labels) {}
    DrawnBlock block{};
    std::vector<double> y, sigma, nu, rho;
    double rank = 0.0;
};

// A run of Algorithm 2 or 3 on given arrays; Scheme is Printed or Proved.
template <class Scheme> class Accelerated {
  public:
    // `gain` [n] is θ times the step size of v at each node.
    Accelerated(const StarOrder &order, double *v, double *w, const double *gain, double eta)
        : order_(order), v_(v), w_(w), gain_(gain), eta_(eta), messenger_(order, eta),
          first_(order.widest, order.lay.widest), best_(first_), trial_(first_),
          costs_(order.lay.widest) {}

    // Makes `count` updates, beginning with θ_{k-1} = theta; sets theta to the last θ. Returns the
    // number of messages sent.
    template <class Blocks, class Rule> Index run(Index count, double &theta, Random &random) {
        Index work = 0;
        for (Index k = 0; k < count; ++k) {
            theta = next_theta(theta);
            const Combination at = Scheme::at(theta);
            evaluate(first_, Blocks::draw(order_, random), at);
            change(Rule{}, first_);
            move(first_, theta, at);
            work += first_.block.size;
        }
        return work;
    }

    // Semi-greedy: v moves along a random block, λ is minimised over the best of `sample` random
    // blocks, of which that is the first.
    template <class Blocks>
    Index run_semi_greedy(Index count, Index sample, double &theta, Random &random) {
        Index work = 0;
        for (Index k = 0; k < count; ++k) {
            theta = next_theta(theta);
            const Combination at = Scheme::at(theta);
            evaluate(first_, Blocks::draw(order_, random), at);
            BlockAtY *best = &first_;
            work += first_.block.size;
            for (Index s = 1; s < sample; ++s) {
                evaluate(trial_, Blocks::draw(order_, random), at);
                work += trial_.block.size;
                if (trial_.rank > best->rank) {
                    std::swap(trial_, best_);
                    best = &best_;
                }
            }
            change(Minimise{}, *best);
            if (best != &first_)
                put(*best, at);
            move(first_, theta, at);
        }
        return work;
    }

  private:
    // σ, ρ, ν and the rank of a block at y.
    void evaluate(BlockAtY &b, const DrawnBlock &block, const Combination &at) {
        const Position &p = order_.position[block.first];
        const Index d = order_.owner(p).labels;
        b.block = block;
        node_costs(p, at, b.rho.data());
        combine(at, p.place, block.size * d, b.y.data());
        for (Index k = 0; k < block.size; ++k)
            edge_costs(order_.position[block.first + k], at, b.y.data() + k * d,
                       b.sigma.data() + k * d);
        slack(block.size, d, b.sigma.data(), b.rho.data(), b.nu.data(), eta_);
        b.rank = 0.0;
        for (Index k = 0; k < block.size; ++k) {
            double norm = 0.0;
            for (Index x = k * d; x < (k + 1) * d; ++x)
                norm += std::abs(b.nu[x]);
            b.rank += norm * norm / double(block.size + 1);
        }
    }

    Index entries(const BlockAtY &b) const {
        return b.block.size * order_.owner(order_.position[b.block.first]).labels;
    }

    // The step of v along a block; λ on the block is b.y.
    void move(const BlockAtY &b, double theta, const Combination &at) {
        const Position &p = order_.position[b.block.first];
        const double step = gain_[p.node] / theta;
        for (Index x = 0; x < entries(b); ++x) {
            double &v = v_[p.place + x];
            v += step * b.nu[x];
            w_[p.place + x] = Scheme::second(b.y[x], v, at.w);
        }
    }

    // λ on the block is b.y; v does not move.
    void put(const BlockAtY &b, const Combination &at) {
        const Index place = order_.position[b.block.first].place;
        for (Index x = 0; x < entries(b); ++x)
            w_[place + x] = Scheme::second(b.y[x], v_[place + x], at.w);
    }

    void change(Minimise, BlockAtY &b) {
        minimise(b.block.size, entries(b) / b.block.size, b.y.data(), b.sigma.data(), b.rho.data());
    }
    void change(Descend, BlockAtY &b) {
        descend(b.block.size, entries(b) / b.block.size, b.y.data(), b.nu.data(), eta_);
    }

    // out = the `count` entries of y from `place` on.
    void combine(const Combination &at, Index place, Index count, double *out) const {
        for (Index x = 0; x < count; ++x)
            out[x] = at.v * v_[place + x] + at.w * w_[place + x];
    }

    // ρ = -(1/η) log μ_i of a node at y.
    void node_costs(const Position &p, const Combination &at, double *rho) {
        const Vertex &v = order_.owner(p);
        const Index d = v.labels, star = order_.star_place(v);
        for (Index x = 0; x < d; ++x)
            rho[x] = order_.lay.unary[v.states + x];
        for (Index k = 0; k < v.degree; ++k)
            for (Index x = 0; x < d; ++x)
                rho[x] -= at.v * v_[star + k * d + x] + at.w * w_[star + k * d + x];
        normalise(rho, d, eta_);
    }

    // σ = -(1/η) log S_h of a half-edge; `y` is the entry of the half-edge itself.
    void edge_costs(const Position &to, const Combination &at, const double *y, double *sigma) {
        const Position &from = order_.position[to.twin];
        const Vertex &near = order_.owner(to), &far = order_.owner(from);
        combine(at, from.place, far.labels, costs_.data());
        bar_forbidden(order_, far, costs_.data());
        messenger_.send(to, costs_.data(), sigma);
        for (Index x = 0; x < near.labels; ++x)
            sigma[x] += y[x];
        bar_forbidden(order_, near, sigma);
        normalise(sigma, near.labels, eta_);
    }

    const StarOrder &order_;
    double *v_, *w_;
    const double *gain_;
    double eta_;
    Messenger messenger_;
    BlockAtY first_, best_, trial_;
    std::vector<double> costs_;
};

// The arrays of a run: v and w by half-edge in star order; `gain` [n] is θ times the step size of v
// at each node.
struct AcceleratedArrays {
    double *v, *w;
    const double *gain;
};

// Performs updates starting at θ = theta and sets theta to the last θ. Returns the number of
// messages sent. Compiled in kernels/paper.cpp.
Index run_accelerated(const StarOrder &order, const AcceleratedArrays &arrays, double eta,
                      Updates updates, bool printed, double &theta, Random &random);

// The same, semi-greedy in the proved form over stars.
Index run_semi_greedy(const StarOrder &order, const AcceleratedArrays &arrays, double eta,
                      Index count, Index sample, double &theta, Random &random);

} // namespace softmap::paper
