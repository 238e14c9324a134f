// Tree moves: block ICM on random induced forests, each solved exactly with all other nodes fixed.
//
// A forest is an induced subgraph without cycles, so that dynamic programming finds its best labels
// given the rest. Random costs of decreasing size turn the moves into simulated annealing.
#pragma once

#include "base/random.hpp"
#include "one_edge.hpp"

#include <algorithm>

namespace softmap {

// Uniform in [0, 1).
inline double uniform(std::uint64_t *words) { return 0x1p-53 * double(next_word(words) >> 11); }

class Forests {
  public:
    Forests(const Layout<double> &lay, Index *labels, std::uint64_t *words)
        : lay_(lay), labels_(labels), words_(words), links_(lay.n), parent_(lay.n), forest_(lay.n),
          frontier_(lay.n), costs_(lay.node_offset[lay.n]), terms_(lay.widest),
          room_(message_room(lay.widest, 1)) {}

    // Solves `count` random forests in place, with noise that decreases from `heat` (a cost) to 0.
    //
    // Feasible labels stay feasible. Without noise no round raises the energy, except by rounding.
    void run(Index count, double heat) {
        for (Index k = 0; k < count; ++k) {
            grow();
            gather(heat * (1.0 - (double(k) + 1.0) / double(count)));
            scatter();
        }
    }

    // Draws a forest as a round of `run` does. `nodes` gets its nodes, `links` and `parent` are
    // links_ and parent_; returns its size.
    Index next(Index *nodes, Index *links, Index *parent) {
        grow();
        std::copy_n(forest_.data(), size_, nodes);
        std::copy_n(links_.data(), lay_.n, links);
        std::copy_n(parent_.data(), lay_.n, parent);
        return size_;
    }

  private:
    static constexpr Index inside = -1; // value of links_ at nodes of the forest

    // Draws a random maximal induced forest; forest_ lists parents before children.
    //
    // links_[i] is the number of half-edges from i into the forest (`inside` for nodes of the
    // forest); parent_[i] is the half-edge of i to its parent, -1 at a root. A node may join while
    // it has at most one link; the next node is drawn uniformly from the queued candidates.
    void grow() {
        std::fill(links_.begin(), links_.end(), 0);
        size_ = 0;
        const Index first = below(words_, lay_.n);
        for (Index k = first; k < first + lay_.n; ++k) {
            const Index root = k < lay_.n ? k : k - lay_.n;
            if (links_[root] == 0)
                grow_tree(root);
        }
    }

    void grow_tree(Index root) {
        parent_[root] = -1;
        frontier_[0] = root;
        Index waiting = 1;
        while (waiting > 0) {
            const Index drawn = below(words_, waiting), i = frontier_[drawn];
            frontier_[drawn] = frontier_[--waiting];
            if (links_[i] > 1)
                continue;
            links_[i] = inside;
            forest_[size_++] = i;
            for (Index t = lay_.start[i]; t < lay_.start[i + 1]; ++t) {
                const Index h = lay_.half[t] ^ 1, j = lay_.node[h];
                if (links_[j] == inside || ++links_[j] > 1)
                    continue;
                parent_[j] = h;
                frontier_[waiting++] = j;
            }
        }
    }

    // Min-sum from the leaves to the roots: costs_ of a node becomes the cost of its subtree.
    void gather(double heat) {
        for (Index k = 0; k < size_; ++k) {
            const Index i = forest_[k], place = lay_.node_offset[i];
            std::copy_n(lay_.unary + place, lay_.num_labels[i], costs_.data() + place);
        }
        for (Index k = size_ - 1; k >= 0; --k) {
            const Index i = forest_[k];
            double *own = costs_.data() + lay_.node_offset[i];
            condition(i, own);
            if (heat > 0.0) // uniform noise: faster than Gumbel noise, and no worse
                for (Index x = 0; x < lay_.num_labels[i]; ++x)
                    own[x] -= heat * uniform(words_);
            if (parent_[i] < 0)
                continue;
            const Index g = parent_[i] ^ 1;
            hard_message(lay_, g, own, terms_.data(), room_.numbers());
            add_terms(lay_.node[g], costs_.data() + lay_.node_offset[lay_.node[g]]);
        }
    }

    // Adds the costs of the edges from i to nodes outside the forest, given their labels.
    void condition(Index i, double *own) {
        for (Index t = lay_.start[i]; t < lay_.start[i + 1]; ++t) {
            const Index h = lay_.half[t], j = lay_.node[h ^ 1];
            if (links_[j] == inside)
                continue;
            conditional_costs(lay_, h, labels_[j], terms_.data());
            add_terms(i, own);
        }
    }

    void add_terms(Index i, double *costs) const {
        for (Index x = 0; x < lay_.num_labels[i]; ++x)
            costs[x] += terms_[x];
    }

    // From the roots to the leaves: the best label of each node given its parent's label. At ties a
    // node keeps its label.
    void scatter() {
        for (Index k = 0; k < size_; ++k) {
            const Index i = forest_[k], h = parent_[i];
            double *own = costs_.data() + lay_.node_offset[i];
            if (h >= 0) {
                conditional_costs(lay_, h, labels_[lay_.node[h ^ 1]], terms_.data());
                add_terms(i, own);
            }
            Index best = labels_[i];
            for (Index x = 0; x < lay_.num_labels[i]; ++x)
                best = own[x] < own[best] ? x : best;
            labels_[i] = best;
        }
    }

    const Layout<double> &lay_;
    Index *labels_;
    std::uint64_t *words_;
    Index size_ = 0;
    std::vector<Index> links_, parent_, forest_, frontier_;
    std::vector<double> costs_, terms_;
    Room room_;
};

} // namespace softmap
