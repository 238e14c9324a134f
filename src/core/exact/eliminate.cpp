// Elimination of variables by dynamic programming.
#include "presolve.hpp"

#include <set>

#include "buckets.hpp"

namespace softmap::exact {

void neighbours(Work &w, int v, std::vector<int> &out) {
    out.clear();
    for (int f : w.alive_factors(v))
        for (int u : w.factors[f]->scope)
            if (u != v)
                out.push_back(u);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
}

namespace {

// The sum of all costs of v and its factors, over the labels of v and those of its neighbours.
detail::Frame<Cost> sum_around(const Work &w, int v, const std::vector<int> &factors,
                               const std::vector<int> &near) {
    std::vector<int> sizes;
    for (int u : near)
        sizes.push_back(w.d(u));
    const std::vector<std::int64_t> none(near.size(), 0);
    std::vector<detail::Operand<Cost>> operands{{w.unary[v].data(), 1, none}};
    for (int f : factors) {
        const auto &scope = w.factors[f]->scope;
        detail::Operand<Cost> operand{w.factors[f]->table.data(), 0, none};
        std::int64_t stride = 1;
        for (std::size_t k = scope.size(); k-- > 0; stride *= w.d(scope[k])) {
            const auto axis = std::lower_bound(near.begin(), near.end(), scope[k]) - near.begin();
            (scope[k] == v ? operand.own : operand.stride[axis]) = stride;
        }
        operands.push_back(std::move(operand));
    }
    return {std::move(sizes), w.d(v), std::move(operands)};
}

// best[r] = min over the labels of the eliminated variable, which[r] = the first label of that
// cost, for every state r of its neighbours.
void minimise(const detail::Frame<Cost> &frame, std::vector<Cost> &best,
              std::vector<std::uint32_t> &which) {
    best.resize(frame.total());
    which.assign(frame.total(), 0);
    const auto labels = static_cast<std::uint32_t>(frame.labels());
    frame.run(0, frame.blocks(), [&](const Cost *rows, std::int64_t first) {
        for (std::int64_t r = 0; r < frame.block(); ++r)
            best[first + r] = clamped(rows[r]);
        for (std::uint32_t a = 1; a < labels; ++a)
            for (std::int64_t r = 0; r < frame.block(); ++r)
                if (const Cost cost = clamped(rows[a * frame.block() + r]);
                    cost < best[first + r]) {
                    best[first + r] = cost;
                    which[first + r] = a;
                }
    });
}

} // namespace

// Eliminates a variable of one label: each of its factors loses an axis, so that no table grows.
void condition(Work &w, int v) {
    const auto factors = w.alive_factors(v);
    if (w.log != nullptr)
        w.log->note(Op::ELIMINATE, {v});
    w.eliminated.push_back({v, {}, {}, {static_cast<std::uint32_t>(w.label[v][0])}});
    w.add_result({{}, w.unary[v]});
    for (int f : factors) {
        Factor rest = *w.factors[f];
        w.drop_factor(f);
        std::erase(rest.scope, v);
        w.add_result(std::move(rest));
    }
    w.gone[v] = 1;
    w.incident[v].clear();
}

// Eliminates v: the minimum over its labels becomes a factor of its neighbours. Returns false if
// time ran out.
bool eliminate(Work &w, int v, Control &control) {
    if (w.d(v) == 1) {
        condition(w, v);
        return true;
    }
    const auto factors = w.alive_factors(v);
    Factor result;
    EliminatedVariable record;
    neighbours(w, v, result.scope);
    const auto frame = sum_around(w, v, factors, result.scope);
    const auto tables = static_cast<std::int64_t>(factors.size()) + 1;
    if (control.spend(frame.total() * frame.labels() * tables))
        return false;
    minimise(frame, result.table, record.choice);
    for (auto &c : record.choice)
        c = static_cast<std::uint32_t>(w.label[v][c]);
    if (w.log != nullptr)
        w.log->note(Op::ELIMINATE, {v});
    record.variable = v;
    record.neighbours = result.scope;
    for (int u : result.scope) {
        std::vector<int> index(*std::max_element(w.label[u].begin(), w.label[u].end()) + 1, -1);
        for (int a = 0; a < w.d(u); ++a)
            index[w.label[u][a]] = a;
        record.index.push_back(std::move(index));
    }
    w.eliminated.push_back(std::move(record));
    for (int f : factors)
        w.drop_factor(f);
    w.gone[v] = 1;
    w.incident[v].clear();
    w.add_result(std::move(result));
    return true;
}

// Labels the eliminated variables, in reverse order of elimination.
void undo_eliminations(const Work &w, std::vector<std::int64_t> &labels) {
    for (std::size_t k = w.eliminated.size(); k-- > 0;) {
        const auto &r = w.eliminated[k];
        std::int64_t at = 0;
        for (std::size_t j = 0; j < r.neighbours.size(); ++j) {
            std::int64_t size = 0;
            for (int i : r.index[j])
                size += i >= 0;
            at = at * size + r.index[j][labels[r.neighbours[j]]];
        }
        labels[r.variable] = r.choice[at];
    }
}

// Eliminates variables of one label, variables of degree 0 or 1, and variables whose result has at
// most `cap` entries over at most `arity` variables.
void eliminate_small(Work &w, Control &control, std::size_t arity, std::int64_t cap) {
    std::set<std::pair<int, int>> queue; // (degree, variable): those that can be eliminated
    std::vector<int> degree(w.n(), 0), others, near;
    std::vector<char> small(w.n(), 0);
    // Whether v can be eliminated; sets its degree, and nothing of other variables.
    const auto fits = [&](int v, std::vector<int> &next) {
        neighbours(w, v, next);
        degree[v] = w.d(v) == 1 ? 0 : static_cast<int>(next.size());
        std::int64_t size = 1;
        for (int u : next)
            size = std::min<std::int64_t>(size * w.d(u), INF / 128);
        const bool ok = next.size() <= 1 || (next.size() <= arity && size <= cap);
        return w.d(v) == 1 || (ok && size * w.d(v) <= 64 * cap);
    };
    split(w.threads, w.n(), [&](Index first, Index last) {
        std::vector<int> next;
        for (Index v = first; v < last; ++v)
            small[v] = !w.gone[v] && fits(static_cast<int>(v), next);
    });
    for (int v = 0; v < w.n(); ++v)
        if (small[v])
            queue.insert({degree[v], v});
    while (!queue.empty() && !w.infeasible && !control.stopped) {
        const int v = queue.begin()->second;
        queue.erase(queue.begin());
        neighbours(w, v, others);
        if (!eliminate(w, v, control))
            return;
        for (int u : others) {
            queue.erase({degree[u], u});
            if (fits(u, near))
                queue.insert({degree[u], u});
        }
    }
}

} // namespace softmap::exact
