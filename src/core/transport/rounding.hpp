// A coupling of two distributions near the plan of converged messages, and its cost.
//
// Families with a closed form have the optimal plan: Potts and truncated linear costs, and convex
// costs |x - y|^k (monotone plan). For all others the plan exp(-η (C + a + b)) is rounded as in
// Altschuler et al. (2017): rows and columns with too much mass are scaled down, and a rank-one
// plan with the missing mass is added. All sums are those of the rounded plan itself. At η = 0 the
// monotone plan is taken for any costs: it needs O(d) of them.
//
// With truncated convex costs, the masses that the plan moves between near labels are first moved
// by their monotone plan, which costs no more and has O(d) entries. All other masses cost at most
// the truncation, by any plan: they count as missing, and get the monotone plan, too.
#pragma once

#include "families/all.hpp"
#include "kernels/kernels.hpp"
#include "support.hpp"

#include <algorithm>
#include <vector>

namespace softmap {

struct RoundedTransport {
    double cost;  // of the rounded plan
    double slack; // mass that the plan of the messages had in wrong rows and columns, ℓ₁
};

// `pairs`: those that carry mass, if they are known. `plan`: row-major output of zeros, or null.
// send(receiver, from, to) computes a soft message to rows (0) or columns (1).
class Rounding {
  public:
    template <class View, class Send>
    RoundedTransport operator()(const View &view, const double *a, const double *b, const double *p,
                                const double *q, double eta, const Support *pairs, double *plan,
                                Send send) {
        rows_ = view.senders, cols_ = view.receivers;
        if constexpr (View::closed_transport)
            if (view.knows_transport())
                return closed(view, p, q, plan);
        if constexpr (View::banded)
            if (view.plain && view.reach >= rows_)
                return monotone(view, p, q, plan);
        if (eta == 0.0)
            return monotone(view, p, q, plan);
        if constexpr (View::banded)
            if (view.plain) {
                take_near(view, near_masses(view, b, a, eta, 0, send),
                          near_masses(view, a, b, eta, 1, send));
                return rounded(view, p, q, plan);
            }
        pairs != nullptr ? take(view, *pairs, a, b, eta) : gather(view, a, b, eta);
        return rounded(view, p, q, plan);
    }

  private:
    static constexpr double depth = 30.0; // pairs below exp(-30) of the largest are left out

    template <class View>
    RoundedTransport closed(const View &view, const double *p, const double *q, double *plan) {
        Room room(transport_room(rows_, cols_, 1));
        const auto from = reinterpret_cast<const Pack<1> *>(p),
                   to = reinterpret_cast<const Pack<1> *>(q);
        if (plan != nullptr)
            view.transport(from, to, room.numbers(), [&](Index x, Index y, const Pack<1> &mass) {
                plan[x * cols_ + y] += mass.part[0];
            });
        return {view.transport_cost(from, to, room.numbers()).part[0], 0.0};
    }

    template <class View>
    RoundedTransport monotone(const View &view, const double *p, const double *q, double *plan) {
        double cost = 0.0;
        each_monotone(p, q, [&](Index x, Index y, double mass) {
            cost += mass * view.entry(x, y).part[0];
            if (plan != nullptr)
                plan[x * cols_ + y] += mass;
        });
        return {cost, 0.0};
    }
    // Calls put(x, y, mass) for the monotone plan, row by row.
    template <class Put> void each_monotone(const double *p, const double *q, Put put) const {
        double left = p[0], need = q[0];
        for (Index x = 0, y = 0; x < rows_ && y < cols_;) {
            const double mass = std::min(left, need);
            put(x, y, mass);
            left -= mass, need -= mass;
            const bool row = left <= need; // the row is used up; rounding leaves no mass behind
            if (row && x + 1 < rows_)
                left += p[++x];
            else if (y + 1 < cols_)
                need += q[++y];
            else if (x + 1 < rows_)
                left += p[++x];
            else
                break;
        }
    }

    // The masses that the plan moves from or to each label of the receiver along near labels.
    template <class View, class Send>
    std::vector<double> near_masses(const View &view, const double *from, const double *own,
                                    double eta, int receiver, Send send) {
        const std::size_t labels = std::size_t(view.senders);
        std::vector<double> value(labels), mass(labels), far(labels);
        send(receiver, from, value.data());
        const double low = *std::min_element(from, from + labels);
        for (std::size_t x = 0; x < labels; ++x)
            mass[x] = exp_one(-eta * (from[x] - low));
        far_sums(view.senders, view.reach, reinterpret_cast<const Pack<1> *>(mass.data()),
                 reinterpret_cast<Pack<1> *>(far.data()));
        double least = infinity, all = 0.0;
        for (std::size_t x = 0; x < labels; ++x)
            least = std::min(least, value[x] + own[x]);
        for (std::size_t x = 0; x < labels; ++x) {
            const double cost = std::max(low + view.ceiling.part[0] - value[x], 0.0);
            const double part = std::min(far[x] * exp_one(-eta * cost), 1.0);
            const double one = exp_one(-eta * (value[x] + own[x] - least));
            all += one;
            mass[x] = one * (1.0 - part);
        }
        for (double &one : mass)
            one /= all;
        return mass;
    }

    // The monotone plan of the masses moved between near labels.
    template <class View>
    void take_near(const View &view, const std::vector<double> &rows,
                   const std::vector<double> &cols) {
        start_.assign(std::size_t(rows_ + 1), 0);
        each_monotone(rows.data(), cols.data(), [&](Index x, Index y, double mass) {
            put(y, view.entry(x, y).part[0], mass);
            start_[x + 1] = Index(label_.size());
        });
        for (Index x = 0; x < rows_; ++x)
            start_[x + 1] = std::max(start_[x + 1], start_[x]);
    }

    template <class View>
    RoundedTransport rounded(const View &view, const double *p, const double *q, double *plan) {
        double slack = 0.0;
        std::vector<double> have(std::size_t(cols_), 0.0), rest(std::size_t(rows_), 0.0),
            need(q, q + cols_);
        for (Index x = 0; x < rows_; ++x) {
            double sum = 0.0;
            for (Index k = start_[x]; k < start_[x + 1]; ++k)
                sum += mass_[k];
            slack += std::abs(sum - p[x]);
            const double scale = sum > p[x] ? p[x] / sum : 1.0;
            for (Index k = start_[x]; k < start_[x + 1]; ++k)
                have[label_[k]] += mass_[k] *= scale;
        }
        for (Index y = 0; y < cols_; ++y) {
            slack += std::abs(have[y] - q[y]);
            have[y] = have[y] > q[y] ? q[y] / have[y] : 1.0;
        }
        double cost = 0.0, missing = 0.0, lacking = 0.0;
        for (Index x = 0; x < rows_; ++x) {
            double sum = 0.0;
            for (Index k = start_[x]; k < start_[x + 1]; ++k) {
                const double mass = mass_[k] * have[label_[k]];
                sum += mass;
                need[label_[k]] -= mass;
                cost += mass * cost_[k];
                if (plan != nullptr)
                    plan[x * cols_ + label_[k]] += mass;
            }
            missing += rest[x] = std::max(p[x] - sum, 0.0);
        }
        for (double &mass : need)
            lacking += mass = std::max(mass, 0.0);
        const double most = std::max(missing, lacking);
        if constexpr (View::banded)
            if (view.plain)
                return {cost + monotone(view, rest.data(), need.data(), plan).cost, slack};
        if (most > 0.0)
            cost += spread(view, rest, need, most, plan);
        return {cost, slack};
    }

    // Adds the rank-one plan; returns its cost.
    template <class View>
    double spread(const View &view, const std::vector<double> &rest,
                  const std::vector<double> &need, double most, double *plan) {
        double cost = 0.0;
        std::vector<Index> to;
        for (Index y = 0; y < cols_; ++y)
            if (need[y] > 0.0)
                to.push_back(y);
        for (Index x = 0; x < rows_; ++x) {
            if (rest[x] == 0.0)
                continue;
            double sum = 0.0;
            for (const Index y : to) {
                sum += need[y] * view.entry(x, y).part[0];
                if (plan != nullptr)
                    plan[x * cols_ + y] += rest[x] * need[y] / most;
            }
            cost += rest[x] * sum / most;
        }
        return cost;
    }

    // The pairs whose mass is not negligible in their row or column, row by row.
    template <class View>
    void gather(const View &view, const double *a, const double *b, double eta) {
        std::vector<double> low_row(std::size_t(rows_), infinity),
            low_col(std::size_t(cols_), infinity);
        double low = infinity;
        for (Index x = 0; x < rows_; ++x)
            for (Index y = 0; y < cols_; ++y) {
                const double value = a[x] + b[y] + view.entry(x, y).part[0];
                low_row[x] = std::min(low_row[x], value);
                low_col[y] = std::min(low_col[y], value);
            }
        for (const double value : low_row)
            low = std::min(low, value);
        start_.assign(1, 0);
        for (Index x = 0; x < rows_; ++x) {
            for (Index y = 0; y < cols_; ++y) {
                const double cost = view.entry(x, y).part[0], value = a[x] + b[y] + cost;
                if (eta * (value - low_row[x]) > depth && eta * (value - low_col[y]) > depth)
                    continue;
                put(y, cost, -eta * (value - low));
            }
            start_.push_back(Index(label_.size()));
        }
        exponentiate();
    }
    // The same for pairs that are known.
    template <class View>
    void take(const View &view, const Support &pairs, const double *a, const double *b,
              double eta) {
        double low = infinity;
        start_.assign(std::size_t(rows_ + 1), 0);
        pairs.each_pair([&](Index x, Index y) {
            const double cost = view.entry(x, y).part[0], value = a[x] + b[y] + cost;
            put(y, cost, value);
            low = std::min(low, value);
            start_[x + 1] = Index(label_.size());
        });
        for (double &mass : mass_)
            mass = -eta * (mass - low);
        exponentiate();
    }
    void exponentiate() { // with sum 1
        kernels->exponentials(mass_.data(), mass_.data(), Index(mass_.size()));
        double all = 0.0;
        for (const double mass : mass_)
            all += mass;
        for (double &mass : mass_)
            mass /= all;
    }
    void put(Index y, double cost, double mass) {
        label_.push_back(std::int32_t(y));
        mass_.push_back(mass);
        cost_.push_back(cost);
    }

    Index rows_ = 0, cols_ = 0;
    std::vector<Index> start_;
    std::vector<std::int32_t> label_;
    std::vector<double> mass_, cost_;
};

} // namespace softmap
