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
            if (fresh_)
                group(meter);
            const Index left = end - engine.conflicts();
            const Answer answer = engine.solve(assumed(), std::min(left, patience_), meter);
            if (answer == Answer::found)
                advance();
            else if (answer == Answer::none)
                raise(engine.core(), meter);
            else if (!meter.late() && left > patience_ && !descend()) {
                least_ = -1; // from the largest costs on, with more patience
                patience_ *= 2;
            }
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

    bool considered(const Cost &own) const {
        return own.weight >= std::max<std::int64_t>(least_, 1) && !own.waits;
    }

    // Costs of which at most one is not paid: all but one of them are, and none is spared only if
    // a new literal holds. Found among what follows from each of them alone.
    void group(Meter &meter) {
        fresh_ = false;
        std::vector<Lit> free; // literals that spare a cost
        for (const Lit lit : assumed())
            free.push_back(lit);
        if (free.size() > most_grouped)
            return;
        std::vector<std::vector<Lit>> rivals(free.size());
        std::vector<Id> number(std::size_t(2 * engine.variables()), -1);
        for (std::size_t k = 0; k < free.size(); ++k)
            number[std::size_t(free[k])] = Id(k);
        for (std::size_t k = 0; k < free.size(); ++k) {
            Index steps = 0;
            engine.follow(free[k], [&](Lit other) {
                ++steps;
                if (const Id r = number[std::size_t(negated(other))]; r >= 0)
                    rivals[k].push_back(r);
            });
            if (meter.tick(16 * (steps + 4)))
                return;
            std::sort(rivals[k].begin(), rivals[k].end());
        }
        std::vector<char> used(free.size(), 0);
        for (std::size_t k = 0; k < free.size(); ++k) {
            if (used[k])
                continue;
            std::vector<Id> clique{Id(k)};
            for (const Id r : rivals[k]) {
                const auto apart = [&](Id c) {
                    return c == Id(k) ||
                           std::binary_search(rivals[std::size_t(r)].begin(),
                                              rivals[std::size_t(r)].end(), c) ||
                           std::binary_search(rivals[std::size_t(c)].begin(),
                                              rivals[std::size_t(c)].end(), r);
                };
                if (!used[std::size_t(r)] && r != Id(k) &&
                    std::all_of(clique.begin(), clique.end(), apart))
                    clique.push_back(r);
            }
            if (clique.size() < 2)
                continue;
            std::vector<Lit> spared;
            for (const Id c : clique) {
                used[std::size_t(c)] = 1;
                spared.push_back(free[std::size_t(c)]);
            }
            spare_one(std::move(spared));
        }
        harden();
    }

    // At most one of the literals holds, and each spares a cost.
    void spare_one(std::vector<Lit> spared) {
        std::int64_t least = std::numeric_limits<std::int64_t>::max();
        for (const Lit lit : spared)
            least = std::min(least, cost(negated(lit)).weight);
        const Source source = engine.steps ? note_group(spared, least) : 0;
        if (engine.broken())
            return;
        const Lit none = engine.fresh(false); // literals are numbered in the order of the steps
        for (const Lit lit : spared) {
            Cost &own = cost(negated(lit));
            own.weight -= least;
            if (own.counts >= 0)
                expect(own.counts, own.count + 1, least, own.lit);
        }
        lower_ += least * std::int64_t(spared.size() - 1);
        spared.push_back(none);
        engine.add_clause(std::move(spared), source);
        cost(none).weight += least;
    }

    // Notes why at most one of the literals holds.
    Source note_group(const std::vector<Lit> &spared, std::int64_t weight) {
        std::vector<Id> hints;
        for (const Lit lit : spared) {
            engine.explain_apart(lit, spared, hints);
            hints.push_back(ProofSteps::apart);
        }
        return engine.broken() ? 0 : engine.steps->group(weight, spared, hints);
    }

    // The literals of large cost, assumed not to hold, from the largest cost on.
    std::vector<Lit> assumed() {
        if (least_ < 0)
            for (const Cost &own : costs_)
                least_ = std::max(least_, own.weight);
        std::vector<const Cost *> chosen;
        for (const Cost &own : costs_)
            if (considered(own))
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
        if (!waited)
            done_ = !descend(); // then nothing but the lower bound is paid
    }

    // Takes smaller costs, too: from half of the next one on. Returns false if there are none.
    bool descend() {
        std::int64_t next = 0;
        for (const Cost &own : costs_)
            if (own.weight < least_)
                next = std::max(next, own.weight);
        if (next == 0)
            return false;
        least_ = next;
        fresh_ = true;
        for (const Cost &own : costs_)
            if (2 * own.weight > next)
                least_ = std::min(least_, own.weight);
        return true;
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
                forbid(own.lit);
    }

    void forbid(Lit lit) {
        const Lit lits[] = {negated(lit)};
        engine.add_clause({lits[0]}, note(Given::CUT, {upper_}, lits));
    }
    Source note(Given what, std::initializer_list<std::int64_t> numbers,
                std::span<const Lit> lits = {}) {
        return engine.steps ? engine.steps->given(what, numbers, lits) : 0;
    }

    // The literals of a core cannot all fail.
    void raise(std::vector<Lit> core, Meter &meter) {
        Source source = engine.core_source();
        shrink(core, source, meter);
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
        if (engine.steps)
            engine.steps->core(least, source);
        engine.add_clause(lits, source);
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
            const Source source = -1 - note(Given::COUNT, {number, count});
            engine.add_sum(terms, weights, size - count + 1, source);
            if (fewer >= 0)
                engine.add_clause({negated(core.outputs.back()), fewer},
                                  note(Given::ORDER, {number, count}));
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
            if (engine.steps)
                engine.steps->core(weight, engine.core_source());
            engine.add_clause({out}, engine.core_source());
        }
    }

    // Leaves out assumptions without which the core is still one, as far as few conflicts show.
    void shrink(std::vector<Lit> &core, Source &source, Meter &meter) {
        while (core.size() > 1) {
            std::vector<Lit> trial(core.rbegin(), core.rend());
            if (engine.solve(trial, few, meter) != Answer::none || engine.broken() ||
                engine.core().size() >= core.size())
                break;
            core = engine.core(), source = engine.core_source();
        }
        // first those of least cost: the bound rises by the least that is left
        std::stable_sort(core.begin(), core.end(), [&](Lit a, Lit b) {
            return cost(negated(a)).weight < cost(negated(b)).weight;
        });
        Index left = few; // conflicts, or 64 assumptions
        for (std::size_t k = 0; k < core.size() && core.size() > 1 && left > 0;) {
            std::vector<Lit> trial = core;
            trial.erase(trial.begin() + std::ptrdiff_t(k));
            const Index before = engine.conflicts();
            const Answer answer = engine.solve(trial, std::min<Index>(left, 50), meter);
            left -= 1 + Index(trial.size() / 64) + engine.conflicts() - before;
            if (engine.broken() || meter.late())
                return;
            if (answer == Answer::found)
                keep();
            if (answer == Answer::none) {
                source = engine.core_source();
                const std::vector<Lit> &smaller = engine.core();
                std::erase_if(core, [&](Lit lit) {
                    return std::find(smaller.begin(), smaller.end(), lit) == smaller.end();
                });
            } else {
                ++k;
            }
        }
    }

    static constexpr Index few = 1000;                  // conflicts for one core
    static constexpr std::size_t most_grouped = 20'000; // costs compared in pairs

    std::vector<Cost> costs_;
    std::vector<Id> index_; // by literal
    std::vector<Counted> counted_;
    std::vector<char> values_;
    std::int64_t lower_ = 0, upper_ = std::numeric_limits<std::int64_t>::max() / 2, least_ = -1;
    Index cores_ = 0, patience_ = few;
    bool done_ = false, fresh_ = true;
};

} // namespace softmap::cores
