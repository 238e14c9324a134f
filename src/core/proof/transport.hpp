// Optimal transport between two small distributions: exact, by successive shortest paths, and a
// fast local improvement.
//
// The exact solver holds masses as integer multiples of 2⁻⁵²: each augmenting path saturates an
// arc, sums are exact, and masses below 2⁻⁵³ are 0 from the start.
#pragma once

#include "base/layout.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace softmap {

// Successive shortest paths. An object can solve several problems; costs and plans are row-major.
class Transport {
  public:
    // out = an optimal transport plan between p and q; returns the mass that could not be shipped
    // because its pairs are forbidden.
    double operator()(const double *cost, const double *p, const double *q, Index rows, Index cols,
                      double *out) {
        prepare(cost, p, q, rows, cols);
        Index stranded = 0;
        for (Index x = 0; x < rows; ++x) {
            while (supply_[x] > 0) {
                const Index y = nearest_demand(x);
                if (y < 0) {
                    stranded += supply_[x];
                    break;
                }
                raise_prices(reach_[y]);
                augment(x, y);
            }
        }
        for (Index k = 0; k < rows * cols; ++k)
            out[k] = double(plan_[k]) / whole;
        return double(stranded) / whole;
    }

  private:
    static constexpr double whole = 0x1p52;

    void prepare(const double *cost, const double *p, const double *q, Index rows, Index cols) {
        cost_ = cost, rows_ = rows, cols_ = cols;
        in_units(p, rows, supply_);
        in_units(q, cols, demand_);
        plan_.assign(rows * cols, 0);
        u_.assign(rows, 0.0);
        v_.assign(cols, 0.0);
        reach_.resize(cols);
        back_.resize(cols);
        settled_.resize(cols);
        entered_.resize(rows);
        stack_.clear();
        for (Index x = 0; x < rows; ++x) {
            const double low = *std::min_element(cost + x * cols, cost + (x + 1) * cols);
            u_[x] = low < infinity ? low : 0.0;
        }
        lower_columns();
    }

    // Sets the column potentials to the largest values that the row potentials allow: each column
    // then has a pair of reduced cost 0, and most augmenting paths are short.
    void lower_columns() {
        std::fill(v_.begin(), v_.end(), infinity);
        for (Index x = 0; x < rows_; ++x)
            for (Index y = 0; y < cols_; ++y)
                v_[y] = std::min(v_[y], cost_[x * cols_ + y] - u_[x]);
        for (double &price : v_)
            price = price < infinity ? price : 0.0;
    }

    // out = masses normalised to sum 1, in units of 1 / whole; the rounding difference is added to
    // the largest.
    static void in_units(const double *mass, Index count, std::vector<Index> &out) {
        double total = 0.0;
        for (Index x = 0; x < count; ++x)
            total += mass[x];
        Index left = Index(whole), most = 0;
        out.resize(count);
        for (Index x = 0; x < count; ++x) {
            out[x] = Index(std::nearbyint(mass[x] / total * whole));
            left -= out[x];
            if (out[x] > out[most])
                most = x;
        }
        out[most] += left;
    }

    // Dijkstra's algorithm from row `root` in the residual graph: returns the nearest column with
    // demand, or -1. A row is reached from a column that it ships to, at reduced cost 0, so that
    // only columns need distances.
    Index nearest_demand(Index root) {
        std::fill(reach_.begin(), reach_.end(), infinity);
        std::fill(settled_.begin(), settled_.end(), char(0));
        std::fill(entered_.begin(), entered_.end(), Index(-1));
        entered_[root] = cols_; // marks the root
        stack_.assign(1, root);
        double base = 0.0;
        while (true) {
            while (!stack_.empty()) {
                relax(stack_.back(), base);
            }
            const Index nearest = next_column();
            if (nearest < 0 || demand_[nearest] > 0)
                return nearest;
            settled_[nearest] = 1;
            base = reach_[nearest];
            for (Index x = 0; x < rows_; ++x) {
                if (plan_[x * cols_ + nearest] > 0 && entered_[x] < 0) {
                    entered_[x] = nearest;
                    stack_.push_back(x);
                }
            }
        }
    }

    // The nearest column without a final distance, at ties one with demand; -1 if none is reached.
    Index next_column() const {
        Index nearest = -1;
        double least = infinity;
        for (Index y = 0; y < cols_; ++y) {
            const bool tie = reach_[y] == least && demand_[y] > 0;
            if (!settled_[y] && (reach_[y] < least || (tie && least < infinity)))
                nearest = y, least = reach_[y];
        }
        return nearest;
    }

    // Removes the row from the stack and relaxes its arcs to columns.
    void relax(Index row, double base) {
        stack_.pop_back();
        for (Index y = 0; y < cols_; ++y) {
            if (settled_[y])
                continue;
            const double step = base + std::max(0.0, cost_[row * cols_ + y] - u_[row] - v_[y]);
            if (step < reach_[y]) {
                reach_[y] = step;
                back_[y] = row;
            }
        }
    }

    // Augments the flow along the path from row `root` to column `target`.
    void augment(Index root, Index target) {
        Index amount = std::min(supply_[root], demand_[target]);
        for (Index y = target; back_[y] != root; y = entered_[back_[y]])
            amount = std::min(amount, plan_[back_[y] * cols_ + entered_[back_[y]]]);
        for (Index y = target;; y = entered_[back_[y]]) {
            const Index row = back_[y];
            plan_[row * cols_ + y] += amount;
            if (row == root)
                break;
            plan_[row * cols_ + entered_[row]] -= amount;
        }
        supply_[root] -= amount;
        demand_[target] -= amount;
    }

    // Updates the potentials: reduced costs stay nonnegative, and 0 on pairs with mass.
    void raise_prices(double limit) {
        for (Index x = 0; x < rows_; ++x)
            if (entered_[x] >= 0)
                u_[x] += limit - (entered_[x] < cols_ ? reach_[entered_[x]] : 0.0);
        for (Index y = 0; y < cols_; ++y)
            if (reach_[y] < limit)
                v_[y] -= limit - reach_[y];
    }

    const double *cost_ = nullptr;
    Index rows_ = 0, cols_ = 0;
    std::vector<Index> supply_, demand_, plan_, back_, entered_, stack_;
    std::vector<double> u_, v_, reach_;
    std::vector<char> settled_;
};

// Lowers the cost of W couplings (entries at x · cols + y) by exchanging mass between two rows and
// two columns.
//
// Such a move keeps all row and column sums; it moves as much mass as there is. The result is
// optimal if both sides have two labels. Otherwise, from a plan of converged messages, it gains all
// but a few per cent of what exact transport gains, in a tenth of the time. Finite costs must be
// below `excluded`. `ahead` is scratch of `cols` packs.
template <int W>
void exchange(const Pack<W> *cost, Pack<W> *plan, Pack<W> *ahead, Index rows, Index cols) {
    const Pack<W> none(0.0), top(excluded);
    for (Index x = 1; x < rows; ++x) {
        for (Index z = 0; z < x; ++z) {
            const Pack<W> *cost_x = cost + x * cols, *cost_z = cost + z * cols;
            Pack<W> *upper = plan + x * cols, *under = plan + z * cols;
            for (Index y = 0; y < cols; ++y)
                ahead[y] = least(cost_x[y], top) - least(cost_z[y], top);
            for (Index y = 1; y < cols; ++y) {
                for (Index w = 0; w < y; ++w) {
                    const Pack<W> gain = ahead[y] - ahead[w];
                    const Pack<W> back = choose(gain, none, 0.0 - least(upper[w], under[y]), none);
                    const Pack<W> moved = choose(none, gain, least(upper[y], under[w]), back);
                    upper[y] -= moved;
                    under[w] -= moved;
                    upper[w] += moved;
                    under[y] += moved;
                }
            }
        }
    }
}

} // namespace softmap
