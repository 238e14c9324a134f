// Tables and sums: which labels are still part of an allowed joint state, and why others are not.
#pragma once

#include "state.hpp"

#include <algorithm>

namespace softmap::feasibility {

// Whether a label is left, now or earlier: only literals among the first `before` count.
struct Moment {
    const State &state;
    Id before = std::numeric_limits<Id>::max();
    const std::vector<char> *loose = nullptr; // by place in the scope: it has all its labels

    bool left(Index i, Index x, std::size_t k) const {
        if (loose && (*loose)[k])
            return true;
        return state.was_left(state.net().offset[i] + x, before);
    }
};

// Joint states that are tried per visit of a table, and per variable of an explanation.
inline constexpr Index most_states = 1 << 14;

// Looks for an allowed joint state of a table in which scope variable `fixed` has label x.
//
// Returns its number, -1 if there is none, or -2 if `steps` joint states were not enough.
class TableSeek {
  public:
    Index operator()(const TableConstraint &table, std::size_t fixed, Index x, const Moment &moment,
                     Index steps) {
        table_ = &table, moment_ = &moment, fixed_ = fixed, label_ = x, steps_ = steps;
        return deeper(0, 0);
    }

  private:
    Index deeper(std::size_t k, Index state) {
        if (k == table_->scope.size()) {
            --steps_;
            return table_->allowed[std::size_t(state)] ? state : -1;
        }
        if (k == fixed_)
            return deeper(k + 1, state + label_ * table_->stride[k]);
        for (Index y = 0; y < table_->size[k]; ++y) {
            if (!moment_->left(table_->scope[k], y, k))
                continue;
            const Index found = deeper(k + 1, state + y * table_->stride[k]);
            if (found != -1)
                return found;
            if (steps_ < 0)
                return -2;
        }
        return -1;
    }

    const TableConstraint *table_ = nullptr;
    const Moment *moment_ = nullptr;
    std::size_t fixed_ = 0;
    Index label_ = 0, steps_ = 0;
};

// Adds the literals that say which labels of variable i were gone before a moment, as one literal
// if its label was known.
inline void add_gone(const State &state, Index i, Id before, std::vector<Lit> &out) {
    const Constraints &net = state.net();
    if (const Index place = state.was_chosen(i, before); place >= 0) {
        out.push_back(taken(place));
        return;
    }
    for (Index place = net.offset[i]; place < net.offset[i + 1]; ++place)
        if (!state.was_left(place, before))
            out.push_back(not_taken(place));
}

// The literals that leave a label of a table without support: of as few variables as a greedy
// search finds.
inline void explain_table(const State &state, const TableConstraint &table, Index place, Id before,
                          std::vector<Lit> &out) {
    const Constraints &net = state.net();
    const Index own = net.owner[place];
    const std::size_t fixed =
        std::size_t(std::find(table.scope.begin(), table.scope.end(), own) - table.scope.begin());
    std::vector<char> loose(table.scope.size(), 0);
    const Moment moment{state, before, &loose};
    TableSeek seek;
    for (std::size_t k = 0; k < table.scope.size(); ++k) {
        if (k == fixed)
            continue;
        loose[k] = 1;
        if (seek(table, fixed, place - net.offset[own], moment, most_states) != -1) {
            loose[k] = 0;
            add_gone(state, table.scope[k], before, out);
        }
    }
}

// The least and the largest weight of a scope variable at a moment.
inline std::pair<std::int64_t, std::int64_t> reach(const State &state, const SumConstraint &sum,
                                                   std::size_t k, Id before) {
    const Index begin = state.net().offset[sum.scope[k]];
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = -least;
    for (std::size_t x = 0; x < sum.weight[k].size(); ++x)
        if (state.was_left(begin + Index(x), before)) {
            least = std::min(least, sum.weight[k][x]);
            most = std::max(most, sum.weight[k][x]);
        }
    return {least, most};
}

// The literals that leave a label without an allowed sum: those that limit the sum of the others
// from below, from above, or both, whichever is needed.
inline void explain_sum(const State &state, const SumConstraint &sum, Index place, Id before,
                        std::vector<Lit> &out) {
    const Constraints &net = state.net();
    const Index own = net.owner[place];
    std::vector<std::pair<std::int64_t, std::int64_t>> reached;
    std::int64_t least = 0, most = 0;
    for (std::size_t k = 0; k < sum.scope.size(); ++k) {
        reached.push_back(reach(state, sum, k, before));
        if (sum.scope[k] == own) {
            const std::int64_t w = sum.weight[k][std::size_t(place - net.offset[own])];
            least += w, most += w;
        } else {
            least += reached[k].first, most += reached[k].second;
        }
    }
    const bool above = least > sum.high, below = !above && most < sum.low;
    for (std::size_t k = 0; k < sum.scope.size(); ++k) {
        const Index i = sum.scope[k];
        if (i == own)
            continue;
        if (const Index known = state.was_chosen(i, before); known >= 0) {
            out.push_back(taken(known));
            continue;
        }
        for (std::size_t x = 0; x < sum.weight[k].size(); ++x) {
            const std::int64_t w = sum.weight[k][x];
            const bool matters =
                (!below && w < reached[k].first) || (!above && w > reached[k].second);
            if (matters && !state.was_left(net.offset[i] + Index(x), before))
                out.push_back(not_taken(net.offset[i] + Index(x)));
        }
    }
}

} // namespace softmap::feasibility
