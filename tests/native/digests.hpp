// What `softmap_checks_LEVEL --digests` prints, by family.
#pragma once

#include <cstdint>

namespace checks {

inline constexpr std::uint64_t digests[] = {
    0xac2fdf11a2da187d, // tables
    0x053189a81f3f7dcf, // potts
    0x9f62a71becd812a7, // linear
    0xd65f1c286fd4565f, // quadratic
    0xa56a798e2bcef35c, // projection
};

} // namespace checks
