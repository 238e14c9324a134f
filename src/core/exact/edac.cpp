// Costs moved between edges, their endpoints and the bound: the steps of EDAC.
#include "propagate.hpp"

namespace softmap::exact {

// Returns the smallest edge cost for label p. All labels of small domains are read: that takes less
// time than a branch that is mispredicted.
Cost Propagator::edge_cost(const Side &s, int p) {
    const Cost *row = s.table + p * s.p_stride, *dq = mem.data() + s.dq;
    const int all = size[s.q];
    Cost least = INF * 2;
    if (all <= FEW) {
        const Cost *uq = mem.data() + at[s.q];
        for (int q = 0; q < all; ++q) // INF is one bit, which costs of labels left do not have
            least = std::min(least, row[q * s.q_stride] - dq[q] + (uq[q] & INF));
        control_.spend(all);
        return least - mem[s.dp + p];
    }
    int &known = support[s.support + p];
    if (has(s.q, known) && cost(s, p, known) == 0)
        return 0;
    const int count = dom(s.q);
    const int *v = labels(s.q);
    const Cost lowest = mem[s.dp + p]; // costs of edges are not negative
    control_.spend(count);
    for (int j = 0; j < count; ++j)
        if (const Cost c = row[v[j] * s.q_stride] - dq[v[j]]; c < least) {
            least = c;
            known = v[j];
            if (least <= lowest)
                break;
        }
    return least - lowest;
}

// Moves the smallest cost of each label over the edge from the edge to one endpoint.
bool Propagator::project(const Edge &e, bool to_x) {
    const Side s = side(e, to_x);
    control_.spend(dom(s.p));
    for (int k = dom(s.p) - 1; k >= 0; --k) {
        const int p = value[begin[s.p] + k];
        const Cost least = edge_cost(s, p);
        if (least == 0)
            continue;
        if (too_much(s.p, p, least)) {
            if (!prune(s.p, p, s.p_word + p))
                return false;
            continue;
        }
        set(s.dp + p, mem[s.dp + p] + least);
        raise(s.p, p, least, s.p_word + p);
    }
    return true;
}

// Returns the smallest sum of the edge cost and the other endpoint's unary cost, for label p.
Cost Propagator::full_cost(const Side &s, int p, Cost enough) {
    const Cost *row = s.table + p * s.p_stride, *dq = mem.data() + s.dq;
    const Cost *uq = mem.data() + at[s.q];
    const int all = size[s.q];
    Cost least = INF * 2;
    if (all <= FEW) {
        for (int q = 0; q < all; ++q)
            least = std::min(least, row[q * s.q_stride] - dq[q] + uq[q]);
        control_.spend(all);
        return least - mem[s.dp + p];
    }
    int &known = support[s.support + p];
    if (has(s.q, known) && cost(s, p, known) + unary(s.q, known) == 0)
        return 0;
    const int count = dom(s.q);
    const int *v = labels(s.q);
    enough += mem[s.dp + p];
    control_.spend(count);
    for (int j = 0; j < count; ++j)
        if (const Cost c = row[v[j] * s.q_stride] - dq[v[j]] + uq[v[j]]; c < least) {
            least = c;
            known = v[j];
            if (least <= enough)
                break;
        }
    return least - mem[s.dp + p];
}

// As `project`, after moving the unary costs of the other endpoint into the edge as far as the
// projection needs them.
bool Propagator::full_support(const Edge &e, bool to_x) {
    const Side s = side(e, to_x);
    gain_.assign(size[s.p], 0);
    bool any = false;
    for (int k = dom(s.p) - 1; k >= 0; --k) {
        const int p = value[begin[s.p] + k];
        const Cost g = full_cost(s, p, 0);
        if (g == 0)
            continue;
        if (too_much(s.p, p, g)) {
            if (!prune(s.p, p, s.p_word + p))
                return false;
            continue;
        }
        gain_[p] = g;
        any = true;
    }
    if (!any)
        return true;
    const int *v = labels(s.p);
    const int count = dom(s.p);
    for (int j = 0; j < dom(s.q); ++j) {
        const int q = labels(s.q)[j];
        if (unary(s.q, q) == 0)
            continue;
        Cost need = 0;
        for (int k = 0; k < count; ++k)
            if (gain_[v[k]] > 0)
                need = std::max(need, gain_[v[k]] - cost(s, v[k], q));
        if (need == 0)
            continue;
        if (mem[s.dq + q] < -SHIFT_LIMIT / 2)
            return true; // the shift would overflow; nothing has been projected yet
        set(s.dq + q, mem[s.dq + q] - need);
        set(at[s.q] + q, unary(s.q, q) - need);
        if (log != nullptr)
            log->move(s.q_word + q, -need);
    }
    control_.spend(count * dom(s.q));
    for (int k = 0; k < count; ++k)
        if (const Cost g = gain_[v[k]]; g > 0) {
            set(s.dp + v[k], mem[s.dp + v[k]] + g);
            raise(s.p, v[k], g, s.p_word + v[k]);
        }
    return true;
}

bool Propagator::visit_ac(int x) {
    if (state(x) != FREE)
        return true;
    for (int k = 0; k < degree(x); ++k) {
        const Edge &e = edges[edges_of[x][k]];
        if (!project(e, e.y == x))
            return false;
        recheck(e, e.y == x);
    }
    for (int f : naries_of[x])
        if (mem[naries[f].free] > 2)
            nary_.push(f);
    return true;
}

bool Propagator::visit_dac(int x) {
    if (state(x) != FREE)
        return true;
    for (int k = 0; k < degree(x); ++k) {
        const Edge &e = edges[edges_of[x][k]];
        if (other(e, x) < x && !full_support(e, e.y == x))
            return false;
        recheck(e, e.y == x);
    }
    for (int f : naries_of[x])
        if (mem[naries[f].free] > 2) {
            nary_wants_unary_[f] = 1;
            nary_.push(f);
        }
    return true;
}

// Queues an endpoint for EAC unless its favourite label still costs nothing over this edge. With
// many labels, that check would be made twice.
void Propagator::recheck(const Edge &e, bool to_x) {
    const int p = to_x ? e.x : e.y, q = to_x ? e.y : e.x, a = favourite[p];
    if (size[q] > FEW || unary(p, a) != 0 || full_cost(side(e, to_x), a, 0) != 0)
        eac_.push(p);
}

bool Propagator::has_existential_support(int x, int a) {
    if (!has(x, a))
        return false;
    Cost total = unary(x, a);
    for (int k = 0; k < degree(x) && total < epsilon; ++k) {
        const Edge &e = edges[edges_of[x][k]];
        total += full_cost(side(e, e.x == x), a, 0);
    }
    return total < epsilon;
}

// Raises the bound if every label of x has a positive cost together with its neighbours. Larger
// factors are not considered: on eight models that were solved, they changed the number of nodes by
// -12 to +4 % and made each node slower.
bool Propagator::visit_eac(int x) {
    if (state(x) != FREE || has_existential_support(x, favourite[x]))
        return true;
    for (int k = 0; k < dom(x); ++k)
        if (const int a = labels(x)[k]; has_existential_support(x, a)) {
            favourite[x] = a;
            return true;
        }
    for (int k = 0; k < degree(x); ++k) {
        const Edge &e = edges[edges_of[x][k]];
        if (!full_support(e, e.x == x))
            return false;
    }
    nc_.push(x);
    return true;
}

} // namespace softmap::exact
