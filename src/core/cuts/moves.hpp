// Minimum cuts for models of two labels, and fusion moves between two labellings.
#pragma once

#include "base/deadline.hpp"
#include "flow.hpp"
#include "labels/one_edge.hpp"

#include <array>
#include <numeric>

namespace softmap {

// The costs of an edge over two choices at each endpoint, first endpoint first.
struct Pairwise {
    double none, second, first, both; // (0, 0), (0, 1), (1, 0), (1, 1)

    // The edge is submodular if this is not negative.
    double surplus() const { return second + first - none - both; }
};

// A submodular edge as capacities of its two arcs, that of the first endpoint first, and as costs
// of label 1 at its endpoints. As much cost as possible stays on the edge.
struct Divided {
    double capacity[2], cost[2];

    explicit Divided(const Pairwise &pair) {
        const double all = std::max(pair.surplus(), 0.0);
        const double forward = std::clamp(pair.second - pair.none, 0.0, all);
        capacity[0] = forward;
        capacity[1] = all - forward;
        cost[0] = pair.first - pair.none - (all - forward);
        cost[1] = pair.second - pair.none - forward;
    }
};

// The costs of a model, in which `barrier` stands for +inf.
class BarredCosts {
  public:
    const Layout &lay;

    BarredCosts(const Layout &layout, double barrier) : lay(layout), barrier_(barrier) {}

    double node(Index i, Index x) const {
        return std::min(lay.unary[lay.node_offset[i] + x], barrier_);
    }
    // Calls f(e, i, j, cost) for the edges e = (i, j) from `first` on and before `last`; cost(x, y)
    // is the cost of their labels.
    template <class Function> void each_edge(Index first, Index last, Function f) const {
        for (Index g = 0; g < lay.groups; ++g)
            Families::visit(lay.kind[g], [&](auto family) {
                const Index begin = std::max(first, lay.group_start[g]);
                const Index end = std::min(last, lay.group_start[g + 1]);
                for (Index e = begin; e < end; ++e) {
                    const auto edge = family.template at<1>(lay, g, &e, 0);
                    f(e, Index(lay.node[2 * e]), Index(lay.node[2 * e + 1]), excluded(edge));
                }
            });
    }
    // Calls f(cost) for edge e.
    template <class Function> void at_edge(Index e, Function f) const {
        visit_edge(lay, 2 * e, [&](const auto &edge) { f(excluded(edge)); });
    }
    Incidence graph() const { return {lay.n, lay.node, lay.start, lay.half}; }

  private:
    const double barrier_;

    // The cost of labels x and y at the endpoints of an edge.
    template <class Edge> auto excluded(const Edge &edge) const {
        return [&](Index x, Index y) { return std::min(edge.entry(y, x).part[0], barrier_); };
    }
};

// Chooses between two labellings, variable by variable, by a minimum cut: an α-expansion if the
// second labelling is constant (Boykov, Veksler and Zabih, PAMI 2001), a fusion move in general.
//
// If an edge is not submodular, its cost of keeping both labels is lowered until it is (Rother et
// al., CVPR 2005). The approximation error is largest at the labelling that keeps everything, so
// that a move never raises the energy.
class FusionMoves {
  public:
    FusionMoves(const Layout &lay, double barrier) : costs_(lay, barrier) {}

    // Updates the labels in place. Returns the number of variables that changed, or -1 if the
    // meter was spent first. The result does not depend on the number of threads.
    Index fuse(Index *labels, const Index *proposal, Meter &meter, int threads) {
        const Move move{labels, proposal, threads};
        meter.use(4 * costs_.lay.m + costs_.lay.n);
        if (meter.late() || !fill(move, shape(move), meter))
            return -1;
        flow_.start_pieces(threads);
        if (!flow_.run(meter, threads))
            return -1;
        return total_of(counted(move, [&](Index i) {
            const bool changes = number_[i] >= 0 && flow_.label(number_[i]);
            if (changes)
                labels[i] = proposal[i];
            return Index(changes);
        }));
    }

  private:
    struct Move {
        const Index *labels, *proposal;
        int threads;
    };
    static constexpr Index portions = 64; // of the variables
    static constexpr Index arc_work = 64; // of the arcs of one variable, about, in table entries
    using Counts = std::array<Index, portions>;

    // Calls f(part) for all portions of the variables, on all threads.
    void each_portion(const Move &move, Task<Part> f) const {
        split_portions(move.threads, portions, costs_.lay.n, f);
    }
    // The sums of f(i) over the variables of each portion.
    template <class Function> Counts counted(const Move &move, Function f) const {
        Counts counts{};
        each_portion(move, [&](Part part) {
            Index sum = 0;
            part.each(0, costs_.lay.n, [&](Index i) { sum += f(i); });
            counts[part.index] = sum;
        });
        return counts;
    }
    static Index total_of(const Counts &counts) {
        return std::accumulate(counts.begin(), counts.end(), Index(0));
    }

    // Calls f(h, j) for each half-edge h of variable i whose other endpoint j may change, too.
    template <class Function> void each_arc(Index i, Function f) const {
        const Layout &lay = costs_.lay;
        for (Index t = lay.start[i]; t < lay.start[i + 1]; ++t)
            if (const Index h = lay.half[t]; number_[lay.node[h ^ 1]] >= 0)
                f(h);
    }

    // Gives numbers to the variables whose two labels differ, the nodes of the flow graph, and to
    // the half-edges between them, its arcs. Returns the half-edges by arc; those of a node ascend.
    std::vector<std::int32_t> shape(const Move &move) {
        number_.resize(std::size_t(costs_.lay.n));
        Counts nodes =
            counted(move, [&](Index i) { return Index(move.labels[i] != move.proposal[i]); });
        const Index size = total_of(nodes);
        std::exclusive_scan(nodes.begin(), nodes.end(), nodes.begin(), Index(0));
        each_portion(move, [&](Part part) {
            Index next = nodes[part.index];
            part.each(0, costs_.lay.n, [&](Index i) {
                number_[i] = move.labels[i] != move.proposal[i] ? std::int32_t(next++) : -1;
            });
        });
        Counts arcs = counted(move, [&](Index i) {
            Index count = 0;
            if (number_[i] >= 0)
                each_arc(i, [&](Index) { ++count; });
            return count;
        });
        std::vector<std::int32_t> half(std::size_t(total_of(arcs)));
        flow_.reshape(size, Index(half.size()));
        std::exclusive_scan(arcs.begin(), arcs.end(), arcs.begin(), Index(0));
        each_portion(move, [&](Part part) {
            Index next = arcs[part.index];
            part.each(0, costs_.lay.n, [&](Index i) {
                if (number_[i] < 0)
                    return;
                flow_.set_node(number_[i], next, 0.0);
                each_arc(i, [&](Index h) { half[next++] = std::int32_t(h); });
            });
        });
        return half;
    }

    // Sets the costs of all nodes and the capacities of all arcs. Each endpoint of an edge computes
    // its own part, so that nothing is stored by edge, and the costs of a node's edges are added up
    // in the order of its half-edges, whatever the number of threads. Returns false if it was late
    // first.
    bool fill(const Move &move, const std::vector<std::int32_t> &half, const Meter &meter) {
        std::atomic<bool> late = false;
        each_portion(move, [&](Part part) {
            Meter own = meter.rest();
            part.each(0, costs_.lay.n, [&](Index i) {
                if (late || own.tick(arc_work))
                    late = true;
                else if (number_[i] >= 0)
                    fill_node(move, i, half);
            });
        });
        return !late;
    }
    void fill_node(const Move &move, Index i, const std::vector<std::int32_t> &half) {
        const Layout &lay = costs_.lay;
        double sum = costs_.node(i, move.proposal[i]) - costs_.node(i, move.labels[i]);
        Index arc = flow_.first(number_[i]);
        for (Index t = lay.start[i]; t < lay.start[i + 1]; ++t) {
            const Index h = lay.half[t], side = h & 1, j = lay.node[h ^ 1];
            Pairwise pair = changes(move, h >> 1);
            if (number_[j] < 0) {
                sum += (side == 0 ? pair.first : pair.second) - pair.none;
                continue;
            }
            pair.none += std::min(pair.surplus(), 0.0);
            const Divided parts(pair);
            flow_.set_arc(arc++, number_[j], arc_of(half, number_[j], h ^ 1), parts.capacity[side]);
            sum += parts.cost[side];
        }
        flow_.add_cost(number_[i], sum);
    }
    // The arc of half-edge h at a node.
    Index arc_of(const std::vector<std::int32_t> &half, Index node, Index h) const {
        Index first = flow_.first(node), last = flow_.first(node + 1);
        while (last - first > 8) // few arcs are searched faster one by one
            (half[(first + last) / 2] <= h ? first : last) = (first + last) / 2;
        while (half[first] != h)
            ++first;
        return first;
    }
    // The costs of an edge whose endpoints keep their labels or take those of the proposal.
    Pairwise changes(const Move &move, Index e) const {
        const Index i = costs_.lay.node[2 * e], j = costs_.lay.node[2 * e + 1];
        const Index a = move.labels[i], b = move.labels[j];
        const Index p = move.proposal[i], q = move.proposal[j];
        Pairwise pair;
        costs_.at_edge(e,
                       [&](auto cost) { pair = {cost(a, b), cost(a, q), cost(p, b), cost(p, q)}; });
        return pair;
    }

    BarredCosts costs_;
    MinimumCut<double> flow_;
    std::vector<std::int32_t> number_; // by variable: its node; -1 if its two labels are equal
};

// Solves a model of at most two labels per node whose edges are all submodular, for labels and λ.
class BinaryCut {
  public:
    BinaryCut(const Layout &lay, double barrier, int threads)
        : costs_(lay, barrier), flow_(costs_.graph()), threads_(threads) {
        for (Index i = 0; i < lay.n && applies_; ++i)
            if (applies_ = lay.num_labels[i] <= 2; applies_ && lay.num_labels[i] == 2)
                flow_.add_cost(i, costs_.node(i, 1) - costs_.node(i, 0));
        if (!applies_)
            return;
        each_edge([&](Index e, Index i, Index j, const Pairwise &pair) {
            if (lay.num_labels[i] < 2)
                return flow_.add_cost(j, pair.second - pair.none);
            if (lay.num_labels[j] < 2)
                return flow_.add_cost(i, pair.first - pair.none);
            applies_ &= pair.surplus() >= 0.0;
            const Divided parts(pair);
            flow_.set_capacity(2 * e, parts.capacity[0]);
            flow_.set_capacity(2 * e + 1, parts.capacity[1]);
            flow_.add_cost(i, parts.cost[0]);
            flow_.add_cost(j, parts.cost[1]);
        });
        flow_.start_pieces(threads);
    }

    // Whether all nodes have at most two labels and all edges are submodular.
    bool applies() const { return applies_; }

    // Returns false if the meter was spent first; a further call then continues.
    bool run(Meter &meter) { return flow_.run(meter, threads_); }

    // The labels and λ of the flow so far. The residual capacities of its arcs stay on an edge; λ
    // moves the rest to its endpoints. Any λ proves a bound, so that rounding here changes the last
    // digit of the bound only.
    void read(Index *labels, double *lam) const {
        const Layout &lay = costs_.lay;
        for (Index i = 0; i < lay.n; ++i)
            labels[i] = lay.num_labels[i] == 2 ? flow_.label(i) : 0;
        each_edge([&](Index e, Index i, Index j, const Pairwise &pair) {
            double *first = lam + lay.half_at(2 * e), *second = lam + lay.half_at(2 * e + 1);
            const bool free = lay.num_labels[i] == 2 && lay.num_labels[j] == 2;
            first[0] = second[0] = 0.0;
            if (lay.num_labels[i] == 2)
                first[1] = pair.none - pair.first + (free ? flow_.residual(2 * e + 1) : 0.0);
            if (lay.num_labels[j] == 2)
                second[1] = pair.none - pair.second + (free ? flow_.residual(2 * e) : 0.0);
        });
    }

  private:
    BarredCosts costs_;
    MinimumCut<double> flow_;
    const int threads_;
    bool applies_ = true;

    template <class Function> void each_edge(Function f) const {
        costs_.each_edge(0, costs_.lay.m, [&](Index e, Index i, Index j, auto cost) {
            const Index p = costs_.lay.num_labels[i] - 1, q = costs_.lay.num_labels[j] - 1;
            f(e, i, j, Pairwise{cost(0, 0), cost(0, q), cost(p, 0), cost(p, q)});
        });
    }
};

} // namespace softmap
