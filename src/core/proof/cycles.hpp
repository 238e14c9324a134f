// How much a cycle of pairwise tables can raise the bound: the minimum of the sum of its tables
// minus the sum of their minima.
#pragma once

#include "base/layout.hpp"

#include <algorithm>
#include <vector>

namespace softmap {

// Square tables of shape (pairs, width, width), and cycles of `length` pairs each: `place` has the
// index of each pair in the order of its cycle, and `turned` says whether the pair's table is to be
// transposed (its rows belong to the later variable of the cycle).
struct Cycles {
    const double *tables;
    Index width;
    const Index *place;
    const bool *turned;
    Index length;
};

// The gain of a cycle by dynamic programming along it. Tables have the first variable of the cycle
// by rows and the last one reached by columns.
class CycleGain {
  public:
    explicit CycleGain(const Cycles &cycles)
        : c_(cycles), so_far_(cells()), next_(cells()), longer_(cells()) {}

    double operator()(Index cycle) {
        double apart = load(cycle * c_.length, so_far_);
        for (Index k = 1; k < c_.length; ++k) {
            apart += load(cycle * c_.length + k, next_);
            extend();
        }
        double joint = infinity;
        for (Index x = 0; x < c_.width; ++x)
            joint = std::min(joint, so_far_[x * c_.width + x]);
        return joint - apart;
    }

  private:
    std::size_t cells() const { return std::size_t(c_.width * c_.width); }

    // Loads the table of one pair with the earlier variable by rows; returns its minimum.
    double load(Index at, std::vector<double> &out) const {
        const double *table = c_.tables + c_.place[at] * c_.width * c_.width;
        double least = infinity;
        for (Index x = 0; x < c_.width; ++x)
            for (Index y = 0; y < c_.width; ++y) {
                out[x * c_.width + y] = table[c_.turned[at] ? y * c_.width + x : x * c_.width + y];
                least = std::min(least, out[x * c_.width + y]);
            }
        return least;
    }

    // so_far_[x, z] = min over y of so_far_[x, y] + next_[y, z].
    void extend() {
        const Index d = c_.width;
        std::fill(longer_.begin(), longer_.end(), infinity);
        for (Index x = 0; x < d; ++x) {
            double *out = longer_.data() + x * d;
            for (Index y = 0; y < d; ++y) {
                const double cost = so_far_[x * d + y], *row = next_.data() + y * d;
                if (cost == infinity)
                    continue;
                for (Index z = 0; z < d; ++z)
                    out[z] = std::min(out[z], cost + row[z]);
            }
        }
        so_far_.swap(longer_);
    }

    const Cycles c_;
    std::vector<double> so_far_, next_, longer_;
};

} // namespace softmap
