// The rules of presolve, one after the other.
#include "presolve.hpp"

#include <numeric>

namespace softmap::exact {

namespace {

void presolve_once(Work &w, const Effort &effort, Control &control) {
    const auto eliminate_pairs = [&] { eliminate_small(w, control, 2, effort.two_neighbours); };
    std::vector<int> every(w.n());
    std::iota(every.begin(), every.end(), 0);
    arc_consistency(w, std::move(every), control);
    if (w.infeasible)
        return;
    split_factors(w, effort.split);
    substitute_all(w);
    eliminate_pairs();
    if (!w.infeasible && remove_dominated(w, control, effort.presolve_work) && !w.infeasible)
        eliminate_pairs();
    if (!w.infeasible && fix_persistent(w, control, effort.presolve_work))
        eliminate_pairs();
    if (!w.infeasible)
        eliminate_small(w, control, 3, effort.three_neighbours);
}

} // namespace

void presolve(Work &w, const Effort &effort, Control &control) {
    std::size_t before = 0;
    do {
        before = w.eliminated.size();
        presolve_once(w, effort, control);
    } while (!w.infeasible && !control.stopped && w.eliminated.size() > before);
    if (!w.infeasible)
        normalise(w);
}

} // namespace softmap::exact
