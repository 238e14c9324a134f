// A search over labellings: large neighbourhoods, heated and cooled, and the best of every part.
#pragma once

#include "growth.hpp"
#include "neighbourhoods.hpp"

namespace softmap {

struct SearchOptions {
    Index max_entries = 1 << 12; // of one table
    Index max_total = 1 << 24;   // of all tables of a neighbourhood
    Index rounds = 3;            // neighbourhoods in a cycle, the last one without random costs
    double heat = 0.0; // random costs as a multiple of what changing a label costs; 0: only descend
    const double *guide = nullptr; // costs per label that half of the heated cycles follow at first
    double penalty = infinity;     // what a broken hard constraint costs
    const bool *open = nullptr;    // which variables may change; all if null
};

// Descends with wider and wider neighbourhoods, then runs cycles: random costs that fall to zero,
// after which those connected parts of the change that lower the cost are kept. How hot and how
// wide is learned from what has helped. When many cycles in a row have not helped, the search walks
// away: it goes on from the last cycle's labels, however bad. The best labels are kept apart, and
// take over every part in which the walk gets ahead of them.
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

    // Until the budget is spent or nothing is left to try.
    void run(Budget &budget) {
        if (growth_.empty())
            return;
        for (auto width = widths_.rbegin(); width != widths_.rend(); ++width)
            for (int k = 0; k < descents && !budget.spent(); ++k)
                if (round(*width, {}, budget))
                    take();
        if (options_.heat > 0.0)
            set_arms();
        while (!arms_.empty() && !budget.spent())
            cycle(budget);
    }

    Index cycles() const { return cycles_; }
    Index falls() const { return falls_; } // how often the cost fell

  private:
    struct Arm {
        Index max_entries;
        double heat, wins, work;
    };

    // Heats are quantiles of what it costs to change the label of one variable: costs that differ
    // by orders of magnitude get heats that do.
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

    // One neighbourhood solved in other_; false if time ran out.
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

    // Keep what is better in other_, or all of it to walk away; whether the best labels got better.
    // other_ equals current_ afterwards.
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

    // An arm, drawn in proportion to its wins per work so far.
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

    static constexpr Index narrow = 64; // entries of the smallest tables worth a width of their own
    // Quantiles and multiples of them. Dense models ask for the hottest.
    static constexpr struct {
        double share, factor;
    } heats[] = {{0.1, 1.0}, {0.5, 1.0}, {0.95, 1.0}, {0.95, 4.0}, {0.95, 16.0}};
    static constexpr int descents = 2; // rounds of each width before any heat

    const LabelGraph &graph_;
    Index *labels_;
    std::uint64_t *words_;
    const SearchOptions options_;
    Bags bags_;
    Growth growth_;
    BagSolver solver_;
    Merge merge_;
    Index cycles_ = 0, falls_ = 0, idle_ = 0;
    Index patience_ = 20; // cycles without success before the search walks away
    std::vector<Index> current_, other_, widths_;
    std::vector<Arm> arms_;
};

} // namespace softmap
