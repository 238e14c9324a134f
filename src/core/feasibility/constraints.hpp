// The hard constraints of a model: allowed labels, pairs, tables, different labels and sums.
#pragma once

#include "base/layout.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace softmap::feasibility {

using Word = std::uint64_t;
using Id = std::int32_t;

// The supports of the labels of one end of an edge: row y has a bit for each label of the other end
// that is allowed with y.
struct Supports {
    Index words = 0; // per row
    Index zeros = 0; // most labels of the other end that one row forbids
    std::vector<Word> bits;

    const Word *row(Index y) const { return bits.data() + y * words; }
};

// An edge, seen from the end whose labels need support.
struct Half {
    Id from, to; // the labels of `to` need support among those of `from`
    Id table;    // number of its Supports
    Id constraint;
};

// A table over several variables: which joint states are allowed, row-major.
struct TableConstraint {
    std::vector<Id> scope;
    std::vector<Index> size, stride;
    std::vector<char> allowed;
    Id constraint = 0;
};

// Variables whose labels must differ.
struct Different {
    std::vector<Id> scope;
    Index labels = 0; // labels are 0 to labels - 1
    Id constraint = 0;
};

// A sum of one weight per label that must be allowed: within bounds, or one of a list.
struct SumConstraint {
    std::vector<Id> scope;
    std::vector<std::vector<std::int64_t>> weight;
    std::int64_t low = 0, high = 0;
    std::vector<Index> before; // number of allowed sums below low + k; empty: all are allowed
    Id constraint = 0;

    // Whether a sum from `least` to `most` is allowed.
    bool any(std::int64_t least, std::int64_t most) const {
        least = std::max(least, low), most = std::min(most, high);
        if (least > most || before.empty())
            return least <= most;
        return before[std::size_t(most - low) + 1] > before[std::size_t(least - low)];
    }
};

// All constraints, and for each variable those that it is part of.
//
// Constraint i < n is the set of allowed labels of variable i; the others are numbered in the order
// in which they are added.
class Constraints {
  public:
    Constraints(std::span<const Index> num_labels, const bool *allowed)
        : size(num_labels.begin(), num_labels.end()), offset(num_labels.size() + 1, 0),
          word(num_labels.size() + 1, 0), next_(Id(num_labels.size())) {
        for (std::size_t i = 0; i < num_labels.size(); ++i) {
            offset[i + 1] = offset[i] + num_labels[i];
            word[i + 1] = word[i] + (num_labels[i] + 63) / 64;
        }
        owner.resize(std::size_t(offset.back()));
        for (Index i = 0; i < n(); ++i)
            std::fill(owner.begin() + offset[i], owner.begin() + offset[i + 1], Id(i));
        this->allowed.assign(allowed, allowed + offset.back());
        halves_of.resize(num_labels.size());
        tables_of.resize(num_labels.size());
        different_of.resize(num_labels.size());
        sums_of.resize(num_labels.size());
    }

    Index n() const { return Index(size.size()); }
    Index constraints() const { return next_; }

    void add_pair(Id i, Id j, const bool *table) {
        const Id constraint = next_++, pair = supports(i, j, table);
        halves_of[std::size_t(i)].push_back(Id(halves.size()));
        halves.push_back({i, j, pair, constraint});
        halves_of[std::size_t(j)].push_back(Id(halves.size()));
        halves.push_back({j, i, pair + 1, constraint});
    }

    void add_table(std::span<const Index> scope, const bool *table) {
        TableConstraint out;
        out.constraint = next_++;
        Index total = 1;
        out.stride.resize(scope.size());
        for (std::size_t k = scope.size(); k-- > 0;) {
            out.stride[k] = total;
            total *= size[std::size_t(scope[k])];
        }
        for (const Index i : scope) {
            out.scope.push_back(Id(i));
            out.size.push_back(size[std::size_t(i)]);
            tables_of[std::size_t(i)].push_back(Id(tables.size()));
        }
        out.allowed.assign(table, table + total);
        tables.push_back(std::move(out));
    }

    void add_different(std::span<const Index> scope) {
        Different out;
        out.constraint = next_++;
        for (const Index i : scope) {
            out.scope.push_back(Id(i));
            out.labels = std::max(out.labels, size[std::size_t(i)]);
            different_of[std::size_t(i)].push_back(Id(different.size()));
        }
        different.push_back(std::move(out));
    }

    // `weights` has one entry per label of each variable of the scope. `listed`, unless empty, says
    // for each sum from `low` to `high` whether it is allowed.
    void add_sum(std::span<const Index> scope, const std::int64_t *weights, std::int64_t low,
                 std::int64_t high, std::span<const bool> listed) {
        SumConstraint out;
        out.constraint = next_++;
        for (const Index i : scope) {
            out.scope.push_back(Id(i));
            out.weight.emplace_back(weights, weights + size[std::size_t(i)]);
            weights += size[std::size_t(i)];
            sums_of[std::size_t(i)].push_back(Id(sums.size()));
        }
        out.low = low, out.high = high;
        if (!listed.empty()) {
            out.before.assign(1, 0);
            for (const bool ok : listed)
                out.before.push_back(out.before.back() + ok);
        }
        sums.push_back(std::move(out));
    }

    std::vector<Index> size, offset, word; // labels; first place and first word of each variable
    std::vector<Id> owner;                 // variable of each place
    std::vector<char> allowed;             // per place
    std::vector<Supports> support;
    std::vector<Half> halves;
    std::vector<TableConstraint> tables;
    std::vector<Different> different;
    std::vector<SumConstraint> sums;
    // By variable; a half-edge belongs to the variable that gives support.
    std::vector<std::vector<Id>> halves_of, tables_of, different_of, sums_of;

  private:
    // Number of the Supports of j's labels; those of i's labels follow. Equal tables share them.
    Id supports(Id i, Id j, const bool *table) {
        const Index rows = size[std::size_t(i)], cols = size[std::size_t(j)];
        std::string key(reinterpret_cast<const char *>(table), std::size_t(rows * cols));
        key += ':' + std::to_string(rows);
        const auto [at, fresh] = known_.try_emplace(std::move(key), Id(support.size()));
        if (fresh) {
            support.push_back(
                filled(cols, rows, [&](Index y, Index x) { return table[x * cols + y]; }));
            support.push_back(
                filled(rows, cols, [&](Index x, Index y) { return table[x * cols + y]; }));
        }
        return at->second;
    }

    template <class Entry> static Supports filled(Index rows, Index others, Entry entry) {
        Supports out;
        out.words = (others + 63) / 64;
        out.bits.assign(std::size_t(rows * out.words), 0);
        for (Index y = 0; y < rows; ++y) {
            Index zeros = 0;
            for (Index x = 0; x < others; ++x)
                if (entry(y, x))
                    out.bits[std::size_t(y * out.words + x / 64)] |= Word(1) << (x % 64);
                else
                    ++zeros;
            out.zeros = std::max(out.zeros, zeros);
        }
        return out;
    }

    Id next_;
    std::unordered_map<std::string, Id> known_;
};

} // namespace softmap::feasibility
