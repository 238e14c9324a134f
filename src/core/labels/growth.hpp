// Two orders in which variables are added to the subproblem of a large-neighbourhood search.
#pragma once

#include "bags.hpp"
#include "base/random.hpp"

namespace softmap {

// Fills a Bags object with as many variables as it admits.
class Growth {
  public:
    // Only variables i of the range with open[i] may be added. `met` has one entry per variable, 0
    // at first; only those of open variables and their neighbours are used.
    template <class Open>
    Growth(const LabelGraph &graph, NodeRange range, Open open, std::int32_t *met)
        : graph_(graph), met_(met) {
        for (Index i = range.begin; i < range.end; ++i)
            if (open(i))
                roots_.push_back(i);
            else
                met_[i] = never;
    }

    bool empty() const { return roots_.empty(); }
    const std::vector<Index> &roots() const { return roots_; }

    // Breadth-first from a random root, then from the roots that were not reached. The search also
    // continues through variables that `bags` refused; these separate the subproblem into strips.
    void swept(Bags &bags, std::uint64_t *words) {
        from_roots(bags, words, [&](Index root) {
            queue_.assign(1, root);
            for (std::size_t k = 0; k < queue_.size(); ++k) {
                bags.admit(queue_[k]);
                meet(queue_[k]);
            }
        });
    }

    // The next variable is drawn uniformly from all neighbours of the subproblem.
    void scattered(Bags &bags, std::uint64_t *words) {
        from_roots(bags, words, [&](Index root) {
            queue_.assign(1, root);
            while (!queue_.empty()) {
                std::swap(queue_[below(words, Index(queue_.size()))], queue_.back());
                const Index i = queue_.back();
                queue_.pop_back();
                if (bags.admit(i))
                    meet(i);
            }
        });
    }

  private:
    static constexpr std::int32_t never = -1;

    template <class Spread> void from_roots(Bags &bags, std::uint64_t *words, Spread spread) {
        bags.clear();
        ++stamp_;
        const Index count = Index(roots_.size()), first = below(words, count);
        for (Index k = 0; k < count; ++k) {
            const Index root = roots_[(first + k) % count];
            if (met_[root] == stamp_)
                continue;
            met_[root] = stamp_;
            spread(root);
        }
    }

    void meet(Index i) {
        graph_.neighbours(i, [&](Index j) {
            if (met_[j] == stamp_ || met_[j] == never)
                return;
            met_[j] = stamp_;
            queue_.push_back(j);
        });
    }

    const LabelGraph &graph_;
    std::int32_t stamp_ = 0;
    std::int32_t *met_;
    std::vector<Index> roots_, queue_;
};

} // namespace softmap
