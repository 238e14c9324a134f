// Elimination orders: the work of dynamic programming over a whole component.
#pragma once

#include "eliminate.hpp"

namespace softmap::exact {

struct EliminationPlan {
    std::vector<int> order;
    double work = 0;    // table entries written, times labels
    double entries = 0; // table entries kept for the labelling
    bool feasible = false;
};

namespace detail {

inline std::vector<std::set<int>> neighbour_sets(Work &w, const std::vector<int> &vars) {
    std::vector<std::set<int>> near(w.n());
    for (int v : vars)
        for (int f : w.alive_factors(v))
            for (int u : w.factors[f]->scope)
                if (u != v)
                    near[v].insert(u);
    return near;
}

inline std::int64_t fill_in(const std::vector<std::set<int>> &near, int v, std::int64_t most) {
    std::int64_t missing = 0;
    for (auto a = near[v].begin(); a != near[v].end(); ++a)
        for (auto b = std::next(a); b != near[v].end(); ++b)
            if (!near[*a].contains(*b) && ++missing > most)
                return missing;
    return missing;
}

} // namespace detail

// Greedy order by fewest fill-in edges (or by smallest table); stops if tables or the total work
// exceed the limits.
inline EliminationPlan plan_elimination(Work &w, const std::vector<int> &vars, bool by_fill,
                                        double max_work, double max_entries, Control &control) {
    EliminationPlan plan;
    auto near = detail::neighbour_sets(w, vars);
    auto log_size = [&](int v) {
        double s = 0;
        for (int u : near[v])
            s += std::log2(w.d(u));
        return s;
    };
    auto score = [&](int v) {
        const double s = log_size(v);
        return by_fill ? static_cast<double>(detail::fill_in(near, v, 2000)) + 1e-3 * s : s;
    };
    std::set<std::pair<double, int>> queue;
    std::vector<double> key(w.n(), 0);
    for (int v : vars)
        queue.insert({key[v] = score(v), v});
    while (!queue.empty()) {
        const int v = queue.begin()->second;
        queue.erase(queue.begin());
        const double entries = std::exp2(log_size(v));
        plan.entries += entries;
        plan.work += entries * w.d(v) * (2.0 + static_cast<double>(w.alive_factors(v).size()) / 2);
        if (plan.work > max_work || plan.entries > max_entries || control.check_now())
            return plan;
        plan.order.push_back(v);
        std::set<int> changed(near[v].begin(), near[v].end());
        for (int a : near[v]) {
            near[a].erase(v);
            for (int b : near[v])
                if (a != b && near[a].insert(b).second && by_fill && near[a].size() < 64)
                    changed.insert(near[a].begin(), near[a].end());
        }
        near[v].clear();
        for (int u : changed) {
            queue.erase({key[u], u});
            queue.insert({key[u] = score(u), u});
        }
    }
    plan.feasible = true;
    return plan;
}

} // namespace softmap::exact
