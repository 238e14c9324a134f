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
    SearchArrays(const LabelGraph &graph, const Index *labels)
        : place(std::size_t(graph.variables), Bags::outside), met(place.size(), 0),
          part(std::size_t(graph.lay.n), 0), current(labels, labels + graph.lay.n), other(current) {
    }

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
           const SearchOptions &options, SearchArrays &arrays)
        : graph_(graph), range_(range), labels_(labels), options_(options),
          bags_(graph, options.max_total, arrays.place.data()),
          growth_(
              graph, range,
              [&](Index i) {
                  return (options.open == nullptr || options.open[i]) && within(graph, range, i);
              },
              arrays.met.data()),
          solver_(graph, bags_, words_), merge_(graph, range, arrays.part.data()),
          current_(arrays.current.data()), other_(arrays.other.data()) {
        std::copy_n(words, 4, words_);
        for (Index entries = options.max_entries; entries >= narrow; entries /= 4)
            widths_.push_back(entries);
        if (widths_.empty())
            widths_.push_back(options.max_entries);
    }

    // Says that the labels have changed. A subproblem that was begun is still completed.
    void restart() { restart_ = true; }

    // Runs until the meter is spent, or after the descent if there is no annealing. Another call
    // continues exactly where this one has ended.
    void run(Meter &meter) {
        while (!meter.spent() && (growing_ || solving_ || begin_round())) {
            if (growing_ && !grow(meter))
                return;
            const Index before = meter.used();
            solving_ = !solver_.solve(meter);
            work_ += meter.used() - before;
            if (!solving_)
                end_round();
        }
    }

    // Whether all neighbours of a variable are in a range.
    static bool within(const LabelGraph &graph, NodeRange range, Index i) {
        bool inside = true;
        if (range.size() < graph.variables)
            graph.neighbours(i, [&](Index j) { inside &= range.has(j); });
        return inside;
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

    // Begins with the next subproblem, in other_; returns false if there is none.
    bool begin_round() {
        if (growth_.empty())
            return false;
        if (restart_) {
            copy(labels_, current_);
            copy(labels_, other_);
            restart_ = false;
        }
        if (descended_ < descents * Index(widths_.size())) {
            begin(widths_[widths_.size() - 1 - descended_ / descents], {});
            return true;
        }
        if (arms_.empty() && options_.heat > 0.0)
            set_arms();
        if (arms_.empty())
            return false;
        if (round_ == 0) {
            arm_ = draw();
            work_ = 0;
            guided_ = options_.guide != nullptr && (next_word(words_) & 1);
        }
        ++round_;
        const double left = 1.0 - double(round_) / double(options_.rounds);
        Lures lures;
        lures.heat = arms_[arm_].heat * left;
        lures.guide = guided_ && round_ < options_.rounds ? options_.guide : nullptr;
        lures.weight = left;
        begin(arms_[arm_].max_entries, lures);
        return true;
    }

    void begin(Index max_entries, const Lures &lures) {
        lures_ = lures;
        lures_.penalty = options_.penalty;
        bags_.limit(max_entries);
        const bool swept = next_word(words_) & 7;
        growth_.begin(bags_, words_, swept);
        growing_ = true;
    }

    // Chooses the variables of the subproblem. Returns false if it was late first.
    bool grow(Meter &meter) {
        if (!growth_.go_on(bags_, words_, meter))
            return false;
        growing_ = false;
        meter.use(range_.size());
        work_ += range_.size();
        solver_.begin(other_, lures_);
        return true;
    }

    // After a subproblem of the descent, or the last one of a cycle, takes what has improved.
    void end_round() {
        if (round_ == 0) {
            ++descended_;
            take();
            return;
        }
        if (round_ < options_.rounds)
            return;
        round_ = 0;
        ++cycles_;
        const bool walk = ++idle_ > patience_, fell = take(walk);
        patience_ += walk ? patience_ / 4 : 0;
        idle_ = walk || fell ? 0 : idle_;
        arms_[arm_].work += double(work_);
        arms_[arm_].wins += fell;
    }

    // Takes the improving components of other_ into current_, or all of other_ if `walk`, and then
    // its improving components into the best labels. Returns whether the best labels improved.
    // Afterwards other_ equals current_.
    bool take(bool walk = false) {
        if (walk)
            copy(other_, current_);
        else if (!merge_(current_, other_))
            return false;
        const bool fell = merge_(labels_, other_);
        falls_ += fell;
        copy(current_, other_);
        return fell;
    }

    // Copies the labels of the range, and of the auxiliary nodes if it has all variables.
    void copy(const Index *from, Index *to) const {
        const Index end = range_.size() == graph_.variables ? graph_.lay.n : range_.end;
        std::copy(from + range_.begin, from + end, to + range_.begin);
    }

    // Draws an arm with probability proportional to its successes per work so far.
    std::size_t draw() {
        double sum = 0.0;
        for (const Arm &arm : arms_)
            sum += score(arm);
        double left = uniform(words_) * sum;
        for (std::size_t k = 0; k < arms_.size(); ++k)
            if ((left -= score(arms_[k])) < 0.0)
                return k;
        return arms_.size() - 1;
    }
    double score(const Arm &arm) const {
        const double unit = double(range_.size()) * double(arm.max_entries);
        return (1.0 + arm.wins) / (unit + arm.work);
    }

    static constexpr Index narrow = 64; // smallest table size among the arms, in entries
    // Amplitudes of random costs: factor times a quantile (`share`). Dense models need the largest.
    static constexpr struct {
        double share, factor;
    } heats[] = {{0.1, 1.0}, {0.5, 1.0}, {0.95, 1.0}, {0.95, 4.0}, {0.95, 16.0}};
    static constexpr Index descents = 2; // subproblems of each table size in the initial descent

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
    Lures lures_;         // of the subproblem
    Index patience_ = 20; // cycles without success after which worse labels are accepted
    Index *current_, *other_;
    std::vector<Index> widths_;
    std::vector<Arm> arms_;
};

} // namespace softmap
