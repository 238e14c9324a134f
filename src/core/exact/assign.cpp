// Assignment and elimination of variables during search.
#include "propagate.hpp"

namespace softmap::exact {

// Assigns the only label left of x: its unary cost is added to the bound, and the costs of its
// edges to the unary costs of its neighbours.
bool Propagator::assign(int x) {
    if (state(x) != FREE)
        return true;
    const int a = only(x);
    set(1 + n + x, ASSIGNED);
    if (unary(x, a) > 0) {
        if (log != nullptr)
            log->lower(x, unary(x, a));
        set(0, c0() + unary(x, a));
        set(at[x] + a, 0);
        bound_moved_ = true;
        if (c0() >= cut)
            return false;
    }
    while (degree(x) > 0) {
        const int id = edges_of[x][degree(x) - 1];
        const Side s = side(edges[id], edges[id].y == x);
        deactivate(id);
        elim_.push(s.p);
        for (int k = dom(s.p) - 1; k >= 0; --k) {
            const int p = value[begin[s.p] + k];
            const Cost c = cost(s, p, a);
            if (c == 0)
                continue;
            if (!too_much(s.p, p, c))
                raise(s.p, p, c, s.p_word + p);
            else if (!prune(s.p, p, s.p_word + p))
                return false;
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

// Adds a table, indexed by (x, y), to the edge between two variables. In the log, it replaces the
// factors `from`, and the unary costs of `out` unless that is -1.
bool Propagator::add_binary(int x, int y, std::int64_t table, int out,
                            std::initializer_list<std::int64_t> from) {
    int id = find_edge(x, y);
    if (log != nullptr)
        log->combine(out, from, id < 0 ? -1 : mem[edges[id].factor], id < 0 ? x : edges[id].x,
                     id < 0 ? y : edges[id].y);
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
    if (log != nullptr)
        log_edge(edges[id]);
    return project_both(edges[id]);
}

// Projects a new edge, or one to which costs were added, to its endpoints.
bool Propagator::project_both(const Edge &e) {
    const Edge edge = e; // `edges` may be reallocated
    dac_.push(std::max(edge.x, edge.y));
    eac_.push(edge.x);
    eac_.push(edge.y);
    return project(edge, true) && project(edge, false);
}

// Minimises over x, whose only active edge was s. In the log, the unary costs of x move into the
// edge, and its smallest costs to s.p.
bool Propagator::eliminate_leaf(int x, const Side &s) {
    gain_.assign(size[s.p], 0);
    for (int k = dom(s.p) - 1; k >= 0; --k) {
        const int p = value[begin[s.p] + k];
        gain_[p] = full_cost(s, p, 0);
        if (gain_[p] > 0 && too_much(s.p, p, gain_[p]) && !prune(s.p, p, s.p_word + p))
            return false;
    }
    for (int k = 0; log != nullptr && k < dom(x); ++k)
        log->move(s.q_word + labels(x)[k], -unary(x, labels(x)[k]));
    for (int k = 0; k < dom(s.p); ++k)
        if (const int p = labels(s.p)[k]; gain_[p] > 0)
            raise(s.p, p, gain_[p], s.p_word + p);
    return true;
}

// Eliminates a variable of degree at most two that has no larger factors.
bool Propagator::eliminate_variable(int x) {
    if (state(x) != FREE || degree(x) > 2 || nary_degree(x) > 0 || dom(x) < 2)
        return true;
    int found[2] = {-1, -1};
    int count = 0;
    while (count < degree(x)) {
        found[count] = edges_of[x][count];
        ++count;
    }
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
    if (count == 1)
        return eliminate_leaf(x, s);
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
    return add_binary(y, z, table, x, {mem[edges[found[0]].factor], mem[edges[found[1]].factor]});
}

std::vector<int> Propagator::solution() {
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

} // namespace softmap::exact
