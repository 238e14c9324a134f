// Iterated conditional modes (ICM): coordinate descent over labels, one after the other or in
// independent sets on all threads.
#pragma once

#include "base/deadline.hpp"
#include "base/team.hpp"
#include "one_edge.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace softmap {

// Finite cost and number of infinite terms of each label of one node, given all other labels.
class LocalCosts {
  public:
    explicit LocalCosts(Index widest) : cost(widest), broken(widest), terms_(widest) {}

    std::vector<double> cost;
    std::vector<Index> broken;

    // The costs of node i. `stride[h]` is the change of the state of the auxiliary node across h
    // per unit of the label at h; 0 if that node is a variable. Null if there are none of them.
    void find(const Layout &lay, Index i, const Index *labels, const Index *stride) {
        const Index count = lay.num_labels[i];
        std::fill_n(cost.data(), count, 0.0);
        std::fill_n(broken.data(), count, Index(0));
        add(lay.unary + lay.node_offset[i], count);
        for (Index k = lay.start[i]; k < lay.start[i + 1]; ++k) {
            const Index h = lay.half[k], j = lay.node[h ^ 1];
            if (stride && stride[h] > 0) { // the state of j is a function of its members
                const double *joint = lay.unary + lay.node_offset[j] + labels[j];
                for (Index x = 0; x < count; ++x)
                    terms_[x] = joint[(x - labels[i]) * stride[h]];
            } else {
                conditional_costs(lay, h, labels[j], terms_.data());
            }
            add(terms_.data(), count);
        }
    }

    // The label with the fewest infinite terms, and the lowest cost among these; `own` at ties.
    Index best(Index own, Index count) const {
        Index best = own;
        for (Index x = 0; x < count; ++x)
            if (broken[x] < broken[best] || (broken[x] == broken[best] && cost[x] < cost[best]))
                best = x;
        return best;
    }

  private:
    std::vector<double> terms_;

    void add(const double *terms, Index count) {
        for (Index x = 0; x < count; ++x) {
            const bool finite = terms[x] < infinity;
            cost[x] += finite ? terms[x] : 0.0;
            broken[x] += !finite;
        }
    }
};

// ICM in place, node by node: fewer violated constraints first, then lower cost. Only variables
// with a changed neighbour are visited again. `stride` is that of `LocalCosts::find`.
class IteratedModes {
  public:
    IteratedModes(const Layout &lay, const Index *stride, Index variables, Index *labels)
        : lay_(lay), stride_(stride), variables_(variables), labels_(labels), local_(lay.widest),
          dirty_(lay.n, 1) {}

    void run(Index max_sweeps, Meter meter) {
        bool changed = true;
        for (Index sweep = 0; sweep < max_sweeps && changed; ++sweep) {
            changed = false;
            for (Index i = 0; i < variables_; ++i) {
                if (!dirty_[i])
                    continue;
                if (meter.tick(lay_.num_labels[i] * (lay_.start[i + 1] - lay_.start[i] + 1)))
                    return;
                changed |= improve(i);
            }
        }
    }

  private:
    bool improve(Index i) {
        dirty_[i] = 0;
        local_.find(lay_, i, labels_, stride_);
        const Index own = labels_[i], best = local_.best(own, lay_.num_labels[i]);
        if (best == own)
            return false;
        labels_[i] = best;
        spread(i, best - own);
        return true;
    }

    // Updates the states of auxiliary neighbours and marks the variables to visit again.
    void spread(Index i, Index step) {
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k) {
            const Index h = lay_.half[k], j = lay_.node[h ^ 1];
            if (stride_[h] == 0) {
                dirty_[j] = 1;
                continue;
            }
            labels_[j] += step * stride_[h];
            for (Index t = lay_.start[j]; t < lay_.start[j + 1]; ++t) {
                const Index member = lay_.node[lay_.half[t] ^ 1];
                dirty_[member] |= member != i;
            }
        }
    }

    const Layout &lay_;
    const Index *stride_;
    const Index variables_;
    Index *labels_;
    LocalCosts local_;
    std::vector<char> dirty_;
};

// ICM of a model without auxiliary nodes on several threads. In each round every node finds its
// best label given the labels before the round. A node changes if it gains more than each of its
// neighbours that would change as well; the nodes that change are independent, so that all of them
// gain what they expect. The result does not depend on the number of threads.
class IndependentModes {
  public:
    IndependentModes(const Layout &lay, Index *labels)
        : lay_(lay), labels_(labels), wish_(std::size_t(lay.n)), dirty_(std::size_t(lay.n), 1),
          wishing_(portions), taken_(portions) {}

    void run(Index max_rounds, const Deadline *deadline, int threads) {
        std::atomic<bool> late = false; // set within phases only: all threads see it after them
        // by round, because a delayed thread reads its count after others have gone on
        std::vector<std::atomic<Index>> changed(static_cast<std::size_t>(max_rounds));
        together(lay_.n < worthwhile ? 1 : threads, [&](Member &me) {
            LocalCosts local(lay_.widest);
            Meter meter(deadline);
            for (Index round = 0; round < max_rounds; ++round) {
                each_portion(me, [&](Index p) {
                    if (!late && !find_wishes(p, local, meter))
                        late = true;
                });
                if (late) // some wishes were not found
                    break;
                each_portion(me, [&](Index p) { settle(p); });
                each_portion(me, [&](Index p) { changed[round] += apply(p); });
                if (changed[round] == 0)
                    break;
            }
        });
    }

  private:
    static constexpr Index portions = 256; // of the nodes
    struct Wish {
        std::int32_t label = -1; // -1: the node keeps its label
        float gain = 0;          // infinite if fewer constraints are violated
    };

    template <class Work> void each_portion(Member &me, Work work) const {
        me.phase([&](Part part) {
            for (Index p = part.first(0, portions); p < part.last(0, portions); ++p)
                work(p);
        });
    }

    // Finds the best labels of the nodes of a portion next to a change, and lists those that wish
    // to change. Returns false if it was late first.
    bool find_wishes(Index p, LocalCosts &local, Meter &meter) {
        const Part part{int(p), int(portions)};
        std::vector<std::int32_t> &list = wishing_[p];
        std::erase_if(list, [&](std::int32_t i) { return dirty_[i] || wish_[i].label < 0; });
        const Index last = part.last(0, lay_.n);
        const char *all = dirty_.data();
        for (Index i = part.first(0, lay_.n); i < last; ++i) {
            const void *next = std::memchr(all + i, 1, std::size_t(last - i));
            if (!next)
                break;
            i = static_cast<const char *>(next) - all;
            if (meter.tick(lay_.num_labels[i] * (lay_.start[i + 1] - lay_.start[i] + 1)))
                return false;
            dirty_[i] = 0;
            local.find(lay_, i, labels_, nullptr);
            const Index own = labels_[i], best = local.best(own, lay_.num_labels[i]);
            wish_[i] = {};
            if (best == own)
                continue;
            const bool repairs = local.broken[best] < local.broken[own];
            wish_[i] = {std::int32_t(best),
                        repairs ? float(infinity) : float(local.cost[own] - local.cost[best])};
            list.push_back(std::int32_t(i));
        }
        return true;
    }

    // Lists the nodes of a portion that change.
    void settle(Index p) {
        taken_[p].clear();
        for (const std::int32_t i : wishing_[p])
            if (comes_first(i))
                taken_[p].push_back(i);
    }
    bool comes_first(Index i) const {
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k) {
            const Index j = lay_.node[lay_.half[k] ^ 1];
            if (wish_[j].label >= 0 && before(j, i))
                return false;
        }
        return true;
    }
    // Whether node i gains more than node j. Ties are broken by scattered numbers: in the order of
    // the nodes, a row of equal gains would take as many rounds as it has nodes.
    bool before(Index i, Index j) const {
        if (wish_[i].gain != wish_[j].gain)
            return wish_[i].gain > wish_[j].gain;
        return scattered(i) < scattered(j);
    }
    static std::uint32_t scattered(Index i) { // a bijection of 32-bit numbers
        auto x = std::uint32_t(i);
        x = (x ^ (x >> 16)) * 0x7feb352du;
        x = (x ^ (x >> 15)) * 0x846ca68bu;
        return x ^ (x >> 16);
    }

    // Changes labels, and marks the neighbours. Two threads may mark the same node.
    Index apply(Index p) {
        for (const std::int32_t i : taken_[p]) {
            labels_[i] = wish_[i].label;
            wish_[i].label = -1;
            for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
                std::atomic_ref(dirty_[lay_.node[lay_.half[k] ^ 1]])
                    .store(1, std::memory_order_relaxed);
        }
        return Index(taken_[p].size());
    }

    const Layout &lay_;
    Index *labels_;
    std::vector<Wish> wish_;
    std::vector<char> dirty_;
    std::vector<std::vector<std::int32_t>> wishing_, taken_;
};

} // namespace softmap
