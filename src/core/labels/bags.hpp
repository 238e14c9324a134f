// Sets of variables of small treewidth, grown one variable at a time.
//
// Variables are eliminated in the reverse of the order in which they joined. The bag of one is
// itself and those before it that its elimination ties together; a variable may join while no bag
// outgrows a table of `max_entries`. With two labels and tables of 4 entries these are the induced
// forests.
#pragma once

#include "label_graph.hpp"

namespace softmap {

class Bags {
  public:
    // `max_total` bounds the entries of all bags together.
    Bags(const LabelGraph &graph, Index max_total)
        : graph_(graph), max_total_(max_total), place_(graph.variables, outside) {
        stage_.reserve(longest + 2); // so that references into it stay good
    }

    static constexpr std::int32_t outside = -1;

    Index size() const { return Index(nodes_.size()); }
    Index node(Index p) const { return nodes_[p]; }
    Index labels(Index p) const { return graph_.lay.num_labels[nodes_[p]]; }
    std::int32_t place(Index i) const { return place_[i]; }
    bool contains(Index i) const { return i < graph_.variables && place_[i] != outside; }
    // Places of the others in the bag of the p-th variable, in falling order: all are below p.
    const std::vector<std::int32_t> &others(Index p) const { return others_[p]; }
    Index entries(Index p) const { return entries_[p]; }
    Index total() const { return total_; }

    // Entries that one bag may have from now on.
    void limit(Index max_entries) { max_entries_ = max_entries; }

    void clear() {
        for (const Index i : nodes_)
            place_[i] = outside;
        nodes_.clear();
        total_ = 0;
    }

    // Let variable i join if no bag outgrows its limit by that.
    bool admit(Index i) {
        if (graph_.lay.num_labels[i] < 2)
            return false; // nothing to decide
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

    // `labels` times the label counts at these places; any number above the limit if that is more.
    Index product(Index labels, const std::vector<std::int32_t> &places) const {
        for (const std::int32_t p : places) {
            labels *= this->labels(p);
            if (labels > max_entries_)
                break;
        }
        return labels;
    }

    // What changes in the bags below when near_ is tied together: eliminating the newest of them
    // ties the rest to its own bag, and so on until a bag holds them all already.
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

    static constexpr Index longest = 1000; // bags changed by one variable

    const LabelGraph &graph_;
    const Index max_total_;
    Index max_entries_ = 4, total_ = 0, staged_ = 0;
    std::vector<std::int32_t> place_;
    std::vector<Index> nodes_, entries_;
    std::vector<std::vector<std::int32_t>> others_;
    std::vector<std::int32_t> near_;
    std::vector<Change> stage_;
};

} // namespace softmap
