// What tree moves do at one node of a forest, whose neighbours outside keep their labels.
#pragma once

#include "base/random.hpp"
#include "one_edge.hpp"

#include <algorithm>

namespace softmap {

// Adds up the costs of the labels of nodes; `sum` has one entry per label of the node.
class TreeCosts {
  public:
    TreeCosts(const Layout &lay, Index *labels)
        : lay_(lay), labels_(labels), terms_(std::size_t(lay.widest)),
          room_(message_room(lay.widest, 1)) {}

    // sum = the costs of node i itself.
    void begin(Index i, double *sum) const {
        std::copy_n(lay_.unary + lay_.node_offset[i], lay_.num_labels[i], sum);
    }
    // Adds the edge of h, given the label of its other endpoint.
    void add_given(Index h, double *sum) {
        conditional_costs(lay_, h, labels_[lay_.node[h ^ 1]], terms_.data());
        add(h, sum);
    }
    // Adds the edge of h and the subtree of its other endpoint, whose costs are `from`.
    void add_subtree(Index h, const double *from, double *sum) {
        hard_message(lay_, h, from, terms_.data(), room_.numbers());
        add(h, sum);
    }
    // Subtracts random costs, whose words are updated: uniform noise is faster than Gumbel noise,
    // and no worse.
    void disturb(Index i, double heat, std::uint64_t *words, double *sum) const {
        const Index labels = heat > 0.0 ? lay_.num_labels[i] : 0;
        for (Index x = 0; x < labels; ++x)
            sum[x] -= heat * uniform(words);
    }
    // Gives node i the label of least cost. At ties it keeps its label.
    void choose(Index i, const double *sum) const {
        const Index labels = lay_.num_labels[i];
        Index best = labels_[i];
        for (Index x = 0; x < labels; ++x)
            best = sum[x] < sum[best] ? x : best;
        labels_[i] = best;
    }

  private:
    void add(Index h, double *sum) const {
        const Index labels = lay_.labels_at(h);
        const double *terms = terms_.data();
        for (Index x = 0; x < labels; ++x)
            sum[x] += terms[x];
    }

    const Layout &lay_;
    Index *labels_;
    std::vector<double> terms_;
    Room room_;
};

} // namespace softmap
