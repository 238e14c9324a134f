// Hybrid best-first search: depth-first dives of limited length from the open node of lowest bound.
#pragma once

#include <queue>

#include "nary.hpp"

namespace softmap::exact {

enum class Kind : int { EQUAL, DIFFERENT, AT_MOST, ABOVE };

struct Decision {
    int x, a;
    Kind kind;
    Decision negated() const {
        constexpr Kind other[] = {Kind::DIFFERENT, Kind::EQUAL, Kind::ABOVE, Kind::AT_MOST};
        return {x, a, other[static_cast<int>(kind)]};
    }
};

class Search : public Propagator {
  public:
    using Propagator::Propagator;
    Cost best = HALF; // cost of the best labelling found
    // Labellings are searched for only if they improve `best` by more than the larger of
    // `tolerance` and `relative` times the absolute value of the best energy, which is best +
    // offset in units.
    Cost tolerance = 0;
    double relative = 0.0, offset = 0.0;
    std::vector<int> incumbent; // labels of the best labelling; empty if there is none
    Cost lower = 0;             // lower bound, valid at any time
    bool complete = false;
    int split_above = 10;
    std::int64_t backtrack_budget = INT64_MAX, work_budget = INT64_MAX; // per call of run

    void start_from(std::vector<int> labels, Cost c) {
        incumbent = std::move(labels);
        set_best(c);
    }

    // Searches only for labellings that cost less than c, if no labelling is known.
    void start_below(Cost c) {
        cut = c;
        if (log != nullptr)
            log->note(Op::CUT, {cut});
    }

    // Continues the search of the last call.
    void run() {
        const auto sum_of = [](std::int64_t a, std::int64_t b) {
            return a > INT64_MAX - b ? INT64_MAX : a + b;
        };
        last_backtrack_ = sum_of(backtrack_budget, control_.backtracks);
        last_work_ = sum_of(work_budget, control_.total);
        complete = explore();
        lower = complete ? cut : std::min(lower, cut);
    }

  private:
    struct Open {
        Cost bound;
        int depth, chain, number; // `number` is that in the log
        bool operator<(const Open &o) const {
            return bound != o.bound ? bound > o.bound : depth < o.depth;
        }
    };
    struct Link {
        int parent;
        Decision decision;
    };
    struct Level {
        Decision right;
        Cost bound;
        std::size_t path;
    };
    std::priority_queue<Open> open_;
    std::vector<Link> links_; // decisions of open nodes, as trees towards the root
    std::vector<Decision> path_;
    std::vector<Level> levels_;
    std::int64_t limit_ = 1;
    std::int64_t replayed_ = 0, visited_ = 0;
    int last_conflict_ = -1;

    void set_best(Cost c) {
        best = c;
        const double allowed = relative * std::fabs(static_cast<double>(best) + offset);
        cut = best - std::max(tolerance, static_cast<Cost>(std::min(allowed, 0x1p45)));
        if (log != nullptr)
            log->note(Op::CUT, {cut});
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

    bool over() const {
        return control_.stopped || control_.backtracks >= last_backtrack_ ||
               control_.total >= last_work_;
    }
    std::int64_t last_backtrack_ = 0, last_work_ = 0;
    bool begun_ = false;

    bool explore() {
        if (!begun_) {
            if (!propagate())
                return true;
            lower = c0();
            if (control_.stopped)
                return false;
            open_.push({c0(), 0, -1, 0});
            begun_ = true;
        }
        while (!open_.empty()) {
            const Open node = open_.top();
            lower = std::max(lower, node.bound);
            if (node.bound >= cut)
                return true;
            if (control_.check_now() || over())
                return false;
            open_.pop();
            expand(node);
            adapt();
        }
        return true;
    }

    void expand(const Open &node) {
        path_.clear();
        for (int k = node.chain; k >= 0; k = links_[k].parent)
            path_.push_back(links_[k].decision);
        std::reverse(path_.begin(), path_.end());
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
        dive(ok, node);
        pop_level();
    }

    // One dive, depth first. When its backtracks are used up, its unexplored nodes become open
    // nodes.
    void dive(bool ok, const Open &node) {
        std::int64_t left = limit_;
        for (;;) {
            if (ok && over()) {
                const Cost bound = std::max(c0(), node.bound);
                give_up(node);
                open_path(path_.size(), nullptr, bound);
                last_length_ = 0;
                return;
            }
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
            if (levels_.empty())
                return;
            const Level level = levels_.back();
            if (--left < 0 || control_.backtracks >= control_.max_backtracks || over())
                return give_up(node);
            levels_.pop_back();
            pop_level();
            path_.resize(level.path);
            path_.push_back(level.right);
            ++visited_;
            cut_changed();
            ok = apply(level.right) && propagate();
        }
    }

    bool descend(const Decision &d) {
        ++control_.nodes;
        ++visited_;
        levels_.push_back({d.negated(), c0(), path_.size()});
        path_.push_back(d);
        if (log != nullptr)
            log->note(Op::BRANCH, {d.x, static_cast<int>(d.kind), d.a});
        push_level();
        const bool ok = apply(d) && propagate();
        if (!ok)
            last_conflict_ = d.x;
        return ok;
    }

    // Ends the dive: the other side of each decision becomes an open node.
    void give_up(const Open &node) {
        if (log != nullptr)
            log->op(Op::LEAVE);
        for (const auto &level : levels_)
            open_path(level.path, &level.right, std::max(level.bound, node.bound));
        while (!levels_.empty()) {
            levels_.pop_back();
            pop_level();
        }
        last_length_ = 0;
    }

    // Adds an open node: the first `length` decisions of the path, then `last`. Nodes opened by one
    // dive share the links of their common prefix.
    void open_path(std::size_t length, const Decision *last, Cost bound) {
        const int number = ++opened_;
        if (bound >= cut)
            return;
        if (last_length_ == 0 || last_length_ > length)
            chain_ = -1, last_length_ = 0;
        for (; last_length_ < length; ++last_length_) {
            links_.push_back({chain_, path_[last_length_]});
            chain_ = static_cast<int>(links_.size()) - 1;
        }
        int chain = chain_;
        if (last != nullptr) {
            links_.push_back({chain, *last});
            chain = static_cast<int>(links_.size()) - 1;
        }
        open_.push({bound, static_cast<int>(length), chain, number});
    }
    int opened_ = 0; // number of open nodes so far, including those pruned at once
    int chain_ = -1;
    std::size_t last_length_ = 0;

    // Doubles the length of dives while replayed nodes are more than a tenth of all nodes, and
    // halves it below a twentieth.
    void adapt() {
        const auto bytes =
            static_cast<std::int64_t>(links_.size() * sizeof(Link) + open_.size() * sizeof(Open));
        if (bytes > control_.max_open_bytes)
            limit_ = INT64_MAX;
        else if (replayed_ * 10 > visited_ && limit_ <= (1 << 14))
            limit_ *= 2;
        else if (replayed_ * 20 < visited_ && limit_ >= 2)
            limit_ /= 2;
    }

    void found() {
        if (c0() >= cut)
            return;
        incumbent = solution();
        set_best(c0());
        cut_changed();
    }

    int choose_variable() {
        if (last_conflict_ >= 0 && state(last_conflict_) == FREE)
            return last_conflict_;
        int chosen = -1;
        double least = 0;
        for (int x = 0; x < n; ++x) {
            if (state(x) != FREE)
                continue;
            const double score = dom(x) / weight[x];
            if (chosen < 0 || score < least) {
                chosen = x;
                least = score;
            }
        }
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
    std::vector<int> order_;

    int choose_value(int x) {
        if (!incumbent.empty() && has(x, incumbent[x]) && unary(x, incumbent[x]) == 0)
            return incumbent[x];
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
