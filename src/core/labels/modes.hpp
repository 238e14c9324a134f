// Iterated conditional modes (ICM): coordinate descent over labels, one after the other or in
// independent sets on all threads.
#pragma once

#include "base/deadline.hpp"
#include "base/team.hpp"
#include "label_graph.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace softmap {

// Finite cost and number of infinite terms of each label of one node, given all other labels.
class LocalCosts {
  public:
    explicit LocalCosts(Index widest) : cost(widest), broken(widest), terms_(widest) {}

    std::vector<double> cost;
    std::vector<Index> broken;

    // The costs of variable i.
    void find(const LabelGraph &graph, Index i, const Index *labels);

    // The label with the fewest infinite terms, and the lowest cost among these; `own` at ties.
    Index best(Index own, Index count) const;

  private:
    std::vector<double> terms_;

    void add(const double *terms, Index count);
};

// ICM in place, node by node: fewer violated constraints first, then lower cost. Only variables
// with a changed neighbour are visited again.
class IteratedModes {
  public:
    IteratedModes(const LabelGraph &graph, Index *labels)
        : graph_(graph), labels_(labels), local_(graph.lay.widest), dirty_(graph.lay.n, 1) {}

    void run(Index max_sweeps, Meter meter);

  private:
    bool improve(Index i);

    // Updates the states of auxiliary neighbours and marks the variables to visit again.
    void spread(Index i, Index step);

    const LabelGraph graph_;
    Index *labels_;
    LocalCosts local_;
    std::vector<char> dirty_;
};

// ICM of a model without auxiliary nodes on several threads. In each round every node finds its
// best label given the labels before the round. A node changes if it gains more than each of its
// neighbours that would change as well; the nodes that change are independent, so that all of them
// gain what they expect. The result does not depend on the number of threads.
class IndependentModes {
  public:
    IndependentModes(const Layout &lay, Index *labels)
        : graph_{lay, nullptr, lay.n}, lay_(lay), labels_(labels), wish_(std::size_t(lay.n)),
          dirty_(std::size_t(lay.n), 1), wishing_(portions), taken_(portions) {}

    void run(Index max_rounds, const Deadline *deadline, int threads);

  private:
    static constexpr Index portions = 256; // of the nodes
    struct Wish {
        std::int32_t label = -1; // -1: the node keeps its label
        float gain = 0;          // infinite if fewer constraints are violated
    };

    // Finds the best labels of the nodes of a portion next to a change, and lists those that wish
    // to change. Returns false if it was late first.
    bool find_wishes(Index p, LocalCosts &local, Meter &meter);

    // Lists the nodes of a portion that change.
    void choose(Index p);
    bool comes_first(Index i) const;
    // Whether node i gains more than node j. Ties are broken by scattered numbers: in the order of
    // the nodes, a row of equal gains would take as many rounds as it has nodes.
    bool before(Index i, Index j) const;
    static std::uint32_t scattered(Index i);

    // Changes labels, and marks the neighbours. Two threads may mark the same node.
    Index apply(Index p);

    const LabelGraph graph_;
    const Layout &lay_;
    Index *labels_;
    std::vector<Wish> wish_;
    std::vector<char> dirty_;
    std::vector<std::vector<std::int32_t>> wishing_, taken_;
};

} // namespace softmap
