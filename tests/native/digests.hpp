// What `softmap_checks_LEVEL --digests` prints, by family.
#pragma once

#include <cstdint>

namespace checks {

inline constexpr std::uint64_t digests[] = {
    0x52303085a9d56f91, // tables
    0x3a1f594c9a560127, // potts
    0xcc42d280c5c924af, // linear
    0x63c189bcf092bef1, // quadratic
    0xa8a72ac9dc4b1629, // projection
};

} // namespace checks
