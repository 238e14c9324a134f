// First labels of a large model: one backward pass of messages, then decoding.
#pragma once

#include "base/deadline.hpp"
#include "base/graph.hpp"
#include "one_edge.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <vector>

namespace softmap {

// From the last node to the first, each node divides its costs evenly among the neighbours before
// it and sends them a message. Labels are then assigned from the first node to the last. On a tree
// that is numbered from its root this is dynamic programming. Messages are stored in single
// precision: they choose labels and prove nothing.
//
// The nodes of a level (see depth_levels) share no edge and are processed on several threads. The
// result does not depend on their number.
class FirstLabels {
  public:
    explicit FirstLabels(const Layout &lay)
        : lay_(lay), offset_(lay.m + 1), sent_(std::size_t(lay.n), 0) {
        for (Index e = 0; e < lay.m; ++e)
            offset_[e + 1] =
                offset_[e] + lay.num_labels[std::min(lay.node[2 * e], lay.node[2 * e + 1])];
        message_.reset(new float[offset_[lay.m]]);
    }

    // Fills in the labels. Messages take at most two thirds of the time that is left: decoding
    // takes half as long. Nodes that are left without a label at the deadline take the cheapest
    // one.
    void find(Index *labels, const Deadline *deadline, int threads) {
        sort_by_level();
        const Deadline sending =
            deadline == nullptr ? Deadline() : deadline->within(2.0 / 3.0 * deadline->left());
        std::atomic<bool> late = false;
        together(lay_.n < worthwhile ? 1 : threads, [&](Member &me) {
            Scratch own(lay_);
            Meter sends(&sending), decides(deadline);
            for (Index l = levels(); l-- > 0;)
                each_node(me, l, [&](Index i) {
                    if (!late)
                        send(i, own, sends);
                    if (sends.late())
                        late = true;
                });
            for (Index l = 0; l < levels(); ++l)
                each_node(me, l, [&](Index i) {
                    decide(i, own, labels, decides.tick(lay_.num_labels[i]));
                });
        });
    }

  private:
    // The memory of one thread.
    struct Scratch {
        explicit Scratch(const Layout &lay)
            : belief(std::size_t(lay.widest)), out(belief.size()),
              room(message_room(lay.widest, 1)) {}
        std::vector<double> belief, out;
        Room room;
    };
    static constexpr double huge = 1e30; // stands for +inf, so that sums stay finite
    const Layout &lay_;
    std::vector<Index> offset_;        // first entry of each edge in `message_`
    std::unique_ptr<float[]> message_; // of each edge to its endpoint of lower number
    std::vector<char> sent_;           // whether a node has sent its messages
    std::vector<std::int32_t> order_;  // nodes by level
    std::vector<Index> begin_{0};      // of each level in `order_`, and the end

    Index levels() const { return Index(begin_.size()) - 1; }
    Index other(Index h) const { return lay_.node[h ^ 1]; }
    float *message(Index h) { return message_.get() + offset_[h >> 1]; }

    void sort_by_level() {
        std::vector<Index> rank(std::size_t(lay_.n));
        std::vector<std::int32_t> level(rank.size());
        std::iota(rank.begin(), rank.end(), Index(0));
        depth_levels({lay_.n, lay_.node, lay_.start, lay_.half}, rank.data(), level.data());
        const Index count = 1 + *std::max_element(level.begin(), level.end());
        begin_.resize(std::size_t(count + 1));
        order_.resize(rank.size());
        sort_halves(level.data(), lay_.n, count, begin_.data(), order_.data());
    }
    template <class Function> void each_node(Member &me, Index level, Function f) const {
        me.phase([&](Part part) {
            const Index begin = begin_[level], end = begin_[level + 1];
            for (Index k = part.first(begin, end); k < part.last(begin, end); ++k)
                f(order_[k]);
        });
    }

    // belief = the costs of node i and the messages from the nodes after it.
    void gather(Index i, std::vector<double> &belief) {
        const Index labels = lay_.num_labels[i];
        std::copy_n(lay_.unary + lay_.node_offset[i], labels, belief.data());
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
            if (const Index h = lay_.half[k]; other(h) > i && sent_[other(h)]) {
                const float *in = message(h);
                for (Index x = 0; x < labels; ++x)
                    belief[x] += in[x];
            }
    }
    void send(Index i, Scratch &own, Meter &meter) {
        const Index labels = lay_.num_labels[i];
        Index before = 0;
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
            before += other(lay_.half[k]) < i;
        if (before == 0)
            return;
        gather(i, own.belief);
        double *belief = own.belief.data();
        const double least = *std::min_element(belief, belief + labels);
        const double shift = least < infinity ? least : 0.0, part = 1.0 / double(before);
        for (Index x = 0; x < labels; ++x)
            belief[x] = part * (belief[x] - shift);
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k) {
            const Index h = lay_.half[k], j = other(h);
            if (j > i)
                continue;
            hard_message(lay_, h ^ 1, belief, own.out.data(), own.room.numbers());
            float *to = message(h);
            for (Index y = 0; y < lay_.num_labels[j]; ++y)
                to[y] = float(std::min(own.out[y], huge));
            meter.use(labels + lay_.num_labels[j]);
        }
        sent_[i] = 1;
    }
    // Assigns node i the label of lowest cost, given the labels before it and the messages from the
    // nodes after it; if it is late, by its own costs alone.
    void decide(Index i, Scratch &own, Index *chosen, bool late) {
        const Index labels = lay_.num_labels[i];
        if (late) {
            const double *unary = lay_.unary + lay_.node_offset[i];
            chosen[i] = std::min_element(unary, unary + labels) - unary;
            return;
        }
        gather(i, own.belief);
        double *belief = own.belief.data();
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k) {
            const Index h = lay_.half[k];
            if (other(h) > i)
                continue;
            visit_edge(lay_, h, [&](const auto &edge) {
                for (Index x = 0; x < labels; ++x)
                    belief[x] += edge.entry(chosen[other(h)], x).part[0];
            });
        }
        chosen[i] = std::min_element(belief, belief + labels) - belief;
    }
};

} // namespace softmap
