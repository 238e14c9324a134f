// The labellings of lowest cost by dynamic programming, with bounds.
#pragma once

#include "order.hpp"
#include "presolve.hpp"

namespace softmap::exact {

struct Ranked {
    std::vector<std::vector<std::int64_t>> labels;
    std::vector<double> bounds; // lower bound on the energy of the labelling of each rank
    double slack = 0.0;         // largest decrease of a bound by rounding costs down
    bool complete = false;      // false if time ran out
};

// Up to m labellings in increasing order of rounded cost. The integer cost of every labelling is at
// most its energy, so the k-th lowest integer cost is a lower bound on the k-th lowest energy.
// `upper` is +inf, or an upper bound on the m-th lowest energy.
inline Ranked best_labellings(const Input &in, const std::vector<int> &order, std::size_t m,
                              double upper, int threads, Control &control) {
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
