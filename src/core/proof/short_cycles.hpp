// The chordless cycles of 3 to 6 vertices of a graph, each once.
#pragma once

#include "base/deadline.hpp"
#include "base/random.hpp"
#include "base/team.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace softmap {

// A simple graph: the neighbours of vertex i are neighbour[start[i]..start[i + 1] - 1], ascending.
struct Neighbours {
    Index n;
    const Index *start;
    const Index *neighbour;

    const Index *begin(Index i) const { return neighbour + start[i]; }
    const Index *end(Index i) const { return neighbour + start[i + 1]; }
    const Index *above(Index i, Index least) const {
        return std::upper_bound(begin(i), end(i), least);
    }
    bool adjacent(Index i, Index j) const { return std::binary_search(begin(i), end(i), j); }
};

// rows[k]: the cycles of k + 3 vertices, row by row, in the order of the cycle.
using CycleRows = std::array<std::vector<Index>, 4>;

// The cycles whose smallest vertex is u, for one u after the other. A cycle of 4 or more vertices
// is two paths from u to a vertex that is not adjacent to u: two paths of two edges, one of two and
// one of three, or two of three. Requiring that the first path leaves u by the smaller vertex (for
// 5 vertices: that the shorter path does) finds every cycle once.
class ShortCycles {
  public:
    // For each u, the first `most` paths of three edges and `kept` of the first `most` pairs of
    // paths are examined. Cycles that have pairs in common raise the bound together.
    ShortCycles(const Neighbours &graph, int longest, Index most, Index kept)
        : g_(graph), longest_(longest), most_(most), kept_(std::max<Index>(kept, 1)) {}

    // About the work of `find`, in table entries: the paths of two edges, at least.
    Index work(Index u) const {
        const Index degree = g_.start[u + 1] - g_.start[u];
        return degree * degree + kept_;
    }

    void find(Index u, CycleRows &out) {
        const Index *first = g_.above(u, u), *last = g_.end(u);
        two_.clear(), three_.clear();
        spread_seed(std::uint64_t(u), random_.word); // the same on any thread
        for (const Index *a = first; a != last; ++a)
            for (const Index *v = g_.above(*a, u); v != g_.end(*a); ++v)
                if (!g_.adjacent(u, *v))
                    two_.push_back({*v, *a, *a});
                else if (*v > *a)
                    out[0].insert(out[0].end(), {u, *a, *v});
        if (longest_ >= 5)
            extend(u);
        order(two_);
        std::sort(three_.begin(), three_.end());
        if (longest_ >= 4)
            squares(u, out[1]);
        if (longest_ >= 5)
            pentagons(u, out[2]);
        if (longest_ >= 6)
            hexagons(u, out[3]);
    }

  private:
    // A path u, a, v (b = a), or u, a, b, v, without chords.
    struct Path {
        Index v, a, b;
        auto operator<=>(const Path &) const = default;
    };
    using Paths = std::vector<Path>;

    // Sorts paths u, a, v, which are ordered by a, by v. Many of them are counted: through a vertex
    // of many neighbours, most vertices have a path to most others.
    void order(Paths &paths) {
        if (Index(paths.size()) < g_.n / 4) {
            std::sort(paths.begin(), paths.end());
            return;
        }
        place_.assign(std::size_t(g_.n) + 1, 0);
        for (const Path &path : paths)
            ++place_[std::size_t(path.v) + 1];
        for (std::size_t v = 1; v < place_.size(); ++v)
            place_[v] += place_[v - 1];
        sorted_.resize(paths.size());
        for (const Path &path : paths)
            sorted_[std::size_t(place_[std::size_t(path.v)]++)] = path;
        paths.swap(sorted_);
    }

    // three_ = the chordless paths u, a, b, v with b and v larger than u.
    void extend(Index u) {
        Index left = most_;
        for (const Path &path : two_)
            for (const Index *v = g_.above(path.v, u); v != g_.end(path.v); ++v) {
                if (--left < 0)
                    return;
                if (*v != path.a && !g_.adjacent(u, *v) && !g_.adjacent(path.a, *v))
                    three_.push_back({*v, path.a, path.v});
            }
    }

    // Calls f(path, first, last) for each path and those that end in the same vertex: `every` one
    // of `right`, or only those that come after it in the same list.
    template <class F> void meeting(const Paths &left, const Paths &right, bool every, F f) const {
        const Path *first = right.data(), *last = first, *end = first + right.size();
        for (const Path &path : left) {
            while (first != end && first->v < path.v)
                ++first;
            last = std::max(first, last);
            while (last != end && last->v == path.v)
                ++last;
            f(path, every ? first : &path + 1, last);
        }
    }

    // Calls f(p, q) for pairs of paths that end in the same vertex: the first most_, or, if these
    // are more than kept_, about as many of them. The distances between these are random: equal
    // ones would choose the same vertices again and again, as all vertices have similar lists of
    // paths.
    template <class F> void joined(const Paths &left, const Paths &right, bool every, F f) {
        Index pairs = 0, skip = 0, seen = 0;
        meeting(left, right, every,
                [&](const Path &, const Path *first, const Path *last) { pairs += last - first; });
        pairs = std::min(pairs, most_);
        const Index step = (pairs - 1) / kept_ + 1;
        meeting(left, right, every, [&](const Path &path, const Path *first, const Path *last) {
            for (; skip < last - first && seen + skip < pairs; skip += gap(step))
                f(path, first[skip]);
            skip -= last - first;
            seen += last - first;
        });
    }

    Index gap(Index mean) { return mean > 1 ? 1 + random_.below(2 * mean - 1) : 1; }

    void squares(Index u, std::vector<Index> &out) {
        joined(two_, two_, false, [&](const Path &p, const Path &q) {
            if (!g_.adjacent(p.a, q.a))
                out.insert(out.end(), {u, p.a, p.v, q.a});
        });
    }

    void pentagons(Index u, std::vector<Index> &out) {
        joined(two_, three_, true, [&](const Path &p, const Path &q) {
            if (p.a < q.a && !g_.adjacent(p.a, q.a) && !g_.adjacent(p.a, q.b))
                out.insert(out.end(), {u, p.a, p.v, q.b, q.a});
        });
    }

    void hexagons(Index u, std::vector<Index> &out) {
        joined(three_, three_, false, [&](const Path &p, const Path &q) {
            if (p.a < q.a && p.b != q.b && !g_.adjacent(p.a, q.a) && !g_.adjacent(p.a, q.b) &&
                !g_.adjacent(p.b, q.a) && !g_.adjacent(p.b, q.b))
                out.insert(out.end(), {u, p.a, p.b, p.v, q.b, q.a});
        });
    }

    const Neighbours g_;
    const int longest_;
    const Index most_, kept_;
    Paths two_, three_, sorted_;
    std::vector<Index> place_;
    Random random_{};
};

// All cycles of 3 to `longest` vertices whose smallest vertex is in first..last - 1, ordered by it,
// whatever the number of threads; those found before the deadline if it passes.
inline CycleRows short_cycles(const Neighbours &graph, int longest, Index most, Index kept,
                              Index first, Index last, int threads, const Deadline *deadline) {
    constexpr Index portions = 256, stride = 101; // small vertices, which have more cycles than
                                                  // large ones, are spread over the threads
    std::vector<CycleRows> found(portions);
    const Index size = graph.start[last] - graph.start[first];
    together(size < worthwhile ? 1 : threads, [&](Member &me) {
        ShortCycles cycles(graph, longest, most, kept);
        Meter meter(deadline);
        me.phase([&](Part mine) {
            for (Index k = mine.first(0, portions); k < mine.last(0, portions); ++k) {
                const Index portion = k * stride % portions;
                const Part part{int(portion), int(portions)};
                for (Index u = part.first(first, last); u < part.last(first, last); ++u)
                    if (!meter.tick(cycles.work(u)))
                        cycles.find(u, found[portion]);
            }
        });
    });
    CycleRows out;
    for (std::size_t k = 0; k < out.size(); ++k)
        for (const CycleRows &rows : found)
            out[k].insert(out[k].end(), rows[k].begin(), rows[k].end());
    return out;
}

} // namespace softmap
