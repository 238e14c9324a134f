// Hard messages and conditional costs of single edges of any family.
#pragma once

#include "families/all.hpp"
#include "kernels/kernels.hpp"

#include <vector>

namespace softmap {

// Calls f(edge) with the family's view of the edge of half-edge h, whose receiver is the node at h.
template <class Function> inline void visit_edge(const Layout &lay, Index h, Function &&f) {
    const Index e = h >> 1, g = lay.group_of(e);
    Families::visit(lay.kind[g],
                    [&](auto family) { f(family.template at<1>(lay, g, &e, int(h & 1))); });
}

// out[y] = min over x of a[x] + C(x, y) for the labels y of half-edge h. `room` has
// message_room(widest, 1) entries.
inline void hard_message(const Layout &lay, Index h, const double *a, double *out, double *room) {
    kernels->send_one(lay, lay.group_of(h >> 1), h, a, out, room, infinity);
}

// out[y] = C(far, y): the cost of label y at half-edge h if the other endpoint has label `far`.
inline void conditional_costs(const Layout &lay, Index h, Index far, double *out) {
    visit_edge(lay, h, [&](const auto &edge) {
        for (Index y = 0; y < edge.receivers; ++y)
            out[y] = edge.entry(far, y).part[0];
    });
}

} // namespace softmap
