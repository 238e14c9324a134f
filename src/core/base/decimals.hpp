// Parses decimal numbers that one product or quotient of two exact doubles rounds correctly.
//
// A mantissa of at most 15 digits and a power of ten up to 1e22 are both exact as doubles, so
// mantissa · 10^k or mantissa / 10^k is rounded once. Other tokens are left to the caller.
#pragma once

#include <cstdint>
#include <vector>

namespace softmap {

constexpr int exact_digits = 15;   // every integer of at most 15 digits is exact as a double
constexpr int exact_exponent = 22; // every power of ten up to 1e22 is exact as a double

inline bool is_blank(unsigned char c) { return c == ' ' || (c >= 9 && c <= 13); }
inline bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

inline double power_of_ten(int k) {
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                        1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                        1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    return powers[k];
}

// Adds the exponent at `at` (1 to 3 digits, with or without a sign) to `exponent`. Returns false if
// there is no digit or if there are more than three.
inline bool read_exponent(const char *&at, const char *end, int &exponent) {
    const bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        ++at;
    const char *first = at;
    int value = 0;
    while (at < end && is_digit(*at) && at - first < 4)
        value = 10 * value + (*at++ - '0');
    exponent += negative ? -value : value;
    return at > first && at - first < 4;
}

// Parses [-]digits[.digits][e[+-]digits] into `out`. Returns false if the text has another form or
// if the value might be rounded more than once.
inline bool read_decimal(const char *at, const char *end, double &out) {
    const bool negative = *at == '-';
    at += negative;
    std::uint64_t mantissa = 0;
    int digits = 0, exponent = 0;
    for (; at < end && is_digit(*at); ++at, ++digits)
        mantissa = 10 * mantissa + std::uint64_t(*at - '0');
    if (at < end && *at == '.') {
        const char *point = ++at;
        for (; at < end && is_digit(*at); ++at, ++digits)
            mantissa = 10 * mantissa + std::uint64_t(*at - '0');
        exponent = -int(at - point < 64 ? at - point : 64);
    }
    if (digits == 0 || digits > exact_digits)
        return false;
    if (at < end && (*at == 'e' || *at == 'E') && !read_exponent(++at, end, exponent))
        return false;
    if (at != end || exponent > exact_exponent || exponent < -exact_exponent)
        return false;
    const double value = exponent < 0 ? double(mantissa) / power_of_ten(-exponent)
                                      : double(mantissa) * power_of_ten(exponent);
    out = negative ? -value : value;
    return true;
}

// Parses all tokens of a text, separated by blanks, into `values`. For each token that
// `read_decimal` refuses, `others` gets its index and the offsets of its begin and end. Returns the
// number of tokens, or -1 if most of them were refused.
inline std::int64_t read_decimals(const char *text, std::int64_t size, double *values,
                                  std::vector<std::int64_t> &others) {
    std::int64_t count = 0;
    const char *at = text, *last = text + size;
    while (true) {
        while (at < last && is_blank(*at))
            ++at;
        if (at == last)
            return count;
        const char *begin = at;
        while (at < last && !is_blank(*at))
            ++at;
        if (!read_decimal(begin, at, values[count])) {
            others.insert(others.end(), {count, begin - text, at - text});
            if (others.size() > 3000 && std::int64_t(others.size()) > 2 * count)
                return -1;
        }
        ++count;
    }
}

} // namespace softmap
