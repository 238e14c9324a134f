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
    explicit LabelCosts(const exact::Input &in);

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
    double scale() const;

    // Takes labels and a penalty, and computes all costs from them.
    void set(std::span<const std::int64_t> labels, double penalty);

    // Changes the label of a variable, and the costs of its neighbours.
    void change(Index i, Index next);

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

    // An arc between variables of two labels: by[y] is added to the cost of label y of the other one
    // if the own label becomes 1, and subtracted if it becomes 0.
    struct Flip {
        double by[2];
        Index to;
    };

    std::span<const std::int64_t> scope(Index f) const;

    template <class Body> void each_factor(Body body) const {
        Index table = 0;
        for (Index f = 0; f < in_.num_factors(); ++f) {
            body(f, table, scope(f));
            table += in_.table_size(int(f));
        }
    }

    void link();

    // Stores the arcs as flips if all variables have two labels, all factors two variables, and no
    // cost is infinite.
    void link_flips();

    // The first table with the same entries: fewer tables need less of the cache.
    Index shared(std::unordered_multimap<std::size_t, Index> &known, Index table, Index size) const;

    // Whether a table of pairs is symmetric; its rows are then read instead of its columns.
    static bool symmetric(const double *costs, Index rows, Index columns);

    double soft(double cost) const { return cost == infinity ? penalty_ : cost; }

    void add_term(double cost);

    void count_violated(double to, double from);

    // The place in a factor's table of the labels of its variables.
    Index state(std::span<const std::int64_t> scope) const;

    // Updates the costs around a factor of more variables after a change of one label.
    void change_factor(Index f, Index i, Index by);

    // Adds the difference of two lines of a table to the costs of a variable.
    void shift(Index j, const double *to, const double *from, Index step);

    const exact::Input in_;
    std::vector<Index> offset_, arc_start_, factor_start_, factors_, table_;
    std::vector<Arc> arcs_;
    std::vector<Flip> flips_;
    std::vector<std::int64_t> x_;
    std::vector<double> cost_;
    double energy_ = 0.0, penalty_ = 1.0;
    Index violated_ = 0, work_ = 0;
    bool hard_ = false;
};

} // namespace softmap
