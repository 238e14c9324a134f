// The family of CONTRIBUTING.md behind plain functions, for test_contributing.py.
#include "families/all.hpp"

using namespace softmap;

namespace {
// `lanes` parallel edges between two nodes, whose labels are counted from `labels`.
struct Parallel {
    std::int32_t node[2 * lanes];
    Index group_start[2] = {0, lanes}, weight_at[1] = {0}, weight_step[1] = {1};
    Layout lay{};

    Parallel(const Index *labels, const double *weights) {
        for (int h = 0; h < 2 * lanes; ++h)
            node[h] = h & 1;
        lay.node = node;
        lay.num_labels = {labels, 0};
        lay.weight_step = weight_step;
        lay.group_start = group_start;
        lay.weight = weights;
        lay.weight_at = weight_at;
    }
};

// Messages of all lanes; a and out are [labels][lanes].
template <class Edges> void send(const Edges &edges, const double *a, double *out, double eta) {
    constexpr int W = Edges::width;
    Room room(message_room(edges.senders, W) + message_room(edges.receivers, W));
    std::vector<Pack<W>> from(edges.senders), into(edges.receivers);
    for (Index x = 0; x < edges.senders; ++x)
        from[x] = Pack<W>::load(a + x * W);
    edges.message(from.data(), into.data(), room.numbers(), eta);
    for (Index y = 0; y < edges.receivers; ++y)
        into[y].store(out + y * W);
}
} // namespace

extern "C" {
int lane_count() { return lanes; }

const char *last_name() { return Families::names[Families::size - 1]; }

void by_edges(const Index *labels, const double *weights, int receiver, const double *a,
              double *out, double eta) {
    const Parallel two(labels, weights);
    Index edges[lanes];
    for (int k = 0; k < lanes; ++k)
        edges[k] = k;
    send(Ordered::at<lanes>(two.lay, 0, edges, receiver), a, out, eta);
}

void by_one(const Index *labels, const double *weights, int receiver, const double *a, double *out,
            double eta) {
    const Parallel two(labels, weights);
    const Index edge = 0;
    send(Ordered::at<1>(two.lay, 0, &edge, receiver), a, out, eta);
}

// A forward pass over a tile whose first end comes early (receiver = 1) or late.
void by_tile(const Index *labels, const double *weights, int receiver, const double *a, double *out,
             double eta) {
    const Parallel two(labels, weights);
    Schedule plan{};
    plan.weight = weights;
    Block b{};
    b.orientation = receiver == 1 ? 0 : 1;
    b.early = labels[1 - receiver];
    b.late = labels[receiver];
    send(Ordered::tile(two.lay, plan, b, true), a, out, eta);
}
}
