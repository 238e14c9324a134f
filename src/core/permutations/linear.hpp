// Linear assignment in 64-bit integers, with the multipliers that prove its value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/layout.hpp"

namespace softmap::permutations {

using Cost = std::int64_t;

// Gives each of `rows` rows a column of its own, so that the sum of cost[r * cols + c] is smallest;
// rows <= cols. Afterwards u[r] + v[c] <= cost[r, c] everywhere, with equality at the chosen
// entries, and Σ u + Σ v is the smallest sum, exactly. If rows < cols, v <= 0.
class LinearAssignment {
  public:
    std::vector<Cost> u, v;
    std::vector<Index> row, column; // of a column (-1: none), of a row

    Cost solve(const Cost *cost, Index rows, Index cols) {
        u.assign(std::size_t(rows), 0);
        v.assign(std::size_t(cols), 0);
        row.assign(std::size_t(cols), -1);
        column.assign(std::size_t(rows), -1);
        reduce(cost, rows, cols);
        for (Index r = 0; r < rows; ++r)
            if (column[r] < 0)
                augment(cost, cols, r);
        Cost total = 0;
        for (const Cost value : u)
            total += value;
        for (const Cost value : v)
            total += value;
        return total;
    }

  private:
    // First multipliers: the smallest entry of each row, then, of a square, of each column; rows
    // take free columns without remaining cost.
    void reduce(const Cost *cost, Index rows, Index cols) {
        if (rows == cols)
            v.assign(std::size_t(cols), std::numeric_limits<Cost>::max());
        for (Index r = 0; r < rows; ++r) {
            const Cost *own = cost + r * cols;
            u[r] = *std::min_element(own, own + cols);
            if (rows == cols)
                for (Index c = 0; c < cols; ++c)
                    v[c] = std::min(v[c], own[c] - u[r]);
        }
        for (Index r = 0; r < rows; ++r)
            for (Index c = 0; c < cols; ++c)
                if (row[c] < 0 && cost[r * cols + c] == u[r] + v[c]) {
                    row[c] = r;
                    column[r] = c;
                    break;
                }
    }

    // Adds a row by a shortest augmenting path.
    void augment(const Cost *cost, Index cols, Index first) {
        open_.resize(std::size_t(cols));
        length_.assign(std::size_t(cols), std::numeric_limits<Cost>::max());
        from_.resize(std::size_t(cols));
        closed_.clear();
        for (Index c = 0; c < cols; ++c)
            open_[c] = c;
        Cost reach = 0;
        Index end = -1;
        for (Index r = first; end < 0;) {
            const Cost *own = cost + r * cols;
            const Cost offset = reach - u[r];
            Cost lowest = std::numeric_limits<Cost>::max();
            std::size_t next = 0;
            for (std::size_t k = 0; k < open_.size(); ++k) {
                const Index c = open_[k];
                const Cost path = offset + own[c] - v[c];
                if (path < length_[c]) {
                    length_[c] = path;
                    from_[c] = r;
                }
                if (length_[c] < lowest || (length_[c] == lowest && row[c] < 0)) {
                    lowest = length_[c];
                    next = k;
                }
            }
            reach = lowest;
            const Index c = open_[next];
            open_[next] = open_.back();
            open_.pop_back();
            closed_.push_back(c);
            if (row[c] < 0)
                end = c;
            else
                r = row[c];
        }
        u[first] += reach;
        for (const Index c : closed_) {
            if (row[c] >= 0)
                u[row[c]] += reach - length_[c];
            v[c] -= reach - length_[c];
        }
        for (Index c = end, r = -1; r != first; std::swap(c, column[r])) {
            r = from_[c];
            row[c] = r;
        }
    }

    std::vector<Index> open_, closed_, from_;
    std::vector<Cost> length_;
};

} // namespace softmap::permutations
