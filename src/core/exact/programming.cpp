// Dynamic programming over buckets of integer costs, in an order of the variables of a component.
#include "programming.hpp"

#include "order.hpp"
#include "ranking.hpp"

#include <queue>

namespace softmap::exact {

namespace {

// out[r] = min over a of rows[a, r], added to the old value if `more`.
void minimise_rows(Cost *rows, int count, std::int64_t block, Cost *out, bool more) {
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

} // namespace

bool CostBuckets::run(int threads, Control &control) {
    for (int v = 0; v < n(); ++v)
        if (!eliminate(v, threads, control))
            return false;
    return true;
}

std::vector<int> CostBuckets::best_labels() const {
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

Cost CostBuckets::cost_at(int v, const std::vector<int> &x) const {
    Cost total = 0;
    for (const auto &table : tables[v]) {
        std::int64_t at = 0;
        for (const int u : table.scope)
            at = at * labels[u] + x[u];
        total = clamped(total + table.values[at]);
    }
    return total;
}

bool CostBuckets::eliminate(int v, int threads, Control &control) {
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
            minimise_rows(rows, loop.labels(), loop.block(), out + first, more);
        });
    });
}

std::vector<std::pair<Cost, std::vector<int>>> CostBuckets::best_of(std::size_t m,
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

Graph graph_of(Work &w, const std::vector<int> &vars) {
    Graph g;
    g.near.resize(vars.size());
    std::vector<int> index(w.n(), -1);
    for (std::size_t k = 0; k < vars.size(); ++k) {
        index[vars[k]] = static_cast<int>(k);
        g.bits.push_back(std::log2(w.d(vars[k])));
    }
    std::vector<int> near;
    for (std::size_t k = 0; k < vars.size(); ++k) {
        neighbours(w, vars[k], near);
        for (int &u : near)
            u = index[u];
        std::sort(near.begin(), near.end());
        g.near[k] = near;
    }
    return g;
}

CostBuckets fill_buckets(Work &w, const std::vector<int> &order) {
    std::vector<int> labels, rank(w.n(), -1);
    for (std::size_t k = 0; k < order.size(); ++k) {
        rank[order[k]] = static_cast<int>(k);
        labels.push_back(w.d(order[k]));
    }
    CostBuckets out(labels);
    for (const int v : order) {
        out.add(ordered_table({rank[v]}, w.unary[v].data(), labels));
        for (const int f : w.alive_factors(v)) {
            const auto &factor = *w.factors[f];
            if (factor.scope[0] != v)
                continue; // added with its first variable
            std::vector<int> scope;
            for (const int u : factor.scope)
                scope.push_back(rank[u]);
            out.add(ordered_table(scope, factor.table.data(), labels));
        }
    }
    return out;
}

Ranked best_labellings(const Input &in, const std::vector<int> &order, std::size_t m, double upper,
                       int threads, Control &control) {
    Ranked out;
    const Scale scale = choose_scale(in, upper, threads);
    out.slack = scale.slack;
    Work w = build_work(in, scale, 0, threads, nullptr);
    if (w.infeasible) {
        out.complete = true;
        return out;
    }
    auto buckets = fill_buckets(w, order);
    if (!buckets.run(threads, control))
        return out;
    const auto found = buckets.best_of(m, control);
    out.complete = !control.stopped;
    for (const auto &[cost, chosen] : found) {
        std::vector<std::int64_t> labels(chosen.size());
        for (std::size_t k = 0; k < order.size(); ++k)
            labels[order[k]] = w.label[order[k]][chosen[k]];
        out.labels.push_back(std::move(labels));
        out.bounds.push_back(to_double(w.base + cost, scale, in.constant));
    }
    return out;
}

} // namespace softmap::exact
