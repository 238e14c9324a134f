// Arc consistency: forbids states without support at some neighbour until nothing changes.
#pragma once

#include "base/deadline.hpp"
#include "base/team.hpp"
#include "one_edge.hpp"

#include <numeric>

namespace softmap {

// The allowed states, and a trail of removals that can be undone.
//
// A state is supported by a neighbour if it is finite in the hard message computed from 0 at the
// neighbour's allowed states and +inf at the forbidden ones.
class Arcs {
  public:
    Arcs(const Layout &lay, bool *allowed);

    // Propagates from all nodes, on `threads` threads if there are many edges. Returns a node
    // without allowed states, or -1 if there is none. The states that are left do not depend on the
    // order of the removals. It ends with what it has if the deadline passes: each state that was
    // forbidden is in no labelling of finite cost.
    Index everywhere(int threads = 1, const Deadline *deadline = nullptr);

    // Propagates from node i after its states changed. Returns a node without allowed states, or
    // -1.
    Index from(Index i);

    // Forbids all states of node i except x.
    void keep_only(Index i, Index x);

    void forbid(Index place);

    // `mark` returns the length of the trail; `undo` restores all states forbidden since a mark.
    Index mark() const { return Index(trail_.size()); }
    void undo(Index mark);

    Index left(Index i) const { return left_[i]; } // number of allowed states of node i

    // The half-edge whose message removed the last state of a node, in the last failed propagation.
    Index culprit() const { return culprit_; }
    const Layout &layout() const { return lay_; }
    const bool *allowed() const { return allowed_; }
    Index calls() const { return calls_; } // number of messages, a measure of work

  private:
    static constexpr Index few = 256; // nodes from which one thread propagates

    Index wait_all();

    // Removes the states of all nodes that the waiting nodes do not support, by the states before
    // the round. The nodes that lost states wait then, and are the first of the ring; returns their
    // number. The trail does not record the removals.
    Index round(int threads, Meter &meter);

    // As `revise`, by the states before the round; returns whether a state was forbidden.
    bool lose(Index h, double *out, Room &room);

    Index propagate(Index count, Meter &meter);

    // Forbids states at half-edge h without support at the other endpoint, whose states are in a_.
    // Returns whether any state is left.
    bool revise(Index h);

    const Layout &lay_;
    bool *allowed_;
    Index culprit_ = -1, calls_ = 0;
    std::vector<Index> ring_, left_, owner_, trail_;
    std::vector<char> waiting_;
    std::vector<double> a_, out_, before_; // `before_`: 0 at the states before a round, else +inf
    Room room_;
};

// Assigns labels one by one in `order` and enforces arc consistency after each. Returns whether all
// `count` nodes got a label before it was late.
//
// Node i takes its allowed state of highest `preference`. If that leaves another node without a
// state, the state is forbidden instead and the next one is tried. Earlier nodes are not revised.
inline bool decide(Arcs &arcs, const double *preference, const Index *order, Index count,
                   Index *labels, Meter meter) {
    const Layout &lay = arcs.layout();
    for (Index k = 0; k < count; ++k) {
        const Index i = order[k], begin = lay.node_offset[i];
        if (meter.tick(lay.work_at(i)))
            return false;
        for (;;) {
            Index best = -1;
            for (Index x = 0; x < lay.num_labels[i]; ++x)
                if (arcs.allowed()[begin + x] &&
                    (best < 0 || preference[begin + x] > preference[begin + best]))
                    best = x;
            if (best < 0)
                return false;
            const Index before = arcs.mark();
            arcs.keep_only(i, best);
            if (arcs.from(i) < 0) {
                labels[i] = best;
                break;
            }
            arcs.undo(before);
            arcs.forbid(begin + best);
            if (arcs.from(i) >= 0)
                return false;
        }
    }
    return true;
}

} // namespace softmap
