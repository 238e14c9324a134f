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
#include "base/team.hpp"
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
    void solve(NodeRange range, double heat, std::uint64_t *words, Meter &meter) {
        if (meter.late())
            return;
        grow(range, words);
        costs_.resize(std::size_t(lay_.node_offset[range.end] - lay_.node_offset[range.begin]));
        if (gather(heat, words, meter))
            scatter();
    }

    // links()[k] is the number of half-edges from the k-th node of the range into the forest,
    // `inside` for nodes of the forest. parent()[k] is the half-edge to its parent, -1 at a root.
    static constexpr std::int32_t inside = -1;
    const std::vector<std::int32_t> &links() const { return links_; }
    const std::vector<std::int32_t> &parent() const { return parent_; }
    const std::vector<std::int32_t> &forest() const { return forest_; } // parents before children

    void grow(NodeRange range, std::uint64_t *words) {
        range_ = range;
        links_.assign(std::size_t(range.size()), 0);
        parent_.resize(links_.size());
        forest_.clear();
        for (Index i = range.begin; range.begin > 0 && i < range.end; ++i)
            if (reaches_before(lay_, i, range.begin))
                links(i) = 2; // as a node that may not join
        const Index first = range.begin + below(words, range.size());
        for (Index k = first; k < first + range.size(); ++k) {
            const Index root = k < range.end ? k : k - range.size();
            if (links(root) == 0)
                grow_tree(root, words);
        }
    }

    // Whether node i has a neighbour before node `begin`.
    static bool reaches_before(const Layout &lay, Index i, Index begin) {
        for (Index t = lay.start[i]; t < lay.start[i + 1]; ++t)
            if (lay.node[lay.half[t] ^ 1] < begin)
                return true;
        return false;
    }

  private:
    std::int32_t &links(Index i) { return links_[std::size_t(i - range_.begin)]; }
    std::int32_t &parent(Index i) { return parent_[std::size_t(i - range_.begin)]; }
    double *costs(Index i) {
        return costs_.data() + (lay_.node_offset[i] - lay_.node_offset[range_.begin]);
    }
    bool in_forest(Index i) { return range_.has(i) && links(i) == inside; }

    // A node may join while it has at most one link; the next node is drawn uniformly from the
    // queued candidates.
    void grow_tree(Index root, std::uint64_t *words) {
        parent(root) = -1;
        frontier_.assign(1, std::int32_t(root));
        while (!frontier_.empty()) {
            const Index drawn = below(words, Index(frontier_.size())), i = frontier_[drawn];
            frontier_[drawn] = frontier_.back();
            frontier_.pop_back();
            if (links(i) > 1)
                continue;
            links(i) = inside;
            forest_.push_back(std::int32_t(i));
            for (Index t = lay_.start[i]; t < lay_.start[i + 1]; ++t) {
                const std::int32_t h = lay_.half[t] ^ 1, j = lay_.node[h];
                if (!range_.has(j) || links(j) == inside || ++links(j) > 1)
                    continue;
                parent(j) = h;
                frontier_.push_back(j);
            }
        }
    }

    // Min-sum from the leaves to the roots: the costs of a node become those of its subtree.
    // Returns false if it was late first.
    bool gather(double heat, std::uint64_t *words, Meter &meter) {
        for (const Index i : forest_)
            std::copy_n(lay_.unary + lay_.node_offset[i], lay_.num_labels[i], costs(i));
        for (auto one = forest_.rbegin(); one != forest_.rend(); ++one) {
            const Index i = *one;
            if (meter.tick(lay_.num_labels[i] * (lay_.start[i + 1] - lay_.start[i] + 1)))
                return false;
            double *own = costs(i);
            condition(i, own);
            if (heat > 0.0) // uniform noise: faster than Gumbel noise, and no worse
                for (Index x = 0; x < lay_.num_labels[i]; ++x)
                    own[x] -= heat * uniform(words);
            if (parent(i) < 0)
                continue;
            const Index g = parent(i) ^ 1;
            hard_message(lay_, g, own, terms_.data(), room_.numbers());
            add_terms(lay_.node[g], costs(lay_.node[g]));
        }
        return true;
    }

    // Adds the costs of the edges from i to nodes outside the forest, given their labels.
    void condition(Index i, double *own) {
        for (Index t = lay_.start[i]; t < lay_.start[i + 1]; ++t) {
            const Index h = lay_.half[t], j = lay_.node[h ^ 1];
            if (in_forest(j))
                continue;
            conditional_costs(lay_, h, labels_[j], terms_.data());
            add_terms(i, own);
        }
    }

    void add_terms(Index i, double *to) const {
        for (Index x = 0; x < lay_.num_labels[i]; ++x)
            to[x] += terms_[x];
    }

    // From the roots to the leaves: the best label of each node given its parent's label. At ties a
    // node keeps its label.
    void scatter() {
        for (const Index i : forest_) {
            const Index h = parent(i);
            double *own = costs(i);
            if (h >= 0) {
                conditional_costs(lay_, h, labels_[lay_.node[h ^ 1]], terms_.data());
                add_terms(i, own);
            }
            Index best = labels_[i];
            for (Index x = 0; x < lay_.num_labels[i]; ++x)
                best = own[x] < own[best] ? x : best;
            labels_[i] = best;
        }
    }

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
    void run(Index count, double heat, const Deadline *deadline) {
        const auto noise = [&](Index k) {
            return heat * (1.0 - (double(k) + 1.0) / double(count));
        };
        if (size_ == lay_.n) {
            RangeForest forest(lay_, labels_);
            Meter meter(deadline);
            for (Index k = 0; k < count && !meter.late(); ++k)
                forest.solve({0, lay_.n}, noise(k), words_, meter);
            return;
        }
        if (size_ == scattered) {
            std::vector<std::uint64_t> seeds;
            std::vector<double> heats;
            for (Index k = 0; k < count; ++k) {
                seeds.push_back(next_word(words_));
                heats.push_back(noise(k));
            }
            ScatteredForests(lay_, labels_).run(seeds, heats, deadline, threads_);
            return;
        }
        std::vector<Round> rounds;
        for (Index k = 0; k < count; ++k)
            rounds.push_back({below(words_, size_), next_word(words_)});
        together(threads_, [&](Member &me) {
            RangeForest forest(lay_, labels_);
            Meter meter(deadline);
            for (Index k = 0; k < count && !meter.late(); ++k)
                me.phase([&](Part part) {
                    const Index ranges = (lay_.n + rounds[k].shift + size_ - 1) / size_;
                    for (Index r = part.first(0, ranges); r < part.last(0, ranges); ++r)
                        solve(forest, rounds[k], r, noise(k), meter);
                });
        });
    }

    Index range_size() const { return size_; }

  private:
    struct Round {
        Index shift;
        std::uint64_t seed;
    };
    static constexpr Index scattered = 0;
    static constexpr Index most = 64;        // ranges
    static constexpr Index least = 1 << 13;  // nodes of a range
    static constexpr double apart = 1.0 / 8; // largest share of nodes that stay fixed

    void solve(RangeForest &forest, const Round &round, Index r, double heat, Meter &meter) const {
        const Index begin = r * size_ - round.shift;
        std::uint64_t words[4];
        spread_seed(round.seed + std::uint64_t(r), words);
        forest.solve({std::max<Index>(begin, 0), std::min(begin + size_, lay_.n)}, heat, words,
                     meter);
    }

    // The number of nodes of a range: all of them in a small model, and `scattered` if the ranges
    // of a random graph would keep too many nodes fixed.
    static Index range_size(const Layout &lay, int threads) {
        const Index size = std::max(least, (lay.n + most - 1) / most);
        if (2 * size > lay.n)
            return lay.n;
        std::atomic<Index> fixed = 0;
        split(threads, lay.n, [&](Index first, Index last) {
            Index own = 0;
            for (Index i = first; i < last; ++i)
                own += RangeForest::reaches_before(lay, i, i / size * size);
            fixed += own;
        });
        return double(fixed) <= apart * double(lay.n) ? size : scattered;
    }

    const Layout &lay_;
    Index *labels_;
    std::uint64_t *words_;
    const int threads_;
    const Index size_;
};

} // namespace softmap
