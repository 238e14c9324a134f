// Persistency in models of two labels: partial labellings that some optimum has, by roof duality.
//
// Every variable x has a mirror x̄ = 1 - x. The model, written as a sum of c·x and c·x·ȳ with c > 0
// over variables and mirrors, is a minimum-cut problem. The nodes that the source reaches in the
// residual graph are on the source side of every minimum cut. They give a partial labelling that
// some optimum has (Hammer, Hansen and Simeone 1984).
#pragma once

#include "reduce.hpp"

namespace softmap::exact {

namespace detail {

// Maximum flow in integers, by shortest augmenting paths in a layered graph (Dinic).
class Flow {
  public:
    explicit Flow(int nodes) : first_(nodes, -1), layer_(nodes), at_(nodes) {}

    void add(int from, int to, Cost capacity) {
        arcs_.push_back({to, first_[from], capacity});
        first_[from] = static_cast<int>(arcs_.size()) - 1;
        arcs_.push_back({from, first_[to], 0});
        first_[to] = static_cast<int>(arcs_.size()) - 1;
    }
    // Computes a maximum flow. Returns false if `budget` arcs were visited before it was maximal.
    bool run(int source, int sink, std::int64_t budget, Control &control) {
        budget_ = budget;
        while (layers(source, sink)) {
            at_ = first_;
            while (push(source, sink))
                if (budget_ < 0 || control.stopped)
                    return false;
        }
        control.spend(budget - budget_);
        return budget_ >= 0;
    }
    // After `run`: whether the source reaches a node in the residual graph.
    bool reached(int node) const { return layer_[node] >= 0; }
    // Residual capacity of an arc. Arcs are numbered in the order of `add`, each before its
    // reverse.
    Cost left(std::size_t arc) const { return arcs_[arc].left; }

  private:
    struct Arc {
        int to, next;
        Cost left;
    };
    std::vector<Arc> arcs_; // the reverse of arc k is k ^ 1
    std::vector<int> first_, layer_, at_, queue_, path_;
    std::int64_t budget_ = 0;

    bool layers(int source, int sink) {
        std::fill(layer_.begin(), layer_.end(), -1);
        queue_.assign(1, source);
        layer_[source] = 0;
        for (std::size_t k = 0; k < queue_.size(); ++k)
            for (int a = first_[queue_[k]]; a >= 0; a = arcs_[a].next, --budget_)
                if (arcs_[a].left > 0 && layer_[arcs_[a].to] < 0) {
                    layer_[arcs_[a].to] = layer_[queue_[k]] + 1;
                    queue_.push_back(arcs_[a].to);
                }
        return layer_[sink] >= 0;
    }
    // Augments the flow along one path of the layered graph. Returns false if there is none.
    bool push(int source, int sink) {
        path_.clear();
        for (int node = source; node != sink; --budget_) {
            int &a = at_[node];
            if (a < 0) {
                if (path_.empty())
                    return false;
                node = arcs_[path_.back() ^ 1].to;
                path_.pop_back();
                at_[node] = arcs_[at_[node]].next;
            } else if (arcs_[a].left > 0 && layer_[arcs_[a].to] == layer_[node] + 1) {
                path_.push_back(a);
                node = arcs_[a].to;
            } else {
                a = arcs_[a].next;
            }
        }
        Cost least = INF;
        for (int a : path_)
            least = std::min(least, arcs_[a].left);
        for (int a : path_) {
            arcs_[a].left -= least;
            arcs_[a ^ 1].left += least;
        }
        return true;
    }
};

// Whether all remaining variables have at most two labels, and all factors two variables and no
// forbidden entries.
inline bool roofed(const Work &w) {
    for (int v = 0; v < w.n(); ++v)
        if (!w.gone[v] && (w.d(v) > 2 || forbidden(w.unary[v][0]) || forbidden(w.unary[v].back())))
            return false;
    for (const auto &f : w.factors)
        if (f != nullptr && (f->scope.size() != 2 || f->table.size() != 4 ||
                             std::any_of(f->table.begin(), f->table.end(), forbidden)))
            return false;
    return true;
}

// Builds the flow graph of the model. Variable v is node 2v, its mirror 2v + 1. An arc is cut if
// its tail has the value 1 and its head the value 0.
inline Flow roof(const Work &w, int source, int sink) {
    Flow flow(2 * w.n() + 2);
    std::vector<Cost> linear(w.n(), 0);
    const auto pay = [&](int from, int to, Cost amount) { // adds the arc and its mirror image
        flow.add(from, to, amount);
        flow.add(to ^ 1, from ^ 1, amount);
    };
    for (int v = 0; v < w.n(); ++v)
        if (!w.gone[v] && w.d(v) == 2)
            linear[v] += w.unary[v][1] - w.unary[v][0];
    for (const auto &f : w.factors) {
        if (f == nullptr)
            continue;
        const int x = f->scope[0], y = f->scope[1];
        const auto &t = f->table;
        const Cost both = t[0] + t[3] - t[1] - t[2];
        linear[x] += t[2] - t[0] + std::min<Cost>(both, 0);
        linear[y] += t[1] - t[0];
        if (both < 0)
            pay(2 * x, 2 * y, -both);
        else if (both > 0)
            pay(2 * x, 2 * y + 1, both);
    }
    for (int v = 0; v < w.n(); ++v) {
        const int paying = linear[v] > 0 ? 2 * v : 2 * v + 1;
        if (linear[v] != 0) {
            flow.add(paying, sink, std::abs(linear[v]));
            flow.add(source, paying ^ 1, std::abs(linear[v]));
        }
    }
    return flow;
}

// Logs the fixed labels and, in half units, costs to move from all their factors to variables.
// After these moves, fixing the labels raises no single factor or unary cost: twice a factor, less
// the moved costs, equals the residual capacities of its arcs.
inline void write_persistent(const Work &w, const Flow &flow) {
    std::vector<std::int64_t> labels, amounts;
    const auto fixed = [&](int v) { return flow.reached(2 * v) != flow.reached(2 * v + 1); };
    for (int v = 0; v < w.n(); ++v)
        if (!w.gone[v] && w.d(v) == 2 && fixed(v))
            labels.insert(labels.end(), {v, flow.reached(2 * v) ? 1 : 0});
    if (labels.empty())
        return;
    std::size_t arc = 0;
    for (std::size_t f = 0; f < w.factors.size(); ++f) {
        if (w.factors[f] == nullptr)
            continue;
        const auto &t = w.factors[f]->table;
        const Cost both = t[0] + t[3] - t[1] - t[2];
        std::array<Cost, 4> rest{2 * t[0], 2 * t[1], 2 * t[2], 2 * t[3]};
        if (both != 0) { // two arcs and their reverses
            const Cost there = flow.left(arc) + flow.left(arc + 2);
            const Cost back = flow.left(arc + 1) + flow.left(arc + 3);
            arc += 4;
            rest[both < 0 ? 2 : 3] -= there;
            rest[both < 0 ? 1 : 0] -= back;
        }
        if (!fixed(w.factors[f]->scope[0]) && !fixed(w.factors[f]->scope[1]))
            continue;
        amounts.insert(amounts.end(), {rest[0], rest[2], 0, rest[1] - rest[0]});
    }
    w.log->op(Op::PERSISTENT);
    w.log->array(labels);
    w.log->array(amounts);
}

} // namespace detail

// Fixes variables to labels that some optimum has. Gives up after visiting `budget` arcs.
inline bool fix_persistent(Work &w, Control &control, std::int64_t budget) {
    if (!detail::roofed(w))
        return false;
    const int source = 2 * w.n(), sink = 2 * w.n() + 1;
    detail::Flow flow = detail::roof(w, source, sink);
    if (!flow.run(source, sink, budget, control))
        return false;
    if (w.log != nullptr)
        detail::write_persistent(w, flow);
    bool any = false;
    for (int v = 0; v < w.n(); ++v) {
        if (w.gone[v] || w.d(v) < 2 || flow.reached(2 * v) == flow.reached(2 * v + 1))
            continue;
        const int label = flow.reached(2 * v) ? 1 : 0;
        if (!w.incumbent.empty())
            w.incumbent[v] = w.label[v][label];
        keep_labels(w, v, {label});
        any = true;
    }
    return any;
}

} // namespace softmap::exact
