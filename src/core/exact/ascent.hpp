// Dual ascent at the root: sequential reweighted message passing (Kolmogorov 2014), in integers.
// Costs move between factors and their variables; every labelling keeps its cost.
#pragma once

#include "work.hpp"

namespace softmap::exact {

class Ascent {
  public:
    Ascent(Work &w, const std::vector<int> &vars) : w_(w), order_(vars) {
        std::vector<int> rank(w.n(), 0);
        for (std::size_t k = 0; k < vars.size(); ++k)
            rank[vars[k]] = static_cast<int>(k);
        uses_.resize(vars.size());
        for (std::size_t k = 0; k < vars.size(); ++k)
            for (int f : w.alive_factors(vars[k])) {
                const auto &scope = w.factors[f]->scope;
                int low = rank[scope[0]], high = low;
                for (int u : scope) {
                    low = std::min(low, rank[u]);
                    high = std::max(high, rank[u]);
                }
                const int own = static_cast<int>(k);
                const auto position = std::find(scope.begin(), scope.end(), vars[k]);
                uses_[k].push_back(
                    {f, static_cast<int>(position - scope.begin()), own > low, own < high, {}});
                if (w.log != nullptr)
                    uses_[k].back().moved.resize(w.d(vars[k]));
            }
    }

    // One forward and one backward pass. Returns false if a variable has no label left.
    bool sweep(Control &control) {
        for (std::size_t k = 0; k < order_.size() && !control.stopped && !w_.infeasible; ++k)
            visit(k, true, control);
        for (std::size_t k = order_.size(); k-- > 0 && !control.stopped && !w_.infeasible;)
            visit(k, false, control);
        return !w_.infeasible;
    }

    // Makes up to `sweeps` sweeps. Stops after three in a row that raise the bound by at most
    // `tolerance` times its total gain, or once `work` table entries have been read.
    void run(int sweeps, double tolerance, double work, Control &control) {
        const auto last = static_cast<double>(control.total) + work;
        const Wide start = w_.base;
        int flat = 0;
        for (int s = 0; s < sweeps && flat < 3; ++s) {
            const Wide before = w_.base;
            if (!sweep(control) || control.stopped || static_cast<double>(control.total) > last)
                return;
            const auto gain = static_cast<double>(w_.base - before);
            flat = gain <= tolerance * static_cast<double>(w_.base - start) ? flat + 1 : 0;
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
    Work &w_;
    std::vector<int> order_;
    std::vector<std::vector<Use>> uses_;
    std::vector<Cost> message_;

    void visit(std::size_t k, bool forth, Control &control) {
        const int v = order_[k];
        auto &u = w_.unary[v];
        int in = 0, out = 0;
        for (auto &use : uses_[k]) {
            auto &f = *w_.factors[use.factor];
            min_marginal(w_, f, use.position, message_);
            for (std::size_t a = 0; a < u.size(); ++a) {
                u[a] = sum(u[a], message_[a]);
                message_[a] = forbidden(message_[a]) ? 0 : -message_[a];
            }
            for (std::size_t a = 0; a < use.moved.size(); ++a)
                use.moved[a] -= message_[a];
            add_to_table(w_, f, use.position, message_);
            in += use.earlier;
            out += use.later;
            control.spend(2 * static_cast<std::int64_t>(f.table.size()));
        }
        const Cost least = *std::min_element(u.begin(), u.end());
        if (forbidden(least)) {
            w_.infeasible = true;
            return;
        }
        w_.base += least;
        for (auto &c : u)
            c = less(c, least);
        const int share = std::max({in, out, 1});
        message_.resize(u.size());
        for (auto &use : uses_[k]) {
            if (!(forth ? use.later : use.earlier))
                continue;
            for (std::size_t a = 0; a < u.size(); ++a)
                message_[a] = forbidden(u[a]) ? 0 : u[a] / share;
            for (std::size_t a = 0; a < use.moved.size(); ++a)
                use.moved[a] -= message_[a];
            add_to_table(w_, *w_.factors[use.factor], use.position, message_);
            control.spend(static_cast<std::int64_t>(w_.factors[use.factor]->table.size()));
        }
        const int given = forth ? out : in;
        for (auto &c : u)
            if (!forbidden(c))
                c -= given * (c / share);
    }
};

} // namespace softmap::exact
