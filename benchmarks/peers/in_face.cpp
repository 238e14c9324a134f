// Block-coordinate Frank-Wolfe steps over chains with in-face directions; see in_face.py.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

using Index = std::int64_t;
constexpr double none = 1e-12; // a marginal below is 0
constexpr double inf = std::numeric_limits<double>::infinity();

} // namespace

extern "C" {

// Position p is the p-th node of the chains, one after the other.
struct Chains {
    Index count;          // number of chains
    const Index *start;   // [count + 1] first position of each chain
    const Index *node;    // [positions]
    const Index *labels;  // [positions]
    const Index *at;      // [positions] first entry of node arrays
    const Index *pair_at; // [positions] first entry of the edge to the next position
    const Index *node_at; // [nodes] first entry of `sum`
    const double *many;   // [nodes] number of chains through a node
    const double *cost;   // costs of nodes, divided among chains
    const double *pair;   // costs of edges
    const double *centre; // λ at the centre of the proximal term
    double *x;            // marginals of nodes
    double *y;            // marginals of edges
    double *sum;          // Σ x over the chains of a node
    double tau;           // weight of the proximal term, in cost
};

} // extern "C"

namespace {

struct Pair {
    Index a, b;
    double cost;
    double *y;
};

// The function along one chain t: x ↦ <c, x> + τ/2 |x minus its mean over chains|², other chains
// fixed.
class Chain {
  public:
    Chain(const Chains &all, Index t) : all_(all), first_(all.start[t]), last_(all.start[t + 1]) {
        const Index entries = all.at[last_ - 1] + all.labels[last_ - 1] - all.at[first_];
        slope_.resize(entries), low_.resize(entries), from_.resize(entries);
        best_.resize(last_ - first_);
    }

    // Add the marginals of this chain to the sums, times a sign.
    void count(double sign) const {
        for (Index p = first_; p < last_; ++p)
            for (Index a = 0; a < all_.labels[p]; ++a)
                all_.sum[all_.node_at[all_.node[p]] + a] += sign * x(p)[a];
    }

    // Compute the gradient; `others` is whether the sums are without this chain.
    void gradient(bool others) {
        for (Index p = first_; p < last_; ++p) {
            const double many = all_.many[all_.node[p]];
            const double *sum = all_.sum + all_.node_at[all_.node[p]];
            for (Index a = 0; a < all_.labels[p]; ++a) {
                const Index k = all_.at[p] + a;
                const double total = sum[a] + (others ? all_.x[k] : 0.0);
                slope(p)[a] = all_.cost[k] + all_.centre[k] + all_.tau * (all_.x[k] - total / many);
            }
        }
    }

    // The value of the linear function at the marginals.
    double linear() const {
        double total = 0;
        for (Index p = first_; p < last_; ++p) {
            for (Index a = 0; a < all_.labels[p]; ++a)
                total += slope(p)[a] * x(p)[a];
            if (p + 1 < last_)
                for (Index k = 0; k < all_.labels[p] * all_.labels[p + 1]; ++k)
                    total += all_.pair[all_.pair_at[p] + k] * all_.y[all_.pair_at[p] + k];
        }
        return total;
    }

    // Minimise the linear function over all labellings, into best_.
    double minimise() {
        std::copy(slope(first_), slope(first_) + all_.labels[first_], low(first_));
        for (Index p = first_; p + 1 < last_; ++p) {
            const Index rows = all_.labels[p], columns = all_.labels[p + 1];
            std::fill(low(p + 1), low(p + 1) + columns, inf);
            for (Index a = 0; a < rows; ++a)
                for (Index b = 0; b < columns; ++b) {
                    const double value = low(p)[a] + all_.pair[all_.pair_at[p] + a * columns + b];
                    if (value < low(p + 1)[b])
                        low(p + 1)[b] = value, from(p + 1)[b] = a;
                }
            for (Index b = 0; b < columns; ++b)
                low(p + 1)[b] += slope(p + 1)[b];
        }
        return trace();
    }

    // Minimise it (sign 1) or its negative (-1) over the labellings of the smallest face that holds
    // the marginals: those whose labels and pairs have positive marginals.
    double minimise_in_face(double sign) {
        for (Index a = 0; a < all_.labels[first_]; ++a)
            low(first_)[a] = x(first_)[a] > 0 ? sign * slope(first_)[a] : inf;
        for (Index p = first_; p + 1 < last_; ++p) {
            std::fill(low(p + 1), low(p + 1) + all_.labels[p + 1], inf);
            for (const Pair &one : active_[p - first_]) {
                const double value = low(p)[one.a] + sign * one.cost;
                if (value < low(p + 1)[one.b])
                    low(p + 1)[one.b] = value, from(p + 1)[one.b] = one.a;
            }
            for (Index b = 0; b < all_.labels[p + 1]; ++b)
                low(p + 1)[b] += sign * slope(p + 1)[b];
        }
        return sign * trace();
    }

    // List the pairs with positive marginals.
    void find_face() {
        active_.resize(last_ - first_);
        for (Index p = first_; p + 1 < last_; ++p) {
            auto &list = active_[p - first_];
            list.clear();
            for (Index a = 0; a < all_.labels[p]; ++a)
                for (Index b = 0; b < all_.labels[p + 1]; ++b) {
                    const Index k = all_.pair_at[p] + a * all_.labels[p + 1] + b;
                    if (all_.y[k] > 0)
                        list.push_back({a, b, all_.pair[k], all_.y + k});
                }
        }
    }

    // Move along best_ - x (or x - best_, if `away`), to the minimum or the border of the face;
    // `fall` is what the linear function loses per step. The face loses the marginals that become 0.
    void move(bool away, double fall, double most) {
        double curvature = 0;
        for (Index p = first_; p < last_; ++p) {
            double square = 0;
            for (Index a = 0; a < all_.labels[p]; ++a)
                square += std::pow(x(p)[a] - (a == best_[p - first_]), 2);
            curvature += (1 - 1 / all_.many[all_.node[p]]) * square;
        }
        curvature *= all_.tau;
        const double step = fall < curvature * most ? fall / curvature : most;
        const double kept = away ? 1 + step : 1 - step, added = away ? -step : step;
        for (Index p = first_; p < last_; ++p) {
            for (Index a = 0; a < all_.labels[p]; ++a)
                x(p)[a] = changed(x(p)[a], kept, a == best_[p - first_] ? added : 0.0);
            if (p + 1 == last_)
                break;
            auto &list = active_[p - first_];
            const Index a = best_[p - first_], b = best_[p + 1 - first_];
            bool present = false;
            for (Pair &one : list) {
                const bool here = one.a == a && one.b == b;
                present |= here;
                *one.y = changed(*one.y, kept, here ? added : 0.0);
            }
            if (!present && added > 0) {
                const Index k = all_.pair_at[p] + a * all_.labels[p + 1] + b;
                all_.y[k] = added;
                list.push_back({a, b, all_.pair[k], all_.y + k});
            }
            list.erase(std::remove_if(list.begin(), list.end(),
                                      [](const Pair &one) { return *one.y == 0; }),
                       list.end());
        }
    }

    // The largest step away from best_ that leaves all marginals nonnegative.
    double border() const {
        double most = inf;
        const auto limit = [&most](double value) {
            if (value < 1)
                most = std::min(most, value / (1 - value));
        };
        for (Index p = first_; p < last_; ++p) {
            limit(x(p)[best_[p - first_]]);
            if (p + 1 < last_)
                for (const Pair &one : active_[p - first_])
                    if (one.a == best_[p - first_] && one.b == best_[p + 1 - first_])
                        limit(*one.y);
        }
        return most;
    }

    // A Frank-Wolfe step, and steps within the face until they gain little.
    void visit(Index within) {
        count(-1);
        gradient(true);
        const double gap = linear() - minimise();
        find_face();
        if (gap > 0)
            move(false, gap, 1);
        for (Index k = 0; k < within; ++k) {
            gradient(true);
            const double now = linear(), least = minimise_in_face(1);
            const std::vector<Index> inner = best_;
            const double most = minimise_in_face(-1);
            const double forward = now - least, backward = most - now;
            if (std::max(forward, backward) <= 0.1 * gap || std::max(forward, backward) <= none)
                break;
            const double end = border();
            if (backward >= forward && end < inf && end > 0)
                move(true, backward, end);
            else {
                best_ = inner;
                move(false, forward, 1);
            }
        }
        count(1);
    }

  private:
    static double changed(double value, double kept, double added) {
        const double made = kept * value + added;
        return made < none ? 0.0 : made;
    }
    double *x(Index p) const { return all_.x + all_.at[p]; }
    double *slope(Index p) { return slope_.data() + all_.at[p] - all_.at[first_]; }
    const double *slope(Index p) const { return slope_.data() + all_.at[p] - all_.at[first_]; }
    double *low(Index p) { return low_.data() + all_.at[p] - all_.at[first_]; }
    Index *from(Index p) { return from_.data() + all_.at[p] - all_.at[first_]; }

    double trace() {
        const double *end = low(last_ - 1);
        Index b = std::min_element(end, end + all_.labels[last_ - 1]) - end;
        const double value = end[b];
        for (Index p = last_ - 1; p >= first_; --p) {
            best_[p - first_] = b;
            b = p > first_ ? from(p)[b] : 0;
        }
        return value;
    }

    const Chains &all_;
    const Index first_, last_;
    std::vector<double> slope_, low_;
    std::vector<Index> from_, best_;
    std::vector<std::vector<Pair>> active_;
};

} // namespace

extern "C" {

// Start at the labellings that minimise the costs of each chain.
void begin(const Chains *all) {
    for (Index t = 0; t < all->count; ++t) {
        Chain chain(*all, t);
        chain.gradient(false); // x is 0
        chain.minimise();
        chain.find_face();
        chain.move(false, inf, 1);
        chain.count(1);
    }
}

// Visit all chains so many times.
void sweep(const Chains *all, Index count, Index within) {
    std::vector<Chain> chains;
    for (Index t = 0; t < all->count; ++t)
        chains.emplace_back(*all, t);
    for (Index k = 0; k < count; ++k)
        for (Chain &chain : chains)
            chain.visit(within);
}

// The dual function at the λ of the marginals.
double dual(const Chains *all) {
    double total = 0;
    for (Index t = 0; t < all->count; ++t) {
        Chain chain(*all, t);
        chain.gradient(false);
        total += chain.minimise();
    }
    return total;
}

} // extern "C"
