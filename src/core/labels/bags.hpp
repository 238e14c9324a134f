// Grows a set of variables whose induced subgraph has small treewidth, one variable at a time.
//
// Variables are eliminated in the reverse of the order in which they joined. The bag of a variable
// is the variable and the earlier ones that are its neighbours when it is eliminated. A variable
// may join if every bag's table keeps at most `max_entries` entries. With two labels and tables of
// 4 entries the sets are the induced forests.
#pragma once

#include "label_graph.hpp"

namespace softmap {

class Bags {
  public:
    // `max_total` limits the table entries of all bags together. `place` has one entry per
    // variable, `outside` at first; only those of variables next to admitted ones are used.
    Bags(const LabelGraph &graph, Index max_total, std::int32_t *place);

    static constexpr std::int32_t outside = -1;

    Index size() const { return Index(nodes_.size()); }
    Index node(Index p) const { return nodes_[p]; }
    Index labels(Index p) const { return graph_.lay.num_labels[nodes_[p]]; }
    std::int32_t place(Index i) const { return place_[i]; }
    bool contains(Index i) const { return i < graph_.variables && place_[i] != outside; }
    // Positions of the other variables in the bag of the p-th variable, descending; all are below
    // p.
    const std::vector<std::int32_t> &others(Index p) const { return others_[p]; }
    Index entries(Index p) const { return entries_[p]; }
    Index total() const { return total_; }

    // Sets the limit on the table entries of one bag.
    void limit(Index max_entries) { max_entries_ = max_entries; }

    void clear();

    // Adds variable i if all bags stay within their limits; returns whether it was added.
    bool admit(Index i);

  private:
    struct Change {
        Index place, entries;
        std::vector<std::int32_t> others;
    };

    void gather(Index i);

    // `labels` times the label counts at the given positions; some number above max_entries_ if the
    // product exceeds it.
    Index product(Index labels, const std::vector<std::int32_t> &places) const;

    // Collects the changes of existing bags if the variables near_ become neighbours of each other:
    // the newest of them gets the others into its bag, then the newest of that bag gets the rest,
    // and so on until a bag already contains them all. Returns false if a limit is exceeded.
    bool stage(Index own);

    void append(Index i, Index own);

    static constexpr Index longest = 1000; // largest number of bags that one variable may change

    const LabelGraph &graph_;
    const Index max_total_;
    Index max_entries_ = 4, total_ = 0, staged_ = 0;
    std::int32_t *place_;
    std::vector<Index> nodes_, entries_;
    std::vector<std::vector<std::int32_t>> others_;
    std::vector<std::int32_t> near_;
    std::vector<Change> stage_;
};

} // namespace softmap
