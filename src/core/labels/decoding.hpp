// Labellings from λ, variable by variable, and their local improvement.
#pragma once

#include "one_edge.hpp"

#include <algorithm>
#include <cmath>

namespace softmap {

inline constexpr double tie = 1e-9; // relative difference under which labels count as equally good

// Decides the nodes in an order, each given those before it.
//
// `reduced` is C_i - Σ λ and is overwritten. A node minimises its reduced cost plus the minima of
// its undecided edges, over far labels that the decisions so far allow; where that leaves nothing,
// without looking ahead.
class SequentialDecoder {
  public:
    SequentialDecoder(const Layout<double> &lay, const double *lam, double *reduced,
                      Index variables)
        : lay_(lay), lam_(lam), reduced_(reduced), variables_(variables), belief_(lay.widest),
          a_(lay.widest), message_(lay.widest), room_(message_room(lay.widest, 1)) {}

    // `labels` holds -1 for every node at first.
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
    // What the undecided far end of half-edge h says: λ there, +inf where it is barred. Auxiliary
    // nodes speak for their whole factor, as decided and reparametrised so far. Returns max |λ|.
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

    // Replace the share -λ of the end g of an edge by the edge's cost at the decided label x.
    void condition(Index g, Index x) {
        double *reduced = reduced_ + lay_.node_offset[lay_.node[g]];
        const double *lam = lam_ + lay_.half_at(g);
        conditional_costs(lay_, g, x, a_.data());
        for (Index y = 0; y < lay_.labels_at(g); ++y)
            reduced[y] += lam[y] + a_[y];
    }

    // The first label within `margin` of the least belief: ties are not left to rounding.
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

// Coordinate descent in place: fewer broken constraints first, then less cost.
//
// `stride[h]` is by how much the state of the auxiliary node across h moves with the label at h, 0
// for ordinary neighbours. Only variables with a changed neighbour are looked at again.
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

    // Cost of each label of i given the rest, infinite terms counted apart.
    void local_costs(Index i) {
        const Index labels = lay_.num_labels[i];
        std::fill_n(cost_.data(), labels, 0.0);
        std::fill_n(broken_.data(), labels, Index(0));
        add(lay_.unary + lay_.node_offset[i], labels);
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k) {
            const Index h = lay_.half[k], j = lay_.node[h ^ 1];
            if (stride_[h] > 0) { // an auxiliary node follows its members
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

    // Move the auxiliary neighbours along, and mark who has to be looked at again.
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
