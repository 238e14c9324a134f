// Checks that need nothing but a compiler: each says what it found where it fails.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>

namespace checks {

inline int passed = 0, failed = 0;

inline void count(bool holds, const char *what, const char *file, int line) {
    holds ? ++passed : ++failed;
    if (!holds && failed <= 20)
        std::printf("%s:%d: %s does not hold\n", file, line, what);
}

#define CHECK(...) checks::count((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

// The same numbers on every machine: a linear congruential generator (Knuth's MMIX).
class Numbers {
  public:
    explicit Numbers(std::uint64_t seed) : state_(seed) {}

    // A whole number from 0 to below - 1.
    std::int64_t below(std::int64_t below) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return std::int64_t((state_ >> 33) % std::uint64_t(below));
    }
    // A multiple of 2^-digits between -1 and 1.
    double fraction(int digits) {
        const std::int64_t ones = std::int64_t(1) << digits;
        return std::ldexp(double(below(2 * ones + 1) - ones), -digits);
    }

  private:
    std::uint64_t state_;
};

void check_rounding();
void check_lanes();
void check_messages();
void check_bounds();
void check_prices();
void check_threads();
void check_moves();
void check_search();
void check_bits(bool print); // print: the digests, in the form of digests.hpp

} // namespace checks
