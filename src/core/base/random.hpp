// The pseudo-random generator of all loops: xoshiro256++, its four words in an array of the caller.
//
// The words are part of a run's state, so that a run can be stored, resumed or moved to another
// thread and still gives the same result.
#pragma once

#include "layout.hpp"

#include <bit>
#include <cstdint>

namespace softmap {

// The next 64 random bits.
inline std::uint64_t next_word(std::uint64_t *s) {
    const std::uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
    const std::uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = std::rotl(s[3], 45);
    return result;
}

// Uniform in [0, 1).
inline double uniform(std::uint64_t *words) { return 0x1p-53 * double(next_word(words) >> 11); }

// An integer of 0..bound-1, exactly uniform (bit mask and rejection).
inline Index below(std::uint64_t *s, Index bound) {
    const std::uint64_t limit = std::uint64_t(bound);
    const std::uint64_t mask = bound > 1 ? ~std::uint64_t(0) >> std::countl_zero(limit - 1) : 0;
    std::uint64_t word = next_word(s) & mask;
    while (word >= limit)
        word = next_word(s) & mask;
    return Index(word);
}

// The k-th random number of a seed, without those before it (splitmix64).
inline std::uint64_t scattered(std::uint64_t seed, Index k) {
    std::uint64_t z = seed + 0x9e3779b97f4a7c15u * std::uint64_t(k + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Fills the four words of a generator from one number.
inline void spread_seed(std::uint64_t seed, std::uint64_t *s) {
    for (int k = 0; k < 4; ++k)
        s[k] = scattered(seed, k);
}

// The four words of the generator, with `next_word` and `below` as members.
struct Random {
    std::uint64_t word[4];

    std::uint64_t next() { return next_word(word); }
    Index below(Index bound) { return softmap::below(word, bound); }
};

} // namespace softmap
