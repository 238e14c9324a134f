// Sequential decoding of a labelling from λ.
#pragma once

#include "base/deadline.hpp"
#include "one_edge.hpp"

#include <algorithm>
#include <cmath>

namespace softmap {

inline constexpr double tie = 1e-9; // labels count as tied below this difference, relative to |λ|

// Assigns labels to the nodes in an order, each given the labels before it.
//
// `reduced` is C_i - Σ λ and is overwritten. A node minimises its reduced cost plus, for each edge
// to a node without a label, the minimum over that node's labels that are still allowed. If all its
// labels cost +inf, it minimises its reduced cost alone.
class SequentialDecoder {
  public:
    SequentialDecoder(const Layout &lay, const double *lam, double *reduced, Index variables)
        : lay_(lay), lam_(lam), reduced_(reduced), variables_(variables), belief_(lay.widest),
          a_(lay.widest), message_(lay.widest), room_(message_room(lay.widest, 1)) {}

    // Assigns labels to `count` nodes in an order. Those that are left when it is late take the
    // label of least reduced cost, given the labels so far. All entries of `labels` must be -1
    // before.
    void decide_all(const Index *order, Index count, Index *labels, Meter meter) {
        for (Index k = 0; k < count; ++k) {
            const Index i = order[k], size = lay_.num_labels[i];
            const double *reduced = reduced_ + lay_.node_offset[i];
            if (meter.tick(size * (lay_.start[i + 1] - lay_.start[i] + 1)))
                labels[i] = std::min_element(reduced, reduced + size) - reduced;
            else
                decide(i, labels);
        }
    }

    // Assigns a label to node i. Before the first call all entries of `labels` must be -1.
    void decide(Index i, Index *labels) {
        const double *reduced = reduced_ + lay_.node_offset[i];
        std::copy_n(reduced, lay_.num_labels[i], belief_.data());
        double size = 0.0;
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
            if (labels[lay_.node[lay_.half[k] ^ 1]] < 0)
                size = std::max(size, look_ahead(lay_.half[k]));
        Index best = first_least(lay_.num_labels[i], tie * size);
        if (belief_[best] == infinity)
            best = std::min_element(reduced, reduced + lay_.num_labels[i]) - reduced;
        labels[i] = best;
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
            if (labels[lay_.node[lay_.half[k] ^ 1]] < 0)
                condition(lay_.half[k] ^ 1, best);
    }

  private:
    // Adds to belief_ the minimum of the edge of h over the labels of its other endpoint, which has
    // no label yet: from λ there, +inf on forbidden labels. For an auxiliary node its reduced costs
    // are added, so that the message covers the whole factor. Returns max |λ| at h.
    double look_ahead(Index h) {
        const Index g = h ^ 1, j = lay_.node[g];
        const double *lam = lam_ + lay_.half_at(g), *reduced = reduced_ + lay_.node_offset[j];
        for (Index y = 0; y < lay_.num_labels[j]; ++y) {
            const double own = j >= variables_ ? reduced[y] : 0.0;
            a_[y] = reduced[y] == infinity ? infinity : lam[y] + own;
        }
        hard_message(lay_, h, a_.data(), message_.data(), room_.numbers());
        double size = 0.0;
        const double *back = lam_ + lay_.half_at(h);
        for (Index x = 0; x < lay_.labels_at(h); ++x) {
            belief_[x] += back[x] + message_[x];
            size = std::max(size, std::abs(back[x]));
        }
        return size;
    }

    // Replaces -λ at half-edge g by the cost of the edge given the label x of its other endpoint.
    void condition(Index g, Index x) {
        double *reduced = reduced_ + lay_.node_offset[lay_.node[g]];
        const double *lam = lam_ + lay_.half_at(g);
        conditional_costs(lay_, g, x, a_.data());
        for (Index y = 0; y < lay_.labels_at(g); ++y)
            reduced[y] += lam[y] + a_[y];
    }

    // The first label within `margin` of the least belief, so that rounding does not decide ties.
    Index first_least(Index labels, double margin) const {
        const double least = *std::min_element(belief_.data(), belief_.data() + labels);
        for (Index x = 0; x < labels; ++x)
            if (belief_[x] <= least + margin)
                return x;
        return 0;
    }

    const Layout &lay_;
    const double *lam_;
    double *reduced_;
    const Index variables_;
    std::vector<double> belief_, a_, message_;
    Room room_;
};

} // namespace softmap
