// The search of one component: its workers, and the nodes they share.
#include "search.hpp"

#include <thread>
#include <utility>

#include "dive.hpp"

namespace softmap::exact {

struct TreeSearch::Worker {
    Control control;
    Diver diver;
    explicit Worker(const Diver &root) : diver(root, control) {}
};

namespace {

std::int64_t sum_of(std::int64_t a, std::int64_t b) {
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

} // namespace

TreeSearch::TreeSearch(Control &control, const Gap &gap, int threads, std::int64_t split_work)
    : control_(control), frontier_(gap), main_(std::make_unique<Diver>(control, frontier_)),
      threads_(threads), split_work_(split_work) {}

TreeSearch::~TreeSearch() = default;

void TreeSearch::prepare(Work &w, const std::vector<int> &vars, Cost epsilon, TreeLog *log) {
    main_->log = log;
    main_->epsilon = epsilon;
    main_->prepare(w, vars);
}

void TreeSearch::start_from(std::vector<int> labels, Cost cost) {
    frontier_.start_from(std::move(labels), cost);
    main_->follow_cut();
}

void TreeSearch::start_below(Cost cost) {
    frontier_.start_below(cost);
    main_->follow_cut();
}

int TreeSearch::workers() const { return 1 + static_cast<int>(workers_.size()); }

Cost TreeSearch::c0() const { return main_->c0(); }

void TreeSearch::run() {
    frontier_.rethrow();
    try {
        complete = explore();
    } catch (...) {
        frontier_.fail(std::current_exception());
        throw;
    }
    lower = complete ? frontier_.cut() : std::min(lower, frontier_.cut());
}

// Returns whether the search is complete.
bool TreeSearch::explore() {
    if (!begun_) {
        first_work_ = control_.total;
        main_->touch_all(); // the last call may have stopped in the middle
        if (!main_->propagate())
            return true;
        lower = c0();
        if (control_.stopped)
            return false;
        frontier_.plant(c0());
        begun_ = true;
    }
    const auto last_backtrack = sum_of(control_.backtracks, backtrack_budget);
    const auto last_work = sum_of(control_.total, work_budget);
    const bool repeatable = threads_ == 1 || main_->log != nullptr || last_backtrack < INT64_MAX ||
                            control_.max_backtracks < INT64_MAX;
    const auto split = repeatable ? INT64_MAX : sum_of(first_work_, split_work_);
    frontier_.resume();
    if (control_.total < split)
        main_->work(last_backtrack, std::min(last_work, split));
    if (control_.total >= split && control_.total < last_work && !control_.stopped)
        work_together(last_work);
    lower = frontier_.lower();
    return lower >= frontier_.cut();
}

void TreeSearch::work_together(std::int64_t last_work) {
    hire();
    const auto budget = last_work < INT64_MAX ? last_work - control_.total : INT64_MAX;
    const auto guarded = [&](Diver &diver, std::int64_t last) {
        try {
            diver.work(INT64_MAX, last);
        } catch (...) { // the frontier stops all workers; `rethrow` throws after the join
            frontier_.fail(std::current_exception());
        }
    };
    frontier_.resume();
    std::vector<std::thread> running;
    running.reserve(workers_.size());
    try {
        for (auto &worker : workers_)
            running.emplace_back(guarded, std::ref(worker->diver),
                                 sum_of(worker->control.total, budget));
    } catch (const std::exception &) { // no more threads: the search needs no certain number
    }
    guarded(*main_, last_work);
    for (auto &thread : running)
        thread.join();
    for (auto &worker : workers_) {
        control_.nodes += std::exchange(worker->control.nodes, 0);
        control_.backtracks += std::exchange(worker->control.backtracks, 0);
    }
    frontier_.rethrow();
    control_.check_now(); // the limit that stopped another worker
}

// Makes the other workers, on the first call, and sets their limits.
void TreeSearch::hire() {
    try {
        while (static_cast<int>(workers_.size()) + 1 < threads_)
            workers_.push_back(std::make_unique<Worker>(*main_));
    } catch (const std::bad_alloc &) { // fewer workers than asked for
    }
    for (auto &worker : workers_) {
        worker->control.deadline = control_.deadline;
        worker->control.max_open_bytes = control_.max_open_bytes;
        worker->control.stopped = false;
    }
}

} // namespace softmap::exact
