// What processes that share a search tell each other: open nodes, and which model they belong to.
#pragma once

#include <span>
#include <stdexcept>

#include "frontier.hpp"
#include "work.hpp"

namespace softmap::exact {

// Open nodes: for each its bound, its number of decisions, and the decisions in one word each.
using Parcel = std::vector<std::int64_t>;

struct Sent {
    Cost bound;
    std::vector<Decision> path;
};

inline void write_node(Parcel &out, Cost bound, const std::vector<Decision> &path) {
    out.push_back(bound);
    out.push_back(static_cast<std::int64_t>(path.size()));
    for (const auto &d : path)
        out.push_back((std::int64_t{d.x} << 32) | (std::int64_t{d.a} << 2) |
                      static_cast<int>(d.kind));
}

// The nodes of a parcel, for variables with these numbers of labels.
inline std::vector<Sent> read_nodes(std::span<const std::int64_t> in,
                                    const std::vector<int> &size) {
    std::vector<Sent> out;
    const auto require = [](bool sound) {
        if (!sound)
            throw std::invalid_argument("not open nodes of this search");
    };
    for (std::size_t at = 0; at < in.size();) {
        require(at + 2 <= in.size() && in[at + 1] >= 0 &&
                static_cast<std::size_t>(in[at + 1]) <= in.size() - at - 2);
        out.push_back({in[at], {}});
        const auto end = at + 2 + static_cast<std::size_t>(in[at + 1]);
        for (at += 2; at < end; ++at) {
            const auto x = in[at] >> 32, a = (in[at] >> 2) & 0x3fffffff;
            require(x >= 0 && x < std::ssize(size) && a < size[x]);
            out.back().path.push_back(
                {static_cast<int>(x), static_cast<int>(a), static_cast<Kind>(in[at] & 3)});
        }
    }
    return out;
}

inline void check_labels(std::span<const std::int64_t> labels, const std::vector<int> &size) {
    bool sound = labels.size() == size.size();
    for (std::size_t x = 0; sound && x < labels.size(); ++x)
        sound = labels[x] >= 0 && labels[x] < size[x];
    if (!sound)
        throw std::invalid_argument("not labels of this search");
}

// A digest of one component of the reduced model: its variables and labels by their original
// numbers, and all costs. Processes may exchange nodes only if theirs are equal, because a decision
// names a variable and a label of the reduced model by place, and a bound counts from its costs.
// `serial` tells apart several searches of one process.
inline std::uint64_t fingerprint(Work &w, const std::vector<int> &vars, std::uint64_t serial) {
    std::uint64_t value = serial;
    const auto add = [&](const auto &words) {
        const auto mix = [&](std::uint64_t word) { // as SplitMix64
            value = (value ^ word) + 0x9e3779b97f4a7c15u;
            value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
            value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
            value ^= value >> 31;
        };
        mix(words.size());
        for (const auto word : words)
            mix(static_cast<std::uint64_t>(word));
    };
    add(vars);
    for (const int v : vars) {
        add(w.label[v]);
        add(w.unary[v]);
        for (const int f : w.alive_factors(v))
            if (w.factors[f]->scope[0] == v) {
                add(w.factors[f]->scope);
                add(w.factors[f]->table);
            }
    }
    return value;
}

} // namespace softmap::exact
