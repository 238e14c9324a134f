// Elimination of variables by dynamic programming.
#include "presolve.hpp"

#include <set>

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

// The tables that contain v, as functions of (scope of the result, v), with their strides. Small
// tables are summed.
struct Bucket {
    std::vector<int> scope; // scope of the result
    std::vector<int> sizes;
    struct Part {
        const Cost *table;
        std::vector<std::int64_t> stride; // strides along the axes of the result
        std::int64_t own;                 // stride along v
    };
    std::vector<Part> parts;
};

Bucket open_bucket(Work &w, int v, const std::vector<int> &factors) {
    Bucket b;
    neighbours(w, v, b.scope);
    for (int u : b.scope)
        b.sizes.push_back(w.d(u));
    b.parts.push_back({w.unary[v].data(), std::vector<std::int64_t>(b.scope.size(), 0), 1});
    for (int f : factors) {
        const auto &scope = w.factors[f]->scope;
        Bucket::Part part{w.factors[f]->table.data(), std::vector<std::int64_t>(b.scope.size(), 0),
                          0};
        std::int64_t stride = 1;
        for (int k = static_cast<int>(scope.size()) - 1; k >= 0; --k) {
            if (scope[k] == v)
                part.own = stride;
            else
                part.stride[std::lower_bound(b.scope.begin(), b.scope.end(), scope[k]) -
                            b.scope.begin()] = stride;
            stride *= w.d(scope[k]);
        }
        b.parts.push_back(std::move(part));
    }
    return b;
}

// Offsets of one table for all states of the trailing axes, from axis `first` on.
std::vector<std::int32_t> block_offsets(const Bucket &b, const Bucket::Part &part,
                                        std::size_t first, std::int64_t size) {
    std::vector<std::int32_t> out(size);
    std::vector<int> at(b.scope.size(), 0);
    std::int64_t offset = 0;
    for (auto &o : out) {
        o = static_cast<std::int32_t>(offset);
        for (std::size_t k = b.scope.size(); k-- > first;) {
            offset += part.stride[k];
            if (++at[k] < b.sizes[k])
                break;
            offset -= part.stride[k] * at[k];
            at[k] = 0;
        }
    }
    return out;
}

// best[r] = min over the labels of v, which[r] = the minimising label, for every state r of the
// result. Returns false if time ran out.
bool minimise(const Bucket &b, int labels, std::vector<Cost> &best,
              std::vector<std::uint32_t> &which, Control &control) {
    std::size_t first = b.scope.size();
    std::int64_t block = 1, total = 1;
    while (first > 0 && block * b.sizes[first - 1] <= 2048)
        block *= b.sizes[--first];
    for (int s : b.sizes)
        total *= s;
    best.resize(total);
    which.resize(total);
    std::vector<std::vector<std::int32_t>> inner;
    for (const auto &part : b.parts)
        inner.push_back(block_offsets(b, part, first, block));
    std::vector<std::int64_t> at(b.parts.size(), 0);
    std::vector<int> state(b.scope.size(), 0);
    std::vector<Cost> acc(block);
    for (std::int64_t done = 0; done < total; done += block) {
        Cost *out = best.data() + done;
        std::uint32_t *arg = which.data() + done;
        for (int a = 0; a < labels; ++a) {
            std::fill(acc.begin(), acc.end(), 0);
            for (std::size_t p = 0; p < b.parts.size(); ++p) {
                const Cost *t = b.parts[p].table + at[p] + a * b.parts[p].own;
                const std::int32_t *offset = inner[p].data();
                for (std::int64_t r = 0; r < block; ++r)
                    acc[r] = std::min(acc[r] + t[offset[r]], INF);
            }
            for (std::int64_t r = 0; r < block; ++r)
                if (a == 0 || acc[r] < out[r]) {
                    out[r] = acc[r] >= HALF ? INF : acc[r];
                    arg[r] = static_cast<std::uint32_t>(a);
                }
        }
        for (std::size_t k = first; k-- > 0;) {
            const bool wrap = ++state[k] == b.sizes[k];
            for (std::size_t p = 0; p < b.parts.size(); ++p)
                at[p] += b.parts[p].stride[k] * (wrap ? 1 - b.sizes[k] : 1);
            if (!wrap)
                break;
            state[k] = 0;
        }
        if (control.spend(block * labels * static_cast<int>(b.parts.size())))
            return false;
    }
    return true;
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
    const auto bucket = open_bucket(w, v, factors);
    Factor result;
    Elimination record;
    if (!minimise(bucket, w.d(v), result.table, record.choice, control))
        return false;
    for (auto &c : record.choice)
        c = static_cast<std::uint32_t>(w.label[v][c]);
    if (w.log != nullptr)
        w.log->note(Op::ELIMINATE, {v});
    record.variable = v;
    record.neighbours = result.scope = bucket.scope;
    for (int u : bucket.scope) {
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
