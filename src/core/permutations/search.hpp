// Branch and bound over permutations, with the bound of `AssignmentDual`.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "permutations/dual.hpp"

namespace softmap::permutations {

// Symmetries of the costs, which spare equal branches.
struct Symmetry {
    std::vector<std::vector<Index>> maps; // permutations of the labels that leave all costs equal
    std::vector<Index> kind;              // variables of equal kind can be exchanged
};

// A depth-first search that every call of `run` continues. It finds an assignment of cost at most
// `most`, as often as there is a better one, and ends when there is none.
class AssignmentSearch {
  public:
    std::vector<Index> best; // labels of the best assignment that was found; empty if none
    Index nodes = 0;
    // The multipliers of all nodes, for a proof: for each, the number of fixed variables, these
    // variables and labels, rows [i, p, j], columns [i, p, q] and labels [p] of the others.
    std::vector<Cost> log;

    // `step` divides all costs of assignments; `barrier` exceeds all of them. `logged`: the largest
    // size of `log`; none is kept if it is 0.
    AssignmentSearch(AssignmentDual root, Symmetry symmetry, Cost most, Cost step, Cost barrier,
                     std::uint64_t seed, std::size_t logged)
        : costs_(root.costs), symmetry_(std::move(symmetry)), most_(most), step_(step),
          barrier_(barrier), logged_(logged) {
        spread_seed(seed, random_.word);
        root.costs = costs_.copied(); // labels and pairs will be forbidden
        Node first{std::move(root), {}, {}, {}, {}};
        for (Index i = 0; i < costs_.variables; ++i)
            first.variables.push_back(i);
        for (Index p = 0; p < costs_.labels; ++p)
            first.labels.push_back(p);
        for (std::size_t k = 0; k < symmetry_.maps.size(); ++k)
            first.maps.push_back(Index(k));
        enter(std::move(first), nullptr);
    }

    bool ended() const { return open_.empty(); }
    bool full() const { return log.size() > logged_; }
    // Searches for assignments of at most this cost, if that is less than before.
    void limit(Cost most) { most_ = std::min(most_, most); }

    // A lower bound on the cost of all assignments of cost at most `most`; that plus 1 at the end.
    Cost bound() const {
        Cost least = most_ + 1;
        for (const Node &node : open_)
            if (!node.branches.empty())
                least = std::min(least, node.dual.bound);
        return least;
    }

    // Continues until the deadline, a limit of work or the end.
    void run(Meter &meter) {
        while (!open_.empty() && !meter.spent()) {
            Node &node = open_.back();
            if (node.branches.empty() || node.dual.bound > most_) {
                open_.pop_back();
                continue;
            }
            const auto [i, p] = node.branches.back();
            node.branches.pop_back();
            enter(child(node, i, p), &meter);
        }
    }

  private:
    struct Node {
        AssignmentDual dual;
        std::vector<Index> variables, labels;          // those that are not fixed yet
        std::vector<std::pair<Index, Index>> fixed;    // variables and their labels
        std::vector<std::pair<Index, Index>> branches; // positions of a variable and a label
        std::vector<Index> maps{}; // symmetries that map fixed labels to themselves
        bool symmetric = true;     // whether `maps` may be used
    };

    // Fixes a label. Variables of one kind have increasing labels.
    Node child(const Node &node, Index i, Index p) {
        Node out{node.dual.fixed(i, p), node.variables, node.labels, node.fixed, {}};
        const Index variable = node.variables[i], label = node.labels[p];
        out.variables.erase(out.variables.begin() + i);
        out.labels.erase(out.labels.begin() + p);
        out.fixed.push_back({variable, label});
        for (std::size_t k = 0; k < node.maps.size(); ++k)
            if (symmetry_.maps[node.maps[k]][label] == label)
                out.maps.push_back(node.maps[k]);
        out.symmetric = node.symmetric && alone(variable);
        for (std::size_t j = 0; j < out.variables.size(); ++j)
            if (symmetry_.kind[out.variables[j]] == symmetry_.kind[variable])
                for (std::size_t q = 0; q < out.labels.size(); ++q)
                    if ((out.variables[j] < variable) != (out.labels[q] < label))
                        out.dual.forbid(Index(j), Index(q), barrier_);
        return out;
    }

    bool alone(Index variable) const {
        return std::count(symmetry_.kind.begin(), symmetry_.kind.end(), symmetry_.kind[variable]) ==
               1;
    }

    // Raises the bound of a node; keeps the node if it has to be branched.
    void enter(Node node, Meter *meter) {
        ++nodes;
        Meter free(nullptr);
        Meter &used = meter != nullptr ? *meter : free;
        AssignmentDual &dual = node.dual;
        dual.solve_leaders();
        note(node);
        // What is forbidden must follow from multipliers that are kept: few of them.
        int rounds = logged_ > 0 ? 2 : 1;
        do {
            raise(node, free, used);
            if (logged_ > 0)
                keep(node);
        } while (--rounds > 0 && dual.bound <= most_);
        if (dual.bound > most_ || dual.costs.variables < 2)
            return;
        branch(node);
        open_.push_back(std::move(node));
    }

    // Passes until they raise the bound by too little.
    void raise(Node &node, Meter &free, Meter &used) {
        AssignmentDual &dual = node.dual;
        Cost before = dual.bound;
        for (int pass = 0; pass < 40 && dual.bound <= most_; ++pass) {
            if (logged_ == 0)
                dual.forbid_above(most_, barrier_);
            dual.pass(random_, 0, free);
            used.use(4 * dual.costs.size() * dual.costs.size());
            note(node);
            const Cost gain = dual.bound - before;
            before = dual.bound;
            if (gain * patience < most_ - dual.bound)
                break;
        }
    }

    // Keeps the multipliers of a node, and forbids what they exclude.
    void keep(Node &node) {
        AssignmentDual &dual = node.dual;
        const Index n = dual.costs.variables, d = dual.costs.labels;
        if (!full()) {
            log.push_back(Cost(node.fixed.size()));
            for (const auto &[i, p] : node.fixed)
                log.push_back(i), log.push_back(p);
            for (Index k = 0; k < n * d; ++k)
                for (Index j = 0; j < n; ++j)
                    log.push_back(dual.row(k / d, k % d, j));
            for (Index k = 0; k < n * d; ++k)
                for (Index q = 0; q < d; ++q)
                    log.push_back(dual.column(k / d, k % d, q));
            log.insert(log.end(), dual.second().begin(), dual.second().end());
        }
        dual.forbid_above(most_, barrier_);
    }

    // Branches on the variable or label whose possible values have the largest slacks.
    void branch(Node &node) {
        const AssignmentDual &dual = node.dual;
        const Index n = dual.costs.variables, d = dual.costs.labels;
        const Cost cap = most_ - dual.bound + 1;
        const std::vector<bool> first = representatives(node);
        double largest = -1.0;
        for (Index line = 0; line < n + (n == d ? d : 0); ++line) {
            const bool label = line >= n;
            if (label && node.symmetric && node.maps.size() > 1)
                break; // orbits are those of the labels of one variable
            if (!label && node.symmetric && node.maps.size() > 1 && !alone(node.variables[line]))
                continue;
            std::vector<std::pair<Index, Index>> branches;
            double total = 0.0;
            for (Index k = 0; k < (label ? n : d); ++k) {
                const Index i = label ? k : line, p = label ? line - n : k;
                const Cost slack = std::min(dual.slack(i, p), cap);
                const bool skipped = !label && alone(node.variables[i]) && !first[p];
                total += double(skipped ? cap : slack);
                if (slack < cap && !skipped)
                    branches.push_back({i, p});
            }
            total /= double(label ? n : d);
            if (total > largest) {
                largest = total;
                node.branches = std::move(branches);
            }
        }
        if (largest < 0.0) {
            node.symmetric = false;
            branch(node);
        }
    }

    // Whether each label is the first of those that symmetries exchange.
    std::vector<bool> representatives(const Node &node) const {
        std::vector<bool> first(node.labels.size(), true);
        if (node.symmetric)
            for (std::size_t p = 0; p < node.labels.size(); ++p)
                for (const Index k : node.maps)
                    if (symmetry_.maps[k][node.labels[p]] < node.labels[p])
                        first[p] = false;
        return first;
    }

    // Keeps the assignment of the leaders if it is better than the best one.
    void note(const Node &node) {
        std::vector<Index> labels(std::size_t(costs_.variables));
        for (const auto &[i, p] : node.fixed)
            labels[i] = p;
        for (std::size_t k = 0; k < node.variables.size(); ++k)
            labels[node.variables[k]] = node.labels[node.dual.chosen()[k]];
        Cost total = 0;
        for (Index i = 0; i < costs_.variables; ++i) {
            total += costs_.unary[costs_.at(i, labels[i])];
            for (Index j = 0; j < i; ++j)
                total += costs_.between(i, labels[i], j, labels[j]);
        }
        if (total <= most_) {
            most_ = total - step_;
            best = labels;
        }
    }

    static constexpr Cost patience = 20; // passes that may close the rest of the gap

    Costs costs_;
    const Symmetry symmetry_;
    Cost most_;
    const Cost step_, barrier_;
    const std::size_t logged_;
    Random random_;
    std::vector<Node> open_;
};

} // namespace softmap::permutations
