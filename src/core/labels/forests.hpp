// Tree moves: block ICM on random induced forests, each solved exactly with all other nodes fixed.
//
// A forest is an induced subgraph without cycles, so that dynamic programming finds its best labels
// given the rest. Random costs of decreasing size turn the moves into simulated annealing.
//
// The nodes of a large model are divided into ranges, whose forests are solved on several threads.
// A node with a neighbour in an earlier range stays fixed, so that the forests of two ranges share
// no edge. The ranges are shifted at random from round to round. If too many nodes would stay
// fixed, all threads solve one forest together (see scattered.hpp).
#pragma once

#include "base/deadline.hpp"
#include "base/random.hpp"
#include "base/ranges.hpp"
#include "label_graph.hpp"
#include "scattered.hpp"

#include <algorithm>
#include <atomic>

namespace softmap {

// Draws and solves a random forest within a range of nodes. The arrays are reused from one range to
// the next.
class RangeForest {
  public:
    RangeForest(const Layout &lay, Index *labels)
        : lay_(lay), labels_(labels), terms_(lay.widest), room_(message_room(lay.widest, 1)) {}

    // Draws a maximal induced forest among the nodes of `range` without a neighbour in an earlier
    // range, and finds its best labels given all others; `heat` is the size of random costs. No
    // label changes if it is late before all costs are known.
    void solve(NodeRange range, double heat, std::uint64_t *words, Meter &meter);

    // links()[k] is the number of half-edges from the k-th node of the range into the forest,
    // `inside` for nodes of the forest. parent()[k] is the half-edge to its parent, -1 at a root.
    static constexpr std::int32_t inside = -1;
    const std::vector<std::int32_t> &links() const { return links_; }
    const std::vector<std::int32_t> &parent() const { return parent_; }
    const std::vector<std::int32_t> &forest() const { return forest_; } // parents before children

    void grow(NodeRange range, std::uint64_t *words);

    // Whether node i has a neighbour before node `begin`.
    static bool reaches_before(const Layout &lay, Index i, Index begin);

  private:
    std::int32_t &links(Index i) { return links_[std::size_t(i - range_.begin)]; }
    std::int32_t &parent(Index i) { return parent_[std::size_t(i - range_.begin)]; }
    double *costs(Index i);
    bool in_forest(Index i) { return range_.has(i) && links(i) == inside; }

    // A node may join while it has at most one link; the next node is drawn uniformly from the
    // queued candidates.
    void grow_tree(Index root, std::uint64_t *words);

    // Min-sum from the leaves to the roots: the costs of a node become those of its subtree.
    // Returns false if it was late first.
    bool gather(double heat, std::uint64_t *words, Meter &meter);

    // Adds the costs of the edges from i to nodes outside the forest, given their labels.
    void condition(Index i, double *own);

    void add_terms(Index i, double *to) const;

    // From the roots to the leaves: the best label of each node given its parent's label. At ties a
    // node keeps its label.
    void scatter();

    const Layout &lay_;
    Index *labels_;
    NodeRange range_{0, 0};
    std::vector<std::int32_t> links_, parent_, forest_, frontier_;
    std::vector<double> costs_, terms_;
    Room room_;
};

class Forests {
  public:
    Forests(const Layout &lay, Index *labels, std::uint64_t *words, int threads)
        : lay_(lay), labels_(labels), words_(words), threads_(threads),
          size_(range_size(lay, threads)) {}

    // Solves `count` random forests in place, with noise that decreases from `heat` (a cost) to 0.
    // The result does not depend on the number of threads.
    //
    // Feasible labels stay feasible. Without noise no round raises the energy, except by rounding.
    // Once the deadline has passed no further forests are solved.
    void run(Index count, double heat, const Deadline *deadline);

    Index range_size() const { return size_; }

  private:
    struct Round {
        Index shift;
        std::uint64_t seed;
    };
    static constexpr Index scattered = 0;

    void solve(RangeForest &forest, const Round &round, Index r, double heat, Meter &meter) const;

    // The number of nodes of a range: all of them in a small model, and `scattered` if the ranges
    // of a random graph would keep too many nodes fixed.
    static Index range_size(const Layout &lay, int threads);

    const Layout &lay_;
    Index *labels_;
    std::uint64_t *words_;
    const int threads_;
    const Index size_;
};

} // namespace softmap
