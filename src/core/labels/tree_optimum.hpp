// The optimum of a model whose graph is a forest: labels of least cost, and λ that proves them.
//
// Min-sum from the leaves to the roots, then labels from the roots to the leaves. With θ_i = C_i
// plus the messages of the children of i, and m the message of i to its parent p less its minimum,
// λ = θ_i at the half-edge of i and -m at that of p make the term of node i zero, the term of the
// edge the minimum that was taken off, and the term of a root the rest of the optimum.
#pragma once

#include "tree_costs.hpp"

#include <algorithm>
#include <vector>

namespace softmap {

class TreeOptimum {
  public:
    TreeOptimum(const Layout &lay, Index *labels, double *lam)
        : lay_(lay), labels_(labels), lam_(lam), costs_(lay, labels),
          room_(message_room(lay.widest, 1)), theta_(std::size_t(lay.node_offset[lay.n])),
          towards_(std::size_t(lay.n), none) {
        order_.reserve(std::size_t(lay.n));
    }

    // Writes labels and λ; false, with both undefined, if the graph has a cycle. Every cost has to
    // be finite.
    bool solve() {
        std::vector<bool> seen(std::size_t(lay_.n), false);
        for (Index root = 0; root < lay_.n; ++root)
            if (!seen[std::size_t(root)] && !explore(root, seen))
                return false;
        for (std::size_t k = order_.size(); k-- > 0;)
            gather(order_[k]);
        for (const Index i : order_)
            choose(i);
        return true;
    }

  private:
    static constexpr Index none = -1;

    const Layout &lay_;
    Index *labels_;
    double *lam_;
    TreeCosts costs_;
    Room room_;
    std::vector<double> theta_;  // over node states: costs of the subtree below, less shifts
    std::vector<Index> towards_; // [n] the half-edge at the node's parent; none at a root
    std::vector<Index> order_;   // parents before children

    double *theta(Index i) { return theta_.data() + lay_.node_offset[i]; }

    // Adds the tree of a root to the order; false if it is no tree.
    bool explore(Index root, std::vector<bool> &seen) {
        std::size_t next = order_.size();
        order_.push_back(root);
        seen[std::size_t(root)] = true;
        for (; next < order_.size(); ++next) {
            const Index i = order_[next], up = towards_[std::size_t(i)];
            for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k) {
                const Index h = lay_.half[k], child = lay_.node[h ^ 1];
                if ((h ^ 1) == up)
                    continue;
                if (seen[std::size_t(child)])
                    return false;
                seen[std::size_t(child)] = true;
                towards_[std::size_t(child)] = h;
                order_.push_back(child);
            }
        }
        return true;
    }

    // θ of a node whose children are done, and its message to its parent.
    void gather(Index i) {
        double *sum = theta(i);
        const double *unary = lay_.unary + lay_.node_offset[i];
        for (Index x = 0; x < lay_.num_labels[i]; ++x)
            sum[x] = unary[x];
        const Index up = towards_[std::size_t(i)];
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
            if (const Index h = lay_.half[k]; (h ^ 1) != up)
                for (Index x = 0; x < lay_.num_labels[i]; ++x)
                    sum[x] -= lam_[lay_.half_at(h) + x];
        if (up != none)
            send(up, sum);
    }

    void send(Index h, const double *sum) {
        double *message = lam_ + lay_.half_at(h), *rest = lam_ + lay_.half_at(h ^ 1);
        std::copy_n(sum, lay_.labels_at(h ^ 1), rest);
        hard_message(lay_, h, sum, message, room_.numbers());
        const Index labels = lay_.labels_at(h);
        const double least = *std::min_element(message, message + labels);
        for (Index y = 0; y < labels; ++y)
            message[y] = least - message[y];
    }

    void choose(Index i) {
        const Index up = towards_[std::size_t(i)];
        if (up != none)
            costs_.add_given(up ^ 1, theta(i));
        labels_[i] = 0; // the first of equals
        costs_.choose(i, theta(i));
    }
};

} // namespace softmap
