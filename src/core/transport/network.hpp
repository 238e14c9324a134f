// Transport along the edges of a graph, some of whose nodes have given marginals.
//
// Messages are those of smoothed chains (passes/chains.hpp): forward in the order of the nodes,
// then backward, with momentum over whole passes. A free node i sends θ_i / n_i - M_h along
// half-edge h, with θ_i = C_i + Σ M_h and n_i the larger number of its earlier and later
// neighbours. A node with marginal m sends -log(m) / η - M_h: the edge then has the marginal m
// (Sinkhorn's update). So a pass is exact block ascent on the smoothed dual.
#pragma once

#include "base/deadline.hpp"
#include "factors.hpp"
#include "families/all.hpp"
#include "kernels/kernels.hpp"
#include "passes/momentum.hpp"
#include "support.hpp"

#include <cmath>
#include <vector>

namespace softmap {

class TransportNetwork {
  public:
    // mass: one entry per node state; only those of nodes with `fixed` count.
    TransportNetwork(const Layout &lay, const double *mass, const std::uint8_t *fixed)
        : lay_(lay), mass_(mass), fixed_(fixed), msg_(std::size_t(lay.half_at(2 * lay.m))),
          drift_(msg_.size()), theta_(std::size_t(lay.node_offset[lay.n])),
          chains_(std::size_t(lay.n)), group_(std::size_t(lay.m)), support_(std::size_t(2 * lay.m)),
          shared_(std::size_t(lay.m), 1), factors_(lay, all_factors), entropy_(theta_.size()),
          a_(std::size_t(lay.widest)), b_(a_.size()), out_(a_.size()), scaled_(a_.size()),
          room_(message_room(lay.widest, 1)) {
        for (Index i = 0; i < lay.n; ++i) {
            Index earlier = 0, later = 0;
            each_half(i, [&](Index h) { ++(backward_into(h) ? later : earlier); });
            chains_[i] = double(std::max<Index>(1, std::max(earlier, later)));
        }
        for (Index e = 0; e < lay.m; ++e)
            group_[e] = lay.group_of(e);
        for (std::size_t k = 0; k < entropy_.size(); ++k)
            entropy_[k] = -log_one(std::max(mass[k], 1e-300));
    }

    // Makes passes; returns how many were completed before the deadline. `loss`: the mass that the
    // last pass found in wrong places, Σ over the edges, times the edge's factor in `ranges`.
    Index passes(Index count, double eta, bool momentum, const double *ranges, double &loss,
                 const Deadline *deadline) {
        Meter meter(deadline);
        gathered_ = false;
        for (Index k = 0; k < count; ++k) {
            loss = 0.0;
            if (!pass(eta, momentum, ranges, loss, meter))
                return k;
        }
        return count;
    }

    // Hard backward half pass from the messages sent forward: writes λ, whose dual objective is
    // near the best for these messages.
    bool multipliers(double eta, double *lam, const Deadline *deadline) {
        Meter meter(deadline);
        gathered_ = false;
        if (!half_pass(true, eta, meter, [](Index) {}))
            return false;
        hard_.assign(msg_.begin(), msg_.end());
        for (Index i = lay_.n - 1; i >= 0; --i) {
            gather(i, hard_);
            each_half(i, [&](Index h) {
                if (backward_into(h)) { // the later neighbour has sent
                    for (Index x = 0; x < labels(h); ++x)
                        lam[at(h) + x] = -hard_[at(h) + x];
                    return;
                }
                prepare(i, h, hard_, eta, a_.data());
                send_all(h ^ 1, a_.data(), &hard_[at(h ^ 1)], infinity);
                if (fixed_[i]) { // the largest multipliers that the other endpoint allows
                    for (Index x = 0; x < labels(h ^ 1); ++x)
                        b_[x] = -hard_[at(h ^ 1) + x];
                    send_all(h, b_.data(), a_.data(), infinity);
                    for (Index x = 0; x < labels(h); ++x)
                        a_[x] = -a_[x];
                }
                std::copy_n(a_.data(), labels(h), lam + at(h));
                meter.tick(labels(h) * labels(h ^ 1));
            });
            if (meter.late())
                return false;
        }
        return true;
    }

    // out[half-edge entries] = the marginals of all edges at both endpoints.
    bool sides(double eta, double *out, const Deadline *deadline) {
        Meter meter(deadline);
        gather_all();
        for (Index h = 0; h < 2 * lay_.m; ++h) {
            prepare(lay_.node[h ^ 1], h ^ 1, msg_, eta, a_.data());
            prepare(lay_.node[h], h, msg_, eta, b_.data());
            send(h, a_.data(), out_.data(), eta, [&] { return b_.data(); });
            for (Index x = 0; x < labels(h); ++x)
                out_[x] += b_[x];
            normalise(out_.data(), labels(h), eta, out + at(h));
            if (meter.tick(labels(h) * labels(h ^ 1)))
                return false;
        }
        return true;
    }

    // Costs at both endpoints of edge e whose sum with C is -log(plan) / η up to a constant.
    void reduced(Index e, double eta, double *rows, double *cols) {
        gather_all();
        for (const Index h : {2 * e, 2 * e + 1})
            prepare(lay_.node[h], h, msg_, eta, h & 1 ? cols : rows);
    }

    // out[half-edge entries] = what every endpoint sends along its edges.
    void sent(double eta, double *out) {
        gather_all();
        for (Index h = 0; h < 2 * lay_.m; ++h)
            prepare(lay_.node[h], h, msg_, eta, out + at(h));
    }

    // The pairs of edge e that carry mass if its endpoints send rows and cols; null if all may.
    const Support *pairs(Index e, double eta, const double *rows, const double *cols) const {
        const Support &found = support_[2 * e];
        const bool serves =
            found.sparse() && found.serves(1, rows, eta) && found.serves(0, cols, eta);
        return serves ? &found : nullptr;
    }

    const Layout &layout() const { return lay_; }
    const std::vector<double> &messages() const { return msg_; }
    void set_messages(const double *msg) {
        std::copy_n(msg, msg_.size(), msg_.begin());
        gathered_ = false;
    }

  private:
    Index at(Index h) const { return lay_.half_at(h); }
    Index labels(Index h) const { return lay_.labels_at(h); }
    // Whether the message into half-edge h is sent in the backward half of a pass.
    bool backward_into(Index h) const { return lay_.node[h] < lay_.node[h ^ 1]; }
    template <class Function> void each_half(Index i, Function f) const {
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
            f(Index(lay_.half[k]));
    }

    bool pass(double eta, bool momentum, const double *ranges, double &loss, Meter &meter) {
        const double t = clock_.now(), next = clock_.following();
        const double beta = momentum ? (t - 1.0) / next : 0.0;
        for (Index h = 0; h < 2 * lay_.m; ++h)
            if (backward_into(h))
                for (Index k = at(h); k < at(h + 1); ++k) {
                    drift_[k] = std::clamp(beta * drift_[k], -longest / eta, longest / eta);
                    msg_[k] += drift_[k];
                }
        clock_.t = next;
        clock_.product = 0.0;
        return half_pass(true, eta, meter, [](Index) {}) &&
               half_pass(false, eta, meter, [&](Index h) {
                   loss += ranges[h >> 1] * misplaced(h, eta);
                   observe(h);
               });
    }

    // Sends along all edges, forward or backward; calls before(h) before a message is replaced.
    template <class Before> bool half_pass(bool forward, double eta, Meter &meter, Before before) {
        for (Index k = 0; k < lay_.n; ++k) {
            const Index i = forward ? k : lay_.n - 1 - k;
            gather(i, msg_);
            each_half(i, [&](Index h) {
                if (backward_into(h) != forward)
                    return;
                prepare(i, h, msg_, eta, a_.data());
                send_within(h ^ 1, eta);
                const double low = *std::min_element(out_.data(), out_.data() + labels(h ^ 1));
                for (Index x = 0; x < labels(h ^ 1); ++x)
                    out_[x] -= low;
                before(h ^ 1);
                std::copy_n(out_.data(), labels(h ^ 1), &msg_[at(h ^ 1)]);
                meter.tick(labels(h) * labels(h ^ 1));
            });
            if (meter.late())
                return false;
        }
        return true;
    }

    // The ℓ₁ distance between the marginal of the receiver of h and that of the edge, p and
    // p · exp(-η (new message - old message)) up to a factor.
    double misplaced(Index h, double eta) {
        const Index i = lay_.node[h], count = labels(h), begin = lay_.node_offset[i];
        if (fixed_[i]) {
            std::copy_n(mass_ + begin, count, b_.data());
        } else {
            for (Index x = 0; x < count; ++x)
                b_[x] = theta_[begin + x] / chains_[i];
            normalise(b_.data(), count, eta, b_.data());
        }
        double low = infinity, all = 0.0, out = 0.0;
        for (Index x = 0; x < count; ++x)
            if (b_[x] > 0.0)
                low = std::min(low, out_[x] - msg_[at(h) + x]);
        for (Index x = 0; x < count; ++x)
            all += scaled_[x] =
                b_[x] * exp_one(-eta * std::max(out_[x] - msg_[at(h) + x] - low, 0.0));
        for (Index x = 0; x < count; ++x)
            out += std::abs(scaled_[x] / all - b_[x]);
        return out;
    }

    // Updates the drift of the messages into h, which out_ replaces, and the restart product:
    // labels count by their mass (b_), because messages to labels without mass mean nothing.
    void observe(Index h) {
        for (Index x = 0; x < labels(h); ++x) {
            double &drift = drift_[at(h) + x];
            const double step = msg_[at(h) + x] - out_[x], before = drift;
            drift = before - (1.0 + chain_momentum.relax) * step;
            clock_.product += b_[x] * step * (before - (1.0 + chain_momentum.turn) * step);
        }
    }

    // out_ = message into h from a_; its receiver's own costs are needed to build a support only.
    void send_within(Index h, double eta) {
        send(h, a_.data(), out_.data(), eta, [&] {
            const Index j = lay_.node[h];
            if (!fixed_[j]) // θ of a free receiver is not known at this point of the pass
                gather(j, msg_);
            prepare(j, h, msg_, eta, b_.data());
            return b_.data();
        });
    }

    // Longest extrapolation of a message, times η (decision 75). Unlimited steps of labels with
    // hardly any mass give them mass, and passes then oscillate.
    static constexpr double longest = 1.0;

    // θ of all nodes; at once, because a node may have as many edges as there are.
    void gather_all() {
        for (Index i = 0; i < lay_.n && !gathered_; ++i)
            gather(i, msg_);
        gathered_ = true;
    }
    // θ_i = C_i + Σ M_h.
    void gather(Index i, const std::vector<double> &msg) {
        const Index begin = lay_.node_offset[i], count = lay_.num_labels[i];
        std::copy_n(lay_.unary + begin, count, &theta_[begin]);
        each_half(i, [&](Index h) {
            for (Index x = 0; x < count; ++x)
                theta_[begin + x] += msg[at(h) + x];
        });
    }

    // out = what node i sends along half-edge h.
    void prepare(Index i, Index h, const std::vector<double> &msg, double eta, double *out) const {
        const Index begin = lay_.node_offset[i];
        for (Index x = 0; x < labels(h); ++x) {
            const double own =
                fixed_[i] ? entropy_[begin + x] / eta : theta_[begin + x] / chains_[i];
            out[x] = own - msg[at(h) + x];
        }
    }

    static constexpr Index large = 256; // entries of a table from which on a support is used
    // Entries of the dense matrices of all edges together: 4 GiB.
    static constexpr Index all_factors = Index(1) << 30;
    // Both directions of an edge share a support as long as it serves both.
    Support *support_of(Index h) {
        const Index e = h >> 1;
        const bool table = lay_.kind[group_[e]] == 0 && labels(h) * labels(h ^ 1) >= large;
        return table ? &support_[shared_[e] ? 2 * e : h] : nullptr;
    }
    DenseTable table_of(Index e) const {
        const Index g = group_[e];
        return {lay_.table + lay_.begin_of(g, e), lay_.weight_of(g, e), labels(2 * e),
                labels(2 * e + 1)};
    }

    // out = message into half-edge h; own(): costs at the receiver for building a support.
    template <class Own> void send(Index h, const double *from, double *out, double eta, Own own) {
        if (factors_.message(h, from, out, eta))
            return;
        Support *support = support_of(h);
        if (support == nullptr)
            return send_all(h, from, out, eta);
        const Index e = h >> 1, most = all_factors / (lay_.m * (shared_[e] ? 1 : 2));
        const int receiver = int(h & 1);
        if (!support->serves(receiver, from, eta) && !support->crowded(eta))
            support->build(table_of(e), receiver, from, own(), eta, most);
        if (support->serves(receiver, from, eta)) {
            if (support->message(receiver, from, out))
                return;
            if (shared_[e]) { // it was built for the other direction
                shared_[e] = 0;
                *support = Support();
                return send(h, from, out, eta, own);
            }
        }
        send_all(h, from, out, eta);
    }
    // The same over all pairs, hard at η = ∞.
    void send_all(Index h, const double *from, double *out, double eta) {
        const Index e = h >> 1;
        if (support_of(h) == nullptr)
            kernels->send_one(lay_, group_[e], h, from, out, room_.numbers(), eta);
        else
            kernels->table_message(table_of(e), int(h & 1), from, out, eta);
    }

    // out ∝ exp(-η value), with sum 1.
    static void normalise(const double *value, Index count, double eta, double *out) {
        const double low = *std::min_element(value, value + count);
        double sum = 0.0;
        for (Index x = 0; x < count; ++x)
            sum += out[x] = std::exp(-eta * (value[x] - low));
        for (Index x = 0; x < count; ++x)
            out[x] /= sum;
    }

    const Layout lay_;
    const double *mass_;
    const std::uint8_t *fixed_;
    std::vector<double> msg_, drift_, theta_, hard_, chains_;
    std::vector<Index> group_;
    std::vector<Support> support_; // by half-edge that receives
    std::vector<std::uint8_t> shared_;
    Factors factors_;             // of edges with few labels
    std::vector<double> entropy_; // -log(mass) of each node state
    std::vector<double> a_, b_, out_, scaled_;
    Room room_;
    Clock clock_{1.0, 0.0, 0.0};
    bool gathered_ = false; // whether θ of all nodes is that of the messages
};

} // namespace softmap
