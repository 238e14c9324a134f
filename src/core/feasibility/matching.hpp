// Different labels by bipartite matching: Hall sets, and the labels that no matching uses.
#pragma once

#include "state.hpp"

namespace softmap::feasibility {

// Keeps a matching of the variables of one constraint to labels, and finds what it excludes.
class Matching {
  public:
    explicit Matching(const Different &different)
        : different_(different), label_(different.scope.size(), -1),
          user_(std::size_t(different.labels), -1), mark_(different.scope.size(), 0),
          seen_(std::size_t(different.labels), 0) {}

    // Gives each variable a label of its own. If that is impossible, returns false and adds the
    // literals that leave some variables with fewer labels than there are of them.
    bool match(const State &state, std::vector<Lit> &why) {
        const Index count = Index(label_.size());
        for (Index k = 0; k < count; ++k)
            if (label_[k] >= 0 && !state.left_over(place(state, k, label_[k]))) {
                user_[label_[k]] = -1;
                label_[k] = -1;
            }
        for (Index k = 0; k < count; ++k)
            if (label_[k] < 0) {
                ++stamp_;
                if (!augment(state, k)) { // the marked variables share the labels seen
                    for (Index u = 0; u < count; ++u)
                        if (mark_[u] == stamp_)
                            add_outside(state, u, why);
                    return false;
                }
            }
        return true;
    }

    // Calls f(place, why) for each label that is in no matching of all variables; `why` lists the
    // literals of a Hall set that needs the label.
    template <class Function> void exclude(const State &state, Function f) {
        find_open(state);
        find_components(state);
        std::vector<std::pair<Index, Index>> gone; // scope place, label
        for (Index k = 0; k < Index(label_.size()); ++k)
            state.labels(different_.scope[std::size_t(k)], [&](Index x) {
                if (x != label_[k] && open_[x] != turn_ && component_[x] != component_[label_[k]])
                    gone.push_back({x, k});
            });
        std::sort(gone.begin(), gone.end());
        std::vector<Lit> why;
        Index last = -1;
        for (const auto &[x, k] : gone) {
            if (x != last) {
                hall(state, x, why);
                last = x;
            }
            f(place(state, k, x), why);
        }
    }

  private:
    Index place(const State &state, Index k, Index x) const {
        return state.net().offset[different_.scope[std::size_t(k)]] + x;
    }

    // Finds a label for variable k, moving others (breadth first, without recursion).
    bool augment(const State &state, Index k) {
        queue_.assign(1, k);
        mark_[k] = stamp_;
        from_.assign(label_.size(), -1);
        std::vector<Index> &queue = queue_;
        for (std::size_t head = 0; head < queue.size(); ++head) {
            const Index u = queue[head];
            Index free = -1;
            state.labels(different_.scope[std::size_t(u)], [&](Index x) {
                if (free >= 0 || seen_[x] == stamp_)
                    return;
                seen_[x] = stamp_;
                const Index owner = user_[x];
                if (owner < 0) {
                    free = x;
                } else if (mark_[owner] != stamp_) {
                    mark_[owner] = stamp_;
                    from_[owner] = u;
                    queue.push_back(owner);
                }
            });
            for (Index v = u; free >= 0; v = from_[v]) {
                const Index before = label_[v];
                label_[v] = free, user_[free] = v;
                if (from_[v] < 0)
                    return true;
                free = before;
            }
        }
        return false;
    }

    // Marks the labels from which an alternating path leads to a label that nobody has.
    void find_open(const State &state) {
        ++turn_;
        open_.resize(user_.size(), 0);
        holders_.assign(user_.size(), {});
        for (Index k = 0; k < Index(label_.size()); ++k)
            state.labels(different_.scope[std::size_t(k)],
                         [&](Index x) { holders_[std::size_t(x)].push_back(k); });
        queue_.clear();
        for (Index x = 0; x < Index(user_.size()); ++x)
            if (user_[x] < 0 && !holders_[std::size_t(x)].empty()) {
                open_[x] = turn_;
                queue_.push_back(x);
            }
        for (std::size_t head = 0; head < queue_.size(); ++head)
            for (const Index k : holders_[std::size_t(queue_[head])])
                if (open_[label_[k]] != turn_) {
                    open_[label_[k]] = turn_;
                    queue_.push_back(label_[k]);
                }
    }

    // Strongly connected components of the labels: a leads to b if the user of a may have b.
    // Tarjan's algorithm with a stack of its own, because there may be many labels.
    void find_components(const State &state) {
        const std::size_t count = user_.size();
        component_.assign(count, -1);
        std::vector<Index> low(count, 0), index(count, 0), stack, calls;
        std::vector<std::vector<Index>> next(count);
        std::vector<std::size_t> at(count, 0);
        Index number = 0, components = 0;
        for (std::size_t root = 0; root < count; ++root) {
            if (index[root] || user_[root] < 0 || open_[root] == turn_)
                continue;
            calls.assign(1, Index(root));
            while (!calls.empty()) {
                const std::size_t a = std::size_t(calls.back());
                if (!index[a]) {
                    index[a] = low[a] = ++number;
                    stack.push_back(Index(a));
                    state.labels(different_.scope[std::size_t(user_[a])],
                                 [&](Index b) { next[a].push_back(b); });
                }
                bool deeper = false;
                while (at[a] < next[a].size() && !deeper) {
                    const std::size_t b = std::size_t(next[a][at[a]]);
                    if (open_[b] == turn_) {
                        ++at[a];
                    } else if (!index[b]) {
                        calls.push_back(Index(b));
                        deeper = true;
                    } else {
                        if (component_[b] < 0)
                            low[a] = std::min(low[a], low[b]);
                        ++at[a];
                    }
                }
                if (deeper)
                    continue;
                if (low[a] == index[a]) {
                    Index b;
                    do {
                        b = stack.back();
                        stack.pop_back();
                        component_[b] = components;
                    } while (b != Index(a));
                    ++components;
                }
                calls.pop_back();
            }
        }
    }

    // The variables that have all labels reachable from x: as many as there are labels.
    void hall(const State &state, Index x, std::vector<Lit> &why) {
        ++stamp_;
        why.clear();
        queue_.assign(1, x);
        seen_[x] = stamp_;
        for (std::size_t head = 0; head < queue_.size(); ++head) {
            const Index u = user_[queue_[head]];
            mark_[u] = stamp_;
            state.labels(different_.scope[std::size_t(u)], [&](Index y) {
                if (seen_[y] != stamp_) {
                    seen_[y] = stamp_;
                    queue_.push_back(y);
                }
            });
        }
        for (Index u = 0; u < Index(label_.size()); ++u)
            if (mark_[u] == stamp_)
                add_outside(state, u, why);
    }

    // Adds the literals that confine variable u to the labels seen.
    void add_outside(const State &state, Index u, std::vector<Lit> &why) const {
        const Constraints &net = state.net();
        const Index i = different_.scope[std::size_t(u)];
        if (const Index known = state.chosen(i); known >= 0) {
            why.push_back(taken(known));
            return;
        }
        for (Index x = 0; x < net.size[i]; ++x)
            if (seen_[x] != stamp_)
                why.push_back(not_taken(net.offset[i] + x));
    }

    const Different &different_;
    std::vector<Index> label_, user_, mark_, seen_, from_, queue_, open_, component_;
    std::vector<std::vector<Index>> holders_;
    Index stamp_ = 0, turn_ = 0;
};

} // namespace softmap::feasibility
