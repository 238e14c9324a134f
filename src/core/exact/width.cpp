// Greedy orders of variable elimination, and trees of clusters.
#include "cluster_tree.hpp"

#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

namespace softmap::exact {

namespace {

// Which variables are neighbours, as a matrix of bits if that is small.
class Links {
  public:
    explicit Links(const Graph &g)
        : g_(g), words_(g.n() <= 4096 ? (g.n() + 63) / 64 : 0), mark_(words_ == 0 ? g.n() : 0, 0) {
        bits_.assign(static_cast<std::size_t>(g.n()) * words_, 0);
        for (int a = 0; a < g.n() && words_ > 0; ++a)
            for (const int b : g.near[a])
                set(a, b);
    }
    void set(int a, int b) {
        if (words_ > 0)
            bits_[static_cast<std::size_t>(a) * words_ + b / 64] |= std::uint64_t{1} << (b % 64);
    }
    // Forgets the links of a variable that is removed.
    void clear(int v, const std::vector<int> &near) {
        for (const int u : near)
            if (words_ > 0)
                bits_[static_cast<std::size_t>(u) * words_ + v / 64] &=
                    ~(std::uint64_t{1} << (v % 64));
    }
    // Whether `common` takes fewer steps than a look at each pair of this many neighbours.
    bool short_rows(std::size_t neighbours) const { return words_ > 0 && 2 * words_ < neighbours; }
    // Number of common neighbours; there must be a matrix.
    int common(int a, int b) const {
        int count = 0;
        for (std::size_t k = 0; k < words_; ++k)
            count += std::popcount(bits_[static_cast<std::size_t>(a) * words_ + k] &
                                   bits_[static_cast<std::size_t>(b) * words_ + k]);
        return count;
    }
    bool matrix() const { return words_ > 0; }
    // Number of pairs of the variables listed that are not neighbours, without a matrix. Counting
    // ends with the first variable that brings it to `enough`.
    double missing_pairs(const std::vector<int> &list, int enough) {
        for (const int v : list)
            mark_[v] = 1;
        std::int64_t missing = 0;
        for (std::size_t j = 0; j < list.size() && missing < enough; ++j) {
            int before = 0; // neighbours among the variables listed before; no branch on the data
            for (const int u : g_.near[list[j]])
                before += mark_[u] & static_cast<int>(u < list[j]);
            missing += static_cast<std::int64_t>(j) - before;
        }
        for (const int v : list)
            mark_[v] = 0;
        return static_cast<double>(missing);
    }
    bool operator()(int a, int b) const {
        if (words_ > 0)
            return bits_[static_cast<std::size_t>(a) * words_ + b / 64] >> (b % 64) & 1;
        return std::binary_search(g_.near[a].begin(), g_.near[a].end(), b);
    }

  private:
    const Graph &g_;
    std::size_t words_;
    std::vector<std::uint64_t> bits_;
    std::vector<char> mark_; // scratch
};

// Pairs of neighbours of v that are not neighbours of each other (FILL), or the sum of the products
// of their bits (WEIGHTED). Counting pair by pair ends at 2000 pairs.
double fill_in(const Graph &g, Links &linked, int v, Rule rule, double &steps) {
    constexpr int enough = 2000;
    double missing = 0;
    int pairs = 0;
    const auto &near = g.near[v];
    steps += static_cast<double>(near.size() * near.size());
    if (rule == Rule::FILL && linked.short_rows(near.size())) {
        for (const int u : near)
            missing += static_cast<double>(near.size()) - 1 - linked.common(u, v);
        return missing / 2;
    }
    if (rule == Rule::FILL && !linked.matrix())
        return linked.missing_pairs(near, enough);
    for (std::size_t j = 0; j < near.size() && pairs < enough; ++j)
        for (std::size_t k = 0; k < j; ++k)
            if (!linked(near[j], near[k])) {
                missing += rule == Rule::FILL ? 1.0 : g.bits[near[j]] * g.bits[near[k]];
                ++pairs;
            }
    return missing;
}

// Adds the common neighbours of a and b: their fill-in changes with the pair (a, b). Long lists are
// skipped; scores may be outdated, but the order remains an order.
void add_common(const Graph &g, int a, int b, std::vector<int> &out) {
    const auto &x = g.near[a], &y = g.near[b];
    if (x.size() < 256 && y.size() < 256)
        std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(out));
}

// Variables by their scores; the lowest is taken first. A score that was replaced stays in the heap
// until it comes up, or until such entries are most of the heap.
class Scores {
  public:
    explicit Scores(int n) : of_(n, taken) {}
    void set(int v, double score) {
        if (of_[v] == score)
            return;
        of_[v] = score;
        if (heap_.size() > 8 * of_.size()) {
            std::erase_if(heap_, [&](const Entry &entry) { return !valid(entry); });
            std::make_heap(heap_.begin(), heap_.end(), std::greater<>{});
        }
        heap_.emplace_back(score, v);
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
    }
    // Returns -1 if there are no more.
    int take() {
        while (!heap_.empty()) {
            std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
            const Entry entry = heap_.back();
            heap_.pop_back();
            if (valid(entry)) {
                of_[entry.second] = taken;
                return entry.second;
            }
        }
        return -1;
    }

  private:
    using Entry = std::pair<double, int>;
    static constexpr double taken = -1.0; // scores are not negative
    bool valid(const Entry &entry) const { return of_[entry.second] == entry.first; }
    std::vector<double> of_;
    std::vector<Entry> heap_;
};

// A number in [0, 1) that depends on the seed and the variable only; 0 for seed 0.
double noise(unsigned seed, int v) {
    std::uint64_t h = (seed * 0x9E3779B97F4A7C15ULL) ^ (static_cast<std::uint64_t>(v) << 17);
    h = (h ^ (h >> 31)) * 0xBF58476D1CE4E5B9ULL;
    return seed == 0 ? 0.0 : static_cast<double>((h ^ (h >> 29)) >> 11) * 0x1p-53;
}

// A lower bound on log2 of the largest table of every elimination order, by contraction degeneracy:
// some variable is eliminated before all its neighbours, so the smallest table of a variable and
// its neighbours is such a bound; and a graph whose edges are contracted needs no larger tables, if
// a contracted variable has the smaller label count of the two. Stops once it exceeds `enough`.
double largest_table(Graph g, double enough, Control &control) {
    const auto size = [&](int v) {
        double sum = g.bits[v];
        for (const int u : g.near[v])
            sum += g.bits[u];
        return sum;
    };
    Scores scores(g.n());
    for (int v = 0; v < g.n(); ++v)
        scores.set(v, size(v));
    double bound = 0;
    for (int v = scores.take(); v >= 0 && bound <= enough && !control.stopped; v = scores.take()) {
        bound = std::max(bound, size(v));
        control.pass(16 + 4 * static_cast<std::int64_t>(g.near[v].size()));
        const auto near = g.near[v];
        g.remove(v);
        if (near.empty())
            continue;
        const int u = *std::min_element(near.begin(), near.end(), [&](int a, int b) {
            return g.near[a].size() < g.near[b].size();
        });
        for (const int x : near)
            g.join(u, x);
        g.bits[u] = std::min(g.bits[u], g.bits[v]);
        for (const int x : near)
            scores.set(x, size(x));
        for (const int x : g.near[u])
            scores.set(x, size(x));
    }
    return bound;
}

} // namespace

Graph graph_of(std::span<const std::int64_t> num_labels, std::span<const std::int64_t> start,
               std::span<const std::int64_t> scope) {
    Graph g;
    g.near.resize(num_labels.size());
    for (const auto labels : num_labels)
        g.bits.push_back(std::log2(static_cast<double>(labels)));
    for (std::size_t f = 0; f + 1 < start.size(); ++f)
        for (auto k = start[f]; k < start[f + 1]; ++k)
            for (auto j = start[f]; j < k; ++j)
                g.join(static_cast<int>(scope[j]), static_cast<int>(scope[k]));
    return g;
}

EliminationOrder greedy_order(Graph g, Rule rule, unsigned seed, double most, Control &control) {
    EliminationOrder out;
    const auto size = [&](int v) {
        double sum = g.bits[v];
        for (const int u : g.near[v])
            sum += g.bits[u];
        out.steps += static_cast<double>(g.near[v].size());
        return sum;
    };
    double counted = 0; // steps that `control` knows of
    const auto late = [&] {
        const auto steps = static_cast<std::int64_t>(out.steps - std::exchange(counted, out.steps));
        return control.pass(steps);
    };
    Links linked(g);
    const auto score = [&](int v) {
        const double table = size(v), tie = 1e-3 * noise(seed, v);
        if (rule == Rule::SIZE)
            return table + tie;
        return fill_in(g, linked, v, rule, out.steps) + 1e-3 * table + tie;
    };
    Scores scores(g.n());
    for (int v = 0; v < g.n(); ++v) {
        scores.set(v, score(v));
        if (late())
            return out;
    }
    std::vector<int> changed;
    for (int v = scores.take(); v >= 0; v = scores.take()) {
        const double bits = std::min(size(v), 1000.0);
        out.entries += std::exp2(bits);
        out.stored += std::exp2(bits - g.bits[v]);
        if (out.entries > most || late())
            return out;
        out.order.push_back(v);
        const auto near = g.near[v];
        changed = near;
        g.remove(v);
        linked.clear(v, near);
        for (std::size_t j = 0; j < near.size(); ++j)
            for (std::size_t k = 0; k < j; ++k)
                if (g.join(near[j], near[k])) {
                    linked.set(near[j], near[k]);
                    linked.set(near[k], near[j]);
                    if (rule != Rule::SIZE)
                        add_common(g, near[j], near[k], changed);
                }
        std::sort(changed.begin(), changed.end());
        changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
        for (const int u : changed)
            scores.set(u, score(u));
    }
    out.finite = true;
    return out;
}

double live_entries(Graph g, const std::vector<int> &order) {
    std::vector<std::vector<int>> waiting(g.n()); // results that depend on a variable
    std::vector<double> size(g.n(), 0.0);
    double live = 0, most = 0;
    for (const int v : order) {
        const auto near = g.near[v];
        double bits = 0;
        for (const int u : near)
            bits += g.bits[u];
        size[v] = std::exp2(std::min(bits, 1000.0));
        most = std::max(most, live += size[v]);
        if (near.empty())
            live -= size[v];
        for (const int from : waiting[v])
            live -= std::exchange(size[from], 0.0);
        g.remove(v);
        for (std::size_t j = 0; j < near.size(); ++j) {
            waiting[near[j]].push_back(v);
            for (std::size_t k = 0; k < j; ++k)
                g.join(near[j], near[k]);
        }
    }
    return most;
}

EliminationOrder best_order(const Graph &g, double most, Control &control,
                            const OrderEffort &effort) {
    EliminationOrder best;
    const double bits = std::log2(most) + 1e-9; // log2 is rounded
    if (largest_table(g, bits, control) > bits ||
        !greedy_order(g, Rule::SIZE, 0, effort.hopeless * most, control).finite)
        return best;
    double steps = 0;
    // with equal numbers of labels, WEIGHTED is the same rule as FILL
    const bool alike = std::equal(g.bits.begin() + (g.n() > 0), g.bits.end(), g.bits.begin());
    const int rules = alike ? 2 : 3;
    for (int k = 0; k < effort.tries; ++k) {
        constexpr Rule every[] = {Rule::FILL, Rule::SIZE, Rule::WEIGHTED};
        const double limit = best.finite ? best.entries : most;
        if (k > 0 && (steps > effort.share * limit || (k >= rules && !best.finite)))
            break;
        auto next =
            greedy_order(g, every[k % rules], static_cast<unsigned>(k / rules), limit, control);
        steps += next.steps + 20.0 * g.n(); // copies of the graph
        if (next.finite && (!best.finite || next.entries < best.entries))
            best = std::move(next);
    }
    return best;
}

ClusterTree cluster_tree(const Graph &g, std::span<const int> order) {
    const auto n = std::size_t(g.n());
    ClusterTree out{{}, {}, std::vector<int>(n)};
    std::vector<int> rank(n), own;
    for (std::size_t k = 0; k < n; ++k)
        rank[order[k]] = int(k);
    std::vector<std::vector<int>> waiting(n); // clusters by the first rank that they have left
    for (std::size_t k = 0; k < n; ++k) {
        const auto left = [&](int v) { return rank[v] > int(k); };
        const auto before = [&](int u, int v) { return rank[u] < rank[v]; };
        own.clear();
        const auto add = [&](const std::vector<int> &variables) {
            std::copy_if(variables.begin(), variables.end(), std::back_inserter(own), left);
        };
        add(g.near[order[k]]);
        for (const int c : waiting[k])
            add(out.members[c]);
        std::sort(own.begin(), own.end(), before);
        own.erase(std::unique(own.begin(), own.end()), own.end());
        const auto all = [&](int c) { // whether cluster c has all of `own`
            const auto &other = out.members[c];
            return std::size_t(std::count_if(other.begin(), other.end(), left)) == own.size();
        };
        const auto same = std::find_if(waiting[k].begin(), waiting[k].end(), all);
        const int cluster = same != waiting[k].end() ? *same : int(out.members.size());
        if (!own.empty())
            waiting[rank[own.front()]].push_back(cluster);
        if (same == waiting[k].end()) {
            own.push_back(order[k]);
            out.members.push_back(own);
            out.near.emplace_back();
        }
        out.home[order[k]] = cluster;
        for (const int c : waiting[k])
            if (c != cluster) {
                out.near[c].push_back(cluster);
                out.near[cluster].push_back(c);
            }
    }
    return out;
}

} // namespace softmap::exact
