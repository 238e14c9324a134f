// Dual ascent at the root: sequential reweighted message passing (Kolmogorov 2014), in integers.
// Costs move between factors and their variables; every labelling keeps its cost.
//
// The variables of a level share no factor, and all their neighbours that come earlier are at lower
// levels. Threads visit a level together, so that the result is that of one visit after the other.
#pragma once

#include "base/team.hpp"
#include "work.hpp"

#include <numeric>

namespace softmap::exact {

// Sweeps end after `sweeps` of them, after three in a row that raise the bound by at most
// `tolerance` times its total gain, once `work` table entries have been read, or after `seconds`.
struct AscentLimits {
    int sweeps;
    double tolerance, work, seconds;
};

class Ascent {
  public:
    Ascent(Work &w, const std::vector<int> &vars) : w_(w), order_(vars) {
        std::vector<int> rank(w.n(), 0);
        for (std::size_t k = 0; k < vars.size(); ++k)
            rank[vars[k]] = static_cast<int>(k);
        uses_.resize(vars.size());
        for (std::size_t k = 0; k < vars.size(); ++k) {
            const auto &factors = w.alive_factors(vars[k]);
            uses_[k].reserve(factors.size());
            for (int f : factors) {
                const int own = static_cast<int>(k);
                int low = own, high = own;
                for (int u : w.factors[f]->scope) {
                    low = std::min(low, rank[u]);
                    high = std::max(high, rank[u]);
                }
                const auto position = static_cast<int>(w.factors[f]->axis(vars[k]));
                uses_[k].push_back({f, position, own > low, own < high, {}});
                if (w.log != nullptr)
                    uses_[k].back().moved.resize(w.d(vars[k]));
            }
        }
        find_levels(rank);
    }

    // One forward and one backward pass. Returns false if a variable has no label left.
    bool sweep(Control &control) {
        const auto levels = static_cast<Index>(start_.size()) - 1;
        const int threads = static_cast<Index>(order_.size()) < worthwhile ? 1 : w_.threads;
        std::atomic<bool> stop = control.stopped;
        std::vector<Visitor> visitors(threads);
        together(threads, [&](Member &me) {
            for (Index step = 0; step < 2 * levels; ++step) {
                const bool forth = step < levels;
                const Index level = forth ? step : 2 * levels - 1 - step;
                me.phase([&](Part part) {
                    Visitor &visitor = visitors[part.index];
                    for (Index k = part.first(start_[level], start_[level + 1]);
                         k < part.last(start_[level], start_[level + 1]); ++k)
                        if (stop.load(std::memory_order_relaxed) ||
                            !visit(by_level_[k], forth, visitor))
                            stop = true;
                });
                if (me.thread == 0 && !stop && control.spend(work_[2 * level + forth]))
                    stop = true;
            }
        });
        for (const auto &visitor : visitors) {
            w_.base += visitor.gain;
            w_.infeasible |= visitor.infeasible;
        }
        return !w_.infeasible;
    }

    void run(const AscentLimits &limits, Control &control) {
        const auto last = static_cast<double>(control.total) + limits.work;
        const double until = Deadline::now() + limits.seconds;
        const Wide start = w_.base;
        int flat = 0;
        for (int s = 0; s < limits.sweeps && flat < 3; ++s) {
            const Wide before = w_.base;
            if (!sweep(control) || control.stopped || static_cast<double>(control.total) > last ||
                Deadline::now() >= until)
                return;
            const auto gain = static_cast<double>(w_.base - before);
            flat = gain <= limits.tolerance * static_cast<double>(w_.base - start) ? flat + 1 : 0;
        }
    }

    // Writes the net shift of every factor since construction to the proof log.
    void write(Log &log) const {
        std::vector<std::int64_t> places;
        std::vector<Cost> amounts;
        for (const auto &uses : uses_)
            for (const auto &use : uses) {
                places.insert(places.end(), {use.factor, use.position});
                amounts.insert(amounts.end(), use.moved.begin(), use.moved.end());
            }
        log.op(Op::SHIFT);
        log.array(places);
        log.array(amounts);
    }

  private:
    struct Use {
        int factor, position;
        bool earlier, later;     // whether the factor has variables before and after this one
        std::vector<Cost> moved; // [labels] from the factor to the variable, for the log
    };
    // What one part of the threads' work has found.
    struct Visitor {
        std::vector<Cost> message; // scratch
        Wide gain = 0;             // rise of the bound
        bool infeasible = false;
    };
    Work &w_;
    std::vector<int> order_;
    std::vector<std::vector<Use>> uses_;
    std::vector<int> by_level_;      // places in `order_` level by level
    std::vector<Index> start_;       // of each level in `by_level_`, and the end
    std::vector<std::int64_t> work_; // table entries that a level reads backward and forward, ...

    // A level of a small model, which one thread visits, is one variable.
    void find_levels(const std::vector<int> &rank) {
        const bool small = static_cast<Index>(order_.size()) < worthwhile;
        std::vector<int> level(order_.size(), 0);
        int highest = -1;
        for (std::size_t k = 0; k < order_.size(); ++k) {
            level[k] = small ? static_cast<int>(k) : 0;
            for (const auto &use : uses_[k])
                for (const int u : w_.factors[use.factor]->scope)
                    if (rank[u] < static_cast<int>(k))
                        level[k] = std::max(level[k], level[rank[u]] + 1);
            highest = std::max(highest, level[k]);
        }
        start_.assign(highest + 2, 0);
        work_.assign(2 * (highest + 1), 0);
        for (std::size_t k = 0; k < order_.size(); ++k) {
            ++start_[level[k] + 1];
            for (const auto &use : uses_[k]) {
                const auto size = static_cast<std::int64_t>(w_.factors[use.factor]->table.size());
                work_[2 * level[k]] += (2 + use.earlier) * size;
                work_[2 * level[k] + 1] += (2 + use.later) * size;
            }
        }
        std::partial_sum(start_.begin(), start_.end(), start_.begin());
        by_level_.resize(order_.size());
        auto next = start_;
        for (std::size_t k = 0; k < order_.size(); ++k)
            by_level_[next[level[k]]++] = static_cast<int>(k);
    }

    // Returns false if the variable has no label left.
    bool visit(std::size_t k, bool forth, Visitor &visitor) {
        auto &u = w_.unary[order_[k]];
        auto &message = visitor.message;
        int in = 0, out = 0;
        for (auto &use : uses_[k]) {
            auto &f = *w_.factors[use.factor];
            min_marginal(w_, f, use.position, message);
            for (std::size_t a = 0; a < u.size(); ++a) {
                u[a] = sum(u[a], message[a]);
                message[a] = forbidden(message[a]) ? 0 : -message[a];
            }
            for (std::size_t a = 0; a < use.moved.size(); ++a)
                use.moved[a] -= message[a];
            add_to_table(w_, f, use.position, message);
            in += use.earlier;
            out += use.later;
        }
        const Cost least = *std::min_element(u.begin(), u.end());
        visitor.infeasible = visitor.infeasible || forbidden(least);
        if (visitor.infeasible)
            return false;
        visitor.gain += least;
        for (auto &c : u)
            c = less(c, least);
        const int share = std::max({in, out, 1});
        message.resize(u.size());
        for (auto &use : uses_[k]) {
            if (!(forth ? use.later : use.earlier))
                continue;
            for (std::size_t a = 0; a < u.size(); ++a)
                message[a] = forbidden(u[a]) ? 0 : u[a] / share;
            for (std::size_t a = 0; a < use.moved.size(); ++a)
                use.moved[a] -= message[a];
            add_to_table(w_, *w_.factors[use.factor], use.position, message);
        }
        const int given = forth ? out : in;
        for (auto &c : u)
            if (!forbidden(c))
                c -= given * (c / share);
        return true;
    }
};

} // namespace softmap::exact
