// A parity-check code as arrays.
#pragma once

#include "base/layout.hpp"

#include <cstdint>

namespace softmap {

// A parity-check code. An edge is a pair of a check and one of its bits.
struct Code {
    Index bits, checks;
    const Index *start;         // [checks + 1] first entry of each check in `member`
    const std::int32_t *member; // [edges] the bits of check 0, of check 1, ...
    const Index *degree;        // [bits] number of checks that contain the bit

    Index edges() const { return start[checks]; }
};

} // namespace softmap
