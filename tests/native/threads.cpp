// The team of threads: every part of every phase is done once, and phases do not overlap.
#include "check.hpp"
#include "passes/momentum.hpp"

#include <atomic>
#include <vector>

using namespace softmap;

namespace checks {

// Every step of every band is done once, in order, and after the steps that it waits for.
static void check_wave() {
    constexpr int bands = 8, steps = 300, waves = 3;
    for (const int count : {1, 2, 3, 5, 16}) {
        std::atomic<int> wrong{0};
        std::vector<std::atomic<int>> done(bands);
        together(count, [&](Member &me) {
            for (int wave = 0; wave < waves; ++wave)
                me.wave(
                    steps, bands,
                    [&](Index step, int b) { // the neighbours, and now and then all bands
                        return step % 50 == 7 ? Bands(255) : (Bands(7) << b >> 1) & Bands(255);
                    },
                    [&](Index step, int b, int end) {
                        for (; b < end; ++b) {
                            const int now = wave * steps + int(step);
                            for (int k = 0; k < bands; ++k)
                                if (step % 50 == 7 || std::abs(k - b) < 2)
                                    wrong += done[k] < now;
                            wrong += done[b]++ != now;
                        }
                    });
        });
        CHECK(wrong == 0);
        for (const auto &one : done)
            CHECK(one == waves * steps);
    }
    for (const int bands_ : {1, 2, 16, 64})
        for (const int threads : {1, 2, 3, 16, 100}) {
            const Grouping group(bands_, threads);
            CHECK(group.groups * group.size == bands_);
            for (int b = 0; b < bands_; ++b)
                CHECK(group.of(Bands(1) << b) == Bands(1) << (b / group.size));
            const Bands every = ~Bands(0) >> (64 - bands_);
            CHECK(group.of(every) == ~Bands(0) >> (64 - group.groups));
        }
}

// An exception in one thread ends the call, wherever it is thrown; the next call works.
static void check_failures() {
    struct Failure {};
    for (const int count : {1, 2, 3, 7})
        for (int where = 0; where < 12; ++where) {
            std::atomic<int> thrown{0}, begun{0};
            bool caught = false;
            const auto fail_at = [&](int place) {
                if (place == where && begun++ == 0) {
                    ++thrown;
                    throw Failure();
                }
            };
            try {
                together(count, [&](Member &me) {
                    for (int k = 0; k < 4; ++k) {
                        fail_at(3 * k); // between two phases
                        me.phase([&](Part) { fail_at(3 * k + 1); });
                        me.wave(
                            20, 8, [](Index, int b) { return (Bands(7) << b >> 1) & Bands(255); },
                            [&](Index step, int, int) {
                                if (step == 11)
                                    fail_at(3 * k + 2);
                            });
                    }
                });
            } catch (const Failure &) {
                caught = true;
            }
            CHECK(caught && thrown == 1);
            std::atomic<int> parts{0};
            together(count, [&](Member &me) { me.phase([&](Part) { ++parts; }); });
            CHECK(parts == count);
        }
}

void check_threads() {
    check_failures();
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
    check_wave();
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
