// Two orders in which variables are added to the subproblem of a large-neighbourhood search.
#pragma once

#include "bags.hpp"
#include "base/deadline.hpp"
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

    // Begins with no variables. If `swept`, they are added breadth-first from a random root, then
    // from the roots that were not reached; the search also continues through variables that `bags`
    // refused, which separate the subproblem into strips. Otherwise the next variable is drawn
    // uniformly from all neighbours of the subproblem.
    void begin(Bags &bags, std::uint64_t *words, bool swept);

    // Adds variables until there are no more. Returns false if it was late first; a further call
    // then continues.
    bool resume(Bags &bags, std::uint64_t *words, Meter &meter);

  private:
    static constexpr std::int32_t never = -1;
    static constexpr Index each = 128; // work of admitting a variable, about, in table entries

    void visit_next(Bags &bags);
    void visit_any(Bags &bags, std::uint64_t *words);

    // Queues the next root that was not reached; returns whether there is one.
    bool find_root();

    void meet(Index i);

    const LabelGraph &graph_;
    std::int32_t stamp_ = 0;
    std::int32_t *met_;
    std::vector<Index> roots_, queue_;
    std::size_t next_ = 0; // first of the queue that was not visited
    Index first_ = 0, next_root_ = 0;
    bool swept_ = true;
};

} // namespace softmap
