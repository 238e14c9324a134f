// Learned clauses: at least one literal of each holds. Two literals of each are watched.
#pragma once

#include "state.hpp"

#include <algorithm>

namespace softmap::feasibility {

class Clauses {
  public:
    explicit Clauses(Index places) : watch_(std::size_t(2 * places)) {}

    std::span<const Lit> literals(Id clause) const { return all_[std::size_t(clause)].lits; }
    Id record(Id clause) const { return all_[std::size_t(clause)].record; }
    std::size_t count() const { return all_.size() - free_.size(); }

    // Adds a clause of two or more literals; the first two are watched. `levels` is the number of
    // different levels among its literals, `record` the number under which it was learned.
    Id add(std::vector<Lit> lits, Id levels, Id record) {
        Id at = Id(all_.size());
        if (free_.empty()) {
            all_.emplace_back();
        } else {
            at = free_.back();
            free_.pop_back();
        }
        watch_[lits[0]].push_back({at, lits[1]});
        watch_[lits[1]].push_back({at, lits[0]});
        all_[std::size_t(at)] = {std::move(lits), levels, record, bump_};
        return at;
    }

    void bump(Id clause) {
        Clause &own = all_[std::size_t(clause)];
        if ((own.activity += bump_) > 1e20) {
            for (Clause &other : all_)
                other.activity *= 1e-20;
            bump_ *= 1e-20;
        }
    }
    void decay() { bump_ /= 0.999; }

    // Visits the clauses that watch the negation of `lit`, which now holds. Calls f(implied,
    // clause) for each clause with one literal left; stops and returns false if f does.
    template <class Function> bool visit(Lit lit, const State &state, Function f) {
        std::vector<Watch> &list = watch_[negated(lit)];
        std::size_t kept = 0, k = 0;
        bool sound = true;
        for (; k < list.size() && sound; ++k) {
            const Watch watch = list[k];
            if (state.holds(watch.other)) {
                list[kept++] = watch;
                continue;
            }
            std::vector<Lit> &lits = all_[std::size_t(watch.clause)].lits;
            if (lits.empty())
                continue; // removed
            if (lits[0] == negated(lit))
                std::swap(lits[0], lits[1]);
            if (lits[1] != negated(lit))
                continue; // the clause has been replaced by another one
            if (state.holds(lits[0])) {
                list[kept++] = {watch.clause, lits[0]};
                continue;
            }
            if (replaced(watch.clause, lits, state))
                continue;
            list[kept++] = {watch.clause, lits[0]};
            sound = f(lits[0], watch.clause);
        }
        for (; k < list.size(); ++k)
            list[kept++] = list[k];
        list.resize(kept);
        return sound;
    }

    // Removes the less useful half of the clauses that are not the reason of a literal.
    void reduce(const State &state) {
        std::vector<Id> order;
        for (std::size_t k = 0; k < all_.size(); ++k) {
            const Clause &own = all_[k];
            if (own.lits.size() > 2 && own.levels > 2 && !is_reason(Id(k), state))
                order.push_back(Id(k));
        }
        std::sort(order.begin(), order.end(), [&](Id a, Id b) {
            const Clause &u = all_[std::size_t(a)], &v = all_[std::size_t(b)];
            return u.activity != v.activity ? u.activity < v.activity : a < b;
        });
        order.resize(order.size() / 2);
        for (const Id k : order)
            all_[std::size_t(k)].lits.clear();
        for (std::vector<Watch> &list : watch_)
            std::erase_if(list,
                          [&](const Watch &w) { return all_[std::size_t(w.clause)].lits.empty(); });
        free_.insert(free_.end(), order.begin(), order.end());
    }

  private:
    struct Clause {
        std::vector<Lit> lits;
        Id levels, record;
        double activity;
    };
    struct Watch {
        Id clause;
        Lit other; // if it holds, the clause need not be read
    };

    bool is_reason(Id k, const State &state) const {
        const Lit first = all_[std::size_t(k)].lits[0];
        const Reason reason = state.reason(first);
        return state.holds(first) && reason.why == Why::clause && reason.of == k;
    }

    bool replaced(Id clause, std::vector<Lit> &lits, const State &state) {
        for (std::size_t k = 2; k < lits.size(); ++k)
            if (!state.fails(lits[k])) {
                std::swap(lits[1], lits[k]);
                watch_[lits[1]].push_back({clause, lits[0]});
                return true;
            }
        return false;
    }

    std::vector<Clause> all_;
    std::vector<Id> free_;
    std::vector<std::vector<Watch>> watch_;
    double bump_ = 1.0;
};

} // namespace softmap::feasibility
