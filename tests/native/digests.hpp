// What `softmap_checks_LEVEL --digests` prints, by family.
#pragma once

#include <cstdint>

namespace checks {

inline constexpr std::uint64_t digests[] = {
    0x3df1936c177b7a44, // tables
    0x391fc0757e1b5304, // potts
    0xd68c4653daf5028a, // linear
    0x99c6a93a18513faa, // quadratic
    0x69af8108ce2c0fe3, // projection
};

} // namespace checks
