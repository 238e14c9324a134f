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
    Arcs(const Layout &lay, bool *allowed)
        : lay_(lay), allowed_(allowed), ring_(lay.n), left_(lay.n, 0),
          owner_(lay.node_offset[lay.n]), waiting_(lay.n, 0), a_(lay.widest), out_(lay.widest),
          room_(message_room(lay.widest, 1)) {
        for (Index i = 0; i < lay.n; ++i)
            for (Index place = lay.node_offset[i]; place < lay.node_offset[i + 1]; ++place) {
                owner_[place] = i;
                left_[i] += allowed[place];
            }
    }

    // Propagates from all nodes, on `threads` threads if there are many edges. Returns a node
    // without allowed states, or -1 if there is none. The states that are left do not depend on the
    // order of the removals. It ends with what it has if the deadline passes: each state that was
    // forbidden is in no labelling of finite cost.
    Index everywhere(int threads = 1, const Deadline *deadline = nullptr) {
        Meter meter(deadline);
        const Index begun = mark();
        Index count = wait_all();
        const bool large = lay_.m >= worthwhile;
        if (!large || threads == 1) { // a queue takes half of the time of rounds
            const Index empty = propagate(count, meter);
            if (empty < 0 || !large || meter.look())
                return empty;
            undo(begun); // rounds find the node that several threads find
            count = wait_all();
        }
        while (count >= few) {
            count = round(threads, meter);
            for (Index k = 0; k < count; ++k)
                if (left_[ring_[k]] == 0) {
                    std::fill(waiting_.begin(), waiting_.end(), 0);
                    return ring_[k];
                }
        }
        return propagate(count, meter);
    }

    // Propagates from node i after its states changed. Returns a node without allowed states, or
    // -1.
    Index from(Index i) {
        ring_[0] = i;
        waiting_[i] = 1;
        Meter unlimited(nullptr);
        return propagate(1, unlimited);
    }

    // Forbids all states of node i except x.
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

    // `mark` returns the length of the trail; `undo` restores all states forbidden since a mark.
    Index mark() const { return Index(trail_.size()); }
    void undo(Index mark) {
        for (; Index(trail_.size()) > mark; trail_.pop_back()) {
            allowed_[trail_.back()] = true;
            ++left_[owner_[trail_.back()]];
        }
    }

    Index left(Index i) const { return left_[i]; } // number of allowed states of node i

    // The half-edge whose message removed the last state of a node, in the last failed propagation.
    Index culprit() const { return culprit_; }
    const Layout &layout() const { return lay_; }
    const bool *allowed() const { return allowed_; }
    Index calls() const { return calls_; } // number of messages, a measure of work

  private:
    static constexpr Index few = 256; // nodes from which one thread propagates

    Index wait_all() {
        std::iota(ring_.begin(), ring_.end(), Index(0));
        std::fill(waiting_.begin(), waiting_.end(), 1);
        return lay_.n;
    }

    // Removes the states of all nodes that the waiting nodes do not support, by the states before
    // the round. The nodes that lost states wait then, and are the first of the ring; returns their
    // number. The trail does not record the removals.
    Index round(int threads, Meter &meter) {
        if (meter.look())
            return 0;
        std::vector<char> lost(lay_.n, 0);
        before_.resize(lay_.node_offset[lay_.n]);
        for (std::size_t place = 0; place < before_.size(); ++place)
            before_[place] = allowed_[place] ? 0.0 : infinity;
        split(threads, lay_.n, [&](Index first, Index last) {
            std::vector<double> out(lay_.widest);
            Room room(message_room(lay_.widest, 1));
            Meter own = meter.rest();
            for (Index j = first; j < last; ++j)
                for (Index k = lay_.start[j]; k < lay_.start[j + 1]; ++k) {
                    if (own.tick(lay_.num_labels[j]))
                        return;
                    lost[j] |= lose(lay_.half[k], out.data(), room);
                }
        });
        Index count = 0;
        for (Index j = 0; j < lay_.n; ++j)
            if ((waiting_[j] = lost[j]))
                ring_[count++] = j;
        calls_ += 2 * lay_.m;
        return count;
    }

    // As `revise`, by the states before the round; returns whether a state was forbidden.
    bool lose(Index h, double *out, Room &room) {
        const Index i = lay_.node[h ^ 1], j = lay_.node[h];
        if (!waiting_[i])
            return false;
        hard_message(lay_, h, before_.data() + lay_.node_offset[i], out, room.numbers());
        bool lost = false;
        for (Index y = 0; y < lay_.num_labels[j]; ++y)
            if (bool &state = allowed_[lay_.node_offset[j] + y]; state && out[y] == infinity) {
                state = false;
                --left_[j];
                lost = true;
            }
        return lost;
    }

    Index propagate(Index count, Meter &meter) {
        Index head = 0, empty = -1;
        while (count > 0) {
            const Index i = ring_[head];
            head = head + 1 == lay_.n ? 0 : head + 1;
            --count;
            waiting_[i] = 0;
            const Index work = lay_.num_labels[i] * (lay_.start[i + 1] - lay_.start[i] + 1);
            if (empty >= 0 || meter.tick(work))
                continue; // at the end, only clear the marks of queued nodes
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

    // Forbids states at half-edge h without support at the other endpoint, whose states are in a_.
    // Returns whether any state is left.
    bool revise(Index h) {
        ++calls_;
        hard_message(lay_, h, a_.data(), out_.data(), room_.numbers());
        const Index j = lay_.node[h];
        for (Index y = 0; y < lay_.num_labels[j]; ++y)
            if (out_[y] == infinity)
                forbid(lay_.node_offset[j] + y);
        return left_[j] > 0;
    }

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
        if (meter.tick(lay.num_labels[i] * (lay.start[i + 1] - lay.start[i] + 1)))
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
