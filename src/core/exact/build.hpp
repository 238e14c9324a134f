// Builds the integer model from the input.
#pragma once

#include "split.hpp"

namespace softmap::exact {

namespace detail {

// Moves λ, in units, from variables to their factors; `number` is the number of each input factor
// in `w`. Factors that were split keep their costs.
inline void apply_lam(Work &w, const Input &in, const Scale &scale,
                      const std::vector<int> &number) {
    std::vector<std::int64_t> places; // factor, axis, ...
    std::vector<Cost> amounts, block;
    std::int64_t at = 0;
    for (int f = 0; f < in.num_factors(); ++f) {
        Factor *factor = w.factors[number[f]].get();
        for (auto k = in.scope_start[f]; k < in.scope_start[f + 1]; ++k) {
            const auto v = static_cast<int>(in.scope[k]);
            const auto lam = in.lam.subspan(at, in.num_labels[v]);
            at += in.num_labels[v];
            if (factor == nullptr)
                continue;
            block.clear();
            for (double l : lam) {
                const double u = scale.units(l);
                block.push_back(
                    static_cast<Cost>(std::clamp(std::isnan(u) ? 0.0 : u, -0x1p50, 0x1p50)));
            }
            const auto axis =
                std::find(factor->scope.begin(), factor->scope.end(), v) - factor->scope.begin();
            add_to_table(w, *factor, axis, block);
            places.insert(places.end(), {number[f], axis});
            for (std::size_t a = 0; a < block.size(); ++a) {
                amounts.push_back(-block[a]);
                w.unary[v][a] = less(w.unary[v][a], block[a]);
            }
        }
    }
    if (w.log != nullptr) {
        w.log->op(Op::SHIFT);
        w.log->array(places);
        w.log->array(amounts);
    }
}

} // namespace detail

// The integer model of the input. λ, if given, moves integer costs between factors and variables.
inline Work build_work(const Input &in, const Scale &scale, std::size_t split, Log *log) {
    Work w;
    w.log = log;
    const int n = in.n();
    w.incident.resize(n);
    w.gone.assign(n, 0);
    std::int64_t at = 0;
    for (int v = 0; v < n; ++v) {
        w.unary.push_back(detail::to_units(in.unary.subspan(at, in.num_labels[v]), scale, w.base));
        w.label.emplace_back(in.num_labels[v]);
        std::iota(w.label[v].begin(), w.label[v].end(), 0);
        at += in.num_labels[v];
    }
    at = 0;
    std::vector<int> number;
    for (int f = 0; f < in.num_factors(); ++f) {
        std::vector<int> scope, sizes;
        for (auto k = in.scope_start[f]; k < in.scope_start[f + 1]; ++k) {
            scope.push_back(static_cast<int>(in.scope[k]));
            sizes.push_back(static_cast<int>(in.num_labels[in.scope[k]]));
        }
        auto table = detail::to_units(in.tables.subspan(at, in.table_size(f)), scale, w.base);
        number.push_back(w.add_factor(sorted_factor(std::move(scope), std::move(table), sizes)));
        at += in.table_size(f);
    }
    w.incumbent.assign(in.incumbent.begin(), in.incumbent.end());
    if (log != nullptr)
        log->note(Op::LOAD,
                  {static_cast<std::int64_t>(scale.factor), scale.exponent, most_units(scale)});
    // split before λ is added: afterwards a factor may not be a sum over pairs
    split_factors(w, split);
    if (!in.lam.empty())
        detail::apply_lam(w, in, scale, number);
    normalise(w);
    return w;
}

} // namespace softmap::exact
