// One worker of a search: depth-first dives of limited length from open nodes.
#pragma once

#include "frontier.hpp"
#include "propagate.hpp"
#include "rises.hpp"

namespace softmap::exact {

class Diver : public Propagator {
  public:
    Diver(Control &control, Frontier &frontier) : Propagator(control), frontier_(frontier) {}
    // A second worker, with a copy of the state of the first one at the root.
    Diver(const Diver &root, Control &control)
        : Propagator(root, control), frontier_(root.frontier_), known_(root.known_),
          limit_(root.limit_), rises_(root.rises_) {}

    int split_above = 10;

    // Uses the cut of the best labelling found by any worker.
    void follow_cut() {
        if (cut == frontier_.cut())
            return;
        cut = frontier_.cut();
        cut_changed();
        if (log != nullptr)
            log->note(Op::CUT, {cut});
    }

    // Searches until there are no nodes, a limit is reached or all workers must stop. `last_work`
    // is a limit on the total of the worker's own control.
    void work(std::int64_t last_backtrack, std::int64_t last_work) {
        last_backtrack_ = last_backtrack;
        last_work_ = last_work;
        rises_.resize(n);
        for (;;) {
            if (control_.check_now() || over())
                return frontier_.halt();
            Open node;
            const auto taken = frontier_.take(node, path_, patience);
            if (taken == Frontier::Taken::NONE_LEFT)
                return;
            if (taken == Frontier::Taken::NODE)
                expand(node);
        }
    }

  private:
    struct Level {
        Decision right;
        Cost bound;
        std::size_t path;
    };
    static constexpr std::int64_t longest = 1 << 14; // nodes of a dive that is made longer
    // How long an idle worker waits before it reads its clock and stop flag again.
    static constexpr std::chrono::milliseconds patience{10};

    Frontier &frontier_;
    Known known_; // copy of the best labelling
    std::vector<Decision> path_;
    std::vector<Level> levels_;
    std::size_t given_ = 0; // number of levels, from the first, whose right branch is opened
    std::vector<Fresh> fresh_;
    std::int64_t limit_ = 1;
    std::int64_t replayed_ = 0, visited_ = 0;
    std::int64_t last_backtrack_ = 0, last_work_ = 0;
    std::vector<int> order_;
    Rises rises_;
    std::int64_t probed_ = 0; // units of work of `probe`
    // Probing may take this work, and a fraction of all work of the worker.
    static constexpr std::int64_t probing_allowed = 1 << 19, probing_part = 8;

    bool over() const {
        return control_.stopped || control_.backtracks >= last_backtrack_ ||
               control_.total >= last_work_ || frontier_.halted().load(std::memory_order_relaxed);
    }

    bool apply(const Decision &d) {
        if (state(d.x) == ELIMINATED) // a replay under a better cut may eliminate other variables
            return true;
        if (d.kind == Kind::EQUAL)
            return has(d.x, d.a) && keep_only(d.x, d.a);
        if (d.kind == Kind::DIFFERENT)
            return !has(d.x, d.a) || remove(d.x, d.a);
        for (int k = dom(d.x) - 1; k >= 0; --k)
            if (const int b = labels(d.x)[k]; (b > d.a) == (d.kind == Kind::AT_MOST))
                if (!remove(d.x, b))
                    return false;
        return true;
    }

    void expand(const Open &node) {
        follow_cut();
        frontier_.follow(known_);
        if (log != nullptr)
            log->note(Op::DIVE, {node.number});
        push_level();
        cut_changed();
        bool ok = true;
        for (const auto &d : path_)
            ok = ok && apply(d);
        replayed_ += static_cast<std::int64_t>(path_.size());
        visited_ += static_cast<std::int64_t>(path_.size());
        ok = ok && propagate();
        fresh_.clear();
        dive(ok, node);
        frontier_.finish(path_, fresh_);
        unwind();
        pop_level();
        adapt();
    }

    // One dive, depth first. When its backtracks are used up, its unexplored nodes become open
    // nodes.
    void dive(bool ok, const Open &node) {
        std::int64_t left = limit_;
        for (;;) {
            if (ok && over()) {
                leave(node);
                fresh_.push_back({path_.size(), std::max(c0(), node.bound), false, {}});
                return;
            }
            if (frontier_.wanted() > 0)
                give(node);
            if (ok) {
                const int x = choose_variable();
                if (x >= 0) {
                    ok = descend(choose_branch(x));
                    continue;
                }
                found();
            }
            ++control_.backtracks;
            if (log != nullptr)
                log->op(Op::CLOSE);
            if (levels_.size() == given_)
                return;
            const Level level = levels_.back();
            if (--left < 0 || control_.backtracks >= control_.max_backtracks || over())
                return leave(node);
            levels_.pop_back();
            pop_level();
            path_.resize(level.path);
            path_.push_back(level.right);
            ++visited_;
            follow_cut();
            cut_changed();
            ok = branch(level.right, true);
        }
    }

    // Applies a decision and propagates. Returns false on a conflict.
    bool branch(const Decision &d, bool right) {
        const Cost before = c0();
        const bool ok = apply(d) && propagate();
        rises_.note(d.x, right, std::max<Cost>(0, (ok ? c0() : cut) - before));
        return ok;
    }

    bool descend(const Decision &d) {
        ++control_.nodes;
        ++visited_;
        levels_.push_back({d.negated(), c0(), path_.size()});
        path_.push_back(d);
        if (log != nullptr)
            log->note(Op::BRANCH, {d.x, static_cast<int>(d.kind), d.a});
        push_level();
        return branch(d, false);
    }

    // Ends the dive: lists the other side of each decision, from the first to the last, to be
    // opened. A node that a limit stopped comes after them. The log numbers open nodes in this
    // order.
    void leave(const Open &node) {
        if (log != nullptr)
            log->op(Op::LEAVE);
        for (std::size_t k = given_; k < levels_.size(); ++k)
            fresh_.push_back(right_of(levels_[k], node));
    }
    Fresh right_of(const Level &level, const Open &node) const {
        return {level.path, std::max(level.bound, node.bound), true, level.right};
    }
    // Opens the first right branch of the dive, which is its largest one, for an idle worker.
    void give(const Open &node) {
        if (levels_.size() < given_ + 2)
            return; // the last one is explored next: another worker would only replay it
        fresh_.push_back(right_of(levels_[given_], node));
        frontier_.open(path_, fresh_);
        fresh_.clear();
        ++given_;
    }
    void unwind() {
        for (; !levels_.empty(); levels_.pop_back())
            pop_level();
        given_ = 0;
    }

    // Doubles the length of dives while replayed nodes are more than a tenth of all nodes, and
    // halves it below a twentieth.
    void adapt() {
        if (frontier_.bytes() > control_.max_open_bytes)
            limit_ = INT64_MAX;
        else if (replayed_ * 10 > visited_ && limit_ <= longest)
            limit_ *= 2;
        else if (replayed_ * 20 < visited_ && limit_ >= 2)
            limit_ /= 2;
    }

    void found() {
        if (c0() >= cut || !frontier_.offer(solution(), c0()))
            return;
        frontier_.follow(known_);
        follow_cut();
    }

    // Propagates both branches of each variable that has not been branched on yet, from the largest
    // degree on, to learn by how much they raise the bound; nothing else of the node changes.
    void probe() {
        const auto spent = [&] { return control_.total + control_.work; };
        const auto left = [&] { return probed_ < probing_allowed + spent() / probing_part; };
        if (!left())
            return;
        order_.clear();
        for (const int x : rises_.unknown())
            if (state(x) == FREE)
                order_.push_back(x);
        // a heap: mostly, few of many variables are taken
        const auto later = [&](int x, int y) {
            return degree(x) < degree(y) || (degree(x) == degree(y) && x > y);
        };
        auto heap = std::exchange(order_, {});
        std::make_heap(heap.begin(), heap.end(), later);
        TreeLog *const kept = std::exchange(log, nullptr); // a proof needs no probes
        for (; !heap.empty() && left() && !control_.stopped; heap.pop_back()) {
            std::pop_heap(heap.begin(), heap.end(), later);
            const int x = heap.back();
            const auto before = spent();
            const Decision d = choose_branch(x);
            for (const bool right : {false, true}) {
                push_level();
                branch(right ? d.negated() : d, right);
                pop_level();
            }
            probed_ += spent() - before;
        }
        log = kept;
    }

    // The variable whose branches are expected to raise the bound most; -1 if none is free.
    int choose_variable() {
        probe();
        int chosen = -1;
        double most = 0;
        const auto free = [&](int x) { return state(x) == FREE; };
        rises_.each_expected(free, [&](int x, double rise) {
            if (rise < most)
                return;
            if (chosen < 0 || rise > most || dom(x) < dom(chosen)) {
                chosen = x;
                most = rise;
            }
        });
        return chosen;
    }

    // Halves large domains in the order of the labels. The half with the best label comes first.
    Decision choose_branch(int x) {
        const int a = choose_value(x);
        if (dom(x) <= split_above)
            return {x, a, Kind::EQUAL};
        order_.assign(labels(x), labels(x) + dom(x));
        std::sort(order_.begin(), order_.end());
        const int middle = order_[(order_.size() - 1) / 2];
        return {x, middle, a <= middle ? Kind::AT_MOST : Kind::ABOVE};
    }

    int choose_value(int x) {
        const auto &best = known_.labels;
        if (!best.empty() && has(x, best[x]) && unary(x, best[x]) == 0)
            return best[x];
        if (has(x, favourite[x]) && unary(x, favourite[x]) == 0)
            return favourite[x];
        int a = only(x);
        for (int k = 0; k < dom(x); ++k)
            if (unary(x, labels(x)[k]) < unary(x, a))
                a = labels(x)[k];
        return a;
    }
};

} // namespace softmap::exact
