// Hybrid best-first search: depth-first dives of limited length from the open node of lowest bound,
// by one worker or several.
#pragma once

#include <memory>

#include "frontier.hpp"
#include "work.hpp"

namespace softmap::exact {

class Diver;

// The search of one component. It starts with one worker, in the calling thread. After `split_work`
// units of work, other threads get copies of the state at the root, and all take nodes from one
// frontier. One worker does it all if the search must be repeatable: if backtracks are limited, or
// for a proof log.
//
// Whatever the timing, a complete search ends with the same proof: no labelling costs less than the
// cut. With several workers, the timing decides which of several labellings within the gap of the
// optimum is found first.
class TreeSearch {
  public:
    TreeSearch(Control &control, const Gap &gap, int threads, std::int64_t split_work);
    ~TreeSearch();

    Cost lower = 0; // lower bound, valid at any time
    bool complete = false;
    std::int64_t backtrack_budget = INT64_MAX; // per call of run
    std::int64_t work_budget = INT64_MAX;      // per call of run, of each worker

    // Loads the component. Costs below `epsilon` do not start DAC and EAC.
    void prepare(Work &w, const std::vector<int> &vars, Cost epsilon, TreeLog *log);
    void start_from(std::vector<int> labels, Cost cost);
    // Searches only for labellings that cost less, if no labelling is known.
    void start_below(Cost cost);
    // The best labelling.
    const Known &known() const { return frontier_.known(); }
    int workers() const;
    // Lower bound at the root.
    Cost c0() const;

    // Continues the search of the last call. If a worker fails, throws its exception, in this call
    // and in later ones: which nodes are open is no longer known.
    void run();

  private:
    struct Worker;
    Control &control_;
    Frontier frontier_;
    std::unique_ptr<Diver> main_; // the worker in the calling thread
    const int threads_;
    const std::int64_t split_work_; // units of work of the main worker before there are others
    std::vector<std::unique_ptr<Worker>> workers_; // all other workers
    std::int64_t first_work_ = 0;                  // work before the search
    bool begun_ = false;

    bool explore();
    void work_together(std::int64_t last_work);
    void hire();
};

} // namespace softmap::exact
