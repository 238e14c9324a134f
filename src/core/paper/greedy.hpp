// Greedy choice of blocks for Algorithm 1: the node whose block has the largest guaranteed decrease
// of L, found in a tournament, or the best block of a small random sample.
//
// The decrease of L by a block B is at least Σ_{h∈B} ‖ν_h‖₁² / (2 (|B| + 1) η); the *rank* of a
// block is this number without 1/(2η).
#pragma once

#include "standard.hpp"

namespace softmap::paper {

// A binary tree over `leaves` numbers (a power of two), in an array of 2 · leaves entries: entry k
// is the larger one of entries 2k and 2k + 1, number i is entry leaves + i.
struct Tournament {
    double *tree;
    Index leaves;

    static Index leaves_for(Index count) {
        Index size = 1;
        while (size < count)
            size *= 2;
        return size;
    }

    void set(Index i, double value) {
        Index k = leaves + i;
        tree[k] = value;
        while (k > 1) {
            k /= 2;
            const double larger = std::max(tree[2 * k], tree[2 * k + 1]);
            if (tree[k] == larger)
                return;
            tree[k] = larger;
        }
    }

    // The first position of the largest number.
    Index top() const {
        Index k = 1;
        while (k < leaves)
            k = tree[2 * k] == tree[k] ? 2 * k : 2 * k + 1;
        return k - leaves;
    }
};

// Rank of a block from the norms ‖ν_h‖₁² of its half-edges.
inline double rank_of(const DrawnBlock &b, const HalfEdgeSlack *half) {
    double sum = 0.0;
    for (Index k = b.first; k < b.first + b.size; ++k)
        sum += half[k].norm;
    return sum / double(b.size + 1);
}

// The block of largest rank at a node that has edges.
inline DrawnBlock best_at(EdgeBlocks, const Vertex &v, const HalfEdgeSlack *half) {
    Index best = v.start;
    for (Index k = v.start + 1; k < v.start + v.degree; ++k)
        if (half[k].norm > half[best].norm)
            best = k;
    return {best, 1};
}

inline DrawnBlock best_at(StarBlocks, const Vertex &v, const HalfEdgeSlack *) {
    return {v.start, v.degree};
}

// Algorithm 1 with exact minimisation and a greedy choice of blocks.
class Greedy : public Standard {
  public:
    Greedy(const StarOrder &order, const StandardArrays &arrays, double eta)
        : Standard(order, arrays, eta),
          ranks_{arrays.tree, Tournament::leaves_for(Index(order.vertex.size()))} {}

    // Fills the tournament from the slack of the current λ.
    template <class Blocks> void plant() {
        std::fill(ranks_.tree, ranks_.tree + 2 * ranks_.leaves, -1.0);
        for (std::size_t i = 0; i < order_.vertex.size(); ++i)
            rate<Blocks>(Index(i));
    }

    // Makes `count` updates of the block of largest rank; returns the number of messages sent.
    template <class Blocks> Index run(Index count) {
        Index work = 0;
        for (Index k = 0; k < count; ++k) {
            const Index i = ranks_.top();
            const DrawnBlock block = best_at(Blocks{}, order_.vertex[i], run_.half);
            update(Minimise{}, block);
            rate<Blocks>(i);
            for (Index p = block.first; p < block.first + block.size; ++p)
                rate<Blocks>(order_.position[order_.position[p].twin].node);
            work += block.size;
        }
        return work;
    }

    // Makes `count` updates of the best of `sample` random blocks; needs no tournament.
    template <class Blocks> Index run_sampled(Index count, Index sample, Random &random) {
        Index work = 0;
        for (Index k = 0; k < count; ++k) {
            DrawnBlock best = Blocks::draw(order_, random);
            double rank = rank_of(best, run_.half);
            for (Index s = 1; s < sample; ++s) {
                const DrawnBlock block = Blocks::draw(order_, random);
                if (const double other = rank_of(block, run_.half); other > rank)
                    best = block, rank = other;
            }
            update(Minimise{}, best);
            work += best.size;
        }
        return work;
    }

  private:
    template <class Blocks> void rate(Index i) {
        const Vertex &v = order_.vertex[i];
        if (v.degree > 0)
            ranks_.set(i, rank_of(best_at(Blocks{}, v, run_.half), run_.half));
    }

    Tournament ranks_;
};

// All are compiled in kernels/paper.cpp; the last two return the number of messages sent.
void plant_greedy(const StarOrder &order, const StandardArrays &arrays, double eta, bool stars);
Index run_greedy(const StarOrder &order, const StandardArrays &arrays, double eta, bool stars,
                 Index count);
Index run_sampled(const StarOrder &order, const StandardArrays &arrays, double eta, bool stars,
                  Index count, Index sample, Random &random);

} // namespace softmap::paper
