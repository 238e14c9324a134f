// Linear assignment in 64-bit integers, with the multipliers that prove its value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/augmenting.hpp"

namespace softmap::permutations {

using Cost = std::int64_t;

// Gives each of `rows` rows a column of its own, so that the sum of cost[r * cols + c] is smallest;
// rows <= cols. Afterwards u[r] + v[c] <= cost[r, c] everywhere, with equality at the chosen
// entries, and Σ u + Σ v is the smallest sum, exactly. If rows < cols, v <= 0.
class LinearAssignment : public Augmenting<Cost> {
  public:
    LinearAssignment() : Augmenting(std::numeric_limits<Cost>::max()) {}

    Cost solve(const Cost *cost, Index rows, Index cols) {
        reset(rows, cols);
        reduce(cost, rows, cols);
        const auto row_of = [&](Index r) { return cost + r * cols; };
        for (Index r = 0; r < rows; ++r)
            if (column[r] < 0)
                add(r, row_of, [](Index) { return false; });
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
};

} // namespace softmap::permutations
