// Lower bounds of pairwise costs over permutations, by multipliers of assignment problems.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/random.hpp"
#include "permutations/linear.hpp"

namespace softmap::permutations {

// N variables with different labels among L >= N. Costs: unary[i, p], and pair[i, p, j, q] =
// pair[j, q, i, p] of two variables i, j that have the labels p, q; all pair costs are at least 0,
// and those of i = j or p = q are not used. Copies share the arrays.
struct Costs {
    Index variables = 0, labels = 0;
    std::shared_ptr<Cost[]> unary, pair;

    Costs() = default;
    Costs(Index variables, Index labels)
        : variables(variables), labels(labels), unary(new Cost[std::size_t(size())]),
          pair(new Cost[std::size_t(size() * size())]) {}

    Index size() const { return variables * labels; }
    Index at(Index i, Index p) const { return i * labels + p; }
    Cost *block(Index i, Index p) const { return pair.get() + at(i, p) * size(); }
    Cost &between(Index i, Index p, Index j, Index q) const { return block(i, p)[at(j, q)]; }
    // The same costs in arrays of their own.
    Costs copied() const {
        Costs out(variables, labels);
        std::copy_n(unary.get(), size(), out.unary.get());
        std::copy_n(pair.get(), size() * size(), out.pair.get());
        return out;
    }
};

// The dual of the first level of the reformulation-linearisation technique.
//
// Multipliers row[i, p, j] and column[i, p, q] (column <= 0 if N < L) move costs of pairs to
// labels: rest(ip, jq) = pair - row[i, p, j] - column[i, p, q] - row[j, q, i] - column[j, q, p]
// stays at least 0, and leader[i, p] = unary + Σ_j row[i, p, j] + Σ_q column[i, p, q]. The smallest
// sum of leaders over all assignments is a lower bound, in exact integers.
class AssignmentDual {
  public:
    Costs costs;
    std::vector<Cost> leader;
    Cost base = 0; // of variables that were fixed
    Cost bound = 0;

    AssignmentDual() = default;
    explicit AssignmentDual(Costs given) : costs(std::move(given)) {
        const Index n = costs.variables, d = costs.labels;
        leader.assign(costs.unary.get(), costs.unary.get() + costs.size());
        forbidden_.assign(leader.size(), false);
        row_.assign(std::size_t(n * n * d), 0);
        column_.assign(std::size_t(d * n * d), 0);
        solve_leaders();
    }

    Cost row(Index i, Index p, Index j) const { return row_[row_at(i, p, j)]; }
    Cost column(Index i, Index p, Index q) const { return column_[column_at(i, p, q)]; }

    // The leader of a label minus its share of the bound: at least 0.
    Cost slack(Index i, Index p) const { return leader[costs.at(i, p)] - first_[i] - second_[p]; }
    // The labels of the variables in the assignment of smallest leaders.
    const std::vector<Index> &chosen() const { return chosen_; }

    // The smallest sum of leaders, and the multipliers that prove it.
    void solve_leaders() {
        bound = base + linear_.solve(leader.data(), costs.variables, costs.labels);
        first_ = linear_.u;
        second_ = linear_.v;
        chosen_ = linear_.column;
    }

    // The bound of Gilmore and Lawler, from halves of all pair costs: the blocks from `block` on,
    // none of which has been solved before. Returns the block at which the deadline has passed.
    Index start(Index block, Meter &meter) {
        for (; block < costs.size() && costs.variables > 1 && !meter.tick(entries()); ++block)
            solve_block(block / costs.labels, block % costs.labels,
                        [](Cost cost, Cost) { return cost >> 1; });
        solve_leaders();
        return block;
    }

    // Moves the slack of all leaders, and `heat` of each, back to the pairs; then each block takes
    // what it can, in random order. Without heat, the bound does not fall. Returns whether all
    // blocks were visited before the deadline.
    bool pass(Random &random, Cost heat, Meter &meter) {
        if (costs.variables < 2)
            return true;
        lower_leaders(heat);
        order_.resize(leader.size());
        std::iota(order_.begin(), order_.end(), Index(0));
        bool all = true;
        for (std::size_t k = 0; k < order_.size() && all; ++k) {
            std::swap(order_[k], order_[k + random.below(Index(order_.size() - k))]);
            if (forbidden_[order_[k]])
                continue;
            solve_block(order_[k] / costs.labels, order_[k] % costs.labels,
                        [](Cost, Cost rest) { return rest; });
            all = !meter.tick(entries());
        }
        solve_leaders();
        return all;
    }

    // The same costs and multipliers after variable i got label p: one row and one column less.
    AssignmentDual fixed(Index i, Index p) const {
        AssignmentDual out;
        const Index n = costs.variables, d = costs.labels, m = n - 1, e = d - 1;
        out.costs = Costs(m, e);
        out.base = base + costs.unary[costs.at(i, p)];
        out.row_.resize(std::size_t(m * m * e));
        out.column_.resize(std::size_t(e * m * e));
        out.forbidden_.resize(std::size_t(m * e));
        Cost *pair = out.costs.pair.get();
        for (Index j = 0; j < m; ++j)
            for (Index q = 0; q < e; ++q) {
                const Index own = j + (j >= i), label = q + (q >= p);
                const Cost *block = costs.block(own, label);
                out.costs.unary[j * e + q] =
                    costs.unary[costs.at(own, label)] + block[costs.at(i, p)];
                out.forbidden_[j * e + q] = forbidden_[costs.at(own, label)];
                for (Index k = 0; k < n; ++k)
                    if (k != i)
                        pair = without(block + k * d, d, p, pair);
            }
        Cost *row = out.row_.data(), *column = out.column_.data();
        for (Index j = 0; j < n; ++j)
            for (Index k = 0; k < n && j != i; ++k)
                if (k != i)
                    row = without(&row_[(j * n + k) * d], d, p, row);
        for (Index q = 0; q < d; ++q)
            for (Index k = 0; k < n && q != p; ++k)
                if (k != i)
                    column = without(&column_[(q * n + k) * d], d, p, column);
        if (m == 1) // no pair is left: the leaders are the unary costs
            std::fill(out.column_.begin(), out.column_.end(), Cost(0));
        out.sum_leaders();
        out.solve_leaders();
        return out;
    }

    // The same costs and multipliers with variables and labels exchanged; N = L.
    AssignmentDual exchanged() const {
        AssignmentDual out;
        const Index n = costs.variables;
        out.costs = Costs(n, n);
        out.base = base;
        out.forbidden_.assign(leader.size(), false);
        out.row_.resize(row_.size());
        out.column_.resize(column_.size());
        for (Index i = 0; i < n; ++i)
            for (Index p = 0; p < n; ++p) {
                out.costs.unary[p * n + i] = costs.unary[costs.at(i, p)];
                for (Index k = 0; k < n; ++k) {
                    out.row_[(k * n + p) * n + i] = column(i, p, k);
                    out.column_[(k * n + p) * n + i] = row(i, p, k);
                    for (Index q = 0; q < n; ++q)
                        out.costs.between(p, i, q, k) = costs.between(i, p, k, q);
                }
            }
        out.sum_leaders();
        out.solve_leaders();
        return out;
    }

    // Forbids labels and pairs of labels that no assignment of total cost `most` or less has, by
    // adding `barrier` to their costs, once.
    void forbid_above(Cost most, Cost barrier) {
        const Index n = costs.variables, d = costs.labels;
        for (Index i = 0; i < n; ++i)
            for (Index p = 0; p < d; ++p)
                if (bound + slack(i, p) > most)
                    forbid(i, p, barrier);
        for (Index i = 0; i < n; ++i)
            for (Index p = 0; p < d; ++p)
                if (!forbidden_[costs.at(i, p)])
                    forbid_pairs(i, p, most - bound - slack(i, p), barrier);
    }
    // Forbids a label of a variable. Its leader keeps its multipliers, but takes no more.
    void forbid(Index i, Index p, Cost barrier) {
        if (forbidden_[costs.at(i, p)])
            return;
        forbidden_[costs.at(i, p)] = true;
        costs.unary[costs.at(i, p)] += barrier;
        leader[costs.at(i, p)] += barrier;
        for (Index j = 0; j < costs.variables; ++j)
            for (Index q = 0; q < costs.labels && j != i; ++q)
                if (q != p && costs.between(i, p, j, q) < barrier)
                    costs.between(j, q, i, p) = costs.between(i, p, j, q) += barrier;
    }

    // The multipliers of labels in the assignment of leaders.
    const std::vector<Cost> &second() const { return second_; }

  private:
    // Multipliers are stored by the variable or label that they refer to, so that those of other
    // blocks, which a block reads, are contiguous.
    Index row_at(Index i, Index p, Index j) const {
        return (j * costs.variables + i) * costs.labels + p;
    }
    Index column_at(Index i, Index p, Index q) const {
        return (q * costs.variables + i) * costs.labels + p;
    }
    Index entries() const { return 4 * costs.variables * costs.labels; }

    static Cost *without(const Cost *from, Index count, Index skipped, Cost *to) {
        to = std::copy(from, from + skipped, to);
        return std::copy(from + skipped + 1, from + count, to);
    }

    void sum_leaders() {
        const Index n = costs.variables, d = costs.labels, all = n * d;
        leader.assign(costs.unary.get(), costs.unary.get() + costs.size());
        for (Index j = 0; j < n; ++j)
            for (Index k = 0; k < all; ++k)
                if (k / d != j)
                    leader[k] += row_[j * all + k];
        for (Index q = 0; q < d; ++q)
            for (Index k = 0; k < all; ++k)
                if (k % d != q)
                    leader[k] += column_[q * all + k];
    }

    // Moves the slack of each leader, plus `heat`, to the rows of its block, in equal parts.
    void lower_leaders(Cost heat) {
        const Index n = costs.variables, d = costs.labels;
        for (Index i = 0; i < n; ++i)
            for (Index p = 0; p < d; ++p) {
                if (forbidden_[costs.at(i, p)])
                    continue;
                const Cost amount = slack(i, p) + heat, part = amount / (n - 1);
                Cost more = amount % (n - 1);
                for (Index j = 0; j < n; ++j)
                    if (j != i)
                        row_[row_at(i, p, j)] -= part + (more-- > 0);
                leader[costs.at(i, p)] -= amount;
            }
    }

    // Calls `visit(j, q, pair cost, rest)` for the pairs of a block from row `begin` on.
    template <class Visit> void visit_block(Index i, Index p, Index begin, Visit &&visit) {
        const Index n = costs.variables, d = costs.labels;
        const Cost *cost = costs.block(i, p), *rows = &row_[i * n * d],
                   *columns = &column_[p * n * d];
        own_.resize(std::size_t(d));
        for (Index q = 0; q < d; ++q)
            own_[q] = column_[column_at(i, p, q)];
        for (Index j = begin; j < n; ++j) {
            if (j == i)
                continue;
            const Cost own = row_[row_at(i, p, j)];
            const auto part = [&](Index first, Index last) {
                for (Index q = first; q < last; ++q) {
                    const Index k = j * d + q;
                    visit(j, q, cost[k], cost[k] - rows[k] - columns[k] - own - own_[q]);
                }
            };
            part(0, p);
            part(p + 1, d);
        }
    }

    // Solves the assignment problem of one block: its value is added to the leader.
    template <class Take> void solve_block(Index i, Index p, Take &&take) {
        const Index n = costs.variables, d = costs.labels;
        table_.resize(std::size_t((n - 1) * (d - 1)));
        if (n < d) // multipliers of labels are at most 0: they rise only if they are chosen again
            for (Index q = 0; q < d; ++q)
                if (q != p)
                    leader[costs.at(i, p)] -= std::exchange(column_[column_at(i, p, q)], 0);
        Cost *to = table_.data();
        visit_block(i, p, 0, [&](Index, Index, Cost cost, Cost rest) { *to++ = take(cost, rest); });
        leader[costs.at(i, p)] += linear_.solve(table_.data(), n - 1, d - 1);
        for (Index j = 0, k = 0; j < n; ++j)
            if (j != i)
                row_[row_at(i, p, j)] += linear_.u[k++];
        for (Index q = 0, k = 0; q < d; ++q)
            if (q != p)
                column_[column_at(i, p, q)] += linear_.v[k++];
    }

    void forbid_pairs(Index i, Index p, Cost most, Cost barrier) {
        visit_block(i, p, i + 1, [&](Index j, Index q, Cost cost, Cost rest) {
            if (cost < barrier && rest + slack(j, q) > most)
                costs.between(j, q, i, p) = costs.between(i, p, j, q) += barrier;
        });
    }

    std::vector<char> forbidden_;    // labels that take no more multipliers
    std::vector<Cost> row_, column_; // [j, i, p] and [q, i, p]
    std::vector<Cost> first_, second_;
    std::vector<Index> chosen_, order_;
    std::vector<Cost> own_, table_;
    LinearAssignment linear_;
};

} // namespace softmap::permutations
