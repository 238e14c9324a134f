// How a component is solved: a function of sizes and limits, without a clock and without the model.
#pragma once

#include <algorithm>
#include <cstdint>

namespace softmap::exact {

// The numbers that decide how much of what is done. Work is counted in table entries that are read;
// elimination visits 4·10⁸ of them in a second of one core (decision 34).
struct Effort {
    // Elimination. Callers lower `max_stored` to what fits into their memory.
    double max_entries = 2e9; // largest number of table entries visited; 5 s of one core
    double max_stored = 1e9;  // largest number of table entries stored; 8 GB
    // Elimination comes before all else up to `at_once` entries, or `per_entry` times the entries
    // of the component's own tables, which the set-up of a search reads (decision 34).
    double at_once = 4e6, per_entry = 200.0;
    // Otherwise a search comes first: its work relative to the entries of elimination, and at most
    // (0.4 s of one core; decision 34).
    double search_first = 0.1, longest_first = 1.5e7;
    // Ascent: sweeps from λ = 0, and fraction of the time left; a tenth of both from a given λ or
    // before a search for a first labelling; work in any case (decision 15).
    int sweeps = 200;
    double ascent_share = 0.15, ascent_work = 8e8;
    // Presolve: work of dominance, and of persistency, in one round (decision 15); entries of
    // tables that eliminating a variable with two or three neighbours may make.
    std::int64_t presolve_work = 50'000'000;
    std::int64_t two_neighbours = 1 << 14, three_neighbours = 64;
    std::size_t split = 4096; // largest table of three or more variables that is split
    // Search: backtracks until a first labelling; work before there are several threads, 20 to 80
    // ms.
    std::int64_t first_backtracks = 20, split_work = 1 << 21;
};

// The sizes of a component.
struct ComponentSize {
    double tables = 0;     // entries of its tables
    bool ordered = false;  // whether an elimination order within the limits is known
    double eliminated = 0; // entries that elimination visits in that order
};

enum class Method : int { ELIMINATE, SEARCH, SEARCH_FIRST };

// `work` is that of the search before elimination, for SEARCH_FIRST only.
struct ComponentPlan {
    Method method;
    std::int64_t work;
};

// A search for a `first` labelling, whose cost determines the unit of costs, ends soon in any case.
inline ComponentPlan plan_component(const ComponentSize &size, const Effort &effort, bool first) {
    if (size.ordered && size.eliminated < std::max(effort.at_once, effort.per_entry * size.tables))
        return {Method::ELIMINATE, 0};
    const double work = std::min(effort.search_first * size.eliminated, effort.longest_first);
    if (!size.ordered || first)
        return {Method::SEARCH, INT64_MAX};
    return {work > 0 ? Method::SEARCH_FIRST : Method::ELIMINATE, static_cast<std::int64_t>(work)};
}

} // namespace softmap::exact
