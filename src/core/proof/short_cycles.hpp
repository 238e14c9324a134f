// The chordless cycles of 3 to 6 vertices of a graph, each once.
#pragma once

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
    // `most` is the largest number of paths of three edges, and of pairs of paths, that are
    // examined for each u.
    ShortCycles(const Neighbours &graph, int longest, Index most)
        : g_(graph), longest_(longest), most_(most) {}

    void find(Index u, CycleRows &out) {
        const Index *first = g_.above(u, u), *last = g_.end(u);
        two_.clear(), three_.clear();
        for (const Index *a = first; a != last; ++a)
            for (const Index *v = g_.above(*a, u); v != g_.end(*a); ++v)
                if (!g_.adjacent(u, *v))
                    two_.push_back({*v, *a, *a});
                else if (*v > *a)
                    out[0].insert(out[0].end(), {u, *a, *v});
        if (longest_ >= 5)
            extend(u);
        std::sort(two_.begin(), two_.end());
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

    // Calls f(p, q) for the pairs of paths that end in the same vertex: `every` pair, or only those
    // in which p comes before q in the same list.
    template <class F> void joined(const Paths &left, const Paths &right, bool every, F f) const {
        Index tests = most_;
        auto q = right.begin();
        for (auto p = left.begin(); p != left.end(); ++p) {
            while (q != right.end() && q->v < p->v)
                ++q;
            for (auto r = every ? q : right.begin() + (p - left.begin()) + 1;
                 r != right.end() && r->v == p->v; ++r) {
                if (--tests < 0)
                    return;
                f(*p, *r);
            }
        }
    }

    void squares(Index u, std::vector<Index> &out) const {
        joined(two_, two_, false, [&](const Path &p, const Path &q) {
            if (!g_.adjacent(p.a, q.a))
                out.insert(out.end(), {u, p.a, p.v, q.a});
        });
    }

    void pentagons(Index u, std::vector<Index> &out) const {
        joined(two_, three_, true, [&](const Path &p, const Path &q) {
            if (p.a < q.a && !g_.adjacent(p.a, q.a) && !g_.adjacent(p.a, q.b))
                out.insert(out.end(), {u, p.a, p.v, q.b, q.a});
        });
    }

    void hexagons(Index u, std::vector<Index> &out) const {
        joined(three_, three_, false, [&](const Path &p, const Path &q) {
            if (p.a < q.a && p.b != q.b && !g_.adjacent(p.a, q.a) && !g_.adjacent(p.a, q.b) &&
                !g_.adjacent(p.b, q.a) && !g_.adjacent(p.b, q.b))
                out.insert(out.end(), {u, p.a, p.b, p.v, q.b, q.a});
        });
    }

    const Neighbours g_;
    const int longest_;
    const Index most_;
    Paths two_, three_;
};

// All cycles of 3 to `longest` vertices, ordered by their smallest vertex, whatever the number of
// threads.
inline CycleRows short_cycles(const Neighbours &graph, int longest, Index most, int threads) {
    constexpr Index portions = 256, stride = 101; // small vertices, which have more cycles than
                                                  // large ones, are spread over the threads
    std::vector<CycleRows> found(portions);
    split_portions(threads, portions, graph.start[graph.n], [&](Index k) {
        const Index portion = k * stride % portions;
        const Part part{int(portion), int(portions)};
        ShortCycles cycles(graph, longest, most);
        for (Index u = part.first(0, graph.n); u < part.last(0, graph.n); ++u)
            cycles.find(u, found[portion]);
    });
    CycleRows out;
    for (std::size_t k = 0; k < out.size(); ++k)
        for (const CycleRows &rows : found)
            out[k].insert(out[k].end(), rows[k].begin(), rows[k].end());
    return out;
}

} // namespace softmap
