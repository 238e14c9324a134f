// Soft marginals of nodes.
#pragma once

#include "tiles.hpp"

namespace softmap {

// out = μ_i ∝ exp(-η s_i) for nodes first..last-1, where s_i(x) = share[at[i] + x · step[i]].
// Unless `entropy` is null, entropy[i] is the entropy of μ_i and minimum[i] the soft minimum of
// s_i. Consecutive nodes of equal label counts are computed together, one per lane.
inline void soft_nodes(const Layout<double> &lay, const Index *at, const std::int32_t *step,
                       const double *share, double eta, double *out, double *entropy,
                       double *minimum, Index first, Index last) {
    using P = Pack<lanes>;
    std::vector<P> excess(std::size_t(lay.widest)), mass(std::size_t(lay.widest));
    for (Index i = first, count; i < last; i += count) {
        const Index labels = lay.num_labels[i], end = std::min(last, (i / lanes + 1) * lanes);
        for (count = 1; i + count < end && lay.num_labels[i + count] == labels;)
            ++count;
        Index place[lanes], stride[lanes];
        for (int k = 0; k < lanes; ++k) {
            const Index node = i + std::min(Index(k), count - 1);
            place[k] = at[node], stride[k] = step[node];
        }
        P low(infinity), total(0.0), mean(0.0);
        for (Index x = 0; x < labels; ++x) {
            excess[x] = P::of([&](int k) { return share[place[k] + x * stride[k]]; });
            low = least(excess[x], low);
        }
        for (Index x = 0; x < labels; ++x) {
            const P cost = excess[x];
            excess[x] = least(cost - low, P(1e300));
            mass[x] = unless_infinite(cost, exp(P(-eta) * excess[x]));
            total += mass[x];
        }
        const P scale = 1.0 / total;
        for (Index x = 0; x < labels; ++x) {
            const P share_of = choose(P(trace), mass[x], mass[x], P(0.0)) * scale;
            mean = fused(share_of, excess[x], mean);
            double *to = out + lay.node_offset[i] + x; // the nodes' entries are contiguous in `out`
            share_of.each(int(count), [&](int k, double one) { to[k * labels] = one; });
        }
        if (!entropy)
            continue;
        const P logarithm = log(total);
        fused(P(eta), mean, logarithm).each(int(count), [&](int k, double one) {
            entropy[i + k] = one;
        });
        fused(logarithm, P(-1.0 / eta), low).each(int(count), [&](int k, double one) {
            minimum[i + k] = one;
        });
    }
}

} // namespace softmap
