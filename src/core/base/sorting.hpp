// Stable radix sort by integer keys, for millions of items with few different keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace softmap {

// An item with its sort key; `place` is a second number that the caller attaches to it.
struct Keyed {
    std::uint64_t key;
    std::int32_t item, place;
};

// Sorts items by their keys, ascending (stable least-significant-digit radix sort).
inline void sort_stably(std::vector<Keyed> &items) {
    constexpr int bits = 11;
    constexpr std::uint64_t digits = 1 << bits;
    std::uint64_t most = 0;
    for (const Keyed &one : items)
        most = std::max(most, one.key);
    std::vector<Keyed> sorted(most ? items.size() : 0);
    for (int shift = 0; shift < 64 && most >> shift; shift += bits) {
        std::vector<std::size_t> begin(digits + 1);
        for (const Keyed &one : items)
            ++begin[(one.key >> shift) % digits + 1];
        for (std::size_t d = 0; d < digits; ++d)
            begin[d + 1] += begin[d];
        for (const Keyed &one : items)
            sorted[begin[(one.key >> shift) % digits]++] = one;
        items.swap(sorted);
    }
}

// One integer key per item that sorts like a tuple of keys (lexicographic order).
class JoinedKeys {
  public:
    explicit JoinedKeys(std::int64_t count) : keys_(std::size_t(count)) {}

    // Appends column(item), any 64-bit integer, to the tuple of each item.
    template <class Column> void add(Column column) {
        Keys own(keys_.size());
        std::int64_t low = std::numeric_limits<std::int64_t>::max();
        for (std::size_t k = 0; k < own.size(); ++k) {
            const auto one = std::int64_t(column(std::int64_t(k)));
            own[k] = std::uint64_t(one);
            low = std::min(low, one);
        }
        std::uint64_t most = 0;
        for (std::uint64_t &one : own)
            most = std::max(most, one -= std::uint64_t(low));
        if (!most)
            return;
        constexpr std::uint64_t limit = std::uint64_t(1) << 62;
        if (most >= limit || most_ >= limit / (most + 1)) {
            most_ = number(keys_);
            most = number(own);
        }
        for (std::size_t k = 0; k < own.size(); ++k)
            keys_[k] = keys_[k] * (most + 1) + own[k];
        most_ = most_ * (most + 1) + most;
    }

    std::uint64_t operator[](std::int64_t item) const { return keys_[std::size_t(item)]; }

  private:
    using Keys = std::vector<std::uint64_t>;

    // Replaces each key by its rank 0, 1, ... among the distinct keys; returns the largest rank.
    static std::uint64_t number(Keys &keys) {
        Keys sorted = keys;
        std::sort(sorted.begin(), sorted.end());
        sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
        for (std::uint64_t &key : keys)
            key =
                std::uint64_t(std::lower_bound(sorted.begin(), sorted.end(), key) - sorted.begin());
        return sorted.size() - 1;
    }

    Keys keys_;
    std::uint64_t most_ = 0; // upper bound on all keys
};

} // namespace softmap
