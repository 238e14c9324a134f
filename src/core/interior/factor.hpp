// Cholesky factor of a positive definite matrix with a block for each node and edge of a graph.
#pragma once

#include "base/deadline.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace softmap::interior {

// An elimination order of least degrees, and the neighbours of each node when it is eliminated.
// Nodes from `sparse` on are nearly all neighbours of each other: their matrix is stored dense.
struct Elimination {
    std::vector<Index> order, rank;       // [n]: the k-th node, and the place of a node
    std::vector<std::vector<Index>> near; // [sparse]: places of later neighbours, ascending
    Index sparse = 0;

    Elimination(Index n, Index m, const std::int32_t *edges, const Deadline *deadline)
        : rank(std::size_t(n)) {
        const Index words = (n + 63) / 64;
        std::vector<std::uint64_t> bits(std::size_t(n * words));
        const auto row = [&](Index i) { return bits.data() + i * words; };
        const auto mark = [&](Index i, Index j) { row(i)[j / 64] |= std::uint64_t(1) << (j % 64); };
        for (Index e = 0; e < m; ++e) {
            mark(edges[2 * e], edges[2 * e + 1]);
            mark(edges[2 * e + 1], edges[2 * e]);
        }
        std::vector<Index> degree(static_cast<std::size_t>(n));
        const auto count = [&](Index i) {
            row(i)[i / 64] &= ~(std::uint64_t(1) << (i % 64));
            degree[i] = 0;
            for (Index w = 0; w < words; ++w)
                degree[i] += std::popcount(row(i)[w]);
        };
        std::vector<Index> left(static_cast<std::size_t>(n));
        std::iota(left.begin(), left.end(), Index(0));
        for (const Index i : left)
            count(i);
        std::vector<std::vector<Index>> named;
        while (!left.empty()) {
            const auto least = std::min_element(left.begin(), left.end(), [&](Index i, Index j) {
                return degree[i] != degree[j] ? degree[i] < degree[j] : i < j;
            });
            const Index v = *least;
            if (double(degree[v]) >= dense * double(left.size() - 1))
                break;
            *least = left.back();
            left.pop_back();
            order.push_back(v);
            eliminate(v, row, words, named.emplace_back());
            for (const Index u : named.back())
                count(u);
            require_time(deadline);
        }
        sparse = Index(order.size());
        std::sort(left.begin(), left.end());
        order.insert(order.end(), left.begin(), left.end());
        for (Index k = 0; k < n; ++k)
            rank[order[k]] = k;
        for (std::vector<Index> &own : named) {
            for (Index &u : own)
                u = rank[u];
            std::sort(own.begin(), own.end());
        }
        near = std::move(named);
    }

  private:
    static constexpr double dense = 0.75; // least fraction of neighbours among the nodes left

    // Connects the neighbours of v with each other, and writes them to `own`.
    template <class Row>
    static void eliminate(Index v, const Row &row, Index words, std::vector<Index> &own) {
        for (Index w = 0; w < words; ++w)
            for (std::uint64_t rest = row(v)[w]; rest != 0; rest &= rest - 1)
                own.push_back(64 * w + std::countr_zero(rest));
        for (const Index u : own) {
            for (Index w = 0; w < words; ++w)
                row(u)[w] |= row(v)[w];
            row(u)[v / 64] &= ~(std::uint64_t(1) << (v % 64));
        }
    }
};

// A symmetric positive definite matrix with a block for each node and edge of a graph, in the order
// of an elimination, and its Cholesky factor. Each sparse node has a panel: its own columns, stored
// one after the other, from the diagonal block on. All other nodes share a dense matrix.
class GraphMatrix {
  public:
    using DenseCholesky = bool (*)(double *matrix, Index n, const Deadline *);

    // Entry (a, b) of the block of two nodes is at[a * rows + b * cols].
    struct Block {
        double *at;
        Index rows, cols;
    };

    GraphMatrix(Elimination of, const std::vector<Index> &sizes)
        : of_(std::move(of)), first_(sizes.size() + 1), begin_(std::size_t(of_.sparse) + 1),
          row_begin_(std::size_t(of_.sparse) + 1) {
        const Index n = Index(sizes.size());
        for (Index k = 0; k < n; ++k)
            first_[k + 1] = first_[k] + sizes[of_.order[k]];
        for (Index k = 0; k < of_.sparse; ++k) {
            list(k);
            for (const Index u : of_.near[k])
                list(u);
            row_begin_[k + 1] = Index(rows_.size());
            begin_[k + 1] = begin_[k] + height(k) * width(k);
        }
        values_.resize(std::size_t(begin_.back()));
        tail_ = first_[n] - first_[of_.sparse];
        dense_.resize(std::size_t(tail_ * tail_));
        place_.resize(std::size_t(first_[n]));
        earlier_.resize(std::size_t(of_.sparse));
        for (Index k = 0; k < of_.sparse; ++k)
            for (const Index u : of_.near[k])
                if (u < of_.sparse)
                    earlier_[u].push_back(k);
    }

    // Multiplications of a factorisation, of which those of the dense part are faster.
    double work() const {
        double sum = std::pow(double(tail_), 3.0) / 6.0;
        for (Index k = 0; k < of_.sparse; ++k)
            sum += 0.5 * double(height(k)) * double(height(k)) * double(width(k));
        return sum;
    }

    Index size() const { return first_.back(); }
    // Index of the first row of node i in vectors.
    Index row(Index i) const { return first_[of_.rank[i]]; }

    void clear() {
        std::fill(values_.begin(), values_.end(), 0.0);
        std::fill(dense_.begin(), dense_.end(), 0.0);
    }

    // The block of two nodes that are equal or neighbours.
    Block block(Index i, Index j) {
        Index late = of_.rank[i], early = of_.rank[j];
        const bool turned = late < early;
        if (turned)
            std::swap(late, early);
        double *at;
        Index stride, across;
        if (early >= of_.sparse) {
            at = dense_.data() + (first_[late] - start()) * tail_ + first_[early] - start();
            stride = tail_, across = 1;
        } else {
            const auto own = rows_.begin() + row_begin_[early];
            const auto last = rows_.begin() + row_begin_[early + 1];
            at = values_.data() + begin_[early] + (std::lower_bound(own, last, first_[late]) - own);
            stride = 1, across = height(early);
        }
        return turned ? Block{at, across, stride} : Block{at, stride, across};
    }

    // Replaces the matrix by its factor; false at a pivot that is not positive.
    bool factor(DenseCholesky dense, const Deadline *deadline) {
        for (Index k = 0; k < of_.sparse; ++k) {
            const Index *rows = rows_.data() + row_begin_[k];
            for (Index r = 0; r < height(k); ++r)
                place_[rows[r]] = r;
            for (const Index q : earlier_[k])
                subtract(q, k);
            if (!factor_panel(k))
                return false;
            require_time(deadline);
        }
        for (Index q = 0; q < of_.sparse; ++q) {
            subtract_dense(q);
            if (q % 64 == 0)
                require_time(deadline);
        }
        return dense(dense_.data(), tail_, deadline);
    }

    // Replaces x by the solution of the system with right side x.
    void solve(double *x) const {
        for (Index k = 0; k < of_.sparse; ++k)
            each_column(k, [&](const double *column, const Index *rows, Index c) {
                const double value = x[rows[c]] /= column[c];
                for (Index r = c + 1; r < height(k); ++r)
                    x[rows[r]] -= column[r] * value;
            });
        solve_dense(x + start());
        for (Index k = of_.sparse - 1; k >= 0; --k)
            for (Index c = width(k) - 1; c >= 0; --c) {
                const double *column = values_.data() + begin_[k] + c * height(k);
                const Index *rows = rows_.data() + row_begin_[k];
                double sum = x[rows[c]];
                for (Index r = c + 1; r < height(k); ++r)
                    sum -= column[r] * x[rows[r]];
                x[rows[c]] = sum / column[c];
            }
    }

  private:
    Index width(Index k) const { return first_[k + 1] - first_[k]; }
    Index height(Index k) const { return row_begin_[k + 1] - row_begin_[k]; }
    Index start() const { return first_[of_.sparse]; }

    void list(Index u) {
        for (Index r = first_[u]; r < first_[u + 1]; ++r)
            rows_.push_back(r);
    }

    template <class Function> void each_column(Index k, Function f) const {
        for (Index c = 0; c < width(k); ++c)
            f(values_.data() + begin_[k] + c * height(k), rows_.data() + row_begin_[k], c);
    }

    // Subtracts from panel k the products of the columns of an earlier panel q.
    void subtract(Index q, Index k) {
        const Index *rows = rows_.data() + row_begin_[q], tall = height(q), wide = width(q);
        const Index from = std::lower_bound(rows, rows + tall, first_[k]) - rows;
        const double *own = values_.data() + begin_[q];
        for (Index c = from; c < from + width(k); ++c) {
            double *out = values_.data() + begin_[k] + (c - from) * height(k);
            for (Index s = 0; s < wide; ++s) {
                const double *column = own + s * tall;
                const double factor = column[c];
                for (Index r = c; r < tall; ++r)
                    out[place_[rows[r]]] -= column[r] * factor;
            }
        }
    }

    // The same for the dense matrix, row by row.
    void subtract_dense(Index q) {
        const Index *rows = rows_.data() + row_begin_[q], tall = height(q), wide = width(q);
        const Index from = std::lower_bound(rows, rows + tall, start()) - rows;
        const double *own = values_.data() + begin_[q];
        for (Index c = from; c < tall; ++c) {
            double *out = dense_.data() + (rows[c] - start()) * tail_ - start();
            for (Index s = 0; s < wide; ++s) {
                const double *column = own + s * tall;
                const double factor = column[c];
                for (Index r = from; r <= c; ++r)
                    out[rows[r]] -= column[r] * factor;
            }
        }
    }

    bool factor_panel(Index k) {
        const Index tall = height(k), wide = width(k);
        double *own = values_.data() + begin_[k];
        for (Index c = 0; c < wide; ++c) {
            double *column = own + c * tall;
            for (Index s = 0; s < c; ++s) {
                const double *other = own + s * tall;
                const double factor = other[c];
                for (Index r = c; r < tall; ++r)
                    column[r] -= other[r] * factor;
            }
            if (!(column[c] > 0.0))
                return false;
            const double root = std::sqrt(column[c]);
            column[c] = root;
            for (Index r = c + 1; r < tall; ++r)
                column[r] /= root;
        }
        return true;
    }

    void solve_dense(double *x) const {
        for (Index r = 0; r < tail_; ++r) {
            const double *row = dense_.data() + r * tail_;
            double sum = x[r];
            for (Index c = 0; c < r; ++c)
                sum -= row[c] * x[c];
            x[r] = sum / row[r];
        }
        for (Index r = tail_ - 1; r >= 0; --r) {
            const double *row = dense_.data() + r * tail_;
            const double value = x[r] /= row[r];
            for (Index c = 0; c < r; ++c)
                x[c] -= row[c] * value;
        }
    }

    Elimination of_;
    std::vector<Index> first_;             // [n + 1]: first row of the k-th node
    std::vector<Index> begin_, row_begin_; // [sparse + 1]: of the panels, in `values_` and `rows_`
    std::vector<Index> rows_;              // the rows of each panel, ascending
    std::vector<double> values_, dense_;
    std::vector<Index> place_;                // [rows]: place of a row in the current panel
    std::vector<std::vector<Index>> earlier_; // [sparse]: earlier panels with rows of a node
    Index tail_ = 0;
};

} // namespace softmap::interior
