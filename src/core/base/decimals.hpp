// Decimal numbers of a text: those that one division or product of exact numbers gives rightly.
#pragma once

#include <cstdint>
#include <vector>

namespace softmap {

constexpr int exact_digits = 15;   // every such integer is a double
constexpr int exact_exponent = 22; // so is every such power of ten

inline bool is_blank(unsigned char c) { return c == ' ' || (c >= 9 && c <= 13); }
inline bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

inline double power_of_ten(int k) {
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                        1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                        1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    return powers[k];
}

// The digits of an exponent, up to 999; false where there are none, or more.
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

// The value of [-]digits[.digits][e[+-]digits], if it is exact that way.
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

// All tokens of a text. Those that are not read here are listed: number, begin and end of each.
// Returns how many tokens there are, or -1 if most of them are not read.
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
