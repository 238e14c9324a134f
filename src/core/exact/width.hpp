// Size of the tables of variable elimination in a greedy order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <queue>
#include <span>
#include <vector>

namespace softmap::exact {

// Number of table entries needed to eliminate all variables, the one of smallest table first;
// +inf if there are more than `limit`. Scopes are scope[start[f]..start[f + 1] -
// 1].
inline double elimination_entries(std::span<const std::int64_t> num_labels,
                                  std::span<const std::int64_t> start,
                                  std::span<const std::int64_t> scope, double limit) {
    const auto n = num_labels.size();
    std::vector<double> bits(n), key(n);
    std::vector<std::vector<int>> near(n);
    for (std::size_t f = 0; f + 1 < start.size(); ++f)
        for (auto k = start[f]; k < start[f + 1]; ++k)
            for (auto j = start[f]; j < start[f + 1]; ++j)
                if (scope[j] != scope[k])
                    near[scope[k]].push_back(static_cast<int>(scope[j]));
    const auto size = [&](int v) {
        double sum = bits[v];
        for (const int u : near[v])
            sum += bits[u];
        return sum;
    };
    for (std::size_t v = 0; v < n; ++v) {
        bits[v] = std::log2(static_cast<double>(num_labels[v]));
        std::sort(near[v].begin(), near[v].end());
        near[v].erase(std::unique(near[v].begin(), near[v].end()), near[v].end());
    }
    using Entry = std::pair<double, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    for (int v = 0; v < static_cast<int>(n); ++v)
        queue.push({key[v] = size(v), v});
    double total = 0.0;
    const double most = std::log2(limit);
    std::vector<int> joined;
    for (; !queue.empty();) {
        const auto [entries, v] = queue.top();
        queue.pop();
        if (entries != key[v])
            continue; // outdated: the degree of the variable has changed
        total += std::exp2(std::min(entries, 1000.0));
        if (entries > most || total > limit)
            return INFINITY;
        key[v] = -1.0;
        for (const int u : near[v]) {
            joined.clear();
            std::set_union(near[u].begin(), near[u].end(), near[v].begin(), near[v].end(),
                           std::back_inserter(joined));
            std::erase_if(joined, [&](int w) { return w == u || w == v; });
            near[u] = joined;
        }
        for (const int u : near[v])
            if (const double now = size(u); now != key[u])
                queue.push({key[u] = now, u});
    }
    return total;
}

} // namespace softmap::exact
