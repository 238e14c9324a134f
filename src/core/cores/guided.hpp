// The least cost of Boolean variables under constraints, by cores of what costs nothing.
//
// All literals that would cost something are assumed not to hold. If that contradicts the
// constraints, one of the assumptions in the core must be violated: the lower bound rises by the
// least cost among them, which each of them loses; what it costs that two or more of them are
// violated is a new literal, defined by a sum (OLL: Morgado, Dodaro and Marques-Silva, 2014).
// Large costs come first (stratification). Cores are made smaller, and counted as far as few
// conflicts allow.
#pragma once

#include "engine.hpp"

namespace softmap::cores {

class Guided {
  public:
    Engine engine;

    // A literal that costs `weight` > 0 if it holds.
    void add_cost(Lit lit, std::int64_t weight) {
        Cost &own = cost(lit);
        own.weight += weight, own.given += weight;
        engine.prefer(negated(lit));
    }

    // No solution costs less than the smaller of `lower` and `upper`.
    std::int64_t lower() const { return lower_; }
    std::int64_t upper() const { return upper_; }
    bool done() const { return done_; }
    Index cores() const { return cores_; }
    // The values found last that cost least; empty if there are none.
    const std::vector<char> &values() const { return values_; }

    // Only solutions that cost less are of interest from now on.
    void below(std::int64_t cost) {
        if (cost < upper_) {
            upper_ = cost;
            harden();
        }
    }

    // Continues until the optimum is known, the deadline has passed or after so many conflicts.
    void run(Index conflicts, const Deadline *deadline) {
        Meter meter(deadline);
        const Index end = engine.conflicts() + std::min(conflicts, Index(1) << 60);
        while (!done_ && !meter.late() && engine.conflicts() < end) {
            if (lower_ >= upper_ || engine.broken()) {
                close();
                break;
            }
            const Answer answer = engine.solve(assumed(), end - engine.conflicts(), meter);
            if (answer == Answer::unknown)
                break;
            if (answer == Answer::found)
                advance();
            else
                raise(engine.core(), meter);
        }
    }

  private:
    struct Cost {
        Lit lit = -1;
        std::int64_t weight = 0, given = 0;
        Id counts = -1, count = 0; // it holds if `count` or more literals of a core hold
        bool waits = false;        // until no core is left among the others
    };
    struct Counted {
        std::vector<Lit> lits, outputs; // output k: k + 2 or more of the literals hold
    };

    Cost &cost(Lit lit) {
        index_.resize(std::max(index_.size(), std::size_t(2 * engine.variables())), -1);
        Id &at = index_[std::size_t(lit)];
        if (at < 0) {
            at = Id(costs_.size());
            costs_.push_back({.lit = lit});
        }
        return costs_[std::size_t(at)];
    }

    // The literals of large cost, assumed not to hold, from the largest cost on.
    std::vector<Lit> assumed() {
        if (least_ < 0)
            for (const Cost &own : costs_)
                least_ = std::max(least_, own.weight);
        std::vector<const Cost *> chosen;
        for (const Cost &own : costs_)
            if (own.weight >= std::max<std::int64_t>(least_, 1) && !own.waits)
                chosen.push_back(&own);
        std::stable_sort(chosen.begin(), chosen.end(),
                         [](const Cost *a, const Cost *b) { return a->weight > b->weight; });
        std::vector<Lit> out;
        for (const Cost *own : chosen)
            out.push_back(negated(own->lit));
        return out;
    }

    // The assumptions can hold together: smaller costs are next.
    void advance() {
        keep();
        bool waited = false;
        for (Cost &own : costs_) {
            waited = waited || (own.waits && own.weight > 0);
            own.waits = false;
        }
        if (waited)
            return;
        std::int64_t next = 0;
        for (const Cost &own : costs_)
            if (own.weight < least_)
                next = std::max(next, own.weight);
        done_ = next == 0; // nothing but the lower bound is paid
        least_ = next;
        for (const Cost &own : costs_) // all from half of it on
            if (2 * own.weight > next)
                least_ = std::min(least_, own.weight);
    }

    void close() {
        done_ = true;
        lower_ = std::max(lower_, upper_);
    }

    // Keeps the values of the engine if they cost less than those before.
    void keep() {
        std::int64_t total = 0;
        for (const Cost &own : costs_)
            if (own.given > 0 && engine.found(own.lit))
                total += own.given;
        if (total >= upper_)
            return;
        upper_ = total;
        values_.resize(std::size_t(engine.variables()));
        for (std::size_t v = 0; v < values_.size(); ++v)
            values_[v] = engine.found(Lit(2 * v));
        harden();
    }

    // What costs as much as the gap cannot be part of a better solution.
    void harden() {
        for (Cost &own : costs_)
            if (own.weight > 0 && own.weight >= upper_ - lower_ && !engine.fixed(own.lit))
                engine.add_clause({negated(own.lit)});
    }

    // The literals of a core cannot all fail.
    void raise(std::vector<Lit> core, Meter &meter) {
        shrink(core, meter);
        ++cores_;
        if (core.empty() || engine.broken()) {
            close();
            return;
        }
        std::int64_t least = std::numeric_limits<std::int64_t>::max();
        std::vector<Lit> lits;
        for (const Lit lit : core) {
            lits.push_back(negated(lit));
            least = std::min(least, cost(negated(lit)).weight);
        }
        lower_ += least;
        engine.add_clause(lits);
        for (const Lit lit : lits) {
            Cost &own = cost(lit);
            own.weight -= least;
            if (own.counts >= 0)
                expect(own.counts, own.count + 1, least, own.lit);
        }
        if (lits.size() > 1) {
            counted_.push_back({lits, {}});
            exhaust(Id(counted_.size()) - 1, least, meter);
        }
        harden();
    }

    // It costs `weight` if `count` or more of the literals hold; `fewer` says that one less do.
    Lit expect(Id number, Id count, std::int64_t weight, Lit fewer) {
        Counted &core = counted_[std::size_t(number)];
        const Id size = Id(core.lits.size());
        if (count > size)
            return -1;
        if (Id(core.outputs.size()) < count - 1) {
            core.outputs.push_back(engine.fresh(false));
            std::vector<Lit> terms;
            for (const Lit lit : core.lits)
                terms.push_back(negated(lit));
            terms.push_back(core.outputs.back());
            std::vector<std::int64_t> weights(terms.size(), 1);
            weights.back() = size - count + 1;
            engine.add_sum(terms, weights, size - count + 1);
            if (fewer >= 0)
                engine.add_clause({negated(core.outputs.back()), fewer});
        }
        const Lit out = core.outputs[std::size_t(count) - 2];
        Cost &own = cost(out);
        own.weight += weight, own.counts = number, own.count = count, own.waits = true;
        return out;
    }

    // Counts how many literals of a core must hold, as far as few conflicts show.
    void exhaust(Id number, std::int64_t weight, Meter &meter) {
        Lit last = -1;
        for (Id count = 2;; ++count) {
            const Lit out = expect(number, count, weight, last);
            if (out < 0 || lower_ >= upper_)
                return;
            last = out;
            const Lit trial[] = {negated(out)};
            const Answer answer = engine.solve(trial, few, meter);
            if (answer == Answer::found)
                keep();
            if (answer != Answer::none)
                return;
            if (engine.broken())
                return;
            cost(out).weight -= weight;
            lower_ += weight;
            engine.add_clause({out});
        }
    }

    // Leaves out assumptions without which the core is still one, as far as few conflicts show.
    void shrink(std::vector<Lit> &core, Meter &meter) {
        for (int round = 0; round < 4 && core.size() > 1; ++round) {
            std::vector<Lit> trial(core.rbegin(), core.rend());
            if (engine.solve(trial, few, meter) != Answer::none || engine.broken() ||
                engine.core().size() >= core.size())
                break;
            core = engine.core();
        }
        // first those of least cost: the bound rises by the least that is left
        std::stable_sort(core.begin(), core.end(), [&](Lit a, Lit b) {
            return cost(negated(a)).weight < cost(negated(b)).weight;
        });
        Index left = few;
        for (std::size_t k = 0; k < core.size() && core.size() > 1 && left > 0;) {
            std::vector<Lit> trial = core;
            trial.erase(trial.begin() + std::ptrdiff_t(k));
            const Index before = engine.conflicts();
            const Answer answer = engine.solve(trial, std::min<Index>(left, 50), meter);
            left -= 1 + engine.conflicts() - before;
            if (engine.broken() || meter.late())
                return;
            if (answer == Answer::found)
                keep();
            if (answer == Answer::none) {
                const std::vector<Lit> &smaller = engine.core();
                std::erase_if(core, [&](Lit lit) {
                    return std::find(smaller.begin(), smaller.end(), lit) == smaller.end();
                });
            } else {
                ++k;
            }
        }
    }

    static constexpr Index few = 1000; // conflicts for one core

    std::vector<Cost> costs_;
    std::vector<Id> index_; // by literal
    std::vector<Counted> counted_;
    std::vector<char> values_;
    std::int64_t lower_ = 0, upper_ = std::numeric_limits<std::int64_t>::max() / 2, least_ = -1;
    Index cores_ = 0;
    bool done_ = false;
};

} // namespace softmap::cores
