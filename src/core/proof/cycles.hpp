// How much a cycle of pairwise tables can raise the bound: the minimum of the sum of its tables
// minus the sum of their minima.
#pragma once

#include "base/layout.hpp"

#include <algorithm>
#include <vector>

namespace softmap {

// Square tables of shape (pairs, width, width), and cycles of `length` variables each, row by row.
// The table of variables i < j, with i by rows, is the one whose code is i * n + j; `code` ascends.
struct Cycles {
    const double *tables;
    Index width;
    const Index *code;
    Index pairs;
    Index n;
    const Index *variables;
    Index length;

    // The table of two variables, in either order; `pairs` if there is none.
    Index find(Index i, Index j) const {
        const Index wanted = std::min(i, j) * n + std::max(i, j);
        const Index at = std::lower_bound(code, code + pairs, wanted) - code;
        return at < pairs && code[at] == wanted ? at : pairs;
    }
};

// The gain of a cycle by dynamic programming along it. Tables have the first variable of the cycle
// by rows and the last one reached by columns.
class CycleGain {
  public:
    explicit CycleGain(const Cycles &cycles)
        : c_(cycles), place_(std::size_t(cycles.length)), so_far_(cells()), next_(cells()),
          longer_(cells()) {}

    // False if two consecutive variables of the cycle have no table.
    bool find(Index cycle) {
        ring_ = c_.variables + cycle * c_.length;
        for (Index k = 0; k < c_.length; ++k) {
            place_[std::size_t(k)] = c_.find(ring_[k], ring_[after(k)]);
            if (place_[std::size_t(k)] == c_.pairs)
                return false;
        }
        return true;
    }

    // The gain of the cycle that was found last.
    double operator()() {
        double apart = load(0, so_far_);
        for (Index k = 1; k < c_.length; ++k) {
            apart += load(k, next_);
            extend();
        }
        double joint = infinity;
        for (Index x = 0; x < c_.width; ++x)
            joint = std::min(joint, so_far_[x * c_.width + x]);
        return joint - apart;
    }

  private:
    std::size_t cells() const { return std::size_t(c_.width * c_.width); }
    Index after(Index k) const { return k + 1 < c_.length ? k + 1 : 0; }

    // Loads the table of one pair with the earlier variable by rows; returns its minimum.
    double load(Index k, std::vector<double> &out) const {
        const double *table = c_.tables + place_[std::size_t(k)] * c_.width * c_.width;
        const bool turned = ring_[k] > ring_[after(k)];
        double least = infinity;
        for (Index x = 0; x < c_.width; ++x)
            for (Index y = 0; y < c_.width; ++y) {
                out[x * c_.width + y] = table[turned ? y * c_.width + x : x * c_.width + y];
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
    const Index *ring_ = nullptr;
    std::vector<Index> place_;
    std::vector<double> so_far_, next_, longer_;
};

} // namespace softmap
