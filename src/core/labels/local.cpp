// Labels of one node after the other: first labels, decoding, ICM, arc consistency.
#include "arcs.hpp"
#include "decoding.hpp"
#include "first.hpp"
#include "modes.hpp"

#include <numeric>

namespace softmap {

FirstLabels::FirstLabels(const Layout &lay) : lay_(lay) {}

bool FirstLabels::prepare(const Deadline *deadline) {
    const auto late = [&] { return deadline != nullptr && deadline->passed(); };
    if (late())
        return false;
    offset_.resize(std::size_t(lay_.m + 1));
    for (Index e = 0; e < lay_.m; ++e)
        offset_[e + 1] =
            offset_[e] + lay_.num_labels[std::min(lay_.node[2 * e], lay_.node[2 * e + 1])];
    if (late())
        return false;
    sort_by_level();
    if (late())
        return false;
    message_.reset(new float[offset_[lay_.m]]);
    sent_.assign(std::size_t(lay_.n), 0);
    return true;
}

void FirstLabels::find(Index *labels, const Deadline *deadline, int threads) {
    if (!prepare(deadline)) {
        for (Index i = 0; i < lay_.n; ++i)
            labels[i] = cheapest(i);
        return;
    }
    const Deadline sending =
        deadline == nullptr ? Deadline() : deadline->within(2.0 / 3.0 * deadline->left());
    std::atomic<bool> late = false;
    together(lay_.n < worthwhile ? 1 : threads, [&](Member &me) {
        Scratch own(lay_);
        Meter sends(&sending), decides(deadline);
        for (Index l = levels(); l-- > 0;)
            each_node(me, l, [&](Index i) {
                if (!late)
                    send(i, own, sends);
                if (sends.late())
                    late = true;
            });
        for (Index l = 0; l < levels(); ++l)
            each_node(me, l,
                      [&](Index i) { decide(i, own, labels, decides.tick(lay_.num_labels[i])); });
    });
}

Index FirstLabels::cheapest(Index i) const {
    const double *unary = lay_.unary + lay_.node_offset[i];
    return std::min_element(unary, unary + lay_.num_labels[i]) - unary;
}

void FirstLabels::sort_by_level() {
    std::vector<Index> rank(std::size_t(lay_.n));
    std::vector<std::int32_t> level(rank.size());
    std::iota(rank.begin(), rank.end(), Index(0));
    depth_levels({lay_.n, lay_.node, lay_.start, lay_.half}, rank.data(), level.data());
    const Index count = 1 + *std::max_element(level.begin(), level.end());
    begin_.resize(std::size_t(count + 1));
    order_.resize(rank.size());
    sort_halves(level.data(), lay_.n, count, begin_.data(), order_.data());
}

void FirstLabels::gather(Index i, std::vector<double> &belief) {
    const Index labels = lay_.num_labels[i];
    std::copy_n(lay_.unary + lay_.node_offset[i], labels, belief.data());
    for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
        if (const Index h = lay_.half[k]; other(h) > i && sent_[other(h)]) {
            const float *in = message(h);
            for (Index x = 0; x < labels; ++x)
                belief[x] += in[x];
        }
}

void FirstLabels::send(Index i, Scratch &own, Meter &meter) {
    const Index labels = lay_.num_labels[i];
    Index before = 0;
    for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
        before += other(lay_.half[k]) < i;
    if (before == 0)
        return;
    gather(i, own.belief);
    double *belief = own.belief.data();
    const double least = *std::min_element(belief, belief + labels);
    const double shift = least < infinity ? least : 0.0, part = 1.0 / double(before);
    for (Index x = 0; x < labels; ++x)
        belief[x] = part * (belief[x] - shift);
    for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k) {
        const Index h = lay_.half[k], j = other(h);
        if (j > i)
            continue;
        hard_message(lay_, h ^ 1, belief, own.out.data(), own.room.numbers());
        float *to = message(h);
        for (Index y = 0; y < lay_.num_labels[j]; ++y)
            to[y] = float(std::min(own.out[y], huge));
        meter.use(labels + lay_.num_labels[j]);
    }
    sent_[i] = 1;
}

void FirstLabels::decide(Index i, Scratch &own, Index *chosen, bool late) {
    const Index labels = lay_.num_labels[i];
    if (late) {
        chosen[i] = cheapest(i);
        return;
    }
    gather(i, own.belief);
    double *belief = own.belief.data();
    for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k) {
        const Index h = lay_.half[k];
        if (other(h) > i)
            continue;
        visit_edge(lay_, h, [&](const auto &edge) {
            for (Index x = 0; x < labels; ++x)
                belief[x] += edge.entry(chosen[other(h)], x).part[0];
        });
    }
    chosen[i] = std::min_element(belief, belief + labels) - belief;
}

void SequentialDecoder::decide_all(const Index *order, Index count, Index *labels, Meter meter) {
    for (Index k = 0; k < count; ++k) {
        const Index i = order[k];
        const double *reduced = reduced_ + lay_.node_offset[i];
        if (meter.tick(lay_.work_at(i)))
            labels[i] = std::min_element(reduced, reduced + lay_.num_labels[i]) - reduced;
        else
            decide(i, labels);
    }
}

void SequentialDecoder::decide(Index i, Index *labels) {
    const double *reduced = reduced_ + lay_.node_offset[i];
    std::copy_n(reduced, lay_.num_labels[i], belief_.data());
    double size = 0.0;
    for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
        if (labels[lay_.node[lay_.half[k] ^ 1]] < 0)
            size = std::max(size, look_ahead(lay_.half[k]));
    Index best = first_least(lay_.num_labels[i], tie * size);
    if (belief_[best] == infinity)
        best = std::min_element(reduced, reduced + lay_.num_labels[i]) - reduced;
    labels[i] = best;
    for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
        if (labels[lay_.node[lay_.half[k] ^ 1]] < 0)
            condition(lay_.half[k] ^ 1, best);
}

double SequentialDecoder::look_ahead(Index h) {
    const Index g = h ^ 1, j = lay_.node[g];
    const double *lam = lam_ + lay_.half_at(g), *reduced = reduced_ + lay_.node_offset[j];
    for (Index y = 0; y < lay_.num_labels[j]; ++y) {
        const double own = j >= variables_ ? reduced[y] : 0.0;
        a_[y] = reduced[y] == infinity ? infinity : lam[y] + own;
    }
    hard_message(lay_, h, a_.data(), message_.data(), room_.numbers());
    double size = 0.0;
    const double *back = lam_ + lay_.half_at(h);
    for (Index x = 0; x < lay_.labels_at(h); ++x) {
        belief_[x] += back[x] + message_[x];
        size = std::max(size, std::abs(back[x]));
    }
    return size;
}

void SequentialDecoder::condition(Index g, Index x) {
    double *reduced = reduced_ + lay_.node_offset[lay_.node[g]];
    const double *lam = lam_ + lay_.half_at(g);
    conditional_costs(lay_, g, x, a_.data());
    for (Index y = 0; y < lay_.labels_at(g); ++y)
        reduced[y] += lam[y] + a_[y];
}

Index SequentialDecoder::first_least(Index labels, double margin) const {
    const double least = *std::min_element(belief_.data(), belief_.data() + labels);
    for (Index x = 0; x < labels; ++x)
        if (belief_[x] <= least + margin)
            return x;
    return 0;
}

void LocalCosts::find(const LabelGraph &graph, Index i, const Index *labels) {
    const Layout &lay = graph.lay;
    const Index count = lay.num_labels[i];
    std::fill_n(cost.data(), count, 0.0);
    std::fill_n(broken.data(), count, Index(0));
    add(lay.unary + lay.node_offset[i], count);
    graph.halves(i, [&](Index h) {
        const Index j = lay.node[h ^ 1];
        if (graph.joint(h)) { // the state of j is a function of its members
            const double *joint = lay.unary + lay.node_offset[j] + labels[j];
            for (Index x = 0; x < count; ++x)
                terms_[x] = joint[(x - labels[i]) * graph.stride[h]];
        } else {
            conditional_costs(lay, h, labels[j], terms_.data());
        }
        add(terms_.data(), count);
    });
}

Index LocalCosts::best(Index own, Index count) const {
    Index best = own;
    for (Index x = 0; x < count; ++x)
        if (broken[x] < broken[best] || (broken[x] == broken[best] && cost[x] < cost[best]))
            best = x;
    return best;
}

void LocalCosts::add(const double *terms, Index count) {
    for (Index x = 0; x < count; ++x) {
        const bool finite = terms[x] < infinity;
        cost[x] += finite ? terms[x] : 0.0;
        broken[x] += !finite;
    }
}

void IteratedModes::run(Index max_sweeps, Meter meter) {
    bool changed = true;
    for (Index sweep = 0; sweep < max_sweeps && changed; ++sweep) {
        changed = false;
        for (Index i = 0; i < graph_.variables; ++i) {
            if (!dirty_[i])
                continue;
            if (meter.tick(graph_.lay.work_at(i)))
                return;
            changed |= improve(i);
        }
    }
}

bool IteratedModes::improve(Index i) {
    dirty_[i] = 0;
    local_.find(graph_, i, labels_);
    const Index own = labels_[i], best = local_.best(own, graph_.lay.num_labels[i]);
    if (best == own)
        return false;
    labels_[i] = best;
    spread(i, best - own);
    return true;
}

void IteratedModes::spread(Index i, Index step) {
    graph_.halves(i, [&](Index h) {
        const Index j = graph_.lay.node[h ^ 1];
        if (!graph_.joint(h)) {
            dirty_[j] = 1;
            return;
        }
        labels_[j] += step * graph_.stride[h];
        graph_.members(j, [&](Index member, Index) { dirty_[member] |= member != i; });
    });
}

void IndependentModes::run(Index max_rounds, const Deadline *deadline, int threads) {
    std::atomic<bool> late = false; // set within phases only: all threads see it after them
    // by round, because a delayed thread reads its count after others have gone on
    std::vector<std::atomic<Index>> changed(static_cast<std::size_t>(max_rounds));
    together(lay_.n < worthwhile ? 1 : threads, [&](Member &me) {
        LocalCosts local(lay_.widest);
        Meter meter(deadline);
        for (Index round = 0; round < max_rounds; ++round) {
            me.each(0, portions, [&](Index p) {
                if (!late && !find_wishes(p, local, meter))
                    late = true;
            });
            if (late) // some wishes were not found
                break;
            me.each(0, portions, [&](Index p) { choose(p); });
            me.each(0, portions, [&](Index p) { changed[round] += apply(p); });
            if (changed[round] == 0)
                break;
        }
    });
}

bool IndependentModes::find_wishes(Index p, LocalCosts &local, Meter &meter) {
    const Part part{int(p), int(portions)};
    std::vector<std::int32_t> &list = wishing_[p];
    std::erase_if(list, [&](std::int32_t i) { return dirty_[i] || wish_[i].label < 0; });
    const Index last = part.last(0, lay_.n);
    const char *all = dirty_.data();
    for (Index i = part.first(0, lay_.n); i < last; ++i) {
        const void *next = std::memchr(all + i, 1, std::size_t(last - i));
        if (!next)
            break;
        i = static_cast<const char *>(next) - all;
        if (meter.tick(lay_.work_at(i)))
            return false;
        dirty_[i] = 0;
        local.find(graph_, i, labels_);
        const Index own = labels_[i], best = local.best(own, lay_.num_labels[i]);
        wish_[i] = {};
        if (best == own)
            continue;
        const bool repairs = local.broken[best] < local.broken[own];
        wish_[i] = {std::int32_t(best),
                    repairs ? float(infinity) : float(local.cost[own] - local.cost[best])};
        list.push_back(std::int32_t(i));
    }
    return true;
}

void IndependentModes::choose(Index p) {
    taken_[p].clear();
    for (const std::int32_t i : wishing_[p])
        if (comes_first(i))
            taken_[p].push_back(i);
}

bool IndependentModes::comes_first(Index i) const {
    for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k) {
        const Index j = lay_.node[lay_.half[k] ^ 1];
        if (wish_[j].label >= 0 && before(j, i))
            return false;
    }
    return true;
}

bool IndependentModes::before(Index i, Index j) const {
    if (wish_[i].gain != wish_[j].gain)
        return wish_[i].gain > wish_[j].gain;
    return scattered(i) < scattered(j);
}

std::uint32_t IndependentModes::scattered(Index i) {
    auto x = std::uint32_t(i);
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

Index IndependentModes::apply(Index p) {
    for (const std::int32_t i : taken_[p]) {
        labels_[i] = wish_[i].label;
        wish_[i].label = -1;
        for (Index k = lay_.start[i]; k < lay_.start[i + 1]; ++k)
            std::atomic_ref(dirty_[lay_.node[lay_.half[k] ^ 1]])
                .store(1, std::memory_order_relaxed);
    }
    return Index(taken_[p].size());
}

Arcs::Arcs(const Layout &lay, bool *allowed)
    : lay_(lay), allowed_(allowed), ring_(lay.n), left_(lay.n, 0), owner_(lay.node_offset[lay.n]),
      waiting_(lay.n, 0), a_(lay.widest), out_(lay.widest), room_(message_room(lay.widest, 1)) {
    for (Index i = 0; i < lay.n; ++i)
        for (Index place = lay.node_offset[i]; place < lay.node_offset[i + 1]; ++place) {
            owner_[place] = i;
            left_[i] += allowed[place];
        }
}

Index Arcs::everywhere(int threads, const Deadline *deadline) {
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

Index Arcs::from(Index i) {
    ring_[0] = i;
    waiting_[i] = 1;
    Meter unlimited(nullptr);
    return propagate(1, unlimited);
}

void Arcs::keep_only(Index i, Index x) {
    for (Index y = 0; y < lay_.num_labels[i]; ++y)
        if (y != x)
            forbid(lay_.node_offset[i] + y);
}

void Arcs::forbid(Index place) {
    if (allowed_[place]) {
        allowed_[place] = false;
        --left_[owner_[place]];
        trail_.push_back(place);
    }
}

void Arcs::undo(Index mark) {
    for (; Index(trail_.size()) > mark; trail_.pop_back()) {
        allowed_[trail_.back()] = true;
        ++left_[owner_[trail_.back()]];
    }
}

Index Arcs::wait_all() {
    std::iota(ring_.begin(), ring_.end(), Index(0));
    std::fill(waiting_.begin(), waiting_.end(), 1);
    return lay_.n;
}

Index Arcs::round(int threads, Meter &meter) {
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

bool Arcs::lose(Index h, double *out, Room &room) {
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

Index Arcs::propagate(Index count, Meter &meter) {
    Index head = 0, empty = -1;
    while (count > 0) {
        const Index i = ring_[head];
        head = head + 1 == lay_.n ? 0 : head + 1;
        --count;
        waiting_[i] = 0;
        if (empty >= 0 || meter.tick(lay_.work_at(i)))
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

bool Arcs::revise(Index h) {
    ++calls_;
    hard_message(lay_, h, a_.data(), out_.data(), room_.numbers());
    const Index j = lay_.node[h];
    for (Index y = 0; y < lay_.num_labels[j]; ++y)
        if (out_[y] == infinity)
            forbid(lay_.node_offset[j] + y);
    return left_[j] > 0;
}

} // namespace softmap
