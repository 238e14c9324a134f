// The team of threads: every part of every phase is done once, and phases do not overlap.
#include "check.hpp"
#include "passes/momentum.hpp"

#include <atomic>
#include <vector>

using namespace softmap;

namespace checks {

void check_threads() {
    constexpr int phases = 200, items = 1000;
    for (const int count : {1, 2, 3, 4, 7}) {
        std::vector<int> seen(items, 0);
        std::atomic<int> early{0};
        together(count, [&](Member &me) {
            for (int phase = 0; phase < phases; ++phase)
                me.phase([&](Part part) {
                    for (Index k = part.first(0, items); k < part.last(0, items); ++k) {
                        early += seen[k] != phase;
                        ++seen[k];
                    }
                });
        });
        CHECK(early == 0);
        for (const int one : seen)
            CHECK(one == phases);
    }
    std::vector<double> values;
    Numbers numbers(6);
    for (int k = 0; k < 5000; ++k)
        values.push_back(numbers.fraction(52));
    double first = 0.0;
    for (const int count : {1, 2, 3, 4, 16}) {
        double sums[partial_sums], total = 0.0;
        together(count, [&](Member &me) {
            steady_sum(values.data(), Index(values.size()), sums, total, me);
        });
        first = count == 1 ? total : first;
        CHECK(total == first);
    }
}

} // namespace checks
