// Clauses by two watched literals: which of them to visit once a literal holds.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace softmap {

// Literals are integers; lit ^ 1 is the negation of lit. A clause is the number that its owner has
// for it; its first two literals are watched.
class Watches {
  public:
    using Lit = std::int32_t;
    using Clause = std::int32_t;

    explicit Watches(std::size_t literals = 0) : list_(literals) {}
    void resize(std::size_t literals) { list_.resize(literals); }

    void add(Clause clause, std::span<const Lit> lits) {
        of(lits[0]).push_back({clause, lits[1]});
        of(lits[1]).push_back({clause, lits[0]});
    }

    // Visits the clauses that watch the negation of `lit`, which now holds. Calls f(last, clause)
    // for each clause whose literals all fail but `last`, which may fail, too; stops and returns
    // false if f does. `state` knows which literals hold and fail; literals(clause) are those of a
    // clause, whose order changes.
    template <class State, class Literals, class Function>
    bool visit(Lit lit, const State &state, Literals literals, Function f) {
        std::vector<Watch> &list = list_[std::size_t(lit)];
        std::size_t kept = 0, k = 0;
        bool sound = true;
        for (; k < list.size() && sound; ++k) {
            const Watch own = list[k];
            if (state.holds(own.other)) {
                list[kept++] = own;
                continue;
            }
            const std::span<Lit> lits = literals(own.clause);
            if (lits[0] == (lit ^ 1))
                std::swap(lits[0], lits[1]);
            if (!state.holds(lits[0]) && replaced(own.clause, lits, state))
                continue;
            list[kept++] = {own.clause, lits[0]};
            sound = state.holds(lits[0]) || f(lits[0], own.clause);
        }
        for (; k < list.size(); ++k)
            list[kept++] = list[k];
        list.resize(kept);
        return sound;
    }

    // Forgets the clauses with gone(clause).
    template <class Gone> void erase(Gone gone) {
        for (std::vector<Watch> &list : list_)
            std::erase_if(list, [&](const Watch &own) { return gone(own.clause); });
    }

  private:
    struct Watch {
        Clause clause;
        Lit other; // if it holds, the clause need not be read
    };

    std::vector<Watch> &of(Lit watched) { return list_[std::size_t(watched ^ 1)]; }

    // Watches a literal that does not fail in place of the second one; false if there is none.
    template <class State> bool replaced(Clause clause, std::span<Lit> lits, const State &state) {
        for (std::size_t k = 2; k < lits.size(); ++k)
            if (!state.fails(lits[k])) {
                std::swap(lits[1], lits[k]);
                of(lits[1]).push_back({clause, lits[0]});
                return true;
            }
        return false;
    }

    std::vector<std::vector<Watch>> list_; // by literal that holds
};

} // namespace softmap
