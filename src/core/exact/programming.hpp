// Dynamic programming over buckets of integer costs: the lowest cost, and the best labellings.
#pragma once

#include <queue>

#include "buckets.hpp"

namespace softmap::exact {

// Costs are not negative. A labelling costs `constant` plus its entry in every table.
class CostBuckets : public Buckets<Cost> {
  public:
    using Buckets::Buckets;
    Cost lowest = 0; // after `run`: the lowest cost; INF if every labelling is forbidden

    // Eliminates all variables. Returns false if time ran out.
    bool run(int threads, Control &control) {
        for (int v = 0; v < n(); ++v)
            if (!eliminate(v, threads, control))
                return false;
        return true;
    }

    // A labelling of lowest cost; the first one in the order of labels, last variable first.
    std::vector<int> best_labels() const {
        std::vector<int> out(labels.size(), 0);
        for (int v = n(); v-- > 0;) {
            Cost best = INF;
            int label = 0;
            for (out[v] = 0; out[v] < labels[v]; ++out[v])
                if (const Cost c = cost_at(v, out); c < best) {
                    best = c;
                    label = out[v];
                }
            out[v] = label;
        }
        return out;
    }

    // Up to m labellings of lowest cost with their costs, in increasing order. The cost of the best
    // completion of a partial labelling is known, so every step leads to one of them. Returns
    // fewer if no more exist or if time ran out.
    std::vector<std::pair<Cost, std::vector<int>>> best_of(std::size_t m, Control &control) const;

  private:
    // The sum of the tables of v at the labels of v and of the variables after it.
    Cost cost_at(int v, const std::vector<int> &x) const {
        Cost total = 0;
        for (const auto &table : tables[v]) {
            std::int64_t at = 0;
            for (const int u : table.scope)
                at = at * labels[u] + x[u];
            total = clamped(total + table.values[at]);
        }
        return total;
    }

    bool eliminate(int v, int threads, Control &control) {
        const auto bucket = open_bucket<Cost>(v, tables[v], labels);
        const auto loop = frame(bucket, v);
        Cost *out = &lowest;
        bool more = true; // whether the result is added to a table
        if (!bucket.scope.empty()) {
            auto &there = tables[bucket.scope[0]];
            auto same = std::find_if(there.begin(), there.end(),
                                     [&](const Table<Cost> &t) { return t.scope == bucket.scope; });
            more = same != there.end();
            if (!more)
                same = there.insert(there.end(), make_table<Cost>(bucket.scope, labels));
            out = same->values.get();
        }
        return detail::in_steps(loop, threads, control, [&](std::int64_t begin, std::int64_t end) {
            loop.run(begin, end, [&](Cost *rows, std::int64_t first) {
                minimise(rows, loop.labels(), loop.block(), out + first, more);
            });
        });
    }

    // out[r] = min over a of rows[a, r], added to the old value if `more`.
    static void minimise(Cost *rows, int count, std::int64_t block, Cost *out, bool more) {
        for (int a = 1; a < count; ++a) {
            const Cost *row = rows + a * block;
            for (std::int64_t r = 0; r < block; ++r)
                rows[r] = std::min(rows[r], row[r]);
        }
        if (more)
            for (std::int64_t r = 0; r < block; ++r)
                out[r] = clamped(out[r] + clamped(rows[r]));
        else
            for (std::int64_t r = 0; r < block; ++r)
                out[r] = clamped(rows[r]);
    }
};

inline std::vector<std::pair<Cost, std::vector<int>>> CostBuckets::best_of(std::size_t m,
                                                                           Control &control) const {
    // A partial labelling: label of variable `v`, and of the later variables by `parent`.
    struct Node {
        int parent, v, label;
    };
    std::vector<Node> nodes;
    using Entry = std::pair<Cost, int>; // cost of the best completion, number of the node
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    std::vector<std::pair<Cost, std::vector<int>>> found;
    if (forbidden(lowest) || m == 0)
        return found;
    queue.push({lowest, -1});
    std::vector<int> x(labels.size(), 0);
    std::vector<Cost> costs;
    while (!queue.empty() && found.size() < m) {
        const auto [cost, start] = queue.top();
        queue.pop();
        int v = start < 0 ? n() : nodes[start].v, at = start;
        for (int k = start; k >= 0; k = nodes[k].parent)
            x[nodes[k].v] = nodes[k].label;
        while (v-- > 0) { // the best labels of the rest; the other labels become open nodes
            costs.clear();
            for (x[v] = 0; x[v] < labels[v]; ++x[v])
                costs.push_back(cost_at(v, x));
            const auto least = std::min_element(costs.begin(), costs.end());
            const int best = static_cast<int>(least - costs.begin());
            const int parent = at;
            for (int a = 0; a < labels[v]; ++a) {
                if (forbidden(costs[a]))
                    continue;
                nodes.push_back({parent, v, a});
                if (a == best)
                    at = static_cast<int>(nodes.size()) - 1;
                else
                    queue.push({cost + (costs[a] - *least), static_cast<int>(nodes.size()) - 1});
            }
            x[v] = best;
        }
        found.emplace_back(cost, x);
        if (control.spend(static_cast<std::int64_t>(labels.size()) * 64))
            break;
    }
    return found;
}

} // namespace softmap::exact
