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

// Descends with subproblems of increasing treewidth, then runs annealing cycles: random costs that
// decrease to 0, after which the connected components of the change that lower the cost are kept.
// Amplitude and table size are chosen by a bandit, by past success per work. After many cycles
// without success the search continues from the last cycle's labels, whatever their cost. The best
// labels are stored apart and take over each component in which the current labels are better.
class Search {
  public:
    Search(const LabelGraph &graph, Index *labels, std::uint64_t *words,
           const SearchOptions &options)
        : graph_(graph), labels_(labels), words_(words), options_(options),
          bags_(graph, options.max_total), growth_(graph, options.open),
          solver_(graph, bags_, words), merge_(graph), current_(labels, labels + graph.lay.n),
          other_(current_) {
        for (Index entries = options.max_entries; entries >= narrow; entries /= 4)
            widths_.push_back(entries);
        if (widths_.empty())
            widths_.push_back(options.max_entries);
    }

    // Goes on from labels that were changed elsewhere.
    void restart() {
        current_.assign(labels_, labels_ + graph_.lay.n);
        other_ = current_;
    }

    // Runs until the budget is spent, or after the descent if there is no annealing. Another call
    // continues.
    void run(Budget &budget) {
        if (growth_.empty())
            return;
        for (; descended_ < descents * Index(widths_.size()) && !budget.spent(); ++descended_)
            if (round(widths_[widths_.size() - 1 - descended_ / descents], {}, budget))
                take();
        if (budget.spent() || options_.heat == 0.0)
            return;
        if (arms_.empty())
            set_arms();
        while (!arms_.empty() && !budget.spent())
            cycle(budget);
    }

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
    void set_arms() {
        std::vector<double> steps, cost(graph_.lay.widest), terms(graph_.lay.widest);
        for (const Index i : growth_.roots()) {
            graph_.finite_costs(i, labels_, cost.data(), terms.data());
            double least = infinity;
            for (Index x = 0; x < graph_.lay.num_labels[i]; ++x)
                if (cost[x] > cost[labels_[i]])
                    least = std::min(least, cost[x] - cost[labels_[i]]);
            if (least < infinity)
                steps.push_back(least);
        }
        if (steps.empty())
            return;
        std::sort(steps.begin(), steps.end());
        for (const auto &[share, factor] : heats) {
            const double step = steps[std::size_t(share * double(steps.size() - 1))];
            for (const Index entries : widths_)
                arms_.push_back({entries, options_.heat * factor * step, 0.0, 0.0});
        }
    }

    // Solves one subproblem in other_; returns false if the time ran out.
    bool round(Index max_entries, Lures lures, Budget &budget) {
        lures.penalty = options_.penalty;
        bags_.limit(max_entries);
        if (next_word(words_) & 7)
            growth_.swept(bags_, words_);
        else
            growth_.scattered(bags_, words_);
        budget.use(graph_.variables);
        return solver_.solve(other_.data(), lures, budget);
    }

    // Takes the improving components of other_ into current_, or all of other_ if `walk`, and then
    // its improving components into the best labels. Returns whether the best labels improved.
    // Afterwards other_ equals current_.
    bool take(bool walk = false) {
        if (walk)
            current_ = other_;
        else if (!merge_(current_.data(), other_.data()))
            return false;
        const bool fell = merge_(labels_, other_.data());
        falls_ += fell;
        other_ = current_;
        return fell;
    }

    void cycle(Budget &budget) {
        Arm &arm = draw();
        const Index before = budget.used();
        const bool guided = options_.guide != nullptr && (next_word(words_) & 1);
        for (Index k = 1; k <= options_.rounds; ++k) {
            const double left = 1.0 - double(k) / double(options_.rounds);
            Lures lures;
            lures.heat = arm.heat * left;
            lures.guide = guided && k < options_.rounds ? options_.guide : nullptr;
            lures.weight = left;
            if (!round(arm.max_entries, lures, budget))
                break;
        }
        arm.work += double(budget.used() - before);
        ++cycles_;
        const bool walk = ++idle_ > patience_, fell = take(walk);
        patience_ += walk ? patience_ / 4 : 0;
        idle_ = walk || fell ? 0 : idle_;
        arm.wins += fell;
    }

    // Draws an arm with probability proportional to its successes per work so far.
    Arm &draw() {
        double sum = 0.0;
        for (const Arm &arm : arms_)
            sum += score(arm);
        double left = uniform(words_) * sum;
        for (Arm &arm : arms_)
            if ((left -= score(arm)) < 0.0)
                return arm;
        return arms_.back();
    }
    double score(const Arm &arm) const {
        const double unit = double(graph_.variables) * double(arm.max_entries);
        return (1.0 + arm.wins) / (unit + arm.work);
    }

    static constexpr Index narrow = 64; // smallest table size among the arms, in entries
    // Amplitudes of random costs: factor times a quantile (`share`). Dense models need the largest.
    static constexpr struct {
        double share, factor;
    } heats[] = {{0.1, 1.0}, {0.5, 1.0}, {0.95, 1.0}, {0.95, 4.0}, {0.95, 16.0}};
    static constexpr Index descents = 2; // subproblems of each table size in the initial descent

    const LabelGraph &graph_;
    Index *labels_;
    std::uint64_t *words_;
    const SearchOptions options_;
    Bags bags_;
    Growth growth_;
    BagSolver solver_;
    Merge merge_;
    Index cycles_ = 0, falls_ = 0, idle_ = 0, descended_ = 0;
    Index patience_ = 20; // cycles without success after which worse labels are accepted
    std::vector<Index> current_, other_, widths_;
    std::vector<Arm> arms_;
};

} // namespace softmap
