// Ties of a node with joint states (first end) to a member (second end): 0 where the joint state
// projects to the member's label, +inf elsewhere. A message is one pass over the joint states.
#pragma once

#include "dense.hpp"

namespace softmap {

// W edges with the same map.
template <int W> struct ProjectionEdges : EdgesBase<W, ProjectionEdges<W>> {
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

  private:
    void soften(const Pack<W> *a, Pack<W> *out, Pack<W> *mass, double eta) const {
        const Pack<W> cold(-eta), small(-1.0 / eta);
        for (Index y = 0; y < this->receivers; ++y)
            mass[y] = Pack<W>(0.0);
        for (Index s = 0; s < this->senders; ++s)
            mass[map[s]] += exp(cold * (a[s] - out[map[s]]));
        for (Index y = 0; y < this->receivers; ++y) // +inf stays where no state is allowed
            out[y] += small * log(greatest(mass[y], Pack<W>(1e-300)));
    }
};

struct Projection {
    static constexpr const char *name = "projection";

    template <int W, class S>
    static ProjectionEdges<W> at(const Layout<S> &lay, Index g, const Index *edges, int receiver) {
        const Index h = 2 * edges[0] + receiver;
        const auto map = lay.maps + lay.begin_of(g, edges[0]);
        return {{lay.labels_at(h ^ 1), lay.labels_at(h)}, map, receiver == 1};
    }

    template <class S>
    static ProjectionEdges<lanes> tile(const Layout<S> &lay, const Schedule<S> &plan, const Block &b,
                                       bool forward) {
        const bool from_joint = forward == (b.orientation == 0);
        const auto map = lay.maps + lay.begin_of(b.group, plan.edge[b.lane]);
        return {
            {forward ? b.early : b.late, forward ? b.late : b.early}, map, from_joint};
    }

    static Index packed_size(Index, Index) { return 0; }
};

} // namespace softmap
