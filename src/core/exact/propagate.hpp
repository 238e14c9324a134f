// Soft arc consistency maintained during search: NC, AC, full directional AC and existential AC
// (EDAC). Labels are pruned by reduced costs; variables of degree at most two are eliminated.
#pragma once

#include "network.hpp"

namespace softmap::exact {

class Propagator : public Network {
  public:
    explicit Propagator(Control &control) : control_(control) {}
    // A copy of another state, which must be at the root and propagated.
    Propagator(const Propagator &root, Control &control)
        : Network(root), epsilon(root.epsilon), favourite(root.favourite), control_(control),
          removed_(root.removed_) {
        make_queues();
    }
    Propagator(const Propagator &) = delete;
    Propagator &operator=(const Propagator &) = delete;

    Cost epsilon = 1;           // smaller costs do not start DAC and EAC
    std::vector<int> favourite; // existential support of each variable

    void prepare(Work &w, const std::vector<int> &vars) {
        load(w, vars);
        favourite.assign(n, 0);
        make_queues();
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
    // Compares every reduced cost with the cut again, after a better incumbent.
    void cut_changed() { bound_moved_ = true; }

    // Removes one label and logs the reason: its unary cost, or its cost in the factor of `word`.
    // Returns false if no label is left.
    bool prune(int x, int a, std::int64_t word = -1) {
        if (log != nullptr)
            log->remove(word >= 0 ? word : -1 - (begin[x] + a));
        return remove(x, a);
    }
    // Removes one label. Returns false if no label is left.
    bool remove(int x, int a) {
        const int last = dom(x) - 1;
        if (last == 0)
            return false;
        const auto b = begin[x];
        const int k = place[b + a], other = value[b + last];
        value[b + k] = other;
        place[b + other] = k;
        value[b + last] = a;
        place[b + a] = last;
        set(1 + x, last);
        set(at[x] + a, INF);
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

    // Propagates to a fixpoint. Returns false on a conflict: no labelling of this node costs less
    // than the cut. If time runs out, returns true before the fixpoint; c0 is a lower bound at any
    // time.
    bool propagate() {
        soft_visits_ = 0;
        soft_mark_ = c0();
        soft_off_ = false;
        const bool ok = run();
        if (!ok || control_.stopped)
            clear_queues();
        return ok;
    }

    // Returns the labels of all variables. Every variable must be assigned or eliminated.
    std::vector<int> solution();

  protected:
    Control &control_;
    struct Removed {
        int x, first, second;
    };
    std::vector<Removed> removed_; // parallel to `eliminated`

  private:
    RankQueue assign_, nc_, ac_, dac_, eac_, elim_, nary_;
    std::vector<char> nary_wants_unary_;
    bool bound_moved_ = true;
    std::vector<Cost> gain_, buffer_, least_;
    std::vector<std::vector<Cost>> change_;
    std::vector<int> open_, index_, rank_;

    struct Side { // an edge with endpoint p as the target and endpoint q as the source
        int p, q;
        const Cost *table;
        std::int64_t p_stride, q_stride, dp, dq;
        int support;
        std::int64_t p_word, q_word; // number of the first word of p and of q in the log
    };
    Side side(const Edge &e, bool to_x) const {
        const std::int64_t row = size[e.y];
        const Cost *t = table_at(mem[e.table]);
        std::int64_t x_word = -1, y_word = -1;
        if (log != nullptr) {
            x_word = mem[e.factor + 1];
            y_word = mem[e.factor + 2];
        }
        if (to_x)
            return {e.x, e.y, t, row, 1, e.dx, e.dy, e.support_x, x_word, y_word};
        return {e.y, e.x, t, 1, row, e.dy, e.dx, e.support_y, y_word, x_word};
    }
    Cost cost(const Side &s, int p, int q) const {
        return s.table[p * s.p_stride + q * s.q_stride] - mem[s.dp + p] - mem[s.dq + q];
    }
    int other(const Edge &e, int x) const { return e.x == x ? e.y : e.x; }

    void make_queues() {
        for (auto *q : {&assign_, &nc_, &ac_, &dac_, &eac_, &elim_})
            *q = RankQueue(n);
        nary_ = RankQueue(static_cast<int>(naries.size()));
        nary_wants_unary_.assign(naries.size(), 0);
    }
    void clear_queues() {
        for (auto *q : {&assign_, &nc_, &ac_, &dac_, &eac_, &elim_, &nary_})
            q->clear();
        bound_moved_ = true;
    }
    bool too_much(int x, int a, Cost extra) {
        return forbidden(extra) || c0() + unary(x, a) + extra >= cut;
    }
    // Adds `amount`, which comes from a factor, to a unary cost. `from` is the word of the label in
    // that factor; -1 if the move is logged already.
    bool raise(int x, int a, Cost amount, std::int64_t from = -1) {
        if (log != nullptr && from >= 0)
            log->move(from, amount);
        const auto word = at[x] + a;
        if (mem[word] == 0)
            nc_.push(x);
        if (mem[word] < epsilon && mem[word] + amount >= epsilon)
            dac_.push(x);
        set(word, mem[word] + amount);
        highest = std::max(highest, mem[word]);
        return true;
    }

    // Stops DAC and EAC at this node after many visits with little gain: they may raise the bound
    // in ever smaller steps. AC and NC always reach their fixpoint.
    void count_soft_visit() {
        if (soft_off_ || ++soft_visits_ < 20 * (n + static_cast<std::int64_t>(naries.size())) + 200)
            return;
        soft_off_ = c0() - soft_mark_ < std::max(epsilon, (cut - c0()) >> 8);
        soft_visits_ = 0;
        soft_mark_ = c0();
    }
    std::int64_t soft_visits_ = 0;
    Cost soft_mark_ = 0;
    bool soft_off_ = false;

    bool run();
    bool node_consistency(int x);
    bool compare_with_cut();
    static constexpr int FEW = 4; // labels of a domain that is read as a whole
    Cost edge_cost(const Side &s, int p);
    bool project(const Edge &e, bool to_x);
    bool full_support(const Edge &e, bool to_x);
    Cost full_cost(const Side &s, int p, Cost enough);
    bool visit_ac(int x);
    bool visit_dac(int x);
    bool visit_eac(int x);
    void recheck(const Edge &e, bool to_x);
    bool has_existential_support(int x, int a);
    bool assign(int x);
    bool eliminate_variable(int x);
    bool eliminate_leaf(int x, const Side &s);
    bool add_binary(int x, int y, std::int64_t table, int out,
                    std::initializer_list<std::int64_t> from);
    bool project_both(const Edge &e);
    bool visit_nary(int f);
    bool unchanged(const Nary &c, bool with_unary);
    bool replace_nary(int f);
    bool shift_nary(int f, bool with_unary);
    std::int64_t load_tuples(const Nary &c);
    template <class Body> void along(const Nary &c, std::size_t j, Body &&body);
    bool apply_change(const Nary &c);
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
        else if (!dac_.empty()) {
            const int x = dac_.pop_max();
            ok = soft_off_ || visit_dac(x);
            count_soft_visit();
        } else if (bound_moved_)
            ok = compare_with_cut();
        else if (!eac_.empty()) {
            const int x = eac_.pop_min();
            ok = soft_off_ || visit_eac(x);
            count_soft_visit();
        } else if (!elim_.empty())
            ok = eliminate_variable(elim_.pop_min());
        else
            return true;
        if (!ok)
            return false;
    }
}

// Moves the smallest unary cost to the bound.
inline bool Propagator::node_consistency(int x) {
    if (state(x) != FREE)
        return true;
    const int count = dom(x);
    const int *v = labels(x);
    Cost least = INF;
    if (size[x] <= FEW)
        for (int a = 0; a < size[x]; ++a)
            least = std::min(least, unary(x, a));
    else
        for (int k = 0; k < count; ++k)
            least = std::min(least, unary(x, v[k]));
    if (least > 0) {
        for (int k = 0; k < count; ++k)
            set(at[x] + v[k], unary(x, v[k]) - least);
        if (log != nullptr)
            log->lower(x, least);
        set(0, c0() + least);
        bound_moved_ = true;
        if (c0() >= cut)
            return false;
    }
    for (int k = count - 1; k >= 0; --k)
        if (const int a = value[begin[x] + k]; c0() + unary(x, a) >= cut && !prune(x, a))
            return false;
    return true;
}

// Removes labels whose unary cost reaches the cut. In large models most rises of the bound are too
// small for any label to go, and the costs are not read again.
inline bool Propagator::compare_with_cut() {
    bound_moved_ = false;
    if (c0() >= cut)
        return false;
    const Cost room = cut - c0();
    if (highest < room)
        return true;
    highest = 0;
    for (int x = 0; x < n; ++x) {
        if (state(x) != FREE)
            continue;
        for (int k = dom(x) - 1; k >= 0; --k)
            if (const int a = value[begin[x] + k]; unary(x, a) < room)
                highest = std::max(highest, unary(x, a));
            else if (!prune(x, a))
                return false;
    }
    return true;
}

} // namespace softmap::exact
