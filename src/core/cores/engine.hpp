// A search over Boolean variables that learns a clause from each conflict.
//
// Clauses are watched by two literals, sums Σ weight · literal ≥ bound count what they may still
// reach. Literals can be assumed: if they contradict the constraints, some that do are named.
#pragma once

#include "base/deadline.hpp"
#include "base/watches.hpp"
#include "steps.hpp"

#include <memory>

namespace softmap::cores {

enum class Answer : int { none = 0, found = 1, unknown = 2 };

class Engine {
  public:
    std::unique_ptr<ProofSteps> steps; // of the proof, if it is kept

    // A new variable; returns the literal that it is true. `phase`: the value that is tried first.
    Lit fresh(bool phase) {
        const Lit lit = Lit(value_.size());
        value_.resize(value_.size() + 2, 0);
        watches_.resize(value_.size());
        member_.resize(member_.size() + 2);
        place_.push_back(0), level_.push_back(0), why_.push_back(decided);
        weight_.push_back(0);
        phase_.push_back(phase), seen_.push_back(0), marks_.push_back(0), kept_.push_back(0);
        activity_.push_back(0.0), heap_at_.push_back(-1);
        insert(Id(variable(lit)));
        return lit;
    }
    Index variables() const { return Index(phase_.size()); }
    Index conflicts() const { return conflicts_; }
    bool broken() const { return broken_; } // no values obey all constraints
    bool holds(Lit lit) const { return value_[std::size_t(lit)] > 0; }
    bool fails(Lit lit) const { return value_[std::size_t(lit)] < 0; }
    void prefer(Lit lit) { phase_[variable(lit)] = !(lit & 1); }
    // Whether a literal holds (1), fails (-1) or is open (0) whatever is assumed.
    int fixed(Lit lit) const {
        return value_[std::size_t(lit)] != 0 && level_[variable(lit)] == 0
                   ? value_[std::size_t(lit)]
                   : 0;
    }

    // At least one of the literals holds. `source`: the constraint that says so.
    void add_clause(std::vector<Lit> lits, Source source) {
        back_to(0);
        std::sort(lits.begin(), lits.end());
        lits.erase(std::unique(lits.begin(), lits.end()), lits.end());
        std::size_t kept = 0;
        for (std::size_t k = 0; k < lits.size(); ++k) {
            if (holds(lits[k]) || (k + 1 < lits.size() && lits[k + 1] == negated(lits[k])))
                return;
            if (!fails(lits[k]))
                lits[kept++] = lits[k];
        }
        lits.resize(kept);
        if (lits.size() > 1) {
            attach(clauses_.add(lits, 0, 0, source));
            return;
        }
        note_root(lits.empty() ? -1 : lits[0], source);
        if (lits.empty())
            broken_ = true;
        else
            derive(lits[0], decided);
    }

    // Σ weight · literal ≥ bound.
    void add_sum(std::span<const Lit> lits, std::span<const std::int64_t> weights,
                 std::int64_t bound, Source source) {
        back_to(0);
        Sum sum = normal_sum(lits, weights, bound);
        sum.source = source;
        if (sum.bound <= 0)
            return;
        if (sum.weights.empty() || sum.weights.back() >= sum.bound) {
            add_clause(std::move(sum.lits), source);
            return;
        }
        const Id number = Id(sums_.size());
        for (std::size_t k = 0; k < sum.lits.size(); ++k) {
            member_[std::size_t(negated(sum.lits[k]))].push_back({number, sum.weights[k]});
            if (fails(sum.lits[k]) && place_[variable(sum.lits[k])] < counted_)
                lose(sum, sum.lits[k], sum.weights[k]);
        }
        sums_.push_back(std::move(sum));
        if (sums_.back().slack < 0)
            break_by(by_sum(number));
        else
            imply(number);
    }

    // Looks for values under assumptions, up to a number of conflicts.
    Answer solve(std::span<const Lit> assumed, Index conflicts, Meter &meter) {
        back_to(0);
        core_.clear();
        const Index end = conflicts_ + std::min(conflicts, Index(1) << 60);
        while (!broken_) {
            const Index before = Index(trail_.size());
            const Why conflict = propagate();
            meter.tick(16 * (Index(trail_.size()) - before) + 64);
            if (conflict != decided) {
                learn(conflict);
                continue;
            }
            if (meter.late() || conflicts_ >= end)
                return Answer::unknown;
            if (restart_due()) {
                back_to(std::min(levels(), Id(assumed.size())));
                if (learned_ > limit_)
                    reduce();
                continue;
            }
            Lit next = -1;
            while (next < 0 && levels() < Id(assumed.size())) {
                const Lit lit = assumed[std::size_t(levels())];
                if (fails(lit)) {
                    name_core(lit);
                    return Answer::none;
                }
                if (holds(lit))
                    starts_.push_back(Id(trail_.size()));
                else
                    next = lit;
            }
            if (next < 0)
                next = choose();
            if (next < 0) {
                model_.assign(value_.begin(), value_.end());
                return Answer::found;
            }
            starts_.push_back(Id(trail_.size()));
            derive(next, decided);
        }
        return Answer::none;
    }

    // Calls f(other) for each literal that follows from a literal alone; nothing if it cannot hold.
    template <class Function> void follow(Lit lit, Function f) {
        if (!try_alone(lit))
            return;
        if (propagate() == decided)
            for (std::size_t k = std::size_t(starts_[0]) + 1; k < trail_.size(); ++k)
                f(trail_[k]);
        back_to(0);
    }

    // Adds hints by which other literals fail if a literal holds, as far as `follow` has found.
    void explain_apart(Lit lit, std::span<const Lit> others, std::vector<Id> &hints) {
        if (!try_alone(lit))
            return;
        hints_.clear();
        if (const Why conflict = propagate(); conflict != decided)
            gather(-1, conflict);
        else
            for (const Lit other : others)
                marks_[variable(other)] = other != lit && fails(other) && level(other) > 0;
        gather_marked();
        hints.insert(hints.end(), hints_.begin(), hints_.end());
        back_to(0);
    }

    // Assumptions that contradict the constraints together; after `none`. Empty: nothing assumed.
    const std::vector<Lit> &core() const { return core_; }
    // The clause that one of them fails.
    Source core_source() const { return core_source_; }
    // Whether a literal holds in the values found last.
    bool found(Lit lit) const { return model_[std::size_t(lit)] > 0; }

  private:
    struct Member {
        Id sum;
        std::int64_t weight;
    };

    Id levels() const { return Id(starts_.size()); }
    Id level(Lit lit) const { return level_[variable(lit)]; }

    void derive(Lit lit, Why why) {
        const std::size_t v = variable(lit);
        value_[std::size_t(lit)] = 1, value_[std::size_t(negated(lit))] = -1;
        place_[v] = Id(trail_.size()), level_[v] = levels(), why_[v] = why;
        trail_.push_back(lit);
        if (why != decided && starts_.empty())
            note_root(lit, source(why));
    }

    // Starts a level at which a literal holds; returns false if its value is known already.
    bool try_alone(Lit lit) {
        back_to(0);
        if (const Why conflict = broken_ ? decided : propagate(); conflict != decided)
            break_by(conflict);
        if (broken_ || value_[std::size_t(lit)] != 0)
            return false;
        starts_.push_back(Id(trail_.size()));
        derive(lit, decided);
        return true;
    }

    // --- steps of a proof
    // -------------------------------------------------------------------------

    Source source(Why why) const {
        return is_sum(why) ? sums_[std::size_t(sum_of(why))].source : clauses_.source(why);
    }
    void hint(Lit lit, Source source) {
        if (source < 0)
            hints_.push_back(lit); // they are reversed
        hints_.push_back(source);
    }
    // Notes that a literal holds whatever is assumed, or a conflict if it is negative.
    void note_root(Lit lit, Source source) {
        if (!steps)
            return;
        hints_.clear();
        hint(lit, source);
        std::reverse(hints_.begin(), hints_.end());
        steps->learned({&lit, std::size_t(lit >= 0)}, hints_);
    }
    void break_by(Why conflict) {
        note_root(-1, source(conflict));
        broken_ = true;
    }
    // Marks what `lit`, or a conflict if it is negative, follows from.
    void gather(Lit lit, Why why) {
        hint(lit, source(why));
        explain(lit, why, [&](Lit other) { marks_[variable(other)] = level(other) > 0; });
    }
    // Collects the reasons of all marked literals, and of the literals that they follow from, in
    // the order of the trail. Decisions and variables in `kept_` need none.
    void gather_marked() {
        for (std::size_t at = trail_.size(); at-- > std::size_t(starts_[0]);) {
            const std::size_t v = variable(trail_[at]);
            if (marks_[v] && why_[v] != decided && !kept_[v])
                gather(trail_[at], why_[v]);
            marks_[v] = 0;
        }
        std::reverse(hints_.begin(), hints_.end());
    }

    void attach(Id clause) {
        watches_.add(clause, clauses_.literals(clause));
        learned_ += clauses_.levels(clause) > 0;
    }

    void back_to(Id level) {
        if (levels() <= level)
            return;
        const std::size_t first = std::size_t(starts_[std::size_t(level)]);
        while (trail_.size() > first) {
            const Lit lit = trail_.back();
            trail_.pop_back();
            if (Id(trail_.size()) < counted_)
                for (const Member &own : member_[std::size_t(lit)]) {
                    sums_[std::size_t(own.sum)].slack += own.weight;
                    sums_[std::size_t(own.sum)].gone.pop_back();
                }
            const std::size_t v = variable(lit);
            value_[std::size_t(lit)] = value_[std::size_t(negated(lit))] = 0;
            phase_[v] = !(lit & 1);
            if (heap_at_[v] < 0)
                insert(Id(v));
        }
        starts_.resize(std::size_t(level));
        head_ = std::min(head_, Id(first));
        counted_ = std::min(counted_, Id(first));
    }

    // --- propagation
    // ------------------------------------------------------------------------------

    // Derives what follows; returns the clause or sum that fails, or `decided`.
    Why propagate() {
        for (;;) {
            while (head_ < Id(trail_.size()))
                if (const Why why = visit(trail_[std::size_t(head_++)]); why != decided)
                    return why;
            if (counted_ == Id(trail_.size()))
                return decided;
            if (const Why why = count(trail_[std::size_t(counted_++)]); why != decided)
                return why;
        }
    }

    // Visits the clauses with a literal that `lit`, which holds, negates.
    Why visit(Lit lit) {
        Why failed = decided;
        const auto literals = [&](Id clause) { return clauses_.literals(clause); };
        watches_.visit(lit, *this, literals, [&](Lit last, Id clause) {
            if (fails(last))
                failed = clause;
            else
                derive(last, clause);
            return failed == decided;
        });
        return failed;
    }

    // Counts a literal that holds in the sums that have its negation.
    Why count(Lit lit) {
        Why failed = decided;
        for (const Member &own : member_[std::size_t(lit)])
            if (!lose(sums_[std::size_t(own.sum)], negated(lit), own.weight))
                failed = by_sum(own.sum);
        if (failed == decided)
            for (const Member &own : member_[std::size_t(lit)])
                imply(own.sum);
        return failed;
    }

    // A literal of a sum fails; returns whether the sum can still reach its bound.
    static bool lose(Sum &sum, Lit lit, std::int64_t weight) {
        sum.gone.push_back({lit, weight});
        return (sum.slack -= weight) >= 0;
    }

    // Derives the open literals without which a sum cannot reach its bound.
    void imply(Id number) {
        const Sum &sum = sums_[std::size_t(number)];
        for (std::size_t k = 0; k < sum.lits.size() && sum.weights[k] > sum.slack; ++k)
            if (value_[std::size_t(sum.lits[k])] == 0) {
                weight_[variable(sum.lits[k])] = sum.weights[k];
                derive(sum.lits[k], by_sum(number));
            }
    }

    // Calls f(lit) for literals that fail and imply `lit`, or the conflict if it is negative.
    template <class Function> void explain(Lit lit, Why why, Function f) {
        if (!is_sum(why)) {
            for (const Lit other : clauses_.literals(why))
                if (other != lit)
                    f(other);
            return;
        }
        // The first of them without which the others cannot reach the bound.
        const Sum &sum = sums_[std::size_t(sum_of(why))];
        const Id before = lit < 0 ? Id(trail_.size()) : place_[variable(lit)];
        std::int64_t rest = sum.total - (lit < 0 ? 0 : weight_[variable(lit)]);
        for (const Sum::Term &own : sum.gone) {
            if (rest < sum.bound || place_[variable(own.lit)] >= before)
                return;
            rest -= own.weight;
            if (level(own.lit) > 0)
                f(own.lit);
        }
    }

    // --- learning
    // ---------------------------------------------------------------------------------

    // Learns the first unique implication point; without a level, the constraints contradict.
    void learn(Why conflict) {
        ++conflicts_;
        Id at_level = 0;
        explain(-1, conflict, [&](Lit lit) { at_level = std::max(at_level, level(lit)); });
        if (at_level == 0) {
            break_by(conflict);
            return;
        }
        back_to(at_level);
        clause_.assign(1, 0);
        Index ahead = 0;
        Lit lit = -1;
        Why why = conflict;
        std::size_t at = trail_.size();
        for (;;) {
            if (!is_sum(why))
                clauses_.used(why) = Id(conflicts_);
            explain(lit, why, [&](Lit other) {
                const std::size_t v = variable(other);
                if (seen_[v] || level_[v] == 0)
                    return;
                seen_[v] = 1, marked_.push_back(Id(v));
                bump(v);
                if (level_[v] == at_level)
                    ++ahead;
                else
                    clause_.push_back(other);
            });
            while (!seen_[variable(trail_[--at])] || level(trail_[at]) < at_level) {
            }
            lit = trail_[at];
            if (--ahead == 0)
                break;
            why = why_[variable(lit)];
        }
        clause_[0] = negated(lit);
        shorten();
        for (const Id v : marked_)
            seen_[std::size_t(v)] = 0;
        marked_.clear();
        keep_clause(steps ? note_learned(conflict) : 0);
    }

    // Notes the learned clause with its hints; returns its number.
    Source note_learned(Why conflict) {
        for (const Lit lit : clause_)
            kept_[variable(lit)] = 1;
        hints_.clear();
        gather(-1, conflict);
        gather_marked();
        for (const Lit lit : clause_)
            kept_[variable(lit)] = 0;
        return steps->learned(clause_, hints_);
    }

    // Leaves out literals that the others imply.
    void shorten() {
        std::size_t kept = 1;
        for (std::size_t k = 1; k < clause_.size(); ++k)
            if (why_[variable(clause_[k])] == decided || !implied(clause_[k], 0))
                clause_[kept++] = clause_[k];
        clause_.resize(kept);
    }

    // Whether the failure of a literal follows from literals of the clause. Marks: 1 in the clause,
    // or follows from it; 2 does not.
    bool implied(Lit lit, int depth) {
        bool out = true;
        explain(negated(lit), why_[variable(lit)], [&](Lit other) {
            const std::size_t v = variable(other);
            if (!out || level_[v] == 0 || seen_[v] == 1)
                return;
            if (seen_[v] == 2 || why_[v] == decided || depth > 30 || !implied(other, depth + 1)) {
                if (!seen_[v])
                    seen_[v] = 2, marked_.push_back(Id(v));
                out = false;
                return;
            }
            seen_[v] = 1, marked_.push_back(Id(v));
        });
        return out;
    }

    void keep_clause(Source source) {
        Id back = 0;
        for (std::size_t k = 1; k < clause_.size(); ++k)
            if (level(clause_[k]) > back) {
                back = level(clause_[k]);
                std::swap(clause_[1], clause_[k]);
            }
        const Id count = std::max(1, count_levels());
        fast_ += (double(count) - fast_) / double(std::min<Index>(conflicts_, 32));
        slow_ += (double(count) - slow_) / double(std::min<Index>(conflicts_, 4096));
        ++since_;
        back_to(back);
        if (clause_.size() == 1) {
            derive(clause_[0], decided);
        } else {
            const Id added = clauses_.add(clause_, count, Id(conflicts_), source);
            attach(added);
            derive(clause_[0], added);
        }
        bump_ /= 0.95;
    }

    Id count_levels() {
        Id out = 0;
        stamp_.resize(std::size_t(levels()) + 1, 0);
        for (const Lit lit : clause_) {
            Index &mark = stamp_[std::size_t(level(lit))];
            out += mark != conflicts_;
            mark = conflicts_;
        }
        return out;
    }

    // Names the assumptions that make `lit`, an assumption, fail.
    void name_core(Lit lit) {
        core_.assign(1, lit);
        hints_.clear();
        if (level(lit) == 0) {
            note_core();
            return;
        }
        seen_[variable(lit)] = 1;
        for (std::size_t at = trail_.size(); at-- > std::size_t(starts_[0]);) {
            const Lit own = trail_[at];
            const std::size_t v = variable(own);
            if (!seen_[v])
                continue;
            seen_[v] = 0;
            if (why_[v] == decided)
                core_.push_back(own);
            else
                explain(own, why_[v],
                        [&](Lit other) { seen_[variable(other)] = level(other) > 0; });
        }
        if (const Why why = why_[variable(lit)]; steps && why != decided) {
            gather(negated(lit), why);
            gather_marked();
        }
        note_core();
    }

    // Notes that one of the assumptions in the core fails.
    void note_core() {
        if (!steps)
            return;
        std::vector<Lit> lits;
        for (const Lit lit : core_)
            lits.push_back(negated(lit));
        core_source_ = steps->learned(lits, hints_);
    }

    bool restart_due() {
        if (since_ < 50 || fast_ < 1.15 * slow_)
            return false;
        since_ = 0;
        return true;
    }

    // Forgets the less useful half of the learned clauses, and what the root has decided.
    void reduce() {
        back_to(0);
        if (const Why conflict = propagate(); conflict != decided) {
            break_by(conflict);
            return;
        }
        std::vector<Id> order;
        clauses_.each([&](Id c) {
            if (clauses_.levels(c) > 2)
                order.push_back(c);
        });
        std::sort(order.begin(), order.end(), [&](Id a, Id b) {
            const Id p = std::min(clauses_.levels(a), 30), q = std::min(clauses_.levels(b), 30);
            return p != q ? p < q : clauses_.used(a) > clauses_.used(b);
        });
        std::vector<Id> dropped(order.begin() + std::ptrdiff_t(order.size() / 2), order.end());
        std::sort(dropped.begin(), dropped.end());
        ClauseStore old;
        std::swap(old, clauses_);
        watches_.erase([](Id) { return true; });
        learned_ = 0;
        auto next = dropped.begin();
        old.each([&](Id c) {
            if (next != dropped.end() && *next == c) {
                ++next;
                return;
            }
            clause_.clear();
            for (const Lit lit : old.literals(c)) {
                if (holds(lit))
                    return;
                if (!fails(lit))
                    clause_.push_back(lit);
            }
            attach(clauses_.add(clause_, old.levels(c), old.used(c), old.source(c)));
        });
        for (const Lit lit : trail_)
            why_[variable(lit)] = decided;
        limit_ += 300;
    }

    // --- the open variable of the most recent conflicts
    // ---------------------------------------------

    Lit choose() {
        while (!heap_.empty()) {
            const Id v = heap_[0];
            remove_first();
            if (value_[std::size_t(2 * v)] == 0)
                return 2 * v + !phase_[std::size_t(v)];
        }
        return -1;
    }
    void bump(std::size_t v) {
        if ((activity_[v] += bump_) > 1e100) {
            for (double &activity : activity_)
                activity *= 1e-100;
            bump_ *= 1e-100;
        }
        if (heap_at_[v] >= 0)
            rise(heap_at_[v]);
    }
    bool before(Id a, Id b) const {
        const double u = activity_[std::size_t(a)], v = activity_[std::size_t(b)];
        return u != v ? u > v : a < b;
    }
    void put(Id at, Id v) { heap_[std::size_t(at)] = v, heap_at_[std::size_t(v)] = at; }
    void insert(Id v) {
        heap_.push_back(v);
        heap_at_[std::size_t(v)] = Id(heap_.size()) - 1;
        rise(Id(heap_.size()) - 1);
    }
    void rise(Id at) {
        const Id v = heap_[std::size_t(at)];
        for (; at > 0 && before(v, heap_[std::size_t((at - 1) / 2)]); at = (at - 1) / 2)
            put(at, heap_[std::size_t((at - 1) / 2)]);
        put(at, v);
    }
    void remove_first() {
        heap_at_[std::size_t(heap_[0])] = -1;
        const Id v = heap_.back(), size = Id(heap_.size()) - 1;
        heap_.pop_back();
        if (size == 0)
            return;
        Id at = 0;
        for (Id child = 1; child < size; child = 2 * at + 1) {
            if (child + 1 < size &&
                before(heap_[std::size_t(child) + 1], heap_[std::size_t(child)]))
                ++child;
            if (!before(heap_[std::size_t(child)], v))
                break;
            put(at, heap_[std::size_t(child)]);
            at = child;
        }
        put(at, v);
    }

    std::vector<std::int8_t> value_, model_; // per literal: 1 holds, -1 fails, 0 open
    Watches watches_;
    std::vector<std::vector<Member>> member_; // per literal that holds: sums with its negation
    std::vector<Id> place_, level_;           // per variable: on the trail
    std::vector<Why> why_;
    std::vector<std::int64_t> weight_; // of the literal in the sum that implied it
    std::vector<char> phase_, seen_, marks_, kept_;
    std::vector<double> activity_;
    std::vector<Id> heap_, heap_at_;
    ClauseStore clauses_;
    std::vector<Sum> sums_;
    std::vector<Lit> trail_, clause_, core_;
    std::vector<Id> hints_;
    Source core_source_ = 0;
    std::vector<Id> starts_, marked_;
    std::vector<Index> stamp_;
    Id head_ = 0, counted_ = 0;
    Index conflicts_ = 0, learned_ = 0, limit_ = 2000, since_ = 0;
    double bump_ = 1.0, fast_ = 0.0, slow_ = 0.0;
    bool broken_ = false;
};

} // namespace softmap::cores
