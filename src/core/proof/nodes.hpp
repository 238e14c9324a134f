// Soft marginals of nodes.
#pragma once

#include "base/schedule.hpp"
#include "tiles.hpp"

namespace softmap {

// Entropies of marginals, and soft minima of the costs that they come from, by lane.
struct SoftValues {
    Pack<lanes> entropy, minimum;
};

// Computes μ ∝ exp(-η s) for one node per lane, each with `labels` labels.
class SoftLanes {
  public:
    explicit SoftLanes(Index widest) : excess_(std::size_t(widest)), mass_(std::size_t(widest)) {}

    // load(x) returns s(x) of all lanes; store(x, μ(x)) receives the marginals.
    template <class Load, class Store>
    SoftValues operator()(Index labels, double eta, Load load, Store store) {
        P low(infinity), total(0.0), mean(0.0);
        for (Index x = 0; x < labels; ++x) {
            excess_[x] = load(x);
            low = least(excess_[x], low);
        }
        for (Index x = 0; x < labels; ++x) {
            const P cost = excess_[x];
            excess_[x] = least(cost - low, P(1e300));
            mass_[x] = unless_infinite(cost, exp(P(-eta) * excess_[x]));
            total += mass_[x];
        }
        const P scale = 1.0 / total;
        for (Index x = 0; x < labels; ++x) {
            const P share_of = choose(P(trace), mass_[x], mass_[x], P(0.0)) * scale;
            mean = fused(share_of, excess_[x], mean);
            store(x, share_of);
        }
        const P logarithm = log(total);
        return {fused(P(eta), mean, logarithm), fused(logarithm, P(-1.0 / eta), low)};
    }

  private:
    using P = Pack<lanes>;
    std::vector<P> excess_, mass_;
};

// out = μ_i ∝ exp(-η s_i) for nodes first..last-1, where s_i are their entries of `share`;
// entropy[i] is the entropy of μ_i and minimum[i] the soft minimum of s_i. All are in model order.
// Consecutive nodes of equal label counts are computed together, one per lane.
inline void soft_nodes(const Layout &lay, const double *share, double eta, double *out,
                       double *entropy, double *minimum, Index first, Index last) {
    using P = Pack<lanes>;
    SoftLanes soft(lay.widest);
    for (Index i = first, count; i < last; i += count) {
        const Index labels = lay.num_labels[i], end = std::min(last, (i / lanes + 1) * lanes);
        for (count = 1; i + count < end && lay.num_labels[i + count] == labels;)
            ++count;
        const Index at = lay.node_offset[i]; // the entries of consecutive nodes are contiguous
        const SoftValues found = soft(
            labels, eta,
            [&](Index x) {
                return P::of(
                    [&](int k) { return share[at + std::min(Index(k), count - 1) * labels + x]; });
            },
            [&](Index x, const P &own) {
                own.each(int(count), [&](int k, double one) { out[at + k * labels + x] = one; });
            });
        found.entropy.each(int(count), [&](int k, double one) { entropy[i + k] = one; });
        found.minimum.each(int(count), [&](int k, double one) { minimum[i + k] = one; });
    }
}

// The nodes first..end-1, in the order of strips, of row r and the rows of its strip after it.
struct Stretch {
    Index next; // the first row after them
    Index first, end;

    Stretch(const Schedule &plan, Index r, Index last) : next(r + 1) {
        const Row &row = plan.rows[r];
        first = row.first, end = row.first + row.nodes;
        while (next < last && follows(row, plan.rows[next]))
            end = plan.rows[next].first + plan.rows[next].nodes, ++next;
    }
    static bool follows(const Row &row, const Row &later) {
        return later.place - row.place == later.first - row.first && later.step == row.step &&
               later.labels == row.labels;
    }
};

// Moves the entries of `out` (in model order) of the nodes of rows first..last-1 by `weight`
// towards their marginals μ_i ∝ exp(-η θ_i), where the shares θ are by strip. Unless `entropy` is
// null, the entropy of the j-th of these nodes goes to entropy[j], and the soft minimum of θ_i to
// minimum[j]. `out` is of type T, float or double.
template <class T>
void soft_rows(const Layout &lay, const Schedule &plan, const double *theta, double eta,
               double weight, T *out, double *entropy, double *minimum, Index first, Index last) {
    using P = Pack<lanes>;
    SoftLanes soft(lay.widest);
    const Index begin = first < last ? plan.rows[first].first : 0;
    for (Index r = first; r < last;) {
        const Stretch stretch(plan, r, last);
        const Row &row = plan.rows[r];
        for (Index k = stretch.first; k < stretch.end; k += lanes) {
            const int count = int(std::min<Index>(lanes, stretch.end - k));
            const double *own = theta + row.place + (k - stretch.first);
            T *to[lanes];
            for (int lane = 0; lane < count; ++lane)
                to[lane] = out + lay.node_offset[plan.nodes[k + lane]];
            const SoftValues found = soft(
                row.labels, eta, [&](Index x) { return P::load(own + x * row.step); },
                [&](Index x, const P &mass) {
                    mass.each(count, [&](int lane, double one) {
                        const double before = weight == 1.0 ? one : double(to[lane][x]);
                        to[lane][x] = T(before + weight * (one - before));
                    });
                });
            if (!entropy)
                continue;
            found.entropy.each(count,
                               [&](int lane, double one) { entropy[k + lane - begin] = one; });
            found.minimum.each(count,
                               [&](int lane, double one) { minimum[k + lane - begin] = one; });
        }
        r = stretch.next;
    }
}

} // namespace softmap
