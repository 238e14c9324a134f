// Factors of three or more variables during search.
#include "propagate.hpp"

#include <numeric>

namespace softmap::exact {

// Computes into `buffer_` the costs of all tuples of labels left, over the axes `open_` of the
// unassigned variables.
std::int64_t Propagator::load_tuples(const Nary &c) {
    open_.clear();
    const Cost *table = table_at(c.table);
    std::int64_t base = 0, count = 1;
    Cost fixed = 0;
    for (std::size_t k = 0; k < c.scope.size(); ++k) {
        const int x = c.scope[k];
        if (state(x) == ASSIGNED) {
            base += only(x) * c.stride[k];
            fixed += mem[c.delta[k] + only(x)];
        } else {
            open_.push_back(static_cast<int>(k));
            count *= dom(x);
        }
    }
    buffer_.resize(count);
    index_.assign(open_.size(), 0);
    for (std::int64_t t = 0; t < count; ++t) {
        std::int64_t from = base;
        Cost shift = fixed;
        for (std::size_t j = 0; j < open_.size(); ++j) {
            const int k = open_[j], a = labels(c.scope[k])[index_[j]];
            from += a * c.stride[k];
            shift += mem[c.delta[k] + a];
        }
        buffer_[t] = forbidden(table[from]) ? INF : table[from] - shift;
        for (std::size_t j = open_.size(); j-- > 0;) {
            if (++index_[j] < dom(c.scope[open_[j]]))
                break;
            index_[j] = 0;
        }
    }
    control_.spend(count * static_cast<std::int64_t>(open_.size()));
    return count;
}

// Calls body(position of the label of axis j in its domain, entry) for every loaded tuple.
template <class Body> void Propagator::along(const Nary &c, std::size_t j, Body &&body) {
    std::int64_t inner = 1;
    for (std::size_t i = j + 1; i < open_.size(); ++i)
        inner *= dom(c.scope[open_[i]]);
    const int here = dom(c.scope[open_[j]]);
    const auto count = static_cast<std::int64_t>(buffer_.size());
    for (std::int64_t t = 0; t < count;)
        for (int a = 0; a < here; ++a)
            for (std::int64_t r = 0; r < inner; ++r, ++t)
                body(a, buffer_[t]);
}

bool Propagator::visit_nary(int f) {
    const bool with_unary = nary_wants_unary_[f];
    nary_wants_unary_[f] = 0;
    return mem[naries[f].free] <= 2 || unchanged(naries[f], with_unary) ||
           shift_nary(f, with_unary);
}

// Whether shifting a factor of three variables with few labels would change nothing, which is what
// most visits find: each label has a tuple that costs no more than the unary costs moved with it.
// Returns false for larger factors.
bool Propagator::unchanged(const Nary &c, bool with_unary) {
    const auto few = [&](int x) { return size[x] <= FEW; };
    if (c.scope.size() != 3 || !std::all_of(c.scope.begin(), c.scope.end(), few))
        return false;
    const int first = *std::min_element(c.scope.begin(), c.scope.end());
    Cost moved[3][FEW], part[3][FEW], low[3][FEW];
    for (int k = 0; k < 3; ++k)
        for (int a = 0; a < size[c.scope[k]]; ++a) {
            const Cost u = unary(c.scope[k], a);
            moved[k][a] = with_unary && c.scope[k] != first ? u : u & INF; // INF: a removed label
            part[k][a] = moved[k][a] - mem[c.delta[k] + a];
            low[k][a] = INF;
        }
    const Cost *table = table_at(c.table);
    for (int a = 0; a < size[c.scope[0]]; ++a)
        for (int b = 0; b < size[c.scope[1]]; ++b) {
            const Cost pair = part[0][a] + part[1][b];
            for (int d = 0; d < size[c.scope[2]]; ++d) {
                const Cost t = *table++ + pair + part[2][d];
                low[0][a] = std::min(low[0][a], t);
                low[1][b] = std::min(low[1][b], t);
                low[2][d] = std::min(low[2][d], t);
            }
        }
    control_.spend(c.stride[0] * size[c.scope[0]]);
    for (int k = 0; k < 3; ++k)
        for (int a = 0; a < size[c.scope[k]]; ++a)
            if (moved[k][a] < INF && low[k][a] != moved[k][a])
                return false;
    return true;
}

// Projects the factor to every unassigned variable, in the DAC order. With `with_unary`, the unary
// costs of all variables but the first are moved into the factor before.
bool Propagator::shift_nary(int f, bool with_unary) {
    const Nary &c = naries[f];
    load_tuples(c);
    change_.resize(std::max(change_.size(), open_.size()));
    rank_.resize(open_.size());
    std::iota(rank_.begin(), rank_.end(), 0);
    std::sort(rank_.begin(), rank_.end(),
              [&](int i, int j) { return c.scope[open_[i]] < c.scope[open_[j]]; });
    for (std::size_t j = 0; j < open_.size(); ++j) {
        const int x = c.scope[open_[j]];
        change_[j].assign(dom(x), 0);
        if (!with_unary || static_cast<int>(j) == rank_[0])
            continue;
        bool any = false;
        for (int k = 0; k < dom(x); ++k)
            any |= (change_[j][k] = -unary(x, labels(x)[k])) < 0;
        if (any)
            along(c, j, [&](int a, Cost &t) { t -= forbidden(t) ? 0 : change_[j][a]; });
    }
    for (int j : rank_) {
        least_.assign(change_[j].size(), INF);
        along(c, j, [&](int a, Cost &t) { least_[a] = std::min(least_[a], t); });
        bool any = false;
        for (std::size_t a = 0; a < least_.size(); ++a) {
            change_[j][a] = sum(change_[j][a], least_[a]);
            any |= least_[a] > 0;
        }
        if (any)
            along(c, j, [&](int a, Cost &t) { t = forbidden(t) ? INF : t - least_[a]; });
    }
    return apply_change(c);
}

bool Propagator::apply_change(const Nary &c) {
    for (std::size_t j = 0; log != nullptr && j < open_.size(); ++j)
        for (int k = 0; k < dom(c.scope[open_[j]]); ++k)
            if (const Cost d = change_[j][k]; d != 0 && !forbidden(d))
                log->move(c.word[open_[j]] + labels(c.scope[open_[j]])[k], d);
    for (std::size_t j = 0; j < open_.size(); ++j) {
        const int x = c.scope[open_[j]];
        for (int k = dom(x) - 1; k >= 0; --k) {
            const int a = labels(x)[k];
            const Cost d = change_[j][k];
            if (forbidden(d)) {
                if (!prune(x, a, log != nullptr ? c.word[open_[j]] + a : -1))
                    return false;
                continue;
            }
            if (d == 0)
                continue;
            set(c.delta[open_[j]] + a, mem[c.delta[open_[j]] + a] + d);
            if (d > 0)
                raise(x, a, d);
            else
                set(at[x] + a, unary(x, a) + d);
            if (d > 0 && too_much(x, a, 0))
                nc_.push(x);
        }
    }
    return true;
}

// Replaces a factor with two unassigned variables by an edge.
bool Propagator::replace_nary(int f) {
    const Nary &c = naries[f];
    load_tuples(c);
    set(c.free, 0);
    const int x = c.scope[open_[0]], y = c.scope[open_[1]];
    for (int v : {x, y}) {
        set(1 + 3 * n + v, nary_degree(v) - 1);
        elim_.push(v);
    }
    const auto table = allocate(static_cast<std::int64_t>(size[x]) * size[y]);
    for (int j = 0; j < dom(x); ++j)
        for (int k = 0; k < dom(y); ++k)
            mem[table + labels(x)[j] * size[y] + labels(y)[k]] =
                buffer_[static_cast<std::int64_t>(j) * dom(y) + k];
    if (find_edge(x, y) >= 0)
        return add_binary(x, y, table, -1, {c.factor});
    const Edge e = edges[add_edge(x, y, table)];
    if (log !=
        nullptr) // the log goes on with the larger factor, whose other variables are assigned
        log_edge(e, c.factor, c.word[open_[0]], c.word[open_[1]]);
    return project_both(e);
}

} // namespace softmap::exact
