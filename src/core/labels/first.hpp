// First labels of a large model: one backward pass of messages, then decoding.
#pragma once

#include "base/budget.hpp"
#include "one_edge.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace softmap {

// From the last node to the first, each node divides its costs evenly among the neighbours before
// it and sends them a message. Labels are then assigned from the first node to the last. On a tree
// that is numbered from its root this is dynamic programming. Messages are stored in single
// precision: they choose labels and prove nothing.
class FirstLabels {
  public:
    explicit FirstLabels(const Layout<double> &lay)
        : lay_(lay), offset_(lay.m + 1), belief_(lay.widest), out_(lay.widest),
          room_(message_room(lay.widest, 1)) {
        for (Index e = 0; e < lay.m; ++e)
            offset_[e + 1] =
                offset_[e] + lay.num_labels[std::min(lay.node[2 * e], lay.node[2 * e + 1])];
        message_.reset(new float[offset_[lay.m]]);
    }

    // Fills in the labels. If the budget is spent, no further messages are sent; the nodes at the
    // beginning are then labelled without them.
    void find(Index *labels, Budget &budget) {
        for (sent_ = lay_.n; sent_ > 0 && !budget.spent(); --sent_)
            send(sent_ - 1, budget);
        for (Index i = 0; i < lay_.n; ++i)
            decide(i, labels);
    }

  private:
    static constexpr double huge = 1e30; // stands for +inf, so that sums stay finite
    const Layout<double> &lay_;
    Index sent_ = 0;                   // nodes from this one on have sent their messages
    std::vector<Index> offset_;        // first entry of each edge in `message_`
    std::unique_ptr<float[]> message_; // of each edge to its endpoint of lower number
    std::vector<double> belief_, out_;
    Room room_;

    Index other(Index h) const { return lay_.node[h ^ 1]; }
    float *message(Index h) { return message_.get() + offset_[h >> 1]; }

    // belief_ = the costs of node i and the messages from the nodes after it.
    void gather(Index i) {
        const Index labels = lay_.num_labels[i];
        std::copy_n(lay_.unary + lay_.node_offset[i], labels, belief_.data());
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
            if (const Index h = lay_.half[k]; other(h) > i && other(h) >= sent_) {
                const float *in = message(h);
                for (Index x = 0; x < labels; ++x)
                    belief_[x] += in[x];
            }
    }
    void send(Index i, Budget &budget) {
        const Index labels = lay_.num_labels[i];
        Index before = 0;
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
            before += other(lay_.half[k]) < i;
        if (before == 0)
            return;
        gather(i);
        const double least = *std::min_element(belief_.data(), belief_.data() + labels);
        const double shift = least < infinity ? least : 0.0, part = 1.0 / double(before);
        for (Index x = 0; x < labels; ++x)
            belief_[x] = part * (belief_[x] - shift);
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k) {
            const Index h = lay_.half[k], j = other(h);
            if (j > i)
                continue;
            hard_message(lay_, h ^ 1, belief_.data(), out_.data(), room_.numbers());
            float *to = message(h);
            for (Index y = 0; y < lay_.num_labels[j]; ++y)
                to[y] = float(std::min(out_[y], huge));
            budget.use(labels + lay_.num_labels[j]);
        }
    }
    // Assigns node i the label of lowest cost, given the labels before it and the messages from the
    // nodes after it.
    void decide(Index i, Index *chosen) {
        const Index labels = lay_.num_labels[i];
        gather(i);
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k) {
            const Index h = lay_.half[k];
            if (other(h) > i)
                continue;
            visit_edge(lay_, h, [&](const auto &edge) {
                for (Index x = 0; x < labels; ++x)
                    belief_[x] += edge.entry(chosen[other(h)], x).part[0];
            });
        }
        chosen[i] = std::min_element(belief_.data(), belief_.data() + labels) - belief_.data();
    }
};

} // namespace softmap
