// Tree moves on large graphs without short borders, such as random graphs: forests that are drawn
// and solved by all threads together.
//
// Trees grow from a few random roots in rounds. In each round, the candidates are the nodes with
// one neighbour in the forest. Those whose random number is below the numbers of all candidates
// next to them join: they are not adjacent, so that no cycle is closed. In the last rounds, nodes
// without a neighbour in the forest are candidates as well.
#pragma once

#include "base/deadline.hpp"
#include "base/random.hpp"
#include "base/team.hpp"
#include "one_edge.hpp"

#include <algorithm>
#include <array>
#include <atomic>

namespace softmap {

class ScatteredForests {
  public:
    ScatteredForests(const Layout &lay, Index *labels)
        : lay_(lay), labels_(labels), level_(std::size_t(lay.n)), links_(std::size_t(lay.n)),
          costs_(std::size_t(lay.node_offset[lay.n])), lists_(portions) {}

    // Solves one forest per seed in place; noise[k] is the largest random cost of the k-th one. The
    // result does not depend on the number of threads. If it is late before all costs of a forest
    // are known, neither that forest nor a later one changes a label.
    void run(const std::vector<std::uint64_t> &seeds, const std::vector<double> &noise,
             const Deadline *deadline, int threads);

    // After `run`, of the last forest: the level of a node in its tree, from 1 on; 0 if it is not
    // in the forest.
    int level(Index i) const { return level_[i]; }

  private:
    static constexpr int rounds = 64, connected = 52; // rounds in all, and before new roots
    static constexpr double roots = 1.0 / 1024;       // share of nodes that are roots at first
    static constexpr Index portions = 64;

    // The memory of one thread.
    struct Scratch {
        explicit Scratch(const Layout &lay)
            : terms(std::size_t(lay.widest)), room(message_room(lay.widest, 1)) {}
        std::vector<double> terms;
        Room room;
    };
    // Nodes that one thread at a time works on. Which nodes are in which lists may depend on the
    // threads; the result does not.
    struct Lists {
        std::vector<std::int32_t> candidates, joining;
        std::array<std::vector<std::int32_t>, rounds> members; // of the forest, by level
    };

    const Layout &lay_;
    Index *labels_;
    std::vector<std::uint8_t> level_;              // in its tree, from 1 on; 0: not in the forest
    std::vector<std::atomic<std::uint8_t>> links_; // neighbours in the forest, up to 2 or more
    std::vector<double> costs_;
    std::vector<Lists> lists_;

    double *costs(Index i) { return costs_.data() + lay_.node_offset[i]; }
    template <class Function> void each_list(Member &me, Function f) {
        me.each(0, portions, [&](Index p) { f(lists_[std::size_t(p)], p); });
    }

    void draw(Member &me, std::uint64_t seed, Meter &meter, std::atomic<bool> &late);
    template <class Function> void own_nodes(Index p, Function f) {
        Part{int(p), int(portions)}.each(0, lay_.n, f);
    }
    void begin(Lists &lists, Index p, std::uint64_t seed);
    // Makes candidates of all nodes that may still join.
    void add_open(Lists &lists, Index p);
    void choose(Lists &lists, int round, std::uint64_t seed);

    static bool root(Index i, std::uint64_t seed);
    bool candidate(Index i, int round, std::uint64_t seed) const;
    bool first(Index i, int round, std::uint64_t seed) const;
    // Adds node i to the forest; its neighbours become candidates if `grows`.
    void join(Index i, Lists &lists, bool grows);

    // Min-sum: costs(i) = the costs of the subtree of node i, given all labels outside the forest.
    void gather(Index i, std::uint64_t seed, double heat, Scratch &own);

    // Gives node i its best label, given the label of its parent. At ties it keeps its label.
    void scatter(Index i, Scratch &own);
};

} // namespace softmap
