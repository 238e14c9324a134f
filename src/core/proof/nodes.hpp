// Soft marginals of nodes.
#pragma once

#include "tiles.hpp"

namespace softmap {

// μ_i ∝ exp(-η s_i) of nodes first..last-1, s_i(x) being share[at[i] + x step[i]], into `out`; the
// entropies of the μ_i, and the soft minima of the s_i, unless there is no room for them. Nodes of
// equal label counts go together.
inline void soft_nodes(const Layout<double> &lay, const Index *at, const Index *step,
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
            double *to = out + lay.node_offset[i] + x; // labels of nodes follow each other
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
