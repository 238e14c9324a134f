// Conditioning: branch and bound over a few variables, without which the rest has a small width.
#pragma once

#include <utility>

#include "order.hpp"

namespace softmap::exact {

// The variables to branch on, and the elimination order of the rest.
struct Cutset {
    std::vector<int> variables;
    EliminationOrder rest;
    double nodes = 1; // product of the numbers of labels of `variables`
    bool found = false;
};

struct CutsetLimits {
    std::size_t variables = 1000; // largest number of variables of a component
    std::size_t size = 24;        // largest number of variables to branch on
    double stored = 1e9;          // table entries of the rest that are stored
    double entries = 1e9;         // table entries of the rest times `nodes`
    double slack = 4; // conditioning seldom has fewer entries than elimination divided by this
};

// Removes one variable after the other: the one for which the number of labels times the entries of
// the rest is smallest, as estimated from the tables of a greedy order. Variables are numbered as
// in the graph.
inline Cutset find_cutset(Graph g, const CutsetLimits &limits) {
    Cutset out;
    if (static_cast<std::size_t>(g.n()) > limits.variables)
        return out;
    std::vector<char> cut(g.n(), 0);
    for (;;) {
        out.rest = best_order(g, limits.slack * limits.entries, {2, 1e9});
        if (!out.rest.finite)
            break;
        const double entries = out.rest.entries;
        out.found = out.rest.stored <= limits.stored && out.nodes * entries <= limits.entries;
        if (out.found || out.variables.size() == limits.size)
            break;
        std::vector<double> weight(g.n(), 0.0); // entries of the tables that contain a variable
        Graph h = g;
        for (const int v : out.rest.order) {
            const auto near = h.near[v];
            double bits = h.bits[v];
            for (const int u : near)
                bits += h.bits[u];
            weight[v] += std::exp2(bits);
            for (const int u : near)
                weight[u] += std::exp2(bits);
            h.remove(v);
            for (std::size_t j = 0; j < near.size(); ++j)
                for (std::size_t k = 0; k < j; ++k)
                    h.join(near[j], near[k]);
        }
        int chosen = -1;
        double lowest = INFINITY;
        for (int v = 0; v < g.n(); ++v) {
            const double labels = std::exp2(g.bits[v]);
            const double left = labels * (entries - weight[v] * (1 - 1 / labels));
            if (!cut[v] && g.bits[v] > 0 && left < lowest) {
                lowest = left;
                chosen = v;
            }
        }
        if (chosen < 0)
            break;
        cut[chosen] = 1;
        out.variables.push_back(chosen);
        out.nodes *= std::exp2(g.bits[chosen]);
        g.remove(chosen);
        g.bits[chosen] = 0; // its table has one entry from now on
    }
    std::erase_if(out.rest.order, [&](int v) { return cut[v] != 0; });
    return out;
}

// Depth-first branch and bound. The bound of a node is the optimum of the rest by dynamic
// programming, where each factor has its own copy of a variable that is not fixed. Costs are not
// negative.
class Conditioning {
  public:
    Conditioning(Work &w, const std::vector<int> &vars, Cutset cutset, int threads)
        : w_(w), vars_(vars), cutset_(std::move(cutset)), threads_(threads), x_(w.n(), -1) {
        for (const int v : vars)
            for (const int f : w.alive_factors(v))
                if (w.factors[f]->scope[0] == v)
                    factors_.push_back(f);
    }
    Cost best = HALF;           // cost of the best labelling
    std::vector<int> incumbent; // its labels, one for each of `vars`; empty if none is known
    Cost lower = 0;             // lower bound, also if time ran out
    std::int64_t nodes = 0;

    // Returns false if time ran out.
    bool run(Control &control) {
        Cost open = INF; // lowest bound of the nodes that were not closed in time
        const bool complete = explore(0, 0, control, open);
        lower = std::min(best, open);
        return complete;
    }

  private:
    Work &w_;
    const std::vector<int> &vars_;
    Cutset cutset_;
    int threads_;
    std::vector<int> x_; // label of each fixed variable, by index; -1 otherwise
    std::vector<int> factors_;

    // Closes the node of the current labels, whose bound is `bound`.
    bool explore(std::size_t depth, Cost bound, Control &control, Cost &open) {
        if (bound >= best)
            return true;
        if (depth == cutset_.variables.size() && nodes > 0)
            return true; // its bound was the cost of a labelling, which is known
        std::vector<std::pair<Cost, int>> children;
        const bool root = cutset_.variables.empty();
        const int v = root ? -1 : cutset_.variables[depth];
        for (int a = 0; a < (root ? 1 : w_.d(v)); ++a) {
            if (!root)
                x_[v] = a;
            Cost child = bound;
            const bool known = evaluate(child, control);
            children.emplace_back(std::max(child, bound), a);
            if (!known) { // out of time: this child and the labels after it are open
                open = std::min(open, bound);
                if (!root)
                    x_[v] = -1;
                return false;
            }
        }
        std::stable_sort(children.begin(), children.end());
        bool complete = true;
        for (const auto &[cost, a] : children) {
            if (!root)
                x_[v] = a;
            if (complete)
                complete = explore(depth + 1, cost, control, open);
            else if (cost < best)
                open = std::min(open, cost);
        }
        if (!root)
            x_[v] = -1;
        return complete;
    }

    // Computes the bound of the current node and a labelling. Returns false if time ran out.
    bool evaluate(Cost &bound, Control &control) {
        ++nodes;
        CostBuckets buckets(labels_of_rest());
        std::vector<int> rank(w_.n(), -1);
        const auto &order = cutset_.rest.order;
        for (std::size_t k = 0; k < order.size(); ++k) {
            rank[order[k]] = static_cast<int>(k);
            buckets.add(
                ordered_table({static_cast<int>(k)}, w_.unary[order[k]].data(), buckets.labels));
        }
        Cost fixed = 0;
        for (const int c : cutset_.variables)
            fixed = clamped(
                fixed + (x_[c] >= 0 ? w_.unary[c][x_[c]]
                                    : *std::min_element(w_.unary[c].begin(), w_.unary[c].end())));
        for (const int f : factors_)
            add_factor(*w_.factors[f], rank, buckets, fixed);
        if (!buckets.run(threads_, control))
            return false;
        bound = clamped(fixed + buckets.lowest);
        if (bound < best)
            offer(buckets.best_labels());
        return true;
    }

    std::vector<int> labels_of_rest() const {
        std::vector<int> out;
        for (const int v : cutset_.rest.order)
            out.push_back(w_.d(v));
        return out;
    }

    // Adds the factor at the labels of the fixed variables, minimised over the labels of the other
    // variables to branch on.
    void add_factor(const Factor &factor, const std::vector<int> &rank, CostBuckets &buckets,
                    Cost &fixed) const {
        std::vector<int> scope, free, sizes, ways; // the rest's variables; those to minimise over
        std::vector<std::int64_t> stride, step;
        std::int64_t base = 0, next = 1;
        for (std::size_t k = factor.scope.size(); k-- > 0; next *= w_.d(factor.scope[k])) {
            const int v = factor.scope[k];
            if (rank[v] >= 0) {
                scope.insert(scope.begin(), rank[v]);
                sizes.insert(sizes.begin(), w_.d(v));
                stride.insert(stride.begin(), next);
            } else if (x_[v] >= 0) {
                base += next * x_[v];
            } else {
                ways.push_back(w_.d(v));
                step.push_back(next);
            }
        }
        std::int64_t size = 1, count = 1;
        for (const int s : sizes)
            size *= s;
        for (const int s : ways)
            count *= s;
        std::vector<Cost> table(static_cast<std::size_t>(size), INF);
        detail::Odometer at(sizes, stride);
        for (auto &entry : table) {
            detail::Odometer choice(ways, step);
            for (std::int64_t k = 0; k < count; ++k, choice.step())
                entry = std::min(entry, factor.table[base + at.at + choice.at]);
            at.step();
        }
        if (scope.empty())
            fixed = clamped(fixed + table[0]);
        else
            buckets.add(ordered_table(scope, std::as_const(table).data(), buckets.labels));
    }

    // Completes the labels of the rest by those of the variables to branch on, one after the other,
    // and keeps the labelling if it is better.
    void offer(const std::vector<int> &rest) {
        std::vector<int> labels = x_;
        for (std::size_t k = 0; k < rest.size(); ++k)
            labels[cutset_.rest.order[k]] = rest[k];
        for (const int c : cutset_.variables)
            if (labels[c] < 0) {
                Cost lowest = INF;
                int label = 0;
                for (int a = 0; a < w_.d(c); ++a) {
                    labels[c] = a;
                    const Cost cost = cost_near(c, labels);
                    if (cost < lowest) {
                        lowest = cost;
                        label = a;
                    }
                }
                labels[c] = label;
            }
        Cost total = 0;
        for (const int v : vars_)
            total = clamped(total + w_.unary[v][labels[v]]);
        for (const int f : factors_)
            total = clamped(total + entry(*w_.factors[f], labels));
        if (total < best) {
            best = total;
            incumbent.clear();
            for (const int v : vars_)
                incumbent.push_back(labels[v]);
        }
    }
    Cost cost_near(int c, const std::vector<int> &labels) {
        Cost total = w_.unary[c][labels[c]];
        for (const int f : w_.alive_factors(c)) {
            const auto &scope = w_.factors[f]->scope;
            if (std::all_of(scope.begin(), scope.end(), [&](int u) { return labels[u] >= 0; }))
                total = clamped(total + entry(*w_.factors[f], labels));
        }
        return total;
    }
    Cost entry(const Factor &factor, const std::vector<int> &labels) const {
        std::int64_t at = 0;
        for (const int v : factor.scope)
            at = at * w_.d(v) + labels[v];
        return factor.table[at];
    }
};

} // namespace softmap::exact
