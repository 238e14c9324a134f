// Substitution: a variable that a hard constraint makes a one-to-one function of another variable
// is replaced by that variable.
#include "presolve.hpp"

namespace softmap::exact {

namespace {

// For a pair factor: the only label of the second variable that each label of the first allows, if
// this map is one-to-one; empty otherwise.
std::vector<int> bijection(const Work &w, const Factor &f) {
    const int rows = w.d(f.scope[0]), columns = w.d(f.scope[1]);
    if (rows != columns ||
        std::count_if(f.table.begin(), f.table.begin() + columns, forbidden) != columns - 1)
        return {};
    std::vector<int> image(rows, -1);
    std::vector<char> taken(columns, 0);
    for (int a = 0; a < rows; ++a) {
        for (int b = 0; b < columns; ++b) {
            if (forbidden(f.table[a * columns + b]))
                continue;
            if (image[a] >= 0 || taken[b])
                return {};
            image[a] = b;
            taken[b] = 1;
        }
        if (image[a] < 0)
            return {};
    }
    return image;
}

// Returns the factor with y = image[x] substituted. Its scope may contain x already.
Factor with_x_for_y(const Work &w, const Factor &f, int x, int y, const std::vector<int> &image) {
    Factor out;
    for (int v : f.scope)
        if (v != y)
            out.scope.push_back(v);
    if (std::find(out.scope.begin(), out.scope.end(), x) == out.scope.end())
        out.scope.insert(std::upper_bound(out.scope.begin(), out.scope.end(), x), x);
    std::int64_t total = 1;
    for (int v : out.scope)
        total *= w.d(v);
    out.table.resize(total);
    std::vector<int> label(out.scope.size(), 0);
    const auto x_at = std::find(out.scope.begin(), out.scope.end(), x) - out.scope.begin();
    for (auto &c : out.table) {
        std::int64_t from = 0;
        for (int v : f.scope) {
            const auto k = std::find(out.scope.begin(), out.scope.end(), v) - out.scope.begin();
            from = from * w.d(v) + (v == y ? image[label[x_at]] : label[k]);
        }
        c = f.table[from];
        for (std::size_t k = out.scope.size(); k-- > 0;) {
            if (++label[k] < w.d(out.scope[k]))
                break;
            label[k] = 0;
        }
    }
    return out;
}

} // namespace

// Substitutes y = image(x) in every factor; `tie` is the factor with this constraint.
void substitute(Work &w, int tie, int x, int y, const std::vector<int> &image) {
    if (w.log != nullptr) {
        w.log->note(Op::SUBSTITUTE, {tie, x, y});
        w.log->array(image);
    }
    EliminatedVariable record{y, {x}, {}, {}};
    std::vector<int> index(*std::max_element(w.label[x].begin(), w.label[x].end()) + 1, -1);
    const bool x_first = w.factors[tie]->scope[0] == x;
    for (int a = 0; a < w.d(x); ++a) {
        index[w.label[x][a]] = a;
        record.choice.push_back(static_cast<std::uint32_t>(w.label[y][image[a]]));
        const auto cell = x_first ? a * w.d(y) + image[a] : image[a] * w.d(x) + a;
        w.unary[x][a] = sum(w.unary[x][a], sum(w.unary[y][image[a]], w.factors[tie]->table[cell]));
    }
    record.index.push_back(std::move(index));
    w.eliminated.push_back(std::move(record));
    w.drop_factor(tie);
    const auto factors = w.alive_factors(y); // adding costs may add factors
    for (int f : factors) {
        auto changed = with_x_for_y(w, *w.factors[f], x, y, image);
        w.drop_factor(f);
        w.add_costs(std::move(changed));
    }
    w.gone[y] = 1;
    w.incident[y].clear();
}

bool substitute_all(Work &w) {
    bool any = false;
    for (std::size_t f = 0; f < w.factors.size() && !w.infeasible; ++f) {
        if (w.factors[f] == nullptr || w.factors[f]->scope.size() != 2)
            continue;
        const auto image = bijection(w, *w.factors[f]);
        if (image.empty())
            continue;
        const int x = w.factors[f]->scope[0], y = w.factors[f]->scope[1];
        substitute(w, static_cast<int>(f), x, y, image);
        any = true;
    }
    return any;
}

} // namespace softmap::exact
