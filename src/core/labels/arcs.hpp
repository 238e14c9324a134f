// Arc consistency: states that no neighbour supports are forbidden, to a fixed point.
#pragma once

#include "one_edge.hpp"

#include <numeric>

namespace softmap {

// Which states are allowed, and what was forbidden since when.
//
// A hard message of zeros and infinities tells which states of a neighbour are still supported.
class Arcs {
  public:
    Arcs(const Layout<double> &lay, bool *allowed)
        : lay_(lay), allowed_(allowed), ring_(lay.n), left_(lay.n, 0),
          owner_(lay.node_offset[lay.n]), waiting_(lay.n, 0), a_(lay.widest), out_(lay.widest),
          room_(message_room(lay.widest, 1)) {
        for (Index i = 0; i < lay.n; ++i)
            for (Index place = lay.node_offset[i]; place < lay.node_offset[i + 1]; ++place) {
                owner_[place] = i;
                left_[i] += allowed[place];
            }
    }

    // Let every node speak; returns a node that ran out of states, or -1.
    Index everywhere() {
        std::iota(ring_.begin(), ring_.end(), Index(0));
        std::fill(waiting_.begin(), waiting_.end(), 1);
        return propagate(lay_.n);
    }

    // Forbid states of node i that the others do not support, beginning with what i says.
    Index from(Index i) {
        ring_[0] = i;
        waiting_[i] = 1;
        return propagate(1);
    }

    // Forbid all states of node i but x.
    void keep_only(Index i, Index x) {
        for (Index y = 0; y < lay_.num_labels[i]; ++y)
            if (y != x)
                forbid(lay_.node_offset[i] + y);
    }

    void forbid(Index place) {
        if (allowed_[place]) {
            allowed_[place] = false;
            --left_[owner_[place]];
            trail_.push_back(place);
        }
    }

    // How much was forbidden so far, and back to such a mark.
    Index mark() const { return Index(trail_.size()); }
    void undo(Index mark) {
        for (; Index(trail_.size()) > mark; trail_.pop_back()) {
            allowed_[trail_.back()] = true;
            ++left_[owner_[trail_.back()]];
        }
    }

    Index left(Index i) const { return left_[i]; } // allowed states of node i

    // The half-edge whose message emptied a node in the last call that returned one.
    Index culprit() const { return culprit_; }
    const Layout<double> &layout() const { return lay_; }
    const bool *allowed() const { return allowed_; }
    Index calls() const { return calls_; } // of messages: a measure of work

  private:
    Index propagate(Index count) {
        Index head = 0, empty = -1;
        while (count > 0) {
            const Index i = ring_[head];
            head = head + 1 == lay_.n ? 0 : head + 1;
            --count;
            waiting_[i] = 0;
            if (empty >= 0)
                continue; // only to leave no node marked as waiting
            for (Index x = 0; x < lay_.num_labels[i]; ++x)
                a_[x] = allowed_[lay_.node_offset[i] + x] ? 0.0 : infinity;
            for (Index k = lay_.start[i]; k < lay_.start[i + 1] && empty < 0; ++k) {
                const Index h = lay_.half[k] ^ 1, j = lay_.node[h], before = mark();
                if (!revise(h)) {
                    empty = j;
                    culprit_ = h;
                } else if (mark() > before && !waiting_[j]) {
                    waiting_[j] = 1;
                    ring_[(head + count++) % lay_.n] = j;
                }
            }
        }
        return empty;
    }

    // Whether half-edge h has states left, given the far end's in a_.
    bool revise(Index h) {
        ++calls_;
        hard_message(lay_, h, a_.data(), out_.data(), room_.numbers());
        const Index j = lay_.node[h];
        for (Index y = 0; y < lay_.num_labels[j]; ++y)
            if (out_[y] == infinity)
                forbid(lay_.node_offset[j] + y);
        return left_[j] > 0;
    }

    const Layout<double> &lay_;
    bool *allowed_;
    Index culprit_ = -1, calls_ = 0;
    std::vector<Index> ring_, left_, owner_, trail_;
    std::vector<char> waiting_;
    std::vector<double> a_, out_;
    Room room_;
};

// Labels one by one in `order`, arc consistency kept after each; whether that went well.
//
// Node i takes its allowed state of greatest `preference`; if that empties another node, the state
// is forbidden instead, and the next one tried. There is no going back further.
inline bool decide(Arcs &arcs, const double *preference, const Index *order, Index count,
                   Index *labels) {
    const Layout<double> &lay = arcs.layout();
    for (Index k = 0; k < count; ++k) {
        const Index i = order[k], begin = lay.node_offset[i];
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
