// The cost of every label of every variable, given the labels of all others, under changes of
// single labels.
#pragma once

#include "base/layout.hpp"
#include "exact/input.hpp"

#include <cstring>
#include <string_view>
#include <unordered_map>

namespace softmap {

// A violated hard constraint costs a finite penalty here, so that all differences are finite.
class LabelCosts {
  public:
    // The arrays of `in` must outlive the object.
    explicit LabelCosts(const exact::Input &in)
        : in_(in), x_(std::size_t(in.n()), 0), cost_(in.unary.size()) {
        hard_ = std::find(in.unary.begin(), in.unary.end(), infinity) != in.unary.end() ||
                std::find(in.tables.begin(), in.tables.end(), infinity) != in.tables.end();
        link();
    }

    Index n() const { return Index(in_.n()); }
    Index count(Index i) const { return offset_[i + 1] - offset_[i]; }
    Index label(Index i) const { return x_[i]; }
    const double *of(Index i) const { return cost_.data() + offset_[i]; }
    const std::vector<std::int64_t> &labels() const { return x_; }
    const std::vector<double> &all() const { return cost_; }
    double energy() const { return energy_; }    // with penalties, without the constant
    Index violated() const { return violated_; } // number of violated hard constraints
    bool hard() const { return hard_; }          // whether there are hard constraints
    Index work() const { return work_; }         // number of costs that were changed so far

    // The mean over all variables of the range of the finite costs around them; 1 if it is 0.
    double scale() const {
        double sum = 0.0;
        const auto add = [&](std::span<const double> costs, double times) {
            double low = infinity, high = -infinity;
            for (const double cost : costs)
                if (cost < infinity)
                    low = std::min(low, cost), high = std::max(high, cost);
            sum += high > low ? times * (high - low) : 0.0;
        };
        for (Index i = 0; i < n(); ++i)
            add(in_.unary.subspan(offset_[i], count(i)), 1.0);
        each_factor([&](Index f, Index table, std::span<const std::int64_t> scope) {
            add(in_.tables.subspan(table, in_.table_size(int(f))), double(scope.size()));
        });
        return sum > 0.0 ? sum / double(n()) : 1.0;
    }

    // Takes labels and a penalty, and computes all costs from them.
    void set(std::span<const std::int64_t> labels, double penalty) {
        penalty_ = penalty;
        x_.assign(labels.begin(), labels.end());
        energy_ = 0.0, violated_ = 0;
        work_ += Index(cost_.size() + in_.scope.size());
        for (std::size_t k = 0; k < cost_.size(); ++k)
            cost_[k] = soft(in_.unary[k]);
        for (Index i = 0; i < n(); ++i)
            add_term(in_.unary[offset_[i] + x_[i]]);
        each_factor([&](Index, Index table, std::span<const std::int64_t> scope) {
            const Index at = table + state(scope);
            add_term(in_.tables[at]);
            Index step = 1;
            for (std::size_t k = scope.size(); k-- > 0; step *= count(scope[k])) {
                const Index i = scope[k], start = at - step * x_[i];
                for (Index x = 0; x < count(i); ++x)
                    cost_[offset_[i] + x] += soft(in_.tables[start + x * step]);
            }
        });
    }

    // Changes the label of a variable, and the costs of its neighbours.
    void change(Index i, Index next) {
        const Index now = x_[i], own = offset_[i];
        energy_ += cost_[own + next] - cost_[own + now];
        count_violated(in_.unary[own + next], in_.unary[own + now]);
        x_[i] = next;
        for (Index k = arc_start_[i]; k < arc_start_[i + 1]; ++k) {
            const Arc &arc = arcs_[k];
            const double *table = in_.tables.data() + arc.table;
            const double *to = table + next * arc.own, *from = table + now * arc.own;
            shift(arc.to, to, from, arc.step);
            count_violated(to[x_[arc.to] * arc.step], from[x_[arc.to] * arc.step]);
        }
        for (Index k = factor_start_[i]; k < factor_start_[i + 1]; ++k)
            change_factor(factors_[k], i, next - now);
    }

    // Calls f(j) for each variable j that shares a factor with variable i, maybe more than once.
    template <class Function> void neighbours(Index i, Function f) const {
        for (Index k = arc_start_[i]; k < arc_start_[i + 1]; ++k)
            f(arcs_[k].to);
        for (Index k = factor_start_[i]; k < factor_start_[i + 1]; ++k)
            for (const Index j : scope(factors_[k]))
                f(j);
    }

  private:
    // A factor of two variables, seen from one of them: the other one, the start of the table, and
    // the steps of the two labels in it.
    struct Arc {
        Index to, table, own, step;
    };

    std::span<const std::int64_t> scope(Index f) const {
        return in_.scope.subspan(in_.scope_start[f], in_.scope_start[f + 1] - in_.scope_start[f]);
    }

    template <class Body> void each_factor(Body body) const {
        Index table = 0;
        for (Index f = 0; f < in_.num_factors(); ++f) {
            body(f, table, scope(f));
            table += in_.table_size(int(f));
        }
    }

    void link() {
        offset_.assign(n() + 1, 0);
        for (Index i = 0; i < n(); ++i)
            offset_[i + 1] = offset_[i] + in_.num_labels[i];
        arc_start_.assign(n() + 1, 0), factor_start_.assign(n() + 1, 0);
        each_factor([&](Index, Index, std::span<const std::int64_t> scope) {
            for (const Index i : scope)
                ++(scope.size() == 2 ? arc_start_ : factor_start_)[i + 1];
        });
        std::partial_sum(arc_start_.begin(), arc_start_.end(), arc_start_.begin());
        std::partial_sum(factor_start_.begin(), factor_start_.end(), factor_start_.begin());
        arcs_.resize(arc_start_.back()), factors_.resize(factor_start_.back());
        std::vector<Index> arc = arc_start_, factor = factor_start_;
        std::unordered_multimap<std::size_t, Index> known;
        each_factor([&](Index f, Index at, std::span<const std::int64_t> scope) {
            const Index table = shared(known, at, in_.table_size(int(f)));
            table_.push_back(table);
            if (scope.size() != 2) {
                for (const Index i : scope)
                    factors_[factor[i]++] = f;
                return;
            }
            const Index i = scope[0], j = scope[1], columns = count(j);
            const bool same = symmetric(in_.tables.data() + table, count(i), columns);
            arcs_[arc[i]++] = {j, table, columns, 1};
            arcs_[arc[j]++] = {i, table, same ? columns : 1, same ? 1 : columns};
        });
    }

    // The first table with the same entries: fewer tables need less of the cache.
    Index shared(std::unordered_multimap<std::size_t, Index> &known, Index table,
                 Index size) const {
        const auto *costs = reinterpret_cast<const char *>(in_.tables.data() + table);
        const std::string_view bytes(costs, std::size_t(size) * sizeof(double));
        const std::size_t hash = std::hash<std::string_view>()(bytes);
        const auto [first, last] = known.equal_range(hash);
        for (auto at = first; at != last; ++at)
            if (at->second + size <= table &&
                std::memcmp(in_.tables.data() + at->second, costs, bytes.size()) == 0)
                return at->second;
        known.emplace(hash, table);
        return table;
    }

    // Whether a table of pairs is symmetric; its rows are then read instead of its columns.
    static bool symmetric(const double *costs, Index rows, Index columns) {
        for (Index x = 0; rows == columns && x < rows; ++x)
            for (Index y = 0; y < x; ++y)
                if (costs[x * rows + y] != costs[y * rows + x])
                    return false;
        return rows == columns;
    }

    double soft(double cost) const { return cost == infinity ? penalty_ : cost; }

    void add_term(double cost) {
        energy_ += soft(cost);
        violated_ += cost == infinity;
    }

    void count_violated(double to, double from) {
        violated_ += Index(to == infinity) - Index(from == infinity);
    }

    // The place in a factor's table of the labels of its variables.
    Index state(std::span<const std::int64_t> scope) const {
        Index at = 0;
        for (const Index i : scope)
            at = at * count(i) + x_[i];
        return at;
    }

    // Updates the costs around a factor of more variables after a change of one label.
    void change_factor(Index f, Index i, Index by) {
        const auto members = scope(f);
        Index own = 0, step = 1;
        for (std::size_t k = members.size(); k-- > 0; step *= count(members[k]))
            own = members[k] == i ? step : own;
        const double *to = in_.tables.data() + table_[f] + state(members), *from = to - by * own;
        count_violated(*to, *from);
        step = 1;
        for (std::size_t k = members.size(); k-- > 0; step *= count(members[k]))
            if (const Index j = members[k]; j != i)
                shift(j, to - step * x_[j], from - step * x_[j], step);
    }

    // Adds the difference of two lines of a table to the costs of a variable.
    void shift(Index j, const double *to, const double *from, Index step) {
        double *cost = cost_.data() + offset_[j];
        const Index labels = count(j);
        work_ += labels;
        if (hard_)
            for (Index y = 0; y < labels; ++y)
                cost[y] += soft(to[y * step]) - soft(from[y * step]);
        else if (step == 1)
            for (Index y = 0; y < labels; ++y)
                cost[y] += to[y] - from[y];
        else
            for (Index y = 0; y < labels; ++y)
                cost[y] += to[y * step] - from[y * step];
    }

    const exact::Input in_;
    std::vector<Index> offset_, arc_start_, factor_start_, factors_, table_;
    std::vector<Arc> arcs_;
    std::vector<std::int64_t> x_;
    std::vector<double> cost_;
    double energy_ = 0.0, penalty_ = 1.0;
    Index violated_ = 0, work_ = 0;
    bool hard_ = false;
};

} // namespace softmap
