// Subproblems of large-neighbourhood search: the best labels of many variables, all others fixed.
//
// A subproblem is a set of variables of small treewidth (see bags.hpp). Dynamic programming over
// its bags (bucket elimination) solves it exactly.
#pragma once

#include "bags.hpp"
#include "base/deadline.hpp"
#include "base/tables.hpp"
#include "forests.hpp"

#include <memory>

namespace softmap {

// Costs that a search adds to the costs of the model.
struct Lures {
    double heat = 0.0;             // random costs in [-heat, 0) for every label
    const double *guide = nullptr; // a cost per node state, or null
    double weight = 0.0;           // factor of the guide
    double penalty = infinity;     // cost of a violated hard constraint
};

// Solves the subproblem of the variables in a Bags object.
class BagSolver {
  public:
    using Choice = std::uint16_t;

    BagSolver(const LabelGraph &graph, const Bags &bags, std::uint64_t *words)
        : graph_(graph), bags_(bags), words_(words), terms_(graph.lay.widest) {}

    // Begins with a subproblem: the variables in the bags, given all other labels.
    void begin(Index *labels, const Lures &lures) {
        labels_ = labels;
        lures_ = lures;
        link_children();
        start_.resize(bags_.size());
        at_ = bags_.size();
        used_ = 0;
    }

    // Sets the labels of all variables in the bags to their optimum given the others. At ties a
    // variable keeps its label. Returns false, without a change, if the time runs out; the next
    // call continues.
    bool solve(Meter &meter) {
        while (at_ > 0) {
            if (meter.late())
                return false;
            const Index p = --at_;
            meter.use(bags_.entries(p));
            start_[p] = used_;
            used_ += bags_.entries(p) / bags_.labels(p);
            if (Index(choice_.size()) < used_)
                choice_.resize(std::max(used_, 2 * Index(choice_.size())));
            eliminate(p);
        }
        for (Index p = 0; p < bags_.size(); ++p)
            substitute(p);
        return true;
    }

  private:
    struct Buffer {
        std::unique_ptr<double[]> data;
        Index size = 0;
    };

    void link_children() {
        const Index size = bags_.size();
        messages_.resize(std::max(Index(messages_.size()), size));
        first_child_.assign(size, -1);
        next_.assign(size, -1);
        for (Index p = 0; p < size; ++p)
            if (!bags_.others(p).empty()) {
                const Index parent = bags_.others(p).front();
                next_[p] = first_child_[parent];
                first_child_[parent] = p;
            }
    }

    // Adds up all terms of the p-th variable and minimises over its labels.
    void eliminate(Index p) {
        axes_.clear();
        axes_.push(bags_.labels(p));
        for (const Index q : bags_.others(p))
            axes_.push(bags_.labels(q));
        table_.assign(bags_.entries(p), 0.0);
        for (Index c = first_child_[p]; c >= 0; c = next_[c])
            add_message(p, c);
        add_costs(p);
        const Index slice = bags_.entries(p) / bags_.labels(p);
        messages_[p] = take(slice);
        minimise_out(table_.data(), bags_.labels(p), slice, labels_[bags_.node(p)],
                     messages_[p].data.get(), choice_.data() + start_[p]);
        if (bags_.others(p).empty())
            give(messages_[p]);
    }

    // Adds the message of child c to the table of p. Its axes are `others(c)`, of which p is the
    // first; the rest is a subsequence of `others(p)`.
    void add_message(Index p, Index c) {
        const auto &inner = bags_.others(c), &outer = bags_.others(p);
        clear_steps();
        Index step = 1;
        int k = int(outer.size());
        for (Index t = Index(inner.size()) - 1; t > 0; --t) {
            while (outer[k - 1] != inner[t])
                --k;
            axes_.step(k) = step;
            step *= bags_.labels(inner[t]);
        }
        axes_.step(0) = step;
        add_term(table_.data(), axes_, messages_[c].data.get());
        give(messages_[c]);
    }

    void clear_steps() {
        for (int k = 0; k < axes_.count(); ++k)
            axes_.step(k) = 0;
    }

    // The axis of p's table that belongs to the q-th variable.
    int axis(Index p, Index q) const {
        const auto &others = bags_.others(p);
        return q == p
                   ? 0
                   : 1 + int(std::lower_bound(others.begin(), others.end(), q, std::greater<>()) -
                             others.begin());
    }

    double soft(double cost) const { return cost == infinity ? lures_.penalty : cost; }

    void add_costs(Index p) {
        const Index i = bags_.node(p), labels = bags_.labels(p);
        const double *unary = graph_.lay.unary + graph_.lay.node_offset[i];
        own_.resize(labels);
        for (Index x = 0; x < labels; ++x) {
            own_[x] = soft(unary[x]);
            if (lures_.guide != nullptr)
                own_[x] += lures_.weight * lures_.guide[graph_.lay.node_offset[i] + x];
            if (lures_.heat > 0.0)
                own_[x] -= lures_.heat * uniform(words_);
        }
        graph_.halves(i, [&](Index h) { add_edge(p, h); });
        clear_steps();
        axes_.step(0) = 1;
        add_term(table_.data(), axes_, own_.data());
    }

    void add_edge(Index p, Index h) {
        const Index j = graph_.lay.node[h ^ 1];
        if (graph_.stride[h] > 0) {
            add_factor(p, h, j);
        } else if (!bags_.contains(j)) {
            conditional_costs(graph_.lay, h, labels_[j], terms_.data());
            for (Index x = 0; x < bags_.labels(p); ++x)
                own_[x] += soft(terms_[x]);
        } else if (bags_.place(j) < p) {
            add_pair(p, h, bags_.place(j));
        }
    }

    void add_pair(Index p, Index h, Index q) {
        const Index labels = bags_.labels(p), far = bags_.labels(q);
        pair_.resize(labels * far);
        visit_edge(graph_.lay, h, [&](const auto &edge) {
            for (Index y = 0; y < far; ++y)
                for (Index x = 0; x < labels; ++x)
                    pair_[y * labels + x] = soft(edge.entry(y, x).part[0]);
        });
        clear_steps();
        axes_.step(0) = 1;
        axes_.step(axis(p, q)) = labels;
        add_term(table_.data(), axes_, pair_.data());
    }

    // Adds the costs of auxiliary node a if p is its last member to have joined the subproblem, so
    // that they are added once.
    void add_factor(Index p, Index h, Index a) {
        clear_steps();
        Index newest = -1, at = graph_.lay.node_offset[a], others = 0;
        graph_.members(a, [&](Index member, Index g) {
            if (!bags_.contains(member)) {
                at += graph_.stride[g] * labels_[member];
                return;
            }
            const Index q = bags_.place(member);
            newest = std::max(newest, q);
            others += q != p;
        });
        if (newest != p)
            return;
        if (others == 0) {
            for (Index x = 0; x < bags_.labels(p); ++x)
                own_[x] += soft(graph_.lay.unary[at + x * graph_.stride[h]]);
            return;
        }
        graph_.members(a, [&](Index member, Index g) {
            if (bags_.contains(member))
                axes_.step(axis(p, bags_.place(member))) = graph_.stride[g];
        });
        const double *costs = graph_.lay.unary + at;
        if (lures_.penalty < infinity) {
            const Index end = graph_.lay.node_offset[a + 1];
            softened_.resize(end - at);
            for (Index k = at; k < end; ++k)
                softened_[k - at] = soft(graph_.lay.unary[k]);
            costs = softened_.data();
        }
        add_term(table_.data(), axes_, costs);
    }

    // Sets the label of the p-th variable, given the labels of the earlier ones.
    void substitute(Index p) {
        Index at = 0;
        for (const Index q : bags_.others(p))
            at = at * bags_.labels(q) + labels_[bags_.node(q)];
        labels_[bags_.node(p)] = choice_[start_[p] + at];
    }

    Buffer take(Index size) {
        for (std::size_t k = free_.size(); k-- > 0;)
            if (free_[k].size >= size && free_[k].size <= 4 * size) {
                std::swap(free_[k], free_.back());
                Buffer out = std::move(free_.back());
                free_.pop_back();
                return out;
            }
        return {std::make_unique_for_overwrite<double[]>(size), size};
    }

    void give(Buffer &buffer) {
        if (free_.size() < 32)
            free_.push_back(std::move(buffer));
        buffer = {};
    }

    const LabelGraph &graph_;
    const Bags &bags_;
    std::uint64_t *words_;
    Index *labels_ = nullptr;
    Index at_ = 0, used_ = 0; // number of variables not yet eliminated, and of choices stored
    Lures lures_;
    Axes axes_;
    std::vector<Index> start_, first_child_, next_;
    std::vector<double> terms_, own_, pair_, softened_, table_;
    std::vector<Buffer> messages_, free_;
    std::vector<Choice> choice_;
};

} // namespace softmap
