// Sums that several threads compute and that are rounded once: they do not depend on the threads.
#pragma once

#include "sums.hpp"
#include "team.hpp"

namespace softmap {

// start + the sum of the values that each(part, add) passes to `add` for all parts of the items,
// rounded once; `values` is their number.
template <class Each> double shared_sum(double start, Index values, int threads, Each each) {
    constexpr int portions = 64;
    Compensated sums[portions];
    split_portions(threads, portions, values, [&](Part part) {
        Compensated sum;
        each(part, [&](double value) { sum.add(value); });
        sums[part.index] = sum;
    });
    Compensated sum;
    sum.add(start);
    for (const Compensated &one : sums)
        sum.add(one);
    return rounded_once(sum, values + 1 + portions, [&] {
        std::vector<double> all{start};
        all.reserve(std::size_t(values) + 1);
        each(Part{0, 1}, [&](double value) { all.push_back(value); });
        return exact_sum(all.data(), Index(all.size()));
    });
}

} // namespace softmap
