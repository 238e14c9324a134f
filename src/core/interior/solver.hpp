// An interior-point method for the LP over the local polytope, which eliminates the edges.
//
// The LP: min Σ_i ⟨C_i, x_i⟩ + Σ_e ⟨C_e, y_e⟩ with Σ_a x_i(a) = 1, the marginals of y_e equal to
// those of its endpoints, x, y >= 0. Its dual: ν_i and λ_{e,i}(a) with the reduced costs
// C_i(a) - Σ_e λ_{e,i}(a) - ν_i >= 0 and C_e(a, b) + λ_{e,i}(a) + λ_{e,j}(b) >= 0. All costs are
// finite, so that both have interior points: uniform x, products y, and shifted λ.
#pragma once

#include "factor.hpp"

namespace softmap::interior {

// The graph and the tables of a model; edges[2e] and edges[2e + 1] are the endpoints of edge e, its
// table has a row for each label of the first one, and λ first the labels of the first one.
struct PairwiseModel {
    Index n, m;
    const Index *labels;       // [n]
    const std::int32_t *edges; // [2m]
    const double *unary;       // [node states]
    const double *pairs;       // [edge entries]
};

// The graph Laplacian of an edge, factored without subtractions, and its grounded inverse.
//
// The vertices are the labels of the two endpoints; weight(a, b) = y / s > 0 connects label a of
// the first with label b of the second one. One label of the second endpoint is grounded: its row
// and column of the inverse are 0. Rounding errors of flows that should sum to 0 end there, so that
// it should be the label with most mass. Vertices are eliminated in order, the grounded one comes
// last.
class EdgeLaplacian {
  public:
    EdgeLaplacian(Index rows, Index cols, Index ground)
        : rows_(rows), k_(rows + cols), ground_(rows + ground) {}

    // Number of entries of a factor.
    Index entries() const { return k_ * k_; }

    // Writes the factor: entry (b, a), a < b, is the share of b when a is eliminated, (a, a) the
    // sum of the weights of a then.
    void factor(const double *weight, double *out, std::vector<double> &room) const {
        room.assign(std::size_t(k_ * k_), 0.0);
        double *w = room.data();
        for (Index a = 0; a < rows_; ++a)
            for (Index b = rows_; b < k_; ++b)
                w[a * k_ + b] = w[b * k_ + a] = weight[a * (k_ - rows_) + place(b) - rows_];
        for (Index a = 0; a + 1 < k_; ++a) {
            double total = 0.0;
            for (Index b = a + 1; b < k_; ++b)
                total += w[a * k_ + b];
            out[a * k_ + a] = total;
            for (Index b = a + 1; b < k_; ++b) {
                const double share = out[b * k_ + a] = w[a * k_ + b] / total;
                for (Index c = a + 1; c < k_; ++c)
                    w[b * k_ + c] += share * w[a * k_ + c];
            }
        }
    }

    // Writes the inverse for flows of the first endpoint and those of the second one with opposite
    // signs: [k, k], labels in the order of the model.
    void invert(const double *factor, double *out, std::vector<double> &room) const {
        const Index free = k_ - 1;
        room.assign(std::size_t(2 * k_ * k_), 0.0);
        double *lower = room.data(), *sum = room.data() + k_ * k_;
        for (Index c = 0; c < free; ++c) { // row c of the inverse of the unit lower triangle
            double *own = lower + c * k_;
            own[c] = 1.0;
            for (Index a = 0; a < c; ++a)
                for (Index b = 0; b <= a; ++b)
                    own[b] += factor[c * k_ + a] * lower[a * k_ + b];
            for (Index a = 0; a <= c; ++a) {
                const double share = own[a] / factor[c * k_ + c];
                for (Index b = 0; b <= a; ++b)
                    sum[a * k_ + b] += share * own[b];
            }
        }
        for (Index a = 0; a < k_; ++a)
            for (Index b = 0; b <= a; ++b) {
                const double value =
                    (a < rows_) != (b < rows_) ? -sum[a * k_ + b] : sum[a * k_ + b];
                out[place(a) * k_ + place(b)] = out[place(b) * k_ + place(a)] = value;
            }
    }

    // Replaces flows by the product of this inverse with them. More accurate than the inverse if
    // some weights are very small.
    void solve(const double *factor, double *v) const {
        const Index free = k_ - 1;
        std::swap(v[ground_], v[free]);
        for (Index b = rows_; b < k_; ++b)
            v[b] = -v[b];
        for (Index a = 0; a < free; ++a)
            for (Index b = a + 1; b < k_; ++b)
                v[b] += factor[b * k_ + a] * v[a];
        v[free] = 0.0;
        for (Index a = free - 1; a >= 0; --a) {
            v[a] /= factor[a * k_ + a];
            for (Index b = a + 1; b < k_; ++b)
                v[a] += factor[b * k_ + a] * v[b];
        }
        for (Index b = rows_; b < k_; ++b)
            v[b] = -v[b];
        std::swap(v[ground_], v[free]);
    }

  private:
    // The label at a place of the order of elimination.
    Index place(Index b) const { return b == k_ - 1 ? ground_ : b == ground_ ? k_ - 1 : b; }

    Index rows_, k_, ground_;
};

class InteriorSolver {
  public:
    InteriorSolver(const PairwiseModel &model, GraphMatrix::DenseCholesky dense,
                   const Deadline *deadline)
        : model_(model), dense_(dense), node_(std::size_t(model_.n) + 1),
          half_(2 * std::size_t(model_.m) + 1), edge_(std::size_t(model_.m) + 1),
          factor_(std::size_t(model_.m) + 1), best_(std::size_t(model_.n)),
          matrix_(Elimination(model_.n, model_.m, model_.edges, deadline), sizes()) {
        for (Index i = 0; i < model_.n; ++i)
            node_[i + 1] = node_[i] + model_.labels[i];
        for (Index e = 0; e < model_.m; ++e) {
            const Index rows = count(e, 0), cols = count(e, 1);
            half_[2 * e + 1] = half_[2 * e] + rows;
            half_[2 * e + 2] = half_[2 * e + 1] + cols;
            edge_[e + 1] = edge_[e] + rows * cols;
            factor_[e + 1] = factor_[e] + laplacian(e).entries();
        }
        begin();
    }

    double work() const { return matrix_.work(); }
    // Σ x s: the cost of the point minus the value of the dual.
    double gap() const { return gap_; }
    const std::vector<double> &nodes() const { return x_; }
    const std::vector<double> &lam() const { return lam_; }

    // One step of Mehrotra's predictor and corrector; false if rounding errors end the method.
    bool step(const Deadline *deadline) {
        assemble();
        if (!matrix_.factor(dense_, deadline))
            return false;
        const double mean = gap_ / double(x_.size() + y_.size());
        Direction towards = empty();
        for (std::size_t k = 0; k < x_.size(); ++k)
            towards.x[k] = -x_[k] * sx_[k];
        for (std::size_t k = 0; k < y_.size(); ++k)
            towards.y[k] = -y_[k] * sy_[k];
        Direction move = empty();
        solve(towards, move);
        const double centre = mean * std::pow(std::max(0.0, after(move)) / gap_, 3.0);
        for (std::size_t k = 0; k < x_.size(); ++k)
            towards.x[k] += centre - move.x[k] * move.sx[k];
        for (std::size_t k = 0; k < y_.size(); ++k)
            towards.y[k] += centre - move.y[k] * move.sy[k];
        solve(towards, move);
        require_time(deadline);
        if (!std::isfinite(after(move)))
            return false;
        const double before = gap_;
        const auto [primal, dual] = lengths(move);
        advance(move, std::min(1.0, boundary * primal), std::min(1.0, boundary * dual));
        return gap_ > 0.0 && gap_ < progress * before;
    }

  private:
    static constexpr double boundary = 0.995; // most fraction of a step to the boundary
    static constexpr double progress = 0.95;  // a step to a larger fraction of the gap is the last

    // Changes of x, y, λ, ν and of the reduced costs; of a right side, only those of x and y.
    struct Direction {
        std::vector<double> x, y, sx, sy, lam, nu;
    };

    Direction empty() const {
        Direction out;
        out.x.resize(x_.size()), out.sx.resize(x_.size());
        out.y.resize(y_.size()), out.sy.resize(y_.size());
        out.lam.resize(lam_.size()), out.nu.resize(std::size_t(model_.n));
        return out;
    }

    std::vector<Index> sizes() const {
        std::vector<Index> out(model_.labels, model_.labels + model_.n);
        for (Index &size : out)
            --size;
        return out;
    }

    Index end(Index e, int side) const { return model_.edges[2 * e + side]; }
    Index count(Index e, int side) const { return model_.labels[end(e, side)]; }

    EdgeLaplacian laplacian(Index e) const { return {count(e, 0), count(e, 1), best_[end(e, 1)]}; }

    // Calls f(half, state) for the labels of both endpoints.
    template <class Function> void each_label(Index e, Function f) const {
        for (int side = 0; side < 2; ++side)
            for (Index a = 0; a < count(e, side); ++a)
                f(half_[2 * e + side] + a, node_[end(e, side)] + a);
    }

    // Uniform marginals, products of them, and λ and ν with all reduced costs at least the mean
    // absolute cost.
    void begin() {
        const Index states = node_.back(), entries = edge_.back();
        double scale = 0.0;
        for (Index k = 0; k < states; ++k)
            scale += std::abs(model_.unary[k]) / double(states);
        for (Index k = 0; k < entries; ++k)
            scale += std::abs(model_.pairs[k]) / double(entries);
        scale = scale > 0.0 ? scale : 1.0;
        x_.resize(std::size_t(states)), sx_.resize(x_.size()), nu_.resize(std::size_t(model_.n));
        y_.resize(std::size_t(entries)), sy_.resize(y_.size());
        lam_.resize(std::size_t(half_.back()));
        factors_.resize(std::size_t(factor_.back()));
        for (Index i = 0; i < model_.n; ++i)
            std::fill(x_.begin() + node_[i], x_.begin() + node_[i + 1],
                      1.0 / double(model_.labels[i]));
        for (Index e = 0; e < model_.m; ++e) {
            std::fill(y_.begin() + edge_[e], y_.begin() + edge_[e + 1],
                      1.0 / double(count(e, 0) * count(e, 1)));
            const double low =
                *std::min_element(model_.pairs + edge_[e], model_.pairs + edge_[e + 1]);
            std::fill(lam_.begin() + half_[2 * e], lam_.begin() + half_[2 * e + 2],
                      0.5 * (scale - low));
        }
        reduce();
        for (Index i = 0; i < model_.n; ++i)
            nu_[i] = *std::min_element(sx_.begin() + node_[i], sx_.begin() + node_[i + 1]) - scale;
        reduce();
    }

    // Computes the reduced costs and the gap.
    void reduce() {
        std::copy(model_.unary, model_.unary + x_.size(), sx_.begin());
        for (Index i = 0; i < model_.n; ++i)
            for (Index k = node_[i]; k < node_[i + 1]; ++k)
                sx_[k] -= nu_[i];
        for (Index e = 0; e < model_.m; ++e) {
            each_label(e, [&](Index h, Index state) { sx_[state] -= lam_[h]; });
            each_pair(e, [&](Index k, Index h, Index g) {
                sy_[k] = model_.pairs[k] + lam_[h] + lam_[g];
            });
        }
        gap_ = std::inner_product(x_.begin(), x_.end(), sx_.begin(), 0.0) +
               std::inner_product(y_.begin(), y_.end(), sy_.begin(), 0.0);
    }

    // Calls f(entry, half of the row, half of the column) for the pairs of an edge.
    template <class Function> void each_pair(Index e, Function f) const {
        Index k = edge_[e];
        for (Index h = half_[2 * e]; h < half_[2 * e + 1]; ++h)
            for (Index g = half_[2 * e + 1]; g < half_[2 * e + 2]; ++g)
                f(k++, h, g);
    }

    // The matrix of the nodes: diag(s / x) plus the inverses of the edges, in the space of changes
    // that keep Σ_a x_i(a). The most probable label of a node takes what its others lose.
    void assemble() {
        matrix_.clear();
        for (Index i = 0; i < model_.n; ++i) {
            const double *x = x_.data() + node_[i], *s = sx_.data() + node_[i];
            best_[i] = std::max_element(x, x + model_.labels[i]) - x;
            const GraphMatrix::Block to = matrix_.block(i, i);
            const double own = s[best_[i]] / x[best_[i]];
            each_free(i, [&](Index a, Index row) {
                each_free(i, [&](Index b, Index col) {
                    to.at[row * to.rows + col * to.cols] += own + (a == b ? s[a] / x[a] : 0.0);
                });
            });
        }
        for (Index e = 0; e < model_.m; ++e) {
            weight_.resize(std::size_t(edge_[e + 1] - edge_[e]));
            for (Index k = edge_[e]; k < edge_[e + 1]; ++k)
                weight_[k - edge_[e]] = y_[k] / sy_[k];
            const EdgeLaplacian own = laplacian(e);
            double *factor = factors_.data() + factor_[e];
            own.factor(weight_.data(), factor, room_);
            inverse_.resize(std::size_t(own.entries()));
            own.invert(factor, inverse_.data(), room_);
            for (int to = 0; to < 2; ++to)
                for (int from = 0; from < 2; ++from)
                    if (to == from || to == 0)
                        add(e, to, from, inverse_.data());
        }
    }

    void add(Index e, int to, int from, const double *g) {
        const Index k = count(e, 0) + count(e, 1), i = end(e, to), j = end(e, from);
        const Index up = to * count(e, 0), left = from * count(e, 0);
        const GraphMatrix::Block out = matrix_.block(i, j);
        const auto at = [&](Index a, Index b) { return g[(up + a) * k + left + b]; };
        const double own = at(best_[i], best_[j]);
        each_free(i, [&](Index a, Index row) {
            each_free(j, [&](Index b, Index col) {
                out.at[row * out.rows + col * out.cols] +=
                    at(a, b) - at(best_[i], b) - at(a, best_[j]) + own;
            });
        });
    }

    // Calls f(a, row) for the labels of a node other than the most probable one.
    template <class Function> void each_free(Index i, Function f) const {
        for (Index a = 0; a < model_.labels[i]; ++a)
            if (a != best_[i])
                f(a, a - (a > best_[i]));
    }

    // The change for which s Δx + x Δs = towards, and the marginals of y become those of x.
    void solve(const Direction &towards, Direction &out) {
        flow_.assign(lam_.size(), 0.0);
        state_.assign(x_.size(), 0.0);
        for (Index e = 0; e < model_.m; ++e) {
            each_label(e, [&](Index h, Index state) { flow_[h] = -x_[state]; });
            each_pair(e, [&](Index k, Index h, Index g) {
                const double part = towards.y[k] / sy_[k] + y_[k];
                flow_[h] += part;
                flow_[g] += part;
            });
            multiply(e, out);
            each_label(e, [&](Index h, Index state) { state_[state] += out.lam[h]; });
        }
        for (std::size_t k = 0; k < x_.size(); ++k)
            state_[k] += towards.x[k] / x_[k];
        solve_nodes(out);
        for (Index e = 0; e < model_.m; ++e) {
            each_label(e, [&](Index h, Index state) { flow_[h] -= out.x[state]; });
            multiply(e, out);
        }
        complete(towards, out);
    }

    // λ of an edge = its inverse times its flows.
    void multiply(Index e, Direction &out) const {
        double *lam = out.lam.data() + half_[2 * e];
        std::copy(flow_.begin() + half_[2 * e], flow_.begin() + half_[2 * e + 2], lam);
        laplacian(e).solve(factors_.data() + factor_[e], lam);
    }

    void solve_nodes(Direction &out) {
        right_.resize(std::size_t(matrix_.size()));
        for (Index i = 0; i < model_.n; ++i)
            each_free(i, [&](Index a, Index row) {
                right_[matrix_.row(i) + row] = state_[node_[i] + a] - state_[node_[i] + best_[i]];
            });
        matrix_.solve(right_.data());
        for (Index i = 0; i < model_.n; ++i) {
            double lost = 0.0;
            each_free(i, [&](Index a, Index row) {
                lost += out.x[node_[i] + a] = right_[matrix_.row(i) + row];
            });
            out.x[node_[i] + best_[i]] = -lost;
        }
    }

    // The changes of ν, of the reduced costs and of y that follow from those of x and λ.
    void complete(const Direction &towards, Direction &out) {
        std::fill(out.sx.begin(), out.sx.end(), 0.0);
        for (Index e = 0; e < model_.m; ++e) {
            each_label(e, [&](Index h, Index state) { out.sx[state] -= out.lam[h]; });
            each_pair(e, [&](Index k, Index h, Index g) {
                out.sy[k] = out.lam[h] + out.lam[g];
                out.y[k] = (towards.y[k] - y_[k] * out.sy[k]) / sy_[k];
            });
        }
        for (Index i = 0; i < model_.n; ++i) {
            const Index k = node_[i] + best_[i];
            out.nu[i] = out.sx[k] - (towards.x[k] - sx_[k] * out.x[k]) / x_[k];
            for (Index a = node_[i]; a < node_[i + 1]; ++a)
                out.sx[a] -= out.nu[i];
        }
    }

    // The largest steps, up to 1, that keep x and y, and the reduced costs, at 0 or more.
    std::pair<double, double> lengths(const Direction &d) const {
        const auto most = [](const std::vector<double> &v, const std::vector<double> &dv,
                             double length) {
            for (std::size_t k = 0; k < v.size(); ++k)
                if (v[k] + length * dv[k] < 0.0)
                    length = -v[k] / dv[k];
            return length;
        };
        return {most(y_, d.y, most(x_, d.x, 1.0)), most(sy_, d.sy, most(sx_, d.sx, 1.0))};
    }

    // The gap after the longest steps.
    double after(const Direction &d) const {
        const auto [primal, dual] = lengths(d);
        double sum = 0.0;
        for (std::size_t k = 0; k < x_.size(); ++k)
            sum += (x_[k] + primal * d.x[k]) * (sx_[k] + dual * d.sx[k]);
        for (std::size_t k = 0; k < y_.size(); ++k)
            sum += (y_[k] + primal * d.y[k]) * (sy_[k] + dual * d.sy[k]);
        return sum;
    }

    void advance(const Direction &d, double primal, double dual) {
        const auto add = [](std::vector<double> &to, const std::vector<double> &from, double step) {
            for (std::size_t k = 0; k < to.size(); ++k)
                to[k] += step * from[k];
        };
        add(x_, d.x, primal);
        add(y_, d.y, primal);
        add(lam_, d.lam, dual);
        add(nu_, d.nu, dual);
        reduce();
    }

    const PairwiseModel model_;
    const GraphMatrix::DenseCholesky dense_;
    std::vector<Index> node_, half_, edge_, factor_; // where the entries of each begin
    std::vector<Index> best_;                        // [n]: the most probable label
    GraphMatrix matrix_;
    std::vector<double> x_, y_, sx_, sy_, lam_, nu_, factors_;
    std::vector<double> weight_, inverse_, room_, flow_, state_, right_;
    double gap_ = 0.0;
};

} // namespace softmap::interior
