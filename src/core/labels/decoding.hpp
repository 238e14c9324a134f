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
    void decide_all(const Index *order, Index count, Index *labels, Meter meter);

    // Assigns a label to node i. Before the first call all entries of `labels` must be -1.
    void decide(Index i, Index *labels);

  private:
    // Adds to belief_ the minimum of the edge of h over the labels of its other endpoint, which has
    // no label yet: from λ there, +inf on forbidden labels. For an auxiliary node its reduced costs
    // are added, so that the message covers the whole factor. Returns max |λ| at h.
    double look_ahead(Index h);

    // Replaces -λ at half-edge g by the cost of the edge given the label x of its other endpoint.
    void condition(Index g, Index x);

    // The first label within `margin` of the least belief, so that rounding does not decide ties.
    Index first_least(Index labels, double margin) const;

    const Layout &lay_;
    const double *lam_;
    double *reduced_;
    const Index variables_;
    std::vector<double> belief_, a_, message_;
    Room room_;
};

} // namespace softmap
