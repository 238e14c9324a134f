// Tree moves.
#include "forests.hpp"
#include "scattered.hpp"

namespace softmap {

void ScatteredForests::run(const std::vector<std::uint64_t> &seeds,
                           const std::vector<double> &noise, const Deadline *deadline,
                           int threads) {
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
                        if (meter.tick(lay_.work_at(i)))
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

void ScatteredForests::draw(Member &me, std::uint64_t seed, Meter &meter, std::atomic<bool> &late) {
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

void ScatteredForests::begin(Lists &lists, Index p, std::uint64_t seed) {
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

void ScatteredForests::add_open(Lists &lists, Index p) {
    lists.candidates.clear();
    own_nodes(p, [&](Index i) {
        if (level_[i] == 0 && links_[i].load(std::memory_order_relaxed) < 2)
            lists.candidates.push_back(std::int32_t(i));
    });
}

void ScatteredForests::choose(Lists &lists, int round, std::uint64_t seed) {
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

bool ScatteredForests::root(Index i, std::uint64_t seed) {
    return 0x1p-64 * double(scattered(~seed, i)) < roots;
}

bool ScatteredForests::candidate(Index i, int round, std::uint64_t seed) const {
    const int links = links_[i].load(std::memory_order_relaxed);
    if (level_[i] > 0 || links > 1)
        return false;
    return links == 1 || round >= connected || (round == 0 && root(i, seed));
}

bool ScatteredForests::first(Index i, int round, std::uint64_t seed) const {
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

void ScatteredForests::join(Index i, Lists &lists, bool grows) {
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

void ScatteredForests::gather(Index i, std::uint64_t seed, double heat, Scratch &own) {
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

void ScatteredForests::scatter(Index i, Scratch &own) {
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

void RangeForest::solve(NodeRange range, double heat, std::uint64_t *words, Meter &meter) {
    if (meter.late())
        return;
    grow(range, words);
    costs_.resize(std::size_t(lay_.node_offset[range.end] - lay_.node_offset[range.begin]));
    if (gather(heat, words, meter))
        scatter();
}

void RangeForest::grow(NodeRange range, std::uint64_t *words) {
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

bool RangeForest::reaches_before(const Layout &lay, Index i, Index begin) {
    for (Index t = lay.start[i]; t < lay.start[i + 1]; ++t)
        if (lay.node[lay.half[t] ^ 1] < begin)
            return true;
    return false;
}

double *RangeForest::costs(Index i) {
    return costs_.data() + (lay_.node_offset[i] - lay_.node_offset[range_.begin]);
}

void RangeForest::grow_tree(Index root, std::uint64_t *words) {
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

bool RangeForest::gather(double heat, std::uint64_t *words, Meter &meter) {
    for (const Index i : forest_)
        std::copy_n(lay_.unary + lay_.node_offset[i], lay_.num_labels[i], costs(i));
    for (auto one = forest_.rbegin(); one != forest_.rend(); ++one) {
        const Index i = *one;
        if (meter.tick(lay_.work_at(i)))
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

void RangeForest::condition(Index i, double *own) {
    for (Index t = lay_.start[i]; t < lay_.start[i + 1]; ++t) {
        const Index h = lay_.half[t], j = lay_.node[h ^ 1];
        if (in_forest(j))
            continue;
        conditional_costs(lay_, h, labels_[j], terms_.data());
        add_terms(i, own);
    }
}

void RangeForest::add_terms(Index i, double *to) const {
    for (Index x = 0; x < lay_.num_labels[i]; ++x)
        to[x] += terms_[x];
}

void RangeForest::scatter() {
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

void Forests::run(Index count, double heat, const Deadline *deadline) {
    const auto noise = [&](Index k) { return heat * (1.0 - (double(k) + 1.0) / double(count)); };
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
        for (Index k = 0; k < count && !meter.late(); ++k) {
            const Index ranges = (lay_.n + rounds[k].shift + size_ - 1) / size_;
            me.each(0, ranges, [&](Index r) { solve(forest, rounds[k], r, noise(k), meter); });
        }
    });
}

void Forests::solve(RangeForest &forest, const Round &round, Index r, double heat,
                    Meter &meter) const {
    const Index begin = r * size_ - round.shift;
    std::uint64_t words[4];
    spread_seed(round.seed + std::uint64_t(r), words);
    forest.solve({std::max<Index>(begin, 0), std::min(begin + size_, lay_.n)}, heat, words, meter);
}

Index Forests::range_size(const Layout &lay, int threads) {
    const Index count = count_ranges(lay.n), size = (lay.n + count - 1) / count;
    if (count == 1)
        return lay.n;
    std::atomic<Index> fixed = 0;
    split(threads, lay.n, [&](Index first, Index last) {
        Index own = 0;
        for (Index i = first; i < last; ++i)
            own += RangeForest::reaches_before(lay, i, i / size * size);
        fixed += own;
    });
    return double(fixed) <= most_joining * double(lay.n) ? size : scattered;
}

} // namespace softmap
