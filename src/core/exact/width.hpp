// Greedy orders of variable elimination, and the size of the tables they need.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "types.hpp"

namespace softmap::exact {

// The variables of a model, and which of them occur in a factor together.
struct Graph {
    std::vector<double> bits;           // log2 of the numbers of labels
    std::vector<std::vector<int>> near; // neighbours in increasing order

    int n() const { return static_cast<int>(bits.size()); }
    // Makes a and b neighbours; returns whether they were not.
    bool join(int a, int b) {
        if (a == b)
            return false;
        const auto place = std::lower_bound(near[a].begin(), near[a].end(), b);
        if (place != near[a].end() && *place == b)
            return false;
        near[a].insert(place, b);
        near[b].insert(std::lower_bound(near[b].begin(), near[b].end(), a), a);
        return true;
    }
    void remove(int v) {
        for (const int u : near[v])
            near[u].erase(std::lower_bound(near[u].begin(), near[u].end(), v));
        near[v].clear();
    }
};

// The variables of factor f are scope[start[f]], ..., scope[start[f + 1] - 1].
Graph graph_of(std::span<const std::int64_t> num_labels, std::span<const std::int64_t> start,
               std::span<const std::int64_t> scope);

struct EliminationOrder {
    std::vector<int> order;
    double entries = 0;  // states of all tables that are minimised, with the eliminated variable
    double stored = 0;   // states of all results
    double steps = 0;    // operations of the simulation
    bool finite = false; // false if `entries` exceeds the limit
};

// Limits of `best_order`.
struct OrderEffort {
    int tries = 30;      // largest number of orders
    double share = 0.02; // steps of further orders, relative to the entries of the best one
    // No order is looked for if that of the smallest tables, which is found fast, exceeds the limit
    // by this factor.
    double hopeless = 0x1p20;
};

enum class Rule { SIZE, FILL, WEIGHTED };

// Eliminates the variable of lowest score first: the table (SIZE), the new pairs (FILL) or their
// weight (WEIGHTED). The seed breaks ties. Stops as soon as `entries` exceeds `most`.
EliminationOrder greedy_order(Graph g, Rule rule, unsigned seed, double most, Control &control);

// Most entries of results at one time, if each is freed when its first variable is eliminated.
double live_entries(Graph g, const std::vector<int> &order);

// The order of fewest entries among several greedy ones; `finite` is false if all exceed `most`.
// More orders are tried if the tables of the best one are large.
EliminationOrder best_order(const Graph &g, double most, Control &control,
                            const OrderEffort &effort = {});

} // namespace softmap::exact
