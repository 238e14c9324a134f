// Minima, soft minima and probabilities of the costs of the labels of one node.
#pragma once

#include "lanes.hpp"
#include "layout.hpp"

namespace softmap {

inline double least_of(const double *cost, Index d) {
    double least = infinity;
    for (Index x = 0; x < d; ++x)
        least = cost[x] < least ? cost[x] : least;
    return least;
}

// -(1/η) log Σ exp(-η cost), or the least cost at η = ∞.
inline double soft_minimum_of(const double *cost, Index d, double eta) {
    const double least = least_of(cost, d);
    if (eta == infinity)
        return least;
    double mass = 0.0;
    for (Index x = 0; x < d; ++x)
        mass += exp_one(-eta * (cost[x] - least));
    return least - log_one(mass) / eta;
}

// Subtracts a constant from d costs so that the minimum is 0, or Σ exp(-η cost) = 1.
inline void subtract(double constant, double *cost, Index d) {
    for (Index x = 0; x < d; ++x)
        cost[x] -= constant;
}
inline void settle_at_zero(double *cost, Index d) { subtract(least_of(cost, d), cost, d); }
inline void normalise(double *cost, Index d, double eta) {
    subtract(soft_minimum_of(cost, d, eta), cost, d);
}

// Turns d costs into probabilities ∝ exp(-η cost); returns the constant that `normalise` subtracts.
inline double to_probabilities(double *cost, Index d, double eta) {
    const double least = least_of(cost, d);
    double mass = 0.0;
    for (Index x = 0; x < d; ++x) {
        cost[x] = cost[x] < infinity ? exp_one(-eta * (cost[x] - least)) : 0.0;
        mass += cost[x];
    }
    for (Index x = 0; x < d; ++x)
        cost[x] /= mass;
    return least - log_one(mass) / eta;
}

} // namespace softmap
