// The pairs of labels of one edge that can carry mass at inverse temperature η, with their factors.
//
// Costs are first reduced: r(x, y) = C(x, y) + row[x] + col[y] >= 0, with an entry 0 in every row
// and every column. Pairs with η r > `depth` are left out. A soft message is then a product of a
// sparse matrix of factors exp(-η r) and a vector (Schmitzer 2019: stabilised sparse scaling).
// Pairs that are left out change messages by less than exp(-depth + 2 · drift), relative to them.
// At small η most pairs carry mass: then the factors of all of them are kept as one dense matrix.
// No bound depends on the support, and plans are rounded to exact marginals afterwards.
#pragma once

#include "dense.hpp"
#include "kernels/kernels.hpp"

#include <cmath>
#include <vector>

namespace softmap {

class Support {
  public:
    static constexpr double depth = 36.0; // exp(-36) is 2e-16
    static constexpr double drift = 8.0;  // change of η times a cost after which it is rebuilt

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

    // As `table_message` at η, over the pairs of the support.
    void message(int receiver, const double *from, double *out) {
        const std::vector<double> &sender = receiver == 1 ? row_ : col_;
        const std::vector<double> &other = receiver == 1 ? col_ : row_;
        double low = infinity;
        for (std::size_t k = 0; k < sender.size(); ++k)
            low = std::min(low, from[k] - sender[k]);
        mass_.resize(sender.size());
        for (std::size_t k = 0; k < sender.size(); ++k)
            mass_[k] = exp_one(-eta_ * (from[k] - sender[k] - low));
        receiver == 1 ? to_cols(out) : to_rows(out);
        for (std::size_t k = 0; k < other.size(); ++k)
            out[k] = low - other[k] - log_one(std::max(out[k], 1e-300)) / eta_;
    }

  private:
    // Fills the sparse matrix; returns false if it would not be sparse.
    bool gather_pairs(const DenseTable &t) {
        const double most = depth / eta_;
        const std::size_t limit = std::size_t(rows_) * std::size_t(cols_) / 4;
        start_.assign(1, 0);
        label_.clear(), factor_.clear();
        for (Index x = 0; x < rows_; ++x) {
            const double *cost = t.cost + x * cols_;
            for (Index y = 0; y < cols_; ++y) {
                const double r = t.weight * cost[y] + row_[x] + col_[y];
                if (r <= most) {
                    label_.push_back(std::int32_t(y));
                    factor_.push_back(-eta_ * std::max(r, 0.0));
                }
            }
            start_.push_back(Index(label_.size()));
            if (label_.size() > limit)
                return false;
        }
        kernels->exponentials(factor_.data(), factor_.data(), Index(factor_.size()));
        return true;
    }
    // Fills the dense matrix; returns false if it has more entries than allowed.
    bool gather_all(const DenseTable &t, Index most) {
        start_.clear(), label_.clear(), factor_.clear();
        if (rows_ * cols_ > most)
            return false;
        factor_.resize(std::size_t(rows_ * cols_));
        for (Index x = 0; x < rows_; ++x) {
            const double *cost = t.cost + x * cols_;
            double *factor = &factor_[x * cols_];
            for (Index y = 0; y < cols_; ++y)
                factor[y] = -eta_ * std::max(t.weight * cost[y] + row_[x] + col_[y], 0.0);
            kernels->exponentials(factor, factor, cols_);
        }
        return true;
    }

    void to_rows(double *out) const {
        for (Index x = 0; x < rows_; ++x) {
            if (start_.empty()) {
                out[x] = product(&factor_[x * cols_], mass_.data(), cols_);
                continue;
            }
            double sum = 0.0;
            for (Index k = start_[x]; k < start_[x + 1]; ++k)
                sum += factor_[k] * mass_[label_[k]];
            out[x] = sum;
        }
    }
    void to_cols(double *out) const {
        std::fill(out, out + cols_, 0.0);
        for (Index x = 0; x < rows_; ++x) {
            if (start_.empty()) {
                const double *factor = &factor_[x * cols_];
                for (Index y = 0; y < cols_; ++y)
                    out[y] += factor[y] * mass_[x];
                continue;
            }
            for (Index k = start_[x]; k < start_[x + 1]; ++k)
                out[label_[k]] += factor_[k] * mass_[x];
        }
    }
    // Σ a[k] b[k], in eight sums that a compiler can keep in vector registers.
    static double product(const double *a, const double *b, Index count) {
        double part[8] = {}, rest = 0.0;
        Index k = 0;
        for (; k + 8 <= count; k += 8)
            for (Index c = 0; c < 8; ++c)
                part[c] += a[k + c] * b[k + c];
        for (; k < count; ++k)
            rest += a[k] * b[k];
        for (const double sum : part)
            rest += sum;
        return rest;
    }

    double eta_ = 0.0;
    bool crowded_ = true;
    Index rows_ = 0, cols_ = 0;
    std::vector<double> from_rows_, from_cols_, row_, col_, factor_, mass_;
    std::vector<std::int32_t> label_;
    std::vector<Index> start_;
};

} // namespace softmap
