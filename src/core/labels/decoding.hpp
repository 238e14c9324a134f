// Sequential decoding of a labelling from λ, and coordinate descent (ICM).
#pragma once

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
    SequentialDecoder(const Layout<double> &lay, const double *lam, double *reduced,
                      Index variables)
        : lay_(lay), lam_(lam), reduced_(reduced), variables_(variables), belief_(lay.widest),
          a_(lay.widest), message_(lay.widest), room_(message_room(lay.widest, 1)) {}

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

    const Layout<double> &lay_;
    const double *lam_;
    double *reduced_;
    const Index variables_;
    std::vector<double> belief_, a_, message_;
    Room room_;
};

// Coordinate descent (ICM) in place: fewer violated constraints first, then lower cost.
//
// `stride[h]` is the change of the state of the auxiliary node across h per unit of the label at h;
// 0 if that node is a variable. Only variables with a changed neighbour are visited again.
class IteratedModes {
  public:
    IteratedModes(const Layout<double> &lay, const Index *stride, Index variables, Index *labels)
        : lay_(lay), stride_(stride), variables_(variables), labels_(labels), terms_(lay.widest),
          cost_(lay.widest), broken_(lay.widest), dirty_(lay.n, 1) {}

    void run(Index max_sweeps) {
        for (Index sweep = 0; sweep < max_sweeps; ++sweep) {
            bool changed = false;
            for (Index i = 0; i < variables_; ++i)
                if (dirty_[i])
                    changed |= improve(i);
            if (!changed)
                break;
        }
    }

  private:
    bool improve(Index i) {
        dirty_[i] = 0;
        local_costs(i);
        const Index own = labels_[i];
        Index best = own;
        for (Index x = 0; x < lay_.num_labels[i]; ++x)
            if (broken_[x] < broken_[best] ||
                (broken_[x] == broken_[best] && cost_[x] < cost_[best]))
                best = x;
        if (best == own)
            return false;
        labels_[i] = best;
        spread(i, best - own);
        return true;
    }

    // Finite cost and number of infinite terms of each label of i, given all other labels.
    void local_costs(Index i) {
        const Index labels = lay_.num_labels[i];
        std::fill_n(cost_.data(), labels, 0.0);
        std::fill_n(broken_.data(), labels, Index(0));
        add(lay_.unary + lay_.node_offset[i], labels);
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k) {
            const Index h = lay_.half[k], j = lay_.node[h ^ 1];
            if (stride_[h] > 0) { // the state of an auxiliary node is a function of its members
                const double *joint = lay_.unary + lay_.node_offset[j] + labels_[j];
                for (Index x = 0; x < labels; ++x)
                    terms_[x] = joint[(x - labels_[i]) * stride_[h]];
            } else {
                conditional_costs(lay_, h, labels_[j], terms_.data());
            }
            add(terms_.data(), labels);
        }
    }

    void add(const double *terms, Index labels) {
        for (Index x = 0; x < labels; ++x) {
            const bool finite = terms[x] < infinity;
            cost_[x] += finite ? terms[x] : 0.0;
            broken_[x] += !finite;
        }
    }

    // Updates the states of auxiliary neighbours and marks the variables to visit again.
    void spread(Index i, Index step) {
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k) {
            const Index h = lay_.half[k], j = lay_.node[h ^ 1];
            if (stride_[h] == 0) {
                dirty_[j] = 1;
                continue;
            }
            labels_[j] += step * stride_[h];
            for (Index t = lay_.start[j]; t < lay_.start[j + 1]; ++t) {
                const Index member = lay_.node[lay_.half[t] ^ 1];
                dirty_[member] |= member != i;
            }
        }
    }

    const Layout<double> &lay_;
    const Index *stride_;
    const Index variables_;
    Index *labels_;
    std::vector<double> terms_, cost_;
    std::vector<Index> broken_;
    std::vector<char> dirty_;
};

} // namespace softmap
