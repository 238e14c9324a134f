// The integer model of the input.
#pragma once

#include "split.hpp"

namespace softmap::exact {

// Integer model of the input; λ, if given, moves integer costs between factors and variables.
inline Work build_work(const Input &in, const Scale &scale, std::size_t split, Log *log) {
    Work w;
    w.log = log;
    std::vector<Cost> moved; // costs moved by λ
    std::vector<char> pairs; // whether each factor is split into pairs
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
    std::int64_t lam_at = 0;
    for (int f = 0; f < in.num_factors(); ++f) {
        Factor factor;
        std::vector<int> sizes;
        std::int64_t lam_size = 0;
        for (auto k = in.scope_start[f]; k < in.scope_start[f + 1]; ++k) {
            factor.scope.push_back(static_cast<int>(in.scope[k]));
            sizes.push_back(static_cast<int>(in.num_labels[in.scope[k]]));
            lam_size += sizes.back();
        }
        const auto size = in.table_size(f);
        factor.table = detail::to_units(in.tables.subspan(at, size), scale, w.base);
        // λ would hide that a factor is a sum over pairs
        pairs.push_back(add_as_pairs(w, sorted_factor(factor.scope, factor.table, sizes), split));
        if (!pairs.back()) {
            if (!in.lam.empty())
                detail::apply_lam(w, in, scale, factor, in.lam.subspan(lam_at, lam_size), moved);
            w.add_factor(sorted_factor(std::move(factor.scope), std::move(factor.table), sizes));
        }
        at += size;
        lam_at += lam_size;
    }
    w.incumbent.assign(in.incumbent.begin(), in.incumbent.end());
    if (log != nullptr) {
        const auto granule = static_cast<std::int64_t>(scale.factor);
        log->op(Op::LOAD);
        log->array({granule, scale.exponent, most_units(scale)});
        log->array(pairs);
        log->array(moved);
    }
    normalise(w);
    return w;
}

} // namespace softmap::exact
