// The pairs of labels of one edge that can carry mass at inverse temperature η, with their factors.
//
// Costs are first reduced: r(x, y) = C(x, y) + row[x] + col[y] >= 0, with an entry 0 in every row
// and every column. Pairs with η r > `depth` are left out. A soft message is then a product of a
// sparse matrix of factors exp(-η r) and a vector (Schmitzer 2019: stabilised sparse scaling).
// Pairs that are left out change messages in the direction that it was built for by less than
// exp(-depth + 2 · drift), relative to them. In the other direction the labels of a pair with
// factor 1 may have no mass; then `message` refuses. At small η most pairs carry mass: then the
// factors of all of them are kept as one dense matrix, in single precision. No bound depends on the
// support, and plans are rounded to exact marginals afterwards.
#pragma once

#include "dense.hpp"
#include "kernels/kernels.hpp"

#include <cmath>
#include <vector>

namespace softmap {

class Support {
  public:
    static constexpr double depth = 36.0; // exp(-36) is 2e-16
    static constexpr double drift = 12.0; // change of η times a cost after which it is rebuilt

    // Whether messages from `from`, costs at rows (receiver 1) or columns (receiver 0), may use it.
    bool serves(int receiver, const double *from, double eta) const {
        if (eta != eta_ || crowded_)
            return false;
        const std::vector<double> &then = receiver == 1 ? from_rows_ : from_cols_;
        double low = infinity, high = -infinity;
        for (std::size_t k = 0; k < then.size(); ++k) {
            low = std::min(low, from[k] - then[k]);
            high = std::max(high, from[k] - then[k]);
        }
        return eta * (high - low) <= drift;
    }
    // Whether building failed at this η because too many pairs carry mass.
    bool crowded(double eta) const { return eta == eta_ && crowded_; }

    // Finds the pairs for costs `from` at the sender and `own` at the receiver. `most`: the entries
    // that a dense matrix may have.
    void build(const DenseTable &t, int receiver, const double *from, const double *own, double eta,
               Index most) {
        eta_ = eta;
        rows_ = t.rows, cols_ = t.cols;
        const Index sizes[] = {rows_, cols_};
        std::vector<double> *reduced[] = {&row_, &col_}, *then[] = {&from_rows_, &from_cols_};
        then[1 - receiver]->assign(from, from + sizes[1 - receiver]);
        then[receiver]->assign(own, own + sizes[receiver]);
        reduced[1 - receiver]->assign(from, from + sizes[1 - receiver]);
        for (const int side : {receiver, 1 - receiver}) {
            reduced[side]->resize(std::size_t(sizes[side]));
            kernels->table_message(t, side, reduced[1 - side]->data(), reduced[side]->data(),
                                   infinity);
            for (double &value : *reduced[side])
                value = -value;
        }
        crowded_ = !gather_pairs(t) && !gather_all(t, most);
    }

    // As `table_message` at η, over the pairs of the support. Returns false if pairs that are left
    // out may carry most of the mass that some label receives.
    bool message(int receiver, const double *from, double *out) {
        const std::vector<double> &sender = receiver == 1 ? row_ : col_;
        const std::vector<double> &other = receiver == 1 ? col_ : row_;
        double low = infinity;
        for (std::size_t k = 0; k < sender.size(); ++k)
            low = std::min(low, from[k] - sender[k]);
        mass_.resize(sender.size());
        for (std::size_t k = 0; k < sender.size(); ++k)
            mass_[k] = exp_one(-eta_ * (from[k] - sender[k] - low));
        receiver == 1 ? to_cols(out) : to_rows(out);
        if (*std::min_element(out, out + other.size()) < (sparse() ? least : least_dense))
            return false;
        for (std::size_t k = 0; k < other.size(); ++k)
            out[k] = low - other[k] - log_one(out[k]) / eta_;
        return true;
    }

    // Whether pairs are left out, so that `each_pair` may be called.
    bool sparse() const { return !crowded_ && !start_.empty(); }
    // Calls put(x, y) for the pairs that are kept, row by row.
    template <class Put> void each_pair(Put put) const {
        for (Index x = 0; x < rows_; ++x)
            for (Index k = start_[x]; k < start_[x + 1]; ++k)
                put(x, Index(label_[k]));
    }

  private:
    static constexpr Index block = 64; // labels that are skipped together if none carries mass
    // Least sum of products that what is left out, exp(-depth) per label, does not change much; and
    // least one that no factor in single precision is too small for.
    static constexpr double least = 2e-9, least_dense = 1e-30;

    // Fills the sparse matrix; returns false if it would not be sparse.
    bool gather_pairs(const DenseTable &t) {
        const double most = depth / eta_;
        const std::size_t limit = std::size_t(rows_) * std::size_t(cols_) / 4;
        start_.assign(1, 0);
        label_.clear(), factor_.clear(), dense_.clear();
        mass_.resize(std::size_t(cols_));
        for (Index x = 0; x < rows_; ++x) {
            Index count = 0;
            for (Index first = 0; first < cols_; first += block) {
                const Index last = std::min(first + block, cols_);
                if (reduce(t, x, first, last) > most)
                    continue;
                for (Index y = first; y < last; ++y)
                    if (mass_[y] <= most) {
                        label_.push_back(std::int32_t(y));
                        mass_[count++] = mass_[y];
                    }
            }
            if (label_.size() > limit)
                return false;
            put_factors(factor_, count);
            start_.push_back(Index(label_.size()));
        }
        return true;
    }
    // Fills the dense matrix; returns false if it has more entries than allowed.
    bool gather_all(const DenseTable &t, Index most) {
        start_.clear(), label_.clear(), factor_.clear(), dense_.clear();
        if (rows_ * cols_ > most)
            return false;
        dense_.reserve(std::size_t(rows_ * cols_));
        for (Index x = 0; x < rows_; ++x) {
            reduce(t, x, 0, cols_);
            put_factors(dense_, cols_);
        }
        return true;
    }

    // mass_[y] = r(x, y) for labels first..last-1; returns the least of them.
    double reduce(const DenseTable &t, Index x, Index first, Index last) {
        const double *cost = t.cost + x * cols_;
        Pack<lanes> best(infinity);
        double low = infinity;
        detail::by_packs(first, last, [&]<int W>(Index y) {
            const Pack<W> r = Pack<W>(t.weight) * Pack<W>::load(cost + y) +
                              (Pack<W>(row_[x]) + Pack<W>::load(&col_[y]));
            r.store(&mass_[y]);
            if constexpr (W == 1)
                low = std::min(low, r.part[0]);
            else
                best = smaller(r, best);
        });
        return std::min(low, -largest(0.0 - best));
    }
    // Appends the factors of the first `count` reduced costs in mass_.
    template <class Factors> void put_factors(Factors &to, Index count) {
        for (Index k = 0; k < count; ++k)
            mass_[k] = -eta_ * std::max(mass_[k], 0.0);
        kernels->exponentials(mass_.data(), mass_.data(), count);
        to.insert(to.end(), mass_.data(), mass_.data() + count);
    }

    void to_rows(double *out) const {
        if (start_.empty())
            return detail::sums_of_cols(dense_.data(), rows_, cols_, mass_.data(), out);
        for (Index x = 0; x < rows_; ++x) {
            double sum = 0.0;
            for (Index k = start_[x]; k < start_[x + 1]; ++k)
                sum += factor_[k] * mass_[label_[k]];
            out[x] = sum;
        }
    }
    void to_cols(double *out) const {
        if (start_.empty())
            return detail::sum_of_rows(dense_.data(), rows_, cols_, mass_.data(), out);
        std::fill(out, out + cols_, 0.0);
        for (Index x = 0; x < rows_; ++x)
            for (Index k = start_[x]; k < start_[x + 1]; ++k)
                out[label_[k]] += factor_[k] * mass_[x];
    }

    double eta_ = 0.0;
    bool crowded_ = true;
    Index rows_ = 0, cols_ = 0;
    std::vector<double> from_rows_, from_cols_, row_, col_, factor_, mass_;
    std::vector<float> dense_; // single precision: only small η have it, which need no more
    std::vector<std::int32_t> label_;
    std::vector<Index> start_;
};

} // namespace softmap
