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

// A run of Algorithm 2 or 3 on given arrays; Scheme is Printed or Proved.
template <class Scheme> class Accelerated {
  public:
    // `gain` [n] is θ times the step size of v at each node.
    Accelerated(const StarOrder &order, double *v, double *w, const double *gain, double eta)
        : order_(order), v_(v), w_(w), gain_(gain), eta_(eta), messenger_(order, eta),
          y_(order.widest), sigma_(order.widest), nu_(order.widest), rho_(order.lay.widest),
          costs_(order.lay.widest) {}

    // Makes `count` updates, beginning with θ_{k-1} = theta; sets theta to the last θ. Returns the
    // number of messages sent.
    template <class Blocks, class Rule> Index run(Index count, double &theta, Random &random) {
        Index work = 0;
        for (Index k = 0; k < count; ++k) {
            theta = next_theta(theta);
            const DrawnBlock block = Blocks::draw(order_, random);
            update(Rule{}, block, theta);
            work += block.size;
        }
        return work;
    }

  private:
    template <class Rule> void update(Rule rule, const DrawnBlock &b, double theta) {
        const Combination at = Scheme::at(theta);
        const Position &p = order_.position[b.first];
        const Index d = order_.owner(p).labels;
        node_costs(p, at);
        combine(at, p.place, b.size * d, y_.data());
        for (Index k = 0; k < b.size; ++k)
            edge_costs(order_.position[b.first + k], at, y_.data() + k * d, sigma_.data() + k * d);
        slack(b.size, d, sigma_.data(), rho_.data(), nu_.data(), eta_);
        change(rule, b.size, d);
        const double step = gain_[p.node] / theta;
        for (Index x = 0; x < b.size * d; ++x) {
            double &v = v_[p.place + x];
            v += step * nu_[x];
            w_[p.place + x] = Scheme::second(y_[x], v, at.w);
        }
    }

    void change(Minimise, Index size, Index d) {
        minimise(size, d, y_.data(), sigma_.data(), rho_.data());
    }
    void change(Descend, Index size, Index d) { descend(size, d, y_.data(), nu_.data(), eta_); }

    // out = the `count` entries of y from `place` on.
    void combine(const Combination &at, Index place, Index count, double *out) const {
        for (Index x = 0; x < count; ++x)
            out[x] = at.v * v_[place + x] + at.w * w_[place + x];
    }

    // ρ = -(1/η) log μ_i of a node at y.
    void node_costs(const Position &p, const Combination &at) {
        const Vertex &v = order_.owner(p);
        const Index d = v.labels, star = order_.star_place(v);
        for (Index x = 0; x < d; ++x)
            rho_[x] = order_.lay.unary[v.states + x];
        for (Index k = 0; k < v.degree; ++k)
            for (Index x = 0; x < d; ++x)
                rho_[x] -= at.v * v_[star + k * d + x] + at.w * w_[star + k * d + x];
        normalise(rho_.data(), d, eta_);
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
    std::vector<double> y_, sigma_, nu_, rho_, costs_;
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

} // namespace softmap::paper
