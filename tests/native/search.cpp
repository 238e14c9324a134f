// The exact search in several threads: the bound of one thread, and failures that end all workers.
#include "check.hpp"
#include "exact/solver.hpp"

#include <atomic>
#include <stdexcept>
#include <vector>

using namespace softmap;

namespace checks {

namespace {

// Pairs of variables that should differ, with weights 1 to 3.
struct Colouring {
    std::vector<std::int64_t> sizes, start{0}, scope;
    std::vector<double> unary, tables;

    Colouring(int n, int labels) : sizes(n, labels), unary(n * labels) {
        Numbers numbers(3);
        for (auto &cost : unary)
            cost = double(numbers.below(2));
        for (int y = 0; y < n; ++y)
            for (int x = 0; x < y; ++x) {
                scope.insert(scope.end(), {x, y});
                start.push_back(std::int64_t(scope.size()));
                const double weight = double(1 + numbers.below(3));
                for (int k = 0; k < labels * labels; ++k)
                    tables.push_back(k / labels == k % labels ? weight : 0.0);
            }
    }
    exact::Input input() const { return {sizes, unary, start, scope, tables, 0.0, {}, {}}; }
};

exact::Options options(int threads) {
    exact::Options out;
    out.effort.max_stored = 0.0;
    out.threads = threads;
    out.effort.split_work = 0;
    return out;
}

std::atomic<int> looks; // at the deadline until one throws

bool fail() {
    if (--looks == 0)
        throw std::runtime_error("failed");
    return false;
}

// A worker throws, at the `calls`th look at the deadline: the call throws after all workers have
// ended. What they had explored is lost, but the next call solves the model.
void check_failure(const Colouring &model, int threads, int calls, double energy) {
    exact::Control control;
    exact::Solver solver(model.input(), options(threads), control);
    Deadline deadline;
    deadline.set_poll(&fail);
    control.deadline = &deadline;
    looks = calls;
    bool thrown = false;
    try {
        solver.solve();
    } catch (const std::runtime_error &) {
        thrown = true;
    }
    CHECK(thrown);
    control.deadline = nullptr;
    const auto found = solver.solve();
    CHECK(found.complete && found.energy == energy && found.lower_bound == energy);
}

// The fraction of its time after which an elimination ends that would take `times` its time.
double ended_after(double times) {
    for (int percent = 1; percent <= 100; ++percent)
        if (exact::falls_behind(0.01 * percent, 0.01 * percent / times))
            return 0.01 * percent;
    return 1.0;
}

// An elimination that has time enough is not ended, one that has not wastes a fifth at most, unless
// it lacks no more than a fifth of its time.
void check_ended_eliminations() {
    for (const double times : {0.1, 0.9, 1.0, 1.2})
        CHECK(ended_after(times) == 1.0);
    for (const double times : {1.3, 1.9})
        CHECK(0.19 < ended_after(times) && ended_after(times) < 0.22);
    for (const double times : {2.1, 50.0})
        CHECK(0.1 < ended_after(times) && ended_after(times) < 0.12);
    CHECK(!exact::falls_behind(0.15, 0.08)); // the first entries may be slower
}

} // namespace

void check_search() {
    check_ended_eliminations();
    const Colouring model(13, 3);
    double energy = 0.0;
    for (const int threads : {1, 2, 4, 8}) {
        exact::Control control;
        exact::Solver solver(model.input(), options(threads), control);
        const auto found = solver.solve();
        energy = threads == 1 ? found.energy : energy;
        CHECK(found.complete && found.energy == energy && found.lower_bound == energy);
        CHECK(found.workers == threads);
    }
    for (const int threads : {1, 2, 4})
        for (const int calls : {1, 3, 9})
            check_failure(model, threads, calls, energy);
}

} // namespace checks
