// Soft arc consistency kept during search: NC, AC, full directional AC and existential AC
// (EDAC), values pruned by reduced costs, variables of degree up to two eliminated.
#pragma once

#include "network.hpp"

namespace softmap::exact {

class Propagator : public Network {
  public:
    explicit Propagator(Control &control) : control_(control) {}

    Cost epsilon = 1; // smaller costs are not moved along in the hope of raising the bound
    int conflict_variable = -1;
    std::vector<int> favourite; // existential support of each variable

    void prepare(Work &w, const std::vector<int> &vars) {
        load(w, vars);
        favourite.assign(n, 0);
        for (auto *q : {&assign_, &nc_, &ac_, &dac_, &eac_, &elim_})
            *q = RankQueue(n);
        nary_ = RankQueue(static_cast<int>(naries.size()));
        nary_wants_unary_.assign(naries.size(), 0);
        touch_all();
    }
    void touch_all() {
        for (int x = 0; x < n; ++x)
            if (state(x) == FREE)
                touch(x);
    }
    void touch(int x) {
        for (auto *q : {&nc_, &ac_, &dac_, &eac_, &elim_})
            q->push(x);
        if (dom(x) == 1)
            assign_.push(x);
    }
    // What a better incumbent asks for: every reduced cost is compared with the cut again.
    void cut_changed() { bound_moved_ = true; }

    // Removes one label; false when none is left.
    bool remove(int x, int a) {
        const int last = dom(x) - 1;
        if (last == 0)
            return blame(x);
        const auto b = begin[x];
        const int k = place[b + a], other = value[b + last];
        value[b + k] = other;
        place[b + other] = k;
        value[b + last] = a;
        place[b + a] = last;
        set(1 + x, last);
        ac_.push(x);
        nc_.push(x);
        eac_.push(x);
        if (last == 1)
            assign_.push(x);
        return true;
    }
    bool keep_only(int x, int a) {
        while (dom(x) > 1) {
            const int last = value[begin[x] + dom(x) - 1];
            if (!remove(x, last == a ? value[begin[x] + dom(x) - 2] : last))
                return false;
        }
        return true;
    }

    // False on a conflict: nothing below costs less than the cut. When time runs out it returns
    // true before the fixpoint; the bound c0 holds at any moment.
    bool propagate() {
        const bool ok = run();
        if (!ok || control_.stopped)
            clear_queues();
        return ok;
    }

    // Labels of all variables, once every one is assigned or eliminated.
    std::vector<int> solution();

  protected:
    Control &control_;
    struct Removed {
        int x, first, second;
    };
    std::vector<Removed> removed_; // grows with `eliminated`

  private:
    RankQueue assign_, nc_, ac_, dac_, eac_, elim_, nary_;
    std::vector<char> nary_wants_unary_;
    bool bound_moved_ = true;
    std::vector<Cost> gain_, buffer_;
    std::vector<std::vector<Cost>> change_;

    struct Side { // one end of an edge as the target, the other as the source
        int p, q;
        const Cost *table;
        std::int64_t p_stride, q_stride, dp, dq;
        int support;
    };
    Side side(const Edge &e, bool to_x) const {
        const std::int64_t row = size[e.y];
        const Cost *t = mem.data() + mem[e.table];
        if (to_x)
            return {e.x, e.y, t, row, 1, e.dx, e.dy, e.support_x};
        return {e.y, e.x, t, 1, row, e.dy, e.dx, e.support_y};
    }
    Cost cost(const Side &s, int p, int q) const {
        return s.table[p * s.p_stride + q * s.q_stride] - mem[s.dp + p] - mem[s.dq + q];
    }
    int other(const Edge &e, int x) const { return e.x == x ? e.y : e.x; }

    bool blame(int x) {
        conflict_variable = x;
        weight[x] += 1;
        return false;
    }
    void clear_queues() {
        for (auto *q : {&assign_, &nc_, &ac_, &dac_, &eac_, &elim_, &nary_})
            q->clear();
        bound_moved_ = true;
    }
    bool too_much(int x, int a, Cost extra) {
        return forbidden(extra) || c0() + unary(x, a) + extra >= cut;
    }
    // Adds to a unary cost, or removes the label when that reaches the cut.
    bool raise(int x, int a, Cost amount) {
        const auto word = at[x] + a;
        if (mem[word] == 0)
            nc_.push(x);
        if (mem[word] < epsilon && mem[word] + amount >= epsilon)
            dac_.push(x);
        set(word, mem[word] + amount);
        return true;
    }

    bool run();
    bool node_consistency(int x);
    bool compare_with_cut();
    bool project(const Edge &e, bool to_x);
    bool full_support(const Edge &e, bool to_x);
    Cost full_cost(const Side &s, int p, Cost enough);
    bool visit_ac(int x);
    bool visit_dac(int x);
    bool visit_eac(int x);
    bool has_existential_support(int x, int a);
    bool assign(int x);
    bool eliminate_variable(int x);
    bool add_binary(int x, int y, std::int64_t table);
    bool visit_nary(int f);
    bool replace_nary(int f);
    std::int64_t load_tuples(const Nary &c, std::vector<int> &open);
    bool apply_change(const Nary &c, const std::vector<int> &open);
};

inline bool Propagator::run() {
    for (;;) {
        if (control_.spend(16))
            return true;
        bool ok = true;
        if (!assign_.empty())
            ok = assign(assign_.pop_min());
        else if (!nc_.empty())
            ok = node_consistency(nc_.pop_min());
        else if (!ac_.empty())
            ok = visit_ac(ac_.pop_min());
        else if (!nary_.empty())
            ok = visit_nary(nary_.pop_min());
        else if (!dac_.empty())
            ok = visit_dac(dac_.pop_max());
        else if (bound_moved_)
            ok = compare_with_cut();
        else if (!eac_.empty())
            ok = visit_eac(eac_.pop_min());
        else if (!elim_.empty())
            ok = eliminate_variable(elim_.pop_min());
        else
            return true;
        if (!ok)
            return false;
    }
}

// Moves the least unary cost to the bound.
inline bool Propagator::node_consistency(int x) {
    if (state(x) != FREE)
        return true;
    Cost least = INF;
    const int count = dom(x);
    const int *v = labels(x);
    for (int k = 0; k < count; ++k)
        least = std::min(least, unary(x, v[k]));
    if (least > 0) {
        for (int k = 0; k < count; ++k)
            set(at[x] + v[k], unary(x, v[k]) - least);
        set(0, c0() + least);
        bound_moved_ = true;
        if (c0() >= cut)
            return blame(x);
    }
    for (int k = count - 1; k >= 0; --k)
        if (const int a = value[begin[x] + k]; c0() + unary(x, a) >= cut && !remove(x, a))
            return false;
    return true;
}

inline bool Propagator::compare_with_cut() {
    bound_moved_ = false;
    if (c0() >= cut)
        return false;
    const Cost room = cut - c0();
    for (int x = 0; x < n; ++x) {
        if (state(x) != FREE)
            continue;
        for (int k = dom(x) - 1; k >= 0; --k)
            if (const int a = value[begin[x] + k]; unary(x, a) >= room && !remove(x, a))
                return false;
    }
    return true;
}

// Moves from the edge to one end whatever each label of that end must pay.
inline bool Propagator::project(const Edge &e, bool to_x) {
    const Side s = side(e, to_x);
    const int count = dom(s.q);
    const int *v = labels(s.q);
    control_.spend(dom(s.p));
    for (int k = dom(s.p) - 1; k >= 0; --k) {
        const int p = value[begin[s.p] + k];
        int &known = support[s.support + p];
        if (has(s.q, known) && cost(s, p, known) == 0)
            continue;
        const Cost *row = s.table + p * s.p_stride, *dq = mem.data() + s.dq;
        Cost least = INF * 2;
        for (int j = 0; j < count; ++j)
            if (const Cost c = row[v[j] * s.q_stride] - dq[v[j]]; c < least) {
                least = c;
                known = v[j];
            }
        control_.spend(count);
        least -= mem[s.dp + p];
        if (least == 0)
            continue;
        if (too_much(s.p, p, least)) {
            if (!remove(s.p, p))
                return blame(s.q);
            continue;
        }
        set(s.dp + p, mem[s.dp + p] + least);
        raise(s.p, p, least);
    }
    return true;
}

// Least cost of label p over the edge and the unary costs of the other end.
inline Cost Propagator::full_cost(const Side &s, int p, Cost enough) {
    int &known = support[s.support + p];
    if (has(s.q, known) && cost(s, p, known) + unary(s.q, known) == 0)
        return 0;
    const int count = dom(s.q);
    const int *v = labels(s.q);
    const Cost *row = s.table + p * s.p_stride, *dq = mem.data() + s.dq;
    const Cost *uq = mem.data() + at[s.q];
    Cost least = INF * 2;
    enough += mem[s.dp + p];
    control_.spend(count);
    for (int j = 0; j < count; ++j)
        if (const Cost c = row[v[j] * s.q_stride] - dq[v[j]] + uq[v[j]]; c < least) {
            least = c;
            known = v[j];
            if (least <= enough)
                break;
        }
    return least - mem[s.dp + p];
}

// The same with the other end's unary costs moved into the edge first, as far as they are needed.
inline bool Propagator::full_support(const Edge &e, bool to_x) {
    const Side s = side(e, to_x);
    gain_.assign(size[s.p], 0);
    bool any = false;
    for (int k = dom(s.p) - 1; k >= 0; --k) {
        const int p = value[begin[s.p] + k];
        const Cost g = full_cost(s, p, 0);
        if (g == 0)
            continue;
        if (too_much(s.p, p, g)) {
            if (!remove(s.p, p))
                return blame(s.q);
            continue;
        }
        gain_[p] = g;
        any = true;
    }
    if (!any)
        return true;
    const int *v = labels(s.p);
    const int count = dom(s.p);
    for (int j = 0; j < dom(s.q); ++j) {
        const int q = labels(s.q)[j];
        if (unary(s.q, q) == 0)
            continue;
        Cost need = 0;
        for (int k = 0; k < count; ++k)
            if (gain_[v[k]] > 0)
                need = std::max(need, gain_[v[k]] - cost(s, v[k], q));
        if (need == 0)
            continue;
        if (mem[s.dq + q] < -SHIFT_LIMIT / 2)
            return true; // nothing was projected yet; costs stay where they are
        set(s.dq + q, mem[s.dq + q] - need);
        set(at[s.q] + q, unary(s.q, q) - need);
    }
    control_.spend(count * dom(s.q));
    for (int k = 0; k < count; ++k)
        if (const Cost g = gain_[v[k]]; g > 0) {
            set(s.dp + v[k], mem[s.dp + v[k]] + g);
            raise(s.p, v[k], g);
        }
    return true;
}

inline bool Propagator::visit_ac(int x) {
    if (state(x) != FREE)
        return true;
    for (std::size_t k = 0; k < edges_of[x].size(); ++k) {
        const Edge &e = edges[edges_of[x][k]];
        if (!active(e))
            continue;
        if (!project(e, e.y == x))
            return false;
        eac_.push(other(e, x));
    }
    for (int f : naries_of[x])
        if (mem[naries[f].free] > 2)
            nary_.push(f);
    return true;
}

inline bool Propagator::visit_dac(int x) {
    if (state(x) != FREE)
        return true;
    for (std::size_t k = 0; k < edges_of[x].size(); ++k) {
        const Edge &e = edges[edges_of[x][k]];
        if (!active(e))
            continue;
        const int y = other(e, x);
        if (y < x && !full_support(e, e.y == x))
            return false;
        eac_.push(y);
    }
    for (int f : naries_of[x])
        if (mem[naries[f].free] > 2) {
            nary_wants_unary_[f] = 1;
            nary_.push(f);
        }
    return true;
}

inline bool Propagator::has_existential_support(int x, int a) {
    if (!has(x, a))
        return false;
    Cost total = unary(x, a);
    for (std::size_t k = 0; k < edges_of[x].size() && total < epsilon; ++k) {
        const Edge &e = edges[edges_of[x][k]];
        if (active(e))
            total += full_cost(side(e, e.x == x), a, 0);
    }
    return total < epsilon;
}

// When no label is free of cost together with all neighbours, the bound can be raised.
inline bool Propagator::visit_eac(int x) {
    if (state(x) != FREE || has_existential_support(x, favourite[x]))
        return true;
    for (int k = 0; k < dom(x); ++k)
        if (const int a = labels(x)[k]; has_existential_support(x, a)) {
            favourite[x] = a;
            return true;
        }
    for (std::size_t k = 0; k < edges_of[x].size(); ++k) {
        const Edge &e = edges[edges_of[x][k]];
        if (active(e) && !full_support(e, e.x == x))
            return false;
    }
    nc_.push(x);
    return true;
}

} // namespace softmap::exact
