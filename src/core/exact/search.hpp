// Hybrid best-first search: depth-first dives of limited length from the open node of lowest bound,
// by one worker or several.
#pragma once

#include <thread>
#include <utility>

#include "dive.hpp"
#include "parcel.hpp"

namespace softmap::exact {

// The search of one component. It starts with one worker, in the calling thread. After `split_work`
// units of work, other threads get copies of the state at the root, and all take nodes from one
// frontier. One worker does it all if the search must be repeatable: if backtracks are limited, or
// for a proof log.
//
// Whatever the timing, a complete search ends with the same proof: no labelling costs less than the
// cut. With several workers, the timing decides which of several labellings within the gap of the
// optimum is found first.
class Search {
  public:
    Search(Control &control, const Gap &gap, int threads, std::int64_t split_work)
        : control_(control), frontier_(gap), main_(control, frontier_), threads_(threads),
          split_work_(split_work) {}

    Cost lower = 0; // lower bound, valid at any time
    bool complete = false;
    std::int64_t backtrack_budget = INT64_MAX; // per call of run
    std::int64_t work_budget = INT64_MAX;      // per call of run, of each worker

    // Loads the component. Costs below `epsilon` do not start DAC and EAC.
    void prepare(Work &w, const std::vector<int> &vars, Cost epsilon, TreeLog *log) {
        main_.log = log;
        main_.epsilon = epsilon;
        main_.prepare(w, vars);
    }
    void start_from(std::vector<int> labels, Cost cost) {
        frontier_.start_from(std::move(labels), cost);
        main_.follow_cut();
    }
    // Searches only for labellings that cost less, if no labelling is known.
    void start_below(Cost cost) {
        frontier_.start_below(cost);
        main_.follow_cut();
    }
    // The best labelling.
    const Known &known() const { return frontier_.known(); }
    int workers() const { return 1 + static_cast<int>(workers_.size()); }
    // Lower bound at the root.
    Cost c0() const { return main_.c0(); }

    // --- a search that other processes share, between calls of `run` ---

    bool begun() const { return begun_; }
    const Frontier &frontier() const { return frontier_; }
    void set_elsewhere(Cost bound) { frontier_.set_elsewhere(bound); }
    // Removes open nodes that other processes will search; see `Frontier::give`.
    Parcel give(std::int64_t count, int step) {
        Parcel out;
        frontier_.give(count, step, [&](Cost bound, const std::vector<Decision> &path) {
            write_node(out, bound, path);
        });
        return out;
    }
    // Opens nodes that another process gave away.
    void receive(std::span<const std::int64_t> parcel) {
        for (const auto &[bound, path] : read_nodes(parcel, main_.size))
            frontier_.open(path, {{path.size(), bound, false, {}}});
    }
    // Takes a labelling that another process found.
    void hear(std::span<const std::int64_t> labels, Cost cost) {
        check_labels(labels, main_.size);
        if (cost < known().cost)
            start_from({labels.begin(), labels.end()}, cost);
    }

    // Continues the search of the last call. If a worker fails, throws its exception, in this call
    // and in later ones: which nodes are open is no longer known.
    void run() {
        frontier_.rethrow();
        try {
            complete = explore();
        } catch (...) {
            frontier_.fail(std::current_exception());
            throw;
        }
        lower = complete ? frontier_.cut() : std::min(lower, frontier_.cut());
    }

  private:
    struct Worker {
        Control control;
        Diver diver;
        explicit Worker(const Diver &root) : diver(root, control) {}
    };
    Control &control_;
    Frontier frontier_;
    Diver main_; // the worker in the calling thread
    const int threads_;
    const std::int64_t split_work_; // units of work of the main worker before there are others
    std::vector<std::unique_ptr<Worker>> workers_; // all other workers
    std::int64_t first_work_ = 0;                  // work before the search
    bool begun_ = false;

    static std::int64_t sum_of(std::int64_t a, std::int64_t b) {
        return a > INT64_MAX - b ? INT64_MAX : a + b;
    }

    // Returns whether the search is complete.
    bool explore() {
        if (!begun_) {
            first_work_ = control_.total;
            main_.touch_all(); // the last call may have stopped in the middle
            if (!main_.propagate())
                return true;
            lower = c0();
            if (control_.stopped)
                return false;
            frontier_.plant(c0());
            begun_ = true;
        }
        const auto last_backtrack = sum_of(control_.backtracks, backtrack_budget);
        const auto last_work = sum_of(control_.total, work_budget);
        const bool repeatable = threads_ == 1 || main_.log != nullptr ||
                                last_backtrack < INT64_MAX || control_.max_backtracks < INT64_MAX;
        const auto split = repeatable ? INT64_MAX : sum_of(first_work_, split_work_);
        frontier_.resume();
        if (control_.total < split)
            main_.work(last_backtrack, std::min(last_work, split));
        if (control_.total >= split && control_.total < last_work && !control_.stopped)
            work_together(last_work);
        lower = frontier_.lower();
        return lower >= frontier_.cut();
    }

    void work_together(std::int64_t last_work) {
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
        guarded(main_, last_work);
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
    void hire() {
        try {
            while (static_cast<int>(workers_.size()) + 1 < threads_)
                workers_.push_back(std::make_unique<Worker>(main_));
        } catch (const std::bad_alloc &) { // fewer workers than asked for
        }
        for (auto &worker : workers_) {
            worker->control.deadline = control_.deadline;
            worker->control.max_open_bytes = control_.max_open_bytes;
            worker->control.stop = &frontier_.halted(); // the first worker reads the stop flag
            worker->control.stopped = false;
        }
    }
};

} // namespace softmap::exact
