// Coupling edges (marginalisation constraints) between a node of joint states (first endpoint) and
// one of its member variables (second endpoint): cost 0 if the joint state projects to the member's
// label, else +inf. A message takes one pass over the joint states.
#pragma once

#include "dense.hpp"

namespace softmap {

// W edges with the same map from joint states to labels.
template <int W> struct ProjectionEdges : EdgesBase<W, ProjectionEdges<W>> {
    static constexpr bool closed_transport = true;

    const std::int32_t *map; // joint state -> label of the member
    bool from_joint;         // the sender is the node with joint states

    Pack<W> entry(Index x, Index y) const {
        const bool fits = from_joint ? map[x] == y : map[y] == x;
        return Pack<W>(fits ? 0.0 : infinity);
    }

    void message(const Pack<W> *a, Pack<W> *out, double *room, double eta) const {
        if (!from_joint) {
            for (Index s = 0; s < this->receivers; ++s)
                out[s] = a[map[s]];
            return;
        }
        for (Index y = 0; y < this->receivers; ++y)
            out[y] = Pack<W>(infinity);
        for (Index s = 0; s < this->senders; ++s)
            out[map[s]] = least(a[s], out[map[s]]);
        if (eta < infinity)
            soften(a, out, reinterpret_cast<Pack<W> *>(room), eta);
    }

    // The only possible plan puts the mass of each joint state on the pair with its label. If that
    // plan does not have the marginal q (up to `feasible`), there is none, and the cost is +inf.
    bool knows_transport() const { return from_joint; }

    Pack<W> transport_cost(const Pack<W> *p, const Pack<W> *q, double *room) const {
        const auto have = reinterpret_cast<Pack<W> *>(room);
        pushed(p, have);
        Pack<W> astray(0.0);
        for (Index y = 0; y < this->receivers; ++y)
            astray += size_of(have[y] - q[y]);
        return choose(Pack<W>(feasible), astray, Pack<W>(infinity),
                      astray * Pack<W>(0.0)); // 0, or NaN if a mass is NaN
    }

    template <class Put>
    void transport(const Pack<W> *p, const Pack<W> *, double *, Put put) const {
        for (Index s = 0; s < this->senders; ++s)
            put(s, map[s], p[s]);
    }

    Softened<W> softened(const Pack<W> *row, const Pack<W> *col, const Pack<W> *p, const Pack<W> *q,
                         double *room, double eta) const {
        const auto mass = reinterpret_cast<Pack<W> *>(room), have = mass + this->senders;
        const Pack<W> cold(-eta), none(0.0);
        const auto value = [&](Index s) { return row[s] + col[map[s]]; };
        const Pack<W> low = hard_minimum<W>(this->senders, value);
        Pack<W> total(0.0), mean(0.0), slack(0.0);
        for (Index s = 0; s < this->senders; ++s) {
            const Pack<W> one = value(s), excess = least(one - low, Pack<W>(1e300));
            mass[s] = unless_infinite(one, exp(cold * excess));
            mass[s] = choose(Pack<W>(trace), mass[s], mass[s], none);
            total += mass[s];
            mean = fused(mass[s], excess, mean);
        }
        const Pack<W> scale = 1.0 / total;
        for (Index s = 0; s < this->senders; ++s) {
            mass[s] *= scale;
            slack += size_of(mass[s] - p[s]);
        }
        pushed(mass, have);
        for (Index y = 0; y < this->receivers; ++y)
            slack += size_of(have[y] - q[y]);
        return {fused(Pack<W>(eta) * mean, scale, log(total)), slack};
    }

  private:
    // have = the member's marginal under the masses p of the joint states.
    void pushed(const Pack<W> *p, Pack<W> *have) const {
        for (Index y = 0; y < this->receivers; ++y)
            have[y] = Pack<W>(0.0);
        for (Index s = 0; s < this->senders; ++s)
            have[map[s]] += p[s];
    }

    void soften(const Pack<W> *a, Pack<W> *out, Pack<W> *mass, double eta) const {
        const Pack<W> cold(-eta), small(-1.0 / eta);
        for (Index y = 0; y < this->receivers; ++y)
            mass[y] = Pack<W>(0.0);
        for (Index s = 0; s < this->senders; ++s)
            mass[map[s]] += exp(cold * (a[s] - out[map[s]]));
        for (Index y = 0; y < this->receivers; ++y) // labels without an allowed state keep +inf
            out[y] = fused(small, log(greatest(mass[y], Pack<W>(Pack<W>::tiny))), out[y]);
    }
};

struct Projection : FamilyBase {
    static constexpr const char *name = "projection";

    template <int W>
    static ProjectionEdges<W> at(const Layout &lay, Index g, const auto *edges, int receiver) {
        const Index h = 2 * Index(edges[0]) + receiver;
        const auto map = lay.maps + lay.begin_of(g, edges[0]);
        return {{lay.labels_at(h ^ 1), lay.labels_at(h)}, map, receiver == 1};
    }

    static ProjectionEdges<lanes> tile(const Layout &lay, const Schedule &plan, const Block &b,
                                       bool forward) {
        const bool from_joint = forward == (b.orientation == 0);
        const auto map = lay.maps + lay.begin_of(b.group, plan.edge[b.lane]);
        return {{forward ? b.early : b.late, forward ? b.late : b.early}, map, from_joint};
    }

    static bool alike(const Layout &lay, Index g, Index e, Index f) {
        return lay.begin_of(g, e) == lay.begin_of(g, f);
    }

    static Index packed_size(Index, Index) { return 0; }
};

} // namespace softmap
