// Assignment and elimination of variables during search, and factors of three or more variables.
#pragma once

#include "propagate.hpp"

namespace softmap::exact {

// The costs that edges and the variable itself still ask for go to its neighbours and the bound.
inline bool Propagator::assign(int x) {
    if (state(x) != FREE)
        return true;
    const int a = only(x);
    set(1 + n + x, ASSIGNED);
    if (unary(x, a) > 0) {
        set(0, c0() + unary(x, a));
        set(at[x] + a, 0);
        bound_moved_ = true;
        if (c0() >= cut)
            return blame(x);
    }
    for (std::size_t j = 0; j < edges_of[x].size(); ++j) {
        const int id = edges_of[x][j];
        if (!active(edges[id]))
            continue;
        const Side s = side(edges[id], edges[id].y == x);
        deactivate(id);
        elim_.push(s.p);
        for (int k = dom(s.p) - 1; k >= 0; --k) {
            const int p = value[begin[s.p] + k];
            const Cost c = cost(s, p, a);
            if (c == 0)
                continue;
            if (!too_much(s.p, p, c))
                raise(s.p, p, c);
            else if (!remove(s.p, p))
                return blame(x);
        }
        eac_.push(s.p);
    }
    for (int f : naries_of[x]) {
        if (mem[naries[f].free] <= 2)
            continue;
        set(naries[f].free, mem[naries[f].free] - 1);
        nary_.push(f);
        if (mem[naries[f].free] == 2 && !replace_nary(f))
            return false;
    }
    return true;
}

// A table added to the edge between two variables; `table` is indexed by (x, y).
inline bool Propagator::add_binary(int x, int y, std::int64_t table) {
    int id = find_edge(x, y);
    if (id < 0) {
        id = add_edge(x, y, table);
    } else {
        const Edge e = edges[id];
        const auto sum_at = allocate(static_cast<std::int64_t>(size[e.x]) * size[e.y]);
        for (int j = 0; j < dom(e.x); ++j)
            for (int k = 0; k < dom(e.y); ++k) {
                const int a = labels(e.x)[j], b = labels(e.y)[k];
                const auto from = e.x == x ? a * size[y] + b : b * size[y] + a;
                mem[sum_at + a * size[e.y] + b] = sum(mem[table + from], Network::cost(e, a, b));
            }
        set(e.table, sum_at);
        for (int a = 0; a < size[e.x]; ++a)
            set(e.dx + a, 0);
        for (int b = 0; b < size[e.y]; ++b)
            set(e.dy + b, 0);
    }
    const Edge e = edges[id];
    dac_.push(std::max(x, y));
    eac_.push(x);
    eac_.push(y);
    return project(e, true) && project(e, false);
}

// A variable of degree at most two without larger factors is minimised out.
inline bool Propagator::eliminate_variable(int x) {
    if (state(x) != FREE || degree(x) > 2 || nary_degree(x) > 0 || dom(x) < 2)
        return true;
    int found[2] = {-1, -1};
    int count = 0;
    for (int id : edges_of[x])
        if (active(edges[id]))
            found[count++] = id;
    if (count == 2) {
        const int y = other(edges[found[0]], x), z = other(edges[found[1]], x);
        if (static_cast<std::int64_t>(dom(x)) * dom(y) * dom(z) > 200000)
            return true;
    }
    set(1 + n + x, ELIMINATED);
    removed_.resize(eliminated.size());
    eliminated.push_back(x);
    removed_.push_back({x, found[0], found[1]});
    for (int k = 0; k < count; ++k)
        deactivate(found[k]);
    if (count == 0)
        return true;
    const int *v = labels(x);
    const Side s = side(edges[found[0]], edges[found[0]].y == x);
    elim_.push(s.p);
    if (count == 1) {
        for (int k = dom(s.p) - 1; k >= 0; --k) {
            const int p = value[begin[s.p] + k];
            const Cost c = full_cost(s, p, 0);
            if (c == 0)
                continue;
            if (!too_much(s.p, p, c))
                raise(s.p, p, c);
            else if (!remove(s.p, p))
                return blame(x);
        }
        return true;
    }
    const int y = s.p, z = other(edges[found[1]], x);
    elim_.push(z);
    const auto table = allocate(static_cast<std::int64_t>(size[y]) * size[z]);
    const Side sy = side(edges[found[0]], edges[found[0]].y == x);
    const Side sz = side(edges[found[1]], edges[found[1]].y == x);
    for (int j = 0; j < dom(y); ++j)
        for (int k = 0; k < dom(z); ++k) {
            const int b = labels(y)[j], c = labels(z)[k];
            Cost least = INF;
            for (int i = 0; i < dom(x); ++i)
                least = std::min(least, unary(x, v[i]) + cost(sy, b, v[i]) + cost(sz, c, v[i]));
            mem[table + b * size[z] + c] = forbidden(least) ? INF : least;
        }
    control_.spend(dom(x) * dom(y) * dom(z));
    return add_binary(y, z, table);
}

inline std::vector<int> Propagator::solution() {
    std::vector<int> x(n, 0);
    for (int i = 0; i < n; ++i)
        x[i] = only(i);
    for (std::size_t k = eliminated.size(); k-- > 0;) {
        const auto &r = removed_[k];
        Cost least = INF * 2;
        for (int j = 0; j < dom(r.x); ++j) {
            const int a = labels(r.x)[j];
            Cost c = unary(r.x, a);
            for (int id : {r.first, r.second})
                if (id >= 0) {
                    const Edge &e = edges[id];
                    c += e.x == r.x ? Network::cost(e, a, x[e.y]) : Network::cost(e, x[e.x], a);
                }
            if (c < least) {
                least = c;
                x[r.x] = a;
            }
        }
    }
    return x;
}

// Costs of the tuples still possible, in `buffer_`, over the axes of unassigned variables.
inline std::int64_t Propagator::load_tuples(const Nary &c, std::vector<int> &open) {
    open.clear();
    std::int64_t base = c.table, count = 1;
    Cost fixed = 0;
    for (std::size_t k = 0; k < c.scope.size(); ++k) {
        const int x = c.scope[k];
        if (state(x) == ASSIGNED) {
            base += only(x) * c.stride[k];
            fixed += mem[c.delta[k] + only(x)];
        } else {
            open.push_back(static_cast<int>(k));
            count *= dom(x);
        }
    }
    buffer_.resize(count);
    std::vector<int> index(open.size(), 0);
    for (std::int64_t t = 0; t < count; ++t) {
        std::int64_t from = base;
        Cost shift = fixed;
        for (std::size_t j = 0; j < open.size(); ++j) {
            const int k = open[j], a = labels(c.scope[k])[index[j]];
            from += a * c.stride[k];
            shift += mem[c.delta[k] + a];
        }
        buffer_[t] = forbidden(mem[from]) ? INF : mem[from] - shift;
        for (std::size_t j = open.size(); j-- > 0;) {
            if (++index[j] < dom(c.scope[open[j]]))
                break;
            index[j] = 0;
        }
    }
    control_.spend(count * static_cast<std::int64_t>(open.size()));
    return count;
}

// Projects to every unassigned variable, in the order of DAC; with `nary_wants_unary_`, unary costs
// of the later ones are moved into the factor first.
inline bool Propagator::visit_nary(int f) {
    const Nary &c = naries[f];
    const bool with_unary = nary_wants_unary_[f];
    nary_wants_unary_[f] = 0;
    if (mem[c.free] <= 2)
        return true;
    std::vector<int> open;
    const auto count = load_tuples(c, open);
    std::sort(open.begin(), open.end()); // scopes are in increasing order already
    change_.resize(open.size());
    std::vector<int> by_rank(open.size());
    std::iota(by_rank.begin(), by_rank.end(), 0);
    std::sort(by_rank.begin(), by_rank.end(),
              [&](int i, int j) { return c.scope[open[i]] < c.scope[open[j]]; });
    auto axis = [&](std::size_t j, auto &&body) {
        std::int64_t inner = 1;
        for (std::size_t i = j + 1; i < open.size(); ++i)
            inner *= dom(c.scope[open[i]]);
        const int labels_here = dom(c.scope[open[j]]);
        for (std::int64_t o = 0, t = 0; t < count; ++o)
            for (int a = 0; a < labels_here; ++a)
                for (std::int64_t r = 0; r < inner; ++r, ++t)
                    body(a, buffer_[t]);
    };
    for (std::size_t j = 0; j < open.size(); ++j) {
        const int x = c.scope[open[j]];
        change_[j].assign(dom(x), 0);
        if (!with_unary || static_cast<int>(j) == by_rank[0])
            continue;
        bool any = false;
        for (int k = 0; k < dom(x); ++k)
            any |= (change_[j][k] = -unary(x, labels(x)[k])) < 0;
        if (any)
            axis(j, [&](int a, Cost &t) { t -= forbidden(t) ? 0 : change_[j][a]; });
    }
    for (int j : by_rank) {
        std::vector<Cost> least(change_[j].size(), INF);
        axis(j, [&](int a, Cost &t) { least[a] = std::min(least[a], t); });
        bool any = false;
        for (std::size_t a = 0; a < least.size(); ++a) {
            change_[j][a] = sum(change_[j][a], least[a]);
            any |= least[a] > 0;
        }
        if (any)
            axis(j, [&](int a, Cost &t) { t = forbidden(t) ? INF : t - least[a]; });
    }
    return apply_change(c, open);
}

inline bool Propagator::apply_change(const Nary &c, const std::vector<int> &open) {
    for (std::size_t j = 0; j < open.size(); ++j) {
        const int x = c.scope[open[j]];
        for (int k = dom(x) - 1; k >= 0; --k) {
            const int a = labels(x)[k];
            const Cost d = change_[j][k];
            if (forbidden(d)) {
                if (!remove(x, a))
                    return false;
                continue;
            }
            if (d == 0)
                continue;
            set(c.delta[open[j]] + a, mem[c.delta[open[j]] + a] + d);
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

// With two variables left the factor is an edge.
inline bool Propagator::replace_nary(int f) {
    const Nary &c = naries[f];
    std::vector<int> open;
    load_tuples(c, open);
    set(c.free, 0);
    const int x = c.scope[open[0]], y = c.scope[open[1]];
    for (int v : {x, y}) {
        set(1 + 3 * n + v, nary_degree(v) - 1);
        elim_.push(v);
    }
    const auto table = allocate(static_cast<std::int64_t>(size[x]) * size[y]);
    for (int j = 0; j < dom(x); ++j)
        for (int k = 0; k < dom(y); ++k)
            mem[table + labels(x)[j] * size[y] + labels(y)[k]] =
                buffer_[static_cast<std::int64_t>(j) * dom(y) + k];
    return add_binary(x, y, table);
}

} // namespace softmap::exact
