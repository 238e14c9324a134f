// Stable radix sort by integer keys, for millions of items with few different keys.
#pragma once

#include "team.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace softmap {

// An item with its sort key; `place` is a second number that the caller attaches to it.
struct Keyed {
    std::uint64_t key;
    std::int32_t item, place;
};

// Sorts items by their keys, ascending (stable least-significant-digit radix sort). Each part of
// the items counts its digits, so that all parts know their places.
inline void sort_stably(std::vector<Keyed> &items, int threads = 1) {
    constexpr int bits = 11;
    constexpr std::size_t digits = 1 << bits;
    const Index count = Index(items.size());
    std::uint64_t most = 0; // as many bits as the largest key
    for (const Keyed &one : items)
        most |= one.key;
    std::vector<Keyed> sorted(most ? items.size() : 0);
    std::vector<std::size_t> next;
    for (int shift = 0; shift < 64 && most >> shift; shift += bits) {
        together(count < worthwhile ? 1 : threads, [&](Member &me) {
            const auto digit = [&](const Keyed &one) { return (one.key >> shift) % digits; };
            me.once([&] { next.assign(digits * std::size_t(me.threads()), 0); });
            me.phase([&](Part part) {
                std::size_t *own = next.data() + digits * std::size_t(part.index);
                part.each(0, count, [&](Index k) { ++own[digit(items[std::size_t(k)])]; });
            });
            me.once([&] {
                std::size_t begin = 0;
                for (std::size_t d = 0; d < digits; ++d)
                    for (int t = 0; t < me.threads(); ++t)
                        begin += std::exchange(next[digits * std::size_t(t) + d], begin);
            });
            me.phase([&](Part part) {
                std::size_t *own = next.data() + digits * std::size_t(part.index);
                part.each(0, count, [&](Index k) {
                    sorted[own[digit(items[std::size_t(k)])]++] = items[std::size_t(k)];
                });
            });
        });
        items.swap(sorted);
    }
}

// One integer key per item that sorts like a tuple of keys (lexicographic order).
class JoinedKeys {
  public:
    JoinedKeys(Index count, int threads) : threads_(threads), keys_(std::size_t(count)) {}

    // Appends column(item), any 64-bit integer, to the tuple of each item.
    template <class Column> void add(Column column) {
        const auto [low, high] = range_of(column);
        const std::uint64_t most = std::uint64_t(high) - std::uint64_t(low);
        if (keys_.empty() || !most)
            return;
        constexpr std::uint64_t limit = std::uint64_t(1) << 62;
        if (most < limit && most_ < limit / (most + 1))
            return append(most,
                          [&](Index k) { return std::uint64_t(column(k)) - std::uint64_t(low); });
        Keys own(keys_.size());
        for (std::size_t k = 0; k < own.size(); ++k)
            own[k] = std::uint64_t(column(Index(k))) - std::uint64_t(low);
        most_ = number(keys_);
        append(number(own), [&](Index k) { return own[std::size_t(k)]; });
    }

    std::uint64_t operator[](Index item) const { return keys_[std::size_t(item)]; }

  private:
    using Keys = std::vector<std::uint64_t>;
    static constexpr int portions = 64;

    // The least and the largest value of a column.
    template <class Column> std::pair<std::int64_t, std::int64_t> range_of(Column column) const {
        constexpr auto least = std::numeric_limits<std::int64_t>::min();
        constexpr auto largest = std::numeric_limits<std::int64_t>::max();
        std::int64_t low[portions], high[portions];
        split_portions(threads_, portions, Index(keys_.size()), [&](Part part) {
            std::int64_t from = largest, to = least;
            part.each(0, Index(keys_.size()), [&](Index k) {
                const auto one = std::int64_t(column(k));
                from = std::min(from, one), to = std::max(to, one);
            });
            low[part.index] = from, high[part.index] = to;
        });
        return {*std::min_element(low, low + portions), *std::max_element(high, high + portions)};
    }

    template <class Column> void append(std::uint64_t most, Column column) {
        split(threads_, Index(keys_.size()), [&](Index first, Index last) {
            for (Index k = first; k < last; ++k)
                keys_[std::size_t(k)] = keys_[std::size_t(k)] * (most + 1) + column(k);
        });
        most_ = most_ * (most + 1) + most;
    }

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

    int threads_;
    Keys keys_;
    std::uint64_t most_ = 0; // upper bound on all keys
};

} // namespace softmap
