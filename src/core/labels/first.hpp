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
    explicit FirstLabels(const Layout &lay);

    // Fills in the labels. Messages take at most two thirds of the time that is left: decoding
    // takes half as long. Nodes that are left without a label at the deadline take the cheapest
    // one; all of them do if it passes before the first message.
    void find(Index *labels, const Deadline *deadline, int threads);

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

    bool prepare(const Deadline *deadline); // false if the deadline has passed
    void sort_by_level();
    Index cheapest(Index i) const; // label of node i, by its own costs alone
    template <class Function> void each_node(Member &me, Index level, Function f) const {
        me.each(begin_[level], begin_[level + 1], [&](Index k) { f(order_[k]); });
    }

    // belief = the costs of node i and the messages from the nodes after it.
    void gather(Index i, std::vector<double> &belief);
    void send(Index i, Scratch &own, Meter &meter);
    // Assigns node i the label of lowest cost, given the labels before it and the messages from the
    // nodes after it; if it is late, by its own costs alone.
    void decide(Index i, Scratch &own, Index *chosen, bool late);
};

} // namespace softmap
