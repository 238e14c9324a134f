// The exact solver: scale, presolve, components, elimination or search, and the bound they prove.
#pragma once

#include <memory>
#include <string>

#include "input.hpp"
#include "log.hpp"
#include "plan.hpp"

namespace softmap::exact {

struct Options {
    double relative_gap = 1e-9;
    double absolute_gap = 0.0;
    bool presolve = true; // remove variables and labels before the search
    bool ascent = true;   // raise the root bound by message passing
    int threads = 1;      // of a search (see TreeSearch) and of elimination
    std::string log;      // prefix of the proof files, one per round; empty: no proof
    Effort effort;
};

struct Result {
    std::vector<std::int64_t> labels; // empty if no labelling is known
    double energy = INFINITY;
    double lower_bound = -INFINITY;
    double slack = 0.0; // largest decrease of the bound by rounding costs down
    bool complete = false;
    bool infeasible = false;
    std::int64_t nodes = 0, backtracks = 0;
    int components = 0, eliminated = 0, searched = 0;
    int workers = 0; // largest number of threads of a search; 0 without a search
    double root_bound = -INFINITY;
    std::string log; // proof file; its first `logged` bytes prove the bound
    std::int64_t logged = 0;
};

// The arrays of the input must outlive the solver.
class Solver {
  public:
    Solver(const Input &in, const Options &options, Control &control);
    ~Solver();

    // Runs until a limit, or to the end. Resumes a search that a limit stopped in the last call.
    Result solve();

    // The best labelling; empty if none is known.
    const std::vector<std::int64_t> &known() const { return result_.labels; }
    // Takes a labelling found elsewhere, between two calls of `solve`.
    void take(std::vector<std::int64_t> labels);

  private:
    struct Sums;
    struct Round; // the components of one round, and the search in progress

    Input in_;
    Options options_;
    Control &control_;
    std::unique_ptr<Log> log_;
    int logs_ = 0; // number of proof files so far
    Result result_;
    Scale scale_;
    int round_ = 0;
    bool paused_ = false; // stopped in the middle of a search
    bool first_ = false;  // searching for a first labelling, whose cost determines the unit
    std::unique_ptr<Round> now_;

    double tolerance() const;
    void offer(std::vector<std::int64_t> labels);
    bool eliminate(const std::vector<int> &order);
    bool raise_bound(const std::vector<int> &vars, double share);
    bool solve_component(const std::vector<int> &vars, double share);
    bool search_component(const std::vector<int> &vars);
    void set_up_search(const std::vector<int> &vars);
    bool collect(const std::vector<int> &vars);
    bool begin();
    void write_log();
    void forget_search();
    void solve_components();
    void report_progress();
    void offer_labels(std::vector<std::int64_t> labels);
    void finish(Wide lower, bool complete, bool infeasible);
};

} // namespace softmap::exact
