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
             const Deadline *deadline, int threads) {
        std::atomic<bool> late = false; // set within phases only: all threads see it after them
        together(threads, [&](Member &me) {
            Scratch own(lay_);
            Meter meter(deadline);
            for (std::size_t k = 0; k < seeds.size() && !late; ++k) {
                draw(me, seeds[k], meter, late);
                for (std::size_t level = rounds; level > 0; --level)
                    each_list(me, [&](Lists &lists, Index) {
                        for (const Index i : lists.members[level - 1]) {
                            if (late)
                                return;
                            if (meter.tick(work_of(i)))
                                late = true;
                            gather(i, seeds[k], noise[k], own);
                        }
                    });
                if (late)
                    break;
                for (std::size_t level = 1; level <= rounds; ++level)
                    each_list(me, [&](Lists &lists, Index) {
                        for (const Index i : lists.members[level - 1])
                            scatter(i, own);
                    });
            }
        });
    }

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
    static std::uint64_t scattered(std::uint64_t seed, Index i) {
        std::uint64_t z = seed + 0x9e3779b97f4a7c15u * std::uint64_t(i + 1);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    Index work_of(Index i) const { // about, in table entries
        return lay_.num_labels[i] * (lay_.start[i + 1] - lay_.start[i] + 1);
    }

    template <class Function> void each_list(Member &me, Function f) {
        me.phase([&](Part part) {
            for (Index p = part.first(0, portions); p < part.last(0, portions); ++p)
                f(lists_[std::size_t(p)], p);
        });
    }

    void draw(Member &me, std::uint64_t seed, Meter &meter, std::atomic<bool> &late) {
        each_list(me, [&](Lists &lists, Index p) { begin(lists, p, seed); });
        for (int round = 0; round < rounds; ++round) {
            each_list(me, [&](Lists &lists, Index p) {
                if (meter.tick(1 + Index(lists.candidates.size())))
                    late = true;
                if (late)
                    return;
                if (round == connected)
                    add_open(lists, p);
                choose(lists, round, seed);
            });
            each_list(me, [&](Lists &lists, Index) {
                for (const Index i : lists.joining)
                    join(i, lists, round < connected);
            });
        }
    }
    template <class Function> void own_nodes(Index p, Function f) {
        const Part part{int(p), int(portions)};
        for (Index i = part.first(0, lay_.n); i < part.last(0, lay_.n); ++i)
            f(i);
    }
    void begin(Lists &lists, Index p, std::uint64_t seed) {
        lists.candidates.clear();
        for (auto &nodes : lists.members)
            nodes.clear();
        own_nodes(p, [&](Index i) {
            level_[i] = 0;
            links_[i].store(0, std::memory_order_relaxed);
            if (root(i, seed))
                lists.candidates.push_back(std::int32_t(i));
        });
    }
    // Makes candidates of all nodes that may still join.
    void add_open(Lists &lists, Index p) {
        lists.candidates.clear();
        own_nodes(p, [&](Index i) {
            if (level_[i] == 0 && links_[i].load(std::memory_order_relaxed) < 2)
                lists.candidates.push_back(std::int32_t(i));
        });
    }
    void choose(Lists &lists, int round, std::uint64_t seed) {
        lists.joining.clear();
        std::size_t kept = 0;
        for (const std::int32_t i : lists.candidates) {
            if (!candidate(i, round, seed))
                continue;
            if (first(i, round, seed))
                lists.joining.push_back(i);
            else
                lists.candidates[kept++] = i;
        }
        lists.candidates.resize(kept);
    }

    static bool root(Index i, std::uint64_t seed) {
        return 0x1p-64 * double(scattered(~seed, i)) < roots;
    }
    bool candidate(Index i, int round, std::uint64_t seed) const {
        const int links = links_[i].load(std::memory_order_relaxed);
        if (level_[i] > 0 || links > 1)
            return false;
        return links == 1 || round >= connected || (round == 0 && root(i, seed));
    }
    bool first(Index i, int round, std::uint64_t seed) const {
        const std::uint64_t own = scattered(seed + std::uint64_t(round), i);
        for (Index t = lay_.start[i]; t < lay_.start[i + 1]; ++t) {
            const Index j = lay_.node[lay_.half[t] ^ 1];
            if (!candidate(j, round, seed))
                continue;
            const std::uint64_t theirs = scattered(seed + std::uint64_t(round), j);
            if (theirs < own || (theirs == own && j < i))
                return false;
        }
        return true;
    }
    // Adds node i to the forest; its neighbours become candidates if `grows`.
    void join(Index i, Lists &lists, bool grows) {
        std::uint8_t above = 0;
        for (Index t = lay_.start[i]; t < lay_.start[i + 1]; ++t) {
            const std::int32_t j = lay_.node[lay_.half[t] ^ 1];
            above = std::max(above, level_[j]);
            if (links_[j].load(std::memory_order_relaxed) < 2 &&
                links_[j].fetch_add(1, std::memory_order_relaxed) == 0 && grows)
                lists.candidates.push_back(j);
        }
        level_[i] = std::uint8_t(above + 1);
        lists.members[above].push_back(std::int32_t(i));
    }

    // Min-sum: costs(i) = the costs of the subtree of node i, given all labels outside the forest.
    void gather(Index i, std::uint64_t seed, double heat, Scratch &own) {
        double *sum = costs(i);
        const Index labels = lay_.num_labels[i];
        std::copy_n(lay_.unary + lay_.node_offset[i], labels, sum);
        for (Index t = lay_.start[i]; t < lay_.start[i + 1]; ++t) {
            const Index h = lay_.half[t], j = lay_.node[h ^ 1];
            if (level_[j] == 0)
                conditional_costs(lay_, h, labels_[j], own.terms.data());
            else if (level_[j] > level_[i])
                hard_message(lay_, h, costs(j), own.terms.data(), own.room.numbers());
            else
                continue; // the parent
            for (Index x = 0; x < labels; ++x)
                sum[x] += own.terms[x];
        }
        if (heat > 0.0) {
            std::uint64_t words[4];
            spread_seed(scattered(seed, i), words);
            for (Index x = 0; x < labels; ++x)
                sum[x] -= heat * uniform(words);
        }
    }

    // Gives node i its best label, given the label of its parent. At ties it keeps its label.
    void scatter(Index i, Scratch &own) {
        double *sum = costs(i);
        const Index labels = lay_.num_labels[i];
        for (Index t = lay_.start[i]; t < lay_.start[i + 1]; ++t) {
            const Index h = lay_.half[t], j = lay_.node[h ^ 1];
            if (level_[j] == 0 || level_[j] > level_[i])
                continue;
            conditional_costs(lay_, h, labels_[j], own.terms.data());
            for (Index x = 0; x < labels; ++x)
                sum[x] += own.terms[x];
        }
        Index best = labels_[i];
        for (Index x = 0; x < labels; ++x)
            best = sum[x] < sum[best] ? x : best;
        labels_[i] = best;
    }
};

} // namespace softmap
