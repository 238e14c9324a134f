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
    // Whether a word violates check c, whose bits have to be odd or even in number.
    bool violated(Index c, bool odd, const std::uint8_t *word) const {
        std::uint8_t parity = odd;
        for (Index e = start[c]; e < start[c + 1]; ++e)
            parity ^= word[member[e]];
        return parity;
    }
};

} // namespace softmap
