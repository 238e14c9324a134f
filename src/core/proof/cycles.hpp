// How much a cycle of pairs raises the bound: its least joint cost less the sum of its least costs.
#pragma once

#include "base/layout.hpp"

#include <algorithm>
#include <vector>

namespace softmap {

// Square tables of pairs, (pairs, width, width), and cycles as places of their pairs in order;
// `turned` says of each whether its rows belong to the later variable of the cycle.
struct Cycles {
    const double *tables;
    Index width;
    const Index *place;
    const bool *turned;
    Index length;
};

// Gains by dynamic programming around the cycle: rows for the first variable, columns for the last.
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

    // The table of one pair, the earlier variable by rows; returns its least entry.
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

    // min over the variable in the middle.
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
