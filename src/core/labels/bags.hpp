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
    Bags(const LabelGraph &graph, Index max_total, std::int32_t *place)
        : graph_(graph), max_total_(max_total), place_(place) {
        stage_.reserve(longest + 2); // so that references into it stay valid
    }

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

    void clear() {
        for (const Index i : nodes_)
            place_[i] = outside;
        nodes_.clear();
        total_ = 0;
    }

    // Adds variable i if all bags stay within their limits; returns whether it was added.
    bool admit(Index i) {
        if (graph_.lay.num_labels[i] < 2)
            return false; // a variable with one label has nothing to decide
        gather(i);
        const Index own = product(graph_.lay.num_labels[i], near_);
        if (own > max_entries_ || !stage(own))
            return false;
        for (Index k = 0; k < staged_; ++k) {
            const Index p = stage_[k].place;
            total_ += stage_[k].entries - entries_[p];
            entries_[p] = stage_[k].entries;
            others_[p].swap(stage_[k].others);
        }
        append(i, own);
        return true;
    }

  private:
    struct Change {
        Index place, entries;
        std::vector<std::int32_t> others;
    };

    void gather(Index i) {
        near_.clear();
        graph_.neighbours(i, [&](Index j) {
            if (place_[j] != outside)
                near_.push_back(place_[j]);
        });
        std::sort(near_.begin(), near_.end(), std::greater<>());
        near_.erase(std::unique(near_.begin(), near_.end()), near_.end());
    }

    // `labels` times the label counts at the given positions; some number above max_entries_ if the
    // product exceeds it.
    Index product(Index labels, const std::vector<std::int32_t> &places) const {
        for (const std::int32_t p : places) {
            labels *= this->labels(p);
            if (labels > max_entries_)
                break;
        }
        return labels;
    }

    // Collects the changes of existing bags if the variables near_ become neighbours of each other:
    // the newest of them gets the others into its bag, then the newest of that bag gets the rest,
    // and so on until a bag already contains them all. Returns false if a limit is exceeded.
    bool stage(Index own) {
        staged_ = 0;
        Index total = total_ + own;
        const std::vector<std::int32_t> *tied = &near_;
        while (!tied->empty()) {
            const Index p = tied->front();
            if (staged_ == Index(stage_.size()))
                stage_.emplace_back();
            Change &change = stage_[staged_];
            change.others.clear();
            std::set_union(tied->begin() + 1, tied->end(), others_[p].begin(), others_[p].end(),
                           std::back_inserter(change.others), std::greater<>());
            if (change.others.size() == others_[p].size())
                break;
            change.place = p;
            change.entries = product(labels(p), change.others);
            total += change.entries - entries_[p];
            if (change.entries > max_entries_ || total > max_total_ || ++staged_ > longest)
                return false;
            tied = &stage_[staged_ - 1].others;
        }
        return total <= max_total_;
    }

    void append(Index i, Index own) {
        const Index p = size();
        place_[i] = std::int32_t(p);
        nodes_.push_back(i);
        if (Index(others_.size()) == p) {
            others_.emplace_back();
            entries_.push_back(0);
        }
        others_[p].swap(near_);
        entries_[p] = own;
        total_ += own;
    }

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
