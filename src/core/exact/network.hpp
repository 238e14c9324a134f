// The state of the search: domains, costs shifted between cost functions, and the trail that
// restores them. Every word that backtracking restores is in one array; the tables of the model are
// in another one, which copies of the state share.
#pragma once

#include <memory>

#include "base/team.hpp"
#include "log.hpp"
#include "work.hpp"

namespace softmap::exact {

// cost(a, b) = table[a * dy + b] - dx[a] - dy[b]; indices are into Network::mem.
struct Edge {
    int x, y;
    std::int64_t table;  // index of the place of the table (which changes when costs are added)
    std::int64_t factor; // index of three numbers of the log: the factor, its words of x, of y
    std::int64_t dx, dy; // first index of the costs projected to x, to y
    int support_x, support_y;
    int spot_x, spot_y; // places in the lists of x and y
};

// cost(t) = table[t] - sum of delta[k][t_k]
struct Nary {
    std::vector<int> scope;
    std::vector<std::int64_t> stride;
    std::vector<std::int64_t> delta;
    std::vector<std::int64_t> word; // for each axis, the number of its first word in the log
    std::int64_t table;             // place of the table
    std::int64_t free; // index of the number of unassigned variables; 0 once replaced by an edge
    int factor = 0;    // the factor's number in the log
};

enum VariableState : Cost { FREE = 0, ASSIGNED = 1, ELIMINATED = 2 };

class Network {
  public:
    std::vector<Cost> mem;
    std::shared_ptr<const Cost[]> tables; // tables of the model, never changed
    int n = 0;
    std::vector<int> size;           // labels of each variable
    std::vector<std::int64_t> at;    // index of the first unary cost of each variable
    std::vector<int> value, place;   // domains as sparse sets: value[k], place[label]
    std::vector<std::int64_t> begin; // index of the first label of each variable in value, place
    std::vector<Edge> edges;
    std::vector<Nary> naries;
    std::vector<std::vector<int>> edges_of; // edges of each variable, the active ones first
    std::vector<std::vector<int>> naries_of;
    std::vector<int> support; // supports found last: a hint, which may be stale
    Cost cut = HALF;          // nodes whose bound reaches this are pruned
    Cost highest = INF;       // no unary cost of a label left of a free variable exceeds this
    TreeLog *log = nullptr;

    Cost c0() const { return mem[0]; }
    Cost &unary(int x, int a) { return mem[at[x] + a]; }
    int dom(int x) const { return static_cast<int>(mem[1 + x]); }
    Cost state(int x) const { return mem[1 + n + x]; }
    // Number of active edges.
    int degree(int x) const { return static_cast<int>(mem[1 + 2 * n + x]); }
    int nary_degree(int x) const { return static_cast<int>(mem[1 + 3 * n + x]); }
    const int *labels(int x) const { return value.data() + begin[x]; }
    bool has(int x, int a) const { return place[begin[x] + a] < dom(x); }
    int only(int x) const { return value[begin[x]]; }
    // First entry of a table. A place >= 0 is an index into `mem`; place ~k is index k of `tables`.
    const Cost *table_at(std::int64_t place) const {
        return place >= 0 ? mem.data() + place : tables.get() + ~place;
    }
    Cost cost(const Edge &e, int a, int b) const {
        return table_at(mem[e.table])[static_cast<std::int64_t>(a) * size[e.y] + b] -
               mem[e.dx + a] - mem[e.dy + b];
    }

    void set(std::int64_t word, Cost v) {
        if (depth_ > 0)
            trail_.push_back({word, mem[word]});
        mem[word] = v;
    }
    void push_level() {
        marks_.push_back({trail_.size(), mem.size(), edges.size(), support.size(),
                          eliminated.size(), log != nullptr ? log->factors() : 0, highest});
        ++depth_;
    }
    void pop_level() {
        const auto m = marks_.back();
        marks_.pop_back();
        --depth_;
        while (trail_.size() > m.trail) {
            mem[trail_.back().word] = trail_.back().old;
            trail_.pop_back();
        }
        for (; edges.size() > m.edges; edges.pop_back())
            for (const int v : {edges.back().y, edges.back().x}) {
                unlist(static_cast<int>(edges.size()) - 1, v, links_.back());
                links_.pop_back();
            }
        mem.resize(m.mem);
        support.resize(m.support);
        eliminated.resize(m.eliminated);
        highest = m.highest;
        if (log != nullptr)
            log->forget_factors(m.factors);
    }
    int depth() const { return depth_; }

    std::vector<int> eliminated; // variables eliminated on this branch, in order

    std::int64_t allocate(std::int64_t words) {
        const auto first = static_cast<std::int64_t>(mem.size());
        mem.resize(mem.size() + words, 0);
        return first;
    }

    // Adds an edge with zero deltas; `table` is the place of its costs.
    int add_edge(int x, int y, std::int64_t table) {
        Edge e{x, y, allocate(4 + size[x] + size[y]), 0, 0, 0, 0, 0, 0, 0};
        e.factor = e.table + 1;
        e.dx = e.table + 4;
        e.dy = e.dx + size[x];
        mem[e.table] = table;
        e.support_x = static_cast<int>(support.size());
        e.support_y = e.support_x + size[x];
        support.resize(support.size() + size[x] + size[y], 0);
        const int id = static_cast<int>(edges.size());
        edges.push_back(e);
        list(id, x);
        list(id, y);
        return id;
    }
    // Numbers the edge as a new factor of the log.
    void log_edge(const Edge &e) {
        const int number = log->factor(size[e.x] + size[e.y]);
        log_edge(e, number, log->first_word(number), log->first_word(number) + size[e.x]);
    }
    // The edge is a factor of the log; its labels of x and of y begin at the words given.
    void log_edge(const Edge &e, int number, std::int64_t x_word, std::int64_t y_word) {
        set(e.factor, number);
        set(e.factor + 1, x_word);
        set(e.factor + 2, y_word);
    }
    // Takes an active edge out of the active ones of both endpoints. Backtracking restores their
    // numbers only: the active edges are the same then, in another order.
    void deactivate(int id) {
        for (const int v : {edges[id].x, edges[id].y}) {
            const int last = degree(v) - 1;
            exchange(v, spot(id, v), last);
            set(1 + 2 * n + v, last);
        }
    }
    // Returns the active edge between two variables, or -1.
    int find_edge(int x, int y) const {
        const int from = degree(x) < degree(y) ? x : y;
        for (int k = 0; k < degree(from); ++k)
            if (const Edge &e = edges[edges_of[from][k]];
                e.x + e.y == x + y && (e.x == x || e.y == x))
                return edges_of[from][k];
        return -1;
    }

    // Loads the variables of one component of the reduced model. Their order is the DAC order.
    void load(Work &w, const std::vector<int> &vars);

  private:
    struct Entry {
        std::int64_t word;
        Cost old;
    };
    struct Mark {
        std::size_t trail, mem, edges, support, eliminated, factors;
        Cost highest;
    };
    std::vector<Entry> trail_;
    std::vector<Mark> marks_;
    std::vector<int> links_; // of the edges added below the root: their first places in both lists
    int depth_ = 0;

    int &spot(int id, int v) { return edges[id].x == v ? edges[id].spot_x : edges[id].spot_y; }
    void exchange(int v, int j, int k) {
        auto &list = edges_of[v];
        std::swap(list[j], list[k]);
        spot(list[j], v) = j;
        spot(list[k], v) = k;
    }
    // Adds an edge to the active ones of v.
    void list(int id, int v) {
        const int place = degree(v), end = static_cast<int>(edges_of[v].size());
        edges_of[v].push_back(id);
        spot(id, v) = end;
        exchange(v, place, end);
        if (depth_ > 0)
            links_.push_back(place);
        set(1 + 2 * n + v, place + 1);
    }
    // Removes the edge listed last, which was put to `place`; what was there before moves back.
    void unlist(int id, int v, int place) {
        exchange(v, spot(id, v), place);
        exchange(v, place, static_cast<int>(edges_of[v].size()) - 1);
        edges_of[v].pop_back();
    }

    void load_nary(const Factor &f, const std::vector<int> &number, std::int64_t table);
};

inline void Network::load(Work &w, const std::vector<int> &vars) {
    n = static_cast<int>(vars.size());
    mem.assign(1 + 4 * n, 0);
    std::vector<int> number(w.n(), -1);
    edges_of.resize(n);
    naries_of.resize(n);
    for (int x = 0; x < n; ++x) {
        const auto &u = w.unary[vars[x]];
        number[vars[x]] = x;
        size.push_back(static_cast<int>(u.size()));
        mem[1 + x] = size[x];
        at.push_back(static_cast<std::int64_t>(mem.size()));
        mem.insert(mem.end(), u.begin(), u.end());
        begin.push_back(static_cast<std::int64_t>(value.size()));
        for (int a = 0; a < size[x]; ++a) {
            value.push_back(a);
            place.push_back(a);
        }
    }
    std::vector<int> loaded;
    std::vector<std::int64_t> first{0}; // entry of each table, and the end
    std::int64_t labels = 0;            // of all edges
    for (int x = 0; x < n; ++x) {
        edges_of[x].reserve(w.alive_factors(vars[x]).size());
        for (int f : w.alive_factors(vars[x]))
            if (w.factors[f]->scope[0] == vars[x]) {
                loaded.push_back(f);
                first.push_back(first.back() + static_cast<Index>(w.factors[f]->table.size()));
                labels += w.d(vars[x]) + w.d(w.factors[f]->scope.back());
            }
    }
    const std::shared_ptr<Cost[]> costs(new Cost[first.back()]); // written below, by all threads
    split(w.threads, static_cast<Index>(loaded.size()), [&](Index begin, Index end) {
        for (Index k = begin; k < end; ++k)
            std::copy(w.factors[loaded[k]]->table.begin(), w.factors[loaded[k]]->table.end(),
                      costs.get() + first[k]);
    });
    tables = costs;
    mem.reserve(mem.size() + 4 * loaded.size() + labels);
    support.reserve(labels);
    edges.reserve(loaded.size());
    for (std::size_t k = 0; k < loaded.size(); ++k) {
        const auto &factor = *w.factors[loaded[k]];
        if (factor.scope.size() > 2) {
            load_nary(factor, number, ~first[k]);
            continue;
        }
        const int id = add_edge(number[factor.scope[0]], number[factor.scope[1]], ~first[k]);
        if (log != nullptr)
            log_edge(edges[id]);
    }
    if (w.log != nullptr)
        w.log->array(loaded); // the last array of the record COMPONENT
}

inline void Network::load_nary(const Factor &f, const std::vector<int> &number,
                               std::int64_t table) {
    Nary c;
    const int id = static_cast<int>(naries.size());
    std::int64_t words = 0;
    c.stride.assign(f.scope.size(), 1);
    for (int v : f.scope) {
        const int x = number[v];
        c.scope.push_back(x);
        naries_of[x].push_back(id);
        mem[1 + 3 * n + x] += 1;
        c.delta.push_back(allocate(size[x]));
        words += size[x];
    }
    if (log != nullptr) {
        auto word = log->first_word(c.factor = log->factor(words));
        for (int x : c.scope) {
            c.word.push_back(word);
            word += size[x];
        }
    }
    for (int k = static_cast<int>(f.scope.size()) - 2; k >= 0; --k)
        c.stride[k] = c.stride[k + 1] * size[c.scope[k + 1]];
    c.free = allocate(1);
    mem[c.free] = static_cast<Cost>(f.scope.size());
    c.table = table;
    naries.push_back(std::move(c));
}

} // namespace softmap::exact
