// Replaces factors of three or more variables that are sums of pairwise tables by these tables.
#include "presolve.hpp"

namespace softmap::exact {

namespace {

// Calls body(t, index of the pair of labels on two axes) for every entry t of a table.
template <class Body>
void each_pair(const Work &w, const Factor &f, std::size_t first, std::size_t second, Body &&body) {
    const auto count = static_cast<std::int64_t>(f.table.size());
    std::int64_t right = 1, left = 1; // strides of the two axes
    for (std::size_t k = f.scope.size(); k-- > first + 1;) {
        if (k > second)
            right *= w.d(f.scope[k]);
        left *= w.d(f.scope[k]);
    }
    const int rows = w.d(f.scope[first]), columns = w.d(f.scope[second]);
    for (std::int64_t t = 0; t < count; ++t)
        body(t, (t / left % rows) * columns + t / right % columns);
}

// Returns pair[a, b] = min over entries with labels (a, b) on two axes, and subtracts it from the
// factor.
Factor split_pair(const Work &w, Factor &f, std::size_t first, std::size_t second,
                  std::vector<char> &covered) {
    const int i = f.scope[first], j = f.scope[second];
    Factor pair{{i, j}, std::vector<Cost>(static_cast<std::size_t>(w.d(i)) * w.d(j), INF)};
    each_pair(w, f, first, second, [&](std::int64_t t, std::int64_t p) {
        pair.table[p] = std::min(pair.table[p], f.table[t]);
    });
    each_pair(w, f, first, second, [&](std::int64_t t, std::int64_t p) {
        if (forbidden(pair.table[p]))
            covered[t] = 1;
        else
            f.table[t] = less(f.table[t], pair.table[p]);
    });
    return pair;
}

// Returns the pair tables whose sum is the factor; none if it is no such sum.
std::vector<Factor> pairs_of(const Work &w, Factor f) {
    std::vector<char> covered(f.table.size(), 0); // entries that a pair table forbids
    std::vector<Factor> pairs;
    for (std::size_t second = 1; second < f.scope.size(); ++second)
        for (std::size_t first = 0; first < second; ++first)
            pairs.push_back(split_pair(w, f, first, second, covered));
    for (std::size_t t = 0; t < f.table.size(); ++t)
        if (!covered[t] && f.table[t] != 0)
            return {};
    std::erase_if(pairs, [](const Factor &pair) {
        return std::all_of(pair.table.begin(), pair.table.end(), [](Cost c) { return c == 0; });
    });
    return pairs;
}

} // namespace

// Splits all factors of three or more variables with at most `most` entries that are sums over
// pairs. Other factors stay whole: splitting off pairs would weaken their bounds.
void split_factors(Work &w, std::size_t most) {
    for (std::size_t f = 0, count = w.factors.size(); f < count; ++f) {
        if (w.factors[f] == nullptr || w.factors[f]->scope.size() < 3 ||
            w.factors[f]->table.size() > most)
            continue;
        auto pairs = pairs_of(w, *w.factors[f]);
        if (pairs.empty())
            continue;
        if (w.log != nullptr)
            w.log->note(Op::SPLIT, {static_cast<std::int64_t>(f)});
        w.drop_factor(static_cast<int>(f));
        for (Factor &pair : pairs)
            w.add_factor(std::move(pair));
    }
}

} // namespace softmap::exact
