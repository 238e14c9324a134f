// Sums that are rounded once.
#include "base/sums.hpp"

#include <vector>

namespace softmap {

double exact_sum(const double *values, Index count) {
    std::vector<double> parts;
    for (Index k = 0; k < count; ++k) {
        double value = values[k];
        std::size_t kept = 0;
        for (const double part : parts) {
            const double sum = value + part;
            const double error = error_of(value, part, sum);
            if (error != 0.0)
                parts[kept++] = error;
            value = sum;
        }
        parts.resize(kept);
        parts.push_back(value);
    }
    double total = 0.0, error = 0.0;
    std::size_t left = parts.size();
    while (left > 0 && error == 0.0) {
        const double part = parts[--left], sum = total + part;
        error = error_of(total, part, sum);
        total = sum;
    }
    // if the sum is halfway between two doubles, the sign of the remaining part decides
    if (left > 0 && error != 0.0 && (error < 0.0) == (parts[left - 1] < 0.0)) {
        const double next = total + 2.0 * error;
        if (next - total == 2.0 * error)
            total = next;
    }
    return total;
}

double careful_sum(const double *values, Index count) {
    Compensated sum;
    for (Index k = 0; k < count; ++k)
        sum.add(values[k]);
    return rounded_once(sum, count, [&] { return exact_sum(values, count); });
}

} // namespace softmap
