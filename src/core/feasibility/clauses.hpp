// Learned clauses: at least one literal of each holds.
#pragma once

#include "base/watches.hpp"
#include "state.hpp"

#include <algorithm>

namespace softmap::feasibility {

class Clauses {
  public:
    explicit Clauses(Index places) : watches_(std::size_t(2 * places)) {}

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
        watches_.add(at, lits);
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

    // Visits the clauses with a literal that `lit`, which now holds, negates; see `Watches::visit`.
    template <class Function> bool visit(Lit lit, const State &state, Function f) {
        const auto literals = [&](Id clause) -> std::span<Lit> {
            return all_[std::size_t(clause)].lits;
        };
        return watches_.visit(lit, state, literals, f);
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
        watches_.erase([&](Id clause) { return all_[std::size_t(clause)].lits.empty(); });
        free_.insert(free_.end(), order.begin(), order.end());
    }

  private:
    struct Clause {
        std::vector<Lit> lits;
        Id levels, record;
        double activity;
    };

    bool is_reason(Id k, const State &state) const {
        const Lit first = all_[std::size_t(k)].lits[0];
        const Reason reason = state.reason(first);
        return state.holds(first) && reason.why == Why::clause && reason.of == k;
    }

    std::vector<Clause> all_;
    std::vector<Id> free_;
    Watches watches_;
    double bump_ = 1.0;
};

} // namespace softmap::feasibility
