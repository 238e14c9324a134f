// The paper's Algorithm 1: random block updates; the result is the iterate of least Σ ‖ν‖₁².
//
// Messages, S and μ are updated incrementally: an update touches its star and the other endpoints
// of its block, O(deg·d + d²) for one half-edge. The best iterate is stored as a difference to the
// current one.
#pragma once

#include "blocks.hpp"

#include <cmath>

namespace softmap::paper {

// Σ ‖ν‖₁² as a compensated sum: the rounding errors of `high` accumulate in `low`.
struct SlackTotal {
    double high, low;
    double least; // smallest `high` so far

    // Not inlined, so that no compiler fuses the caller's product into the sum: the term added must
    // be the same rounded number that is subtracted later.
    [[gnu::noinline]] void replace(double old_term, double new_term) {
        add(-old_term);
        add(new_term);
    }
    // Adds `low` to `high`, so that `high` is the rounded sum, and keeps the rest in `low`.
    void carry() {
        const double sum = high + low;
        low -= sum - high;
        high = sum;
    }

  private:
    void add(double term) {
        const double sum = high + term, back = sum - high;
        low += (high - (sum - back)) + (term - back);
        high = sum;
    }
};

// Slack of one half-edge.
struct HalfEdgeSlack {
    double norm;  // ‖ν‖₁²
    double level; // normaliser: constant subtracted from the costs -(1/η) log S
};

// Arrays of a run; arrays by half-edge are in star order. `incoming` (messages), `S` and `mu`
// belong to the current `lam`. The best iterate at position k is `saved` if stamp[k] == *epoch,
// else `lam`.
struct StandardArrays {
    double *lam, *incoming, *S, *mu;
    HalfEdgeSlack *half;
    double *node_level; // [n] normaliser of the costs -(1/η) log μ_i
    SlackTotal *total;
    double *saved;
    Index *stamp, *epoch;
    double *tree = nullptr; // ranks of the nodes, if blocks are chosen greedily
};

// A run of Algorithm 1 on given arrays.
class Standard {
  public:
    Standard(const StarOrder &order, const StandardArrays &arrays, double eta)
        : order_(order), run_(arrays), eta_(eta), messenger_(order, eta), sigma_(order.widest),
          rho_(order.lay.widest), costs_(order.lay.widest) {}

    // Computes all arrays from λ, which is the best iterate so far.
    void begin() {
        *run_.total = {0.0, 0.0, 0.0};
        for (std::size_t k = 0; k < order_.position.size(); ++k) {
            run_.half[k].norm = 0.0;
            send_into(order_.position[k]);
            refresh_half(k);
        }
        for (std::size_t i = 0; i < order_.vertex.size(); ++i) {
            refresh_node(i);
            refresh_norms(order_.vertex[i]);
        }
        run_.total->carry();
        run_.total->least = run_.total->high;
    }

    // Makes `count` updates; returns the number of messages sent.
    template <class Blocks, class Rule>
    Index run(Index count, const Distribution &distribution, Random &random) {
        Index work = 0;
        for (Index k = 0; k < count; ++k) {
            const DrawnBlock block = distribution.count
                                         ? Blocks::at(order_, distribution.draw(random))
                                         : Blocks::draw(order_, random);
            update(Rule{}, block);
            work += block.size;
        }
        return work;
    }

  protected:
    template <class Rule> void update(Rule rule, const DrawnBlock &b) {
        const Index i = order_.position[b.first].node;
        keep(b);
        change(rule, b);
        refresh_node(i);
        for (Index k = b.first; k < b.first + b.size; ++k) {
            const Index twin = order_.position[k].twin;
            send_into(order_.position[twin]);
            refresh_half(k);
            refresh_half(twin);
            refresh_norm(twin);
        }
        refresh_norms(order_.vertex[i]);
        run_.total->carry();
        if (run_.total->high < run_.total->least) {
            run_.total->least = run_.total->high;
            ++*run_.epoch;
        }
    }

    const StarOrder &order_;
    StandardArrays run_;

  private:
    // Saves λ of the block for the best iterate before it changes, once per best iterate.
    void keep(const DrawnBlock &b) {
        for (Index k = b.first; k < b.first + b.size; ++k) {
            if (run_.stamp[k] == *run_.epoch)
                continue;
            run_.stamp[k] = *run_.epoch;
            const Position &p = order_.position[k];
            const Index d = order_.owner(p).labels;
            for (Index x = p.place; x < p.place + d; ++x)
                run_.saved[x] = run_.lam[x];
        }
    }

    void change(Minimise, const DrawnBlock &b) {
        const Position &p = order_.position[b.first];
        const Vertex &v = order_.owner(p);
        const Index d = v.labels, star = order_.star_place(v);
        for (Index x = 0; x < d; ++x)
            rho_[x] = order_.lay.unary[v.states + x] - run_.node_level[p.node];
        for (Index k = 0; k < v.degree; ++k)
            for (Index x = 0; x < d; ++x)
                rho_[x] -= run_.lam[star + k * d + x];
        for (Index k = 0; k < b.size; ++k)
            for (Index x = k * d; x < (k + 1) * d; ++x)
                sigma_[x] = run_.incoming[p.place + x] + run_.lam[p.place + x] -
                            run_.half[b.first + k].level;
        minimise(b.size, d, run_.lam + p.place, sigma_.data(), rho_.data());
    }

    void change(Descend, const DrawnBlock &b) {
        const Position &p = order_.position[b.first];
        const Vertex &v = order_.owner(p);
        const Index d = v.labels;
        for (Index k = 0; k < b.size; ++k)
            for (Index x = 0; x < d; ++x)
                sigma_[k * d + x] = run_.S[p.place + k * d + x] - run_.mu[v.states + x];
        descend(b.size, d, run_.lam + p.place, sigma_.data(), eta_);
    }

    // Message into a half-edge from λ of the edge's other half-edge.
    void send_into(const Position &to) {
        const Position &from = order_.position[to.twin];
        const double *a = run_.lam + from.place;
        if (order_.hard) {
            std::copy(a, a + order_.owner(from).labels, costs_.begin());
            bar_forbidden(order_, order_.owner(from), costs_.data());
            a = costs_.data();
        }
        messenger_.send(to, a, run_.incoming + to.place);
        bar_forbidden(order_, order_.owner(to), run_.incoming + to.place);
    }

    // μ and its normaliser at node i, from λ.
    void refresh_node(Index i) {
        const Vertex &v = order_.vertex[i];
        const Index d = v.labels;
        double *mu = run_.mu + v.states;
        const double *lam = run_.lam + order_.star_place(v);
        for (Index x = 0; x < d; ++x)
            mu[x] = order_.lay.unary[v.states + x];
        for (Index k = 0; k < v.degree; ++k)
            for (Index x = 0; x < d; ++x)
                mu[x] -= lam[k * d + x];
        run_.node_level[i] = to_probabilities(mu, d, eta_);
    }

    // S and its normaliser at position k, from λ and the incoming message.
    void refresh_half(Index k) {
        const Position &p = order_.position[k];
        const Index d = order_.owner(p).labels;
        for (Index x = p.place; x < p.place + d; ++x)
            run_.S[x] = run_.incoming[x] + run_.lam[x];
        run_.half[k].level = to_probabilities(run_.S + p.place, d, eta_);
    }

    // Updates ‖ν‖₁² at position k and the sum over all positions.
    void refresh_norm(Index k) {
        const Position &p = order_.position[k];
        const Vertex &v = order_.owner(p);
        double norm = 0.0;
        for (Index x = 0; x < v.labels; ++x)
            norm += std::abs(run_.S[p.place + x] - run_.mu[v.states + x]);
        const double square = norm * norm;
        run_.total->replace(run_.half[k].norm, square);
        run_.half[k].norm = square;
    }

    void refresh_norms(const Vertex &v) {
        for (Index k = v.start; k < v.start + v.degree; ++k)
            refresh_norm(k);
    }

    double eta_;
    Messenger messenger_;
    std::vector<double> sigma_, rho_, costs_;
};

// Both are compiled in kernels/paper.cpp. run_standard returns the number of messages sent.
void begin_standard(const StarOrder &order, const StandardArrays &arrays, double eta);
Index run_standard(const StarOrder &order, const StandardArrays &arrays, double eta,
                   Updates updates, Random &random);

} // namespace softmap::paper
