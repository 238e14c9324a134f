// Soft messages along edges whose costs have a formula, by factors exp(-η C) of all pairs.
//
// Edges with the same costs share one matrix, which is made once per η: a message is then a product
// of it and a vector. Costs and what is sent are taken relative to their least values. At large η
// sums of products are too small for a double; then messages are computed by the family.
#pragma once

#include "dense.hpp"
#include "families/all.hpp"
#include "kernels/kernels.hpp"

#include <map>
#include <tuple>
#include <vector>

namespace softmap {

class Factors {
  public:
    static constexpr Index most = 10'000; // pairs of labels of an edge
    // Least sum of products that what is left out does not change: a factor is 1e-300 or more.
    static constexpr double least = 1e-280;

    // `all`: most entries of all matrices together.
    Factors(const Layout &lay, Index all)
        : lay_(lay), which_(std::size_t(lay.m), -1), refused_(std::size_t(2 * lay.m), 0.0) {
        std::map<std::tuple<Index, double, double, Index, Index, Index>, Index> known;
        for (Index e = 0, g = 0; e < lay.m; ++e) {
            while (lay.group_start[g + 1] <= e)
                ++g;
            const Index rows = lay.labels_at(2 * e), cols = lay.labels_at(2 * e + 1);
            if (rows * cols > std::min(most, all) || !useful(g, e))
                continue;
            const Index table = lay.table_at[g] < 0 ? -1 : lay.begin_of(g, e);
            const auto [at, added] = known.try_emplace(
                {g, lay.weight_of(g, e), lay.truncation_of(g, e), table, rows, cols},
                Index(matrices_.size()));
            if (added) {
                matrices_.push_back({g, e, rows, cols, 0.0, 0.0, {}});
                all -= rows * cols;
            }
            which_[e] = at->second;
        }
    }

    // The message into half-edge h at a finite η; false if this edge has no matrix, or if a
    // sum was too small at this η.
    bool message(Index h, const double *from, double *out, double eta) {
        const Index k = which_[h >> 1];
        if (k < 0 || refused_[h] == eta)
            return false;
        Matrix &matrix = matrices_[k];
        if (matrix.eta != eta)
            fill(matrix, eta);
        const bool down = h & 1; // from the rows to the columns
        const Index senders = down ? matrix.rows : matrix.cols,
                    receivers = down ? matrix.cols : matrix.rows;
        const double low = *std::min_element(from, from + senders);
        mass_.resize(std::size_t(senders));
        for (Index x = 0; x < senders; ++x)
            mass_[x] = -eta * (from[x] - low);
        kernels->exponentials(mass_.data(), mass_.data(), senders);
        const auto product = down ? detail::sum_of_rows<double> : detail::sums_of_cols<double>;
        product(matrix.factor.data(), matrix.rows, matrix.cols, mass_.data(), out);
        if (!(*std::min_element(out, out + receivers) >= least)) {
            refused_[h] = eta;
            return false;
        }
        for (Index y = 0; y < receivers; ++y)
            out[y] = low + matrix.low - log_one(out[y]) / eta;
        return true;
    }

  private:
    struct Matrix {
        Index group, edge, rows, cols;
        double eta, low; // the least cost
        std::vector<double> factor;
    };

    // Calls f(view) with the costs of edge e, rows first.
    template <class Function> auto visit(Index g, Index e, Function f) const {
        return Families::visit(
            lay_.kind[g], [&](auto family) { return f(family.template at<1>(lay_, g, &e, 1)); });
    }
    // Whether messages of the family take more than O(labels). Tables have supports of their own.
    bool useful(Index g, Index e) const {
        if (lay_.kind[g] == 0)
            return false;
        return visit(g, e, [](const auto &view) {
            if constexpr (std::remove_cvref_t<decltype(view)>::closed_transport)
                return !view.knows_transport();
            else
                return true;
        });
    }
    void fill(Matrix &matrix, double eta) const {
        matrix.eta = eta;
        matrix.factor.resize(std::size_t(matrix.rows * matrix.cols));
        visit(matrix.group, matrix.edge, [&](const auto &view) {
            for (Index x = 0, k = 0; x < matrix.rows; ++x)
                for (Index y = 0; y < matrix.cols; ++y)
                    matrix.factor[k++] = view.entry(x, y).part[0];
        });
        matrix.low = *std::min_element(matrix.factor.begin(), matrix.factor.end());
        for (double &cost : matrix.factor)
            cost = -eta * (cost - matrix.low);
        kernels->exponentials(matrix.factor.data(), matrix.factor.data(),
                              Index(matrix.factor.size()));
    }

    const Layout lay_;
    std::vector<Index> which_; // matrix of each edge, -1 if it has none
    std::vector<Matrix> matrices_;
    std::vector<double> refused_; // last η at which messages into each half-edge had small sums
    std::vector<double> mass_;
};

} // namespace softmap
