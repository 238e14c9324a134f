// `Proj` (Algorithm 4 of the paper) for families with a band, without a table of all label pairs.
//
// All far pairs have the same cost, so their masses are a product far_left[x] · far_right[y]; the
// masses of near pairs come from the family's band. Rows and columns are scaled by scaling these
// factors. The cost is a sum of nonnegative terms over near pairs, far pairs and the rank-one
// correction. The plan that is returned is made of the same factors.
#pragma once

#include "families/bands.hpp"

namespace softmap {

// Given is a type that holds κ, the marginals and scratch memory; see `Cells`.
template <int W, class Edges, class Given> class BandedCoupling {
  public:
    using P = Pack<W>;
    using Band = typename Edges::Band;

    BandedCoupling(const Given &cells, const Edges &edges, double eta)
        : t_(cells), edges_(edges), eta_(eta), count_(cells.rows),
          band_(count_, edges.reach, edges.weight, arrays(cells) + 8 * count_) {
        P *at = arrays(cells);
        for (P **array : {&left_, &right_, &far_left_, &far_right_, &sum_, &toll_, &far_, &rest_})
            *array = at, at += count_;
    }
    static Index room(Index count, Index reach) { // doubles needed in addition to those of `Given`
        return W * (8 * count + Band::room(count, reach));
    }

    // Computes the soft masses and leaves their row sums in `sum_`. Returns their entropy if
    // `entropy`, else 0.
    P soften(bool entropy) {
        const P *row = t_.packs(t_.row), *col = t_.packs(t_.col);
        const P low_row = hard_minimum<W>(count_, [&](Index x) { return row[x]; });
        const P low_col = hard_minimum<W>(count_, [&](Index y) { return col[y]; });
        const P above = largest(edges_.ceiling) * eta_ <= mild
                            ? evenly(row, col, low_row, low_col)
                            : unevenly(row, col, low_row, low_col);
        const P tolls = add_rows();
        P total(0.0), mean = tolls;
        for (Index x = 0; x < count_; ++x)
            total += sum_[x];
        scale_ = 1.0 / total;
        if (!entropy)
            return P(0.0);
        add_means(row, low_row, sum_, mean);
        add_cols();
        add_means(col, low_col, rest_, mean);
        mean = fused(above, total, mean);
        return fused(P(eta_) * mean, scale_, log(total));
    }

    // Scales rows down to at most p, then columns to at most q. The missing mass of columns goes
    // into `rest_` (that of rows is computed in `complete`). Returns the ℓ₁ slack before scaling.
    P shrink() {
        const P one(1.0), none(0.0), *p = t_.packs(t_.p), *q = t_.packs(t_.q);
        P slack(0.0);
        for (Index x = 0; x < count_; ++x) {
            const P have = sum_[x] * scale_, less = least(p[x] / have, one) * scale_;
            slack += size_of(have - p[x]);
            left_[x] *= less;
            far_left_[x] *= less;
        }
        add_cols();
        for (Index y = 0; y < count_; ++y) {
            const P have = rest_[y], less = least(q[y] / have, one);
            slack += size_of(have - q[y]);
            right_[y] *= less;
            far_right_[y] *= less;
            rest_[y] = greatest(q[y] - have * less, none);
        }
        return slack;
    }

    // Adds the rank-one correction. Returns an upper bound on the cost of the masses that `masses`
    // returns.
    //
    // Cost and masses are computed from the same stored factors, by products and sums of
    // nonnegative numbers. Each operation changes a term by at most u = 2^-53 times itself. With n
    // labels, a mass is the result of at most n + 3 operations. In the cost, the term of a near
    // pair goes through at most 2 n + 5 operations in its `Trail`, two in the band, three here, and
    // n additions over the rows; the terms of far pairs and of the correction go through fewer. In
    // total this is at most (4 n + 13) u. The last factor adds 8 n u, which is more, since bands
    // are used for 7 labels or more (see `exchanged`). Masses below the smallest normal number are
    // flushed to 0 on both sides: less than 2^-1022 per pair.
    P complete() {
        const P none(0.0), *p = t_.packs(t_.p);
        P price = add_rows(), missing(0.0);
        for (Index x = 0; x < count_; ++x) {
            left_over(x) = greatest(p[x] - sum_[x], none);
            missing += left_over(x);
        }
        share_ = choose(P(negligible), missing, 1.0 / missing, none);
        band_.plainly(rest_, sum_, toll_);
        far_sums(count_, edges_.reach, rest_, far_);
        for (Index x = 0; x < count_; ++x)
            price = fused(left_over(x) * share_, fused(edges_.ceiling, far_[x], toll_[x]), price);
        return price * P(1.0 + double(count_) * 0x1p-50);
    }

    // Calls put(x, y, mass) for all label pairs.
    template <class Put> void masses(Put put) {
        for (Index x = 0; x < count_; ++x) {
            for (Index y = 0; y < count_; ++y)
                sum_[y] = far_left_[x] * far_right_[y];
            band_.each(x, [&](Index y, const P &phi) { sum_[y] = left_[x] * phi * right_[y]; });
            for (Index y = 0; y < count_; ++y)
                put(x, y, fused(left_over(x) * share_, rest_[y], sum_[y]));
        }
    }

  private:
    static constexpr double mild =
        250.0; // limit on η · C for which exp(-η C) stays far above `trace`

    // Masses relative to exp(-η (low_row + low_col)); the largest is at least exp(-mild). Returns
    // low_row + low_col minus the reference cost of the masses, which is 0 here.
    P evenly(const P *row, const P *col, const P &low_row, const P &low_col) {
        const P far = mass_of(edges_.ceiling, eta_);
        band_.begin_evenly(eta_);
        for (Index x = 0; x < count_; ++x) {
            left_[x] = mass_of(row[x] - low_row, eta_);
            right_[x] = far_right_[x] = mass_of(col[x] - low_col, eta_);
            far_left_[x] = noticed(far * left_[x]);
        }
        return P(0.0);
    }
    // Masses relative to the largest mass, exp(-η low). Returns low_row + low_col - low.
    P unevenly(const P *row, const P *col, const P &low_row, const P &low_col) {
        edges_.message(col, sum_, t_.spare, infinity);
        const P low = hard_minimum<W>(count_, [&](Index x) { return row[x] + sum_[x]; });
        const P apart = low_row + low_col - low, far = mass_of(apart + edges_.ceiling, eta_);
        band_.begin(row, col, sum_, low, eta_, left_, right_);
        for (Index x = 0; x < count_; ++x) {
            far_left_[x] = noticed(far * mass_of(row[x] - low_row, eta_));
            far_right_[x] = mass_of(col[x] - low_col, eta_);
        }
        return apart;
    }

    static P *arrays(const Given &cells) {
        return reinterpret_cast<P *>(cells.spare + message_room(cells.rows, W));
    }
    P &left_over(Index x) { return reinterpret_cast<P *>(t_.rest_p)[x]; }

    // sum_ = row sums of the masses; returns their total cost.
    P add_rows() {
        P price(0.0);
        band_.rows(right_, sum_, toll_);
        far_sums(count_, edges_.reach, far_right_, far_);
        for (Index x = 0; x < count_; ++x) {
            const P beyond = far_left_[x] * far_[x];
            sum_[x] = fused(left_[x], sum_[x], beyond);
            price += fused(left_[x], toll_[x], edges_.ceiling * beyond);
        }
        return price;
    }
    // rest_ = column sums of the masses.
    void add_cols() {
        band_.cols(left_, rest_);
        far_sums(count_, edges_.reach, far_left_, far_);
        for (Index y = 0; y < count_; ++y)
            rest_[y] = fused(right_[y], rest_[y], far_right_[y] * far_[y]);
    }
    // mean += Σ mass · (κ - low). Labels without mass may have κ = +inf.
    void add_means(const P *kappa, const P &low, const P *mass, P &mean) const {
        for (Index x = 0; x < count_; ++x)
            mean = fused(mass[x], least(kappa[x] - low, P(excluded)), mean);
    }

    const Given &t_;
    const Edges &edges_;
    const double eta_;
    const Index count_;
    const Band band_;
    P scale_, share_;
    P *left_, *right_, *far_left_, *far_right_, *sum_, *toll_, *far_, *rest_;
};

} // namespace softmap
