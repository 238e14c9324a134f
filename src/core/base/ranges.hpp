// How the nodes of a large graph are divided among threads: into ranges of consecutive numbers, on
// each of which one thread at a time works. The ranges do not depend on the number of threads.
#pragma once

#include "team.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace softmap {

inline constexpr Index most_ranges = 64; // a power of 2; more threads than that are not used

// Largest share of the nodes, or of the arcs, that may join two ranges; with more, as in random
// graphs, one range has all nodes.
inline constexpr double most_joining = 1.0 / 8;

// The number of ranges of n nodes, each of at least `least` nodes: a power of 2; 1 in small graphs.
inline Index count_ranges(Index n, Index least = worthwhile) {
    if (n < 2 * least)
        return 1;
    return std::min(most_ranges, Index(std::bit_floor(std::uint64_t(n / least))));
}

} // namespace softmap
