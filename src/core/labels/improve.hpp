// Large-neighbourhood search over labellings, with annealing and recombination by component.
#pragma once

#include "growth.hpp"
#include "neighbourhoods.hpp"

namespace softmap {

struct SearchOptions {
    Index max_entries = 1 << 12; // limit on the entries of one table
    Index max_total = 1 << 24;   // limit on the entries of all tables of a subproblem
    Index rounds = 3;            // subproblems per cycle, the last one without random costs
    double heat = 0.0; // random costs, relative to the cost of changing a label; 0: descent only
    const double *guide = nullptr; // cost per label, added with decreasing weight in half of the
                                   // annealing cycles; none if null
    double penalty = infinity;     // cost of a violated hard constraint
    const bool *open = nullptr;    // which variables may change; all if null
};

// Arrays with one entry per node. Searches over disjoint ranges share them: none uses an entry of
// another one's range.
struct SearchArrays {
    SearchArrays(const LabelGraph &graph, const Index *labels);

    std::vector<std::int32_t> place, met, part;
    std::vector<Index> current, other;
};

// Descends with subproblems of increasing treewidth, then runs annealing cycles: random costs that
// decrease to 0, after which the connected components of the change that lower the cost are kept.
// Amplitude and table size are chosen by a bandit, by past success per work. After many cycles
// without success the search continues from the last cycle's labels, whatever their cost. The best
// labels are stored apart and take over each component in which the current labels are better.
//
// Only variables of the range change, and of these only the ones without neighbours outside.
class Search {
  public:
    Search(const LabelGraph &graph, NodeRange range, Index *labels, const std::uint64_t *words,
           const SearchOptions &options, SearchArrays &arrays);

    // Says that the labels have changed. A subproblem that was begun is still completed.
    void restart() { restart_ = true; }

    // Runs until the meter is spent, or after the descent if there is no annealing. Another call
    // continues exactly where this one has ended.
    void run(Meter &meter);

    // Whether all neighbours of a variable are in a range.
    static bool within(const LabelGraph &graph, NodeRange range, Index i);

    Index cycles() const { return cycles_; }
    Index falls() const { return falls_; } // number of improvements of the best labels

  private:
    struct Arm {
        Index max_entries;
        double heat, wins, work;
    };

    // Sets the arms of the bandit: table sizes × amplitudes of the random costs. Amplitudes are
    // quantiles of the cost of changing the label of one variable, so that they span as many orders
    // of magnitude as the costs do.
    void set_arms();

    // Begins with the next subproblem, in other_; returns false if there is none.
    bool begin_round();

    void begin(Index max_entries, const Lures &lures);

    // Chooses the variables of the subproblem. Returns false if it was late first.
    bool grow(Meter &meter);

    // After a subproblem of the descent, or the last one of a cycle, takes what has improved.
    void end_round();

    // Takes the improving components of other_ into current_, or all of other_ if `walk`, and then
    // its improving components into the best labels. Returns whether the best labels improved.
    // Afterwards other_ equals current_.
    bool take(bool walk = false);

    // Copies the labels of the range, and of the auxiliary nodes if it has all variables.
    void copy(const Index *from, Index *to) const;

    // Draws an arm with probability proportional to its successes per work so far.
    std::size_t draw();
    double score(const Arm &arm) const;

    static constexpr Index narrow = 64; // smallest table size among the arms, in entries
    // Amplitudes of random costs: factor times a quantile (`share`). Dense models need the largest.
    static constexpr struct {
        double share, factor;
    } heats[] = {{0.1, 1.0}, {0.5, 1.0}, {0.95, 1.0}, {0.95, 4.0}, {0.95, 16.0}};
    static constexpr Index descents = 2;  // subproblems of each table size in the initial descent
    static constexpr Index patience = 20; // cycles without success before worse labels are accepted

    const LabelGraph &graph_;
    const NodeRange range_;
    Index *labels_;
    std::uint64_t words_[4];
    const SearchOptions options_;
    Bags bags_;
    Growth growth_;
    BagSolver solver_;
    Merge merge_;
    Index cycles_ = 0, falls_ = 0, idle_ = 0;
    Index descended_ = 0, round_ = 0, work_ = 0; // where the search is, and the work of its cycle
    std::size_t arm_ = 0;
    bool guided_ = false, growing_ = false, solving_ = false, restart_ = false;
    Lures lures_; // of the subproblem
    Index *current_, *other_;
    std::vector<Index> widths_;
    std::vector<Arm> arms_;
};

} // namespace softmap
