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
    void begin(Index *labels, const Lures &lures);

    // Sets the labels of all variables in the bags to their optimum given the others. At ties a
    // variable keeps its label. Returns false, without a change, if the time runs out; the next
    // call continues.
    bool solve(Meter &meter);

  private:
    struct Buffer {
        std::unique_ptr<double[]> data;
        Index size = 0;
    };

    void link_children();

    // Adds up all terms of the p-th variable and minimises over its labels.
    void eliminate(Index p);

    // Adds the message of child c to the table of p. Its axes are `others(c)`, of which p is the
    // first; the rest is a subsequence of `others(p)`.
    void add_message(Index p, Index c);

    void clear_steps();

    // The axis of p's table that belongs to the q-th variable.
    int axis(Index p, Index q) const;

    double soft(double cost) const { return cost == infinity ? lures_.penalty : cost; }

    void add_costs(Index p);

    void add_edge(Index p, Index h);

    void add_pair(Index p, Index h, Index q);

    // Adds the costs of auxiliary node a if p is its last member to have joined the subproblem, so
    // that they are added once.
    void add_factor(Index p, Index h, Index a);

    // Sets the label of the p-th variable, given the labels of the earlier ones.
    void substitute(Index p);

    Buffer take(Index size);

    void give(Buffer &buffer);

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
