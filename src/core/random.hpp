// One seeded generator, xoshiro256++. Its four words are an array that travels with the state of a
// run, so that runs can be stored, resumed and put on any thread without changing a bit.
#pragma once

#include "layout.hpp"

#include <bit>

namespace softmap {

struct Random {
    std::uint64_t word[4];

    // The next 64 random bits.
    std::uint64_t next() {
        const std::uint64_t result = std::rotl(word[0] + word[3], 23) + word[0];
        const std::uint64_t shifted = word[1] << 17;
        word[2] ^= word[0];
        word[3] ^= word[1];
        word[1] ^= word[2];
        word[0] ^= word[3];
        word[2] ^= shifted;
        word[3] = std::rotl(word[3], 45);
        return result;
    }

    // An integer of 0..bound-1, exactly uniform: masked bits, drawn again when too large.
    Index below(Index bound) {
        const auto limit = static_cast<std::uint64_t>(bound);
        const std::uint64_t mask = std::bit_ceil(limit) - 1;
        std::uint64_t found = next() & mask;
        while (found >= limit)
            found = next() & mask;
        return static_cast<Index>(found);
    }
};

} // namespace softmap
