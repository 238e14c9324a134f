// Sums of exp(value) over all labellings by variable elimination: log Z and marginals.
//
// Tables hold logarithms. The way up eliminates the variables; the way down turns the message of
// each bucket into the message from its parent, and computes the marginals of all tables.
#pragma once

#include "buckets.hpp"

namespace softmap::exact {

namespace detail {

// out[projection of state] += p[state] for all states of some axes. `stride` are the strides of
// `out`; 0: the axis is summed.
inline void add_projection(const double *p, const std::vector<int> &sizes,
                           const std::vector<std::int64_t> &stride, double *out) {
    std::size_t k = sizes.size();
    std::int64_t run = 1, total = 1;
    for (const int s : sizes)
        total *= s;
    const bool constant = k > 0 && stride[k - 1] == 0;
    while (k > 0 && stride[k - 1] == (constant ? 0 : run))
        run *= sizes[--k];
    Odometer to({sizes.data(), k}, {stride.data(), k});
    for (const double *end = p + total; p != end; p += run, to.step()) {
        if (constant) {
            double sum = 0.0;
            for (std::int64_t r = 0; r < run; ++r)
                sum += p[r];
            out[to.at] += sum;
        } else {
            for (std::int64_t r = 0; r < run; ++r)
                out[to.at + r] += p[r];
        }
    }
}

} // namespace detail

class LogBuckets : public Buckets<double> {
  public:
    using Buckets::Buckets;
    double log_sum = 0.0; // after the way up: log Z
    double error = 0.0;   // bound on the rounding error of log Z
    bool keep = true;     // whether tables are kept for the way down

    // Eliminates variables until `control` stops it, but at least one if tables are kept. Returns
    // whether all are eliminated.
    bool go_up(int threads, Control &control) {
        Control unlimited;
        for (sent_.resize(labels.size()); next_ < n();) {
            if (!eliminate(next_, threads, keep ? unlimited : control))
                break;
            if (!keep)
                tables[next_].clear();
            ++next_;
            if (control.check_now())
                break;
        }
        return next_ == n();
    }

    // Computes the marginals of the tables of variables, as `go_up` in the opposite order. The
    // entries of the tables become marginals, those of messages the messages from the parents.
    bool go_down(int threads, Control &control) {
        while (next_ > 0) {
            take_marginals(--next_, threads);
            if (control.check_now())
                break;
        }
        return next_ == 0;
    }

    bool is_message(int v, std::size_t table) const { return own_[v] <= table; }
    // To be called when all tables are added.
    void begin() {
        for (const auto &list : tables)
            own_.push_back(list.size());
    }

  private:
    struct Sent {
        int to = -1; // variable of the parent bucket; -1 for a root
        std::size_t table = 0;
        double taken = 0.0; // what was moved from the message to log Z; all of it for a root
    };
    int next_ = 0;
    std::vector<Sent> sent_;
    std::vector<std::size_t> own_; // number of tables of each bucket that are no messages

    // m[r] = log of the sum over a of exp(rows[a, r]), as the largest entry plus a logarithm.
    static void add_up(double *rows, int count, std::int64_t block, double *out) {
        for (std::int64_t r = 0; r < block; ++r) {
            double top = rows[r], sum = 0.0;
            for (int a = 1; a < count; ++a)
                top = std::max(top, rows[a * block + r]);
            for (int a = 0; a < count; ++a) {
                const double below = rows[a * block + r] - top;
                if (below > -745.0) // false for -inf, and for the NaN of -inf - -inf
                    sum += below == 0.0 ? 1.0 : std::exp(below);
            }
            out[r] = top == -INFINITY ? top : top + std::log(sum);
        }
    }

    // The rounding error of the sums in the bucket of v. Errors of the tables themselves enter a
    // logarithm of a sum of exponentials at most once, so that the errors of all buckets add up.
    double rounding(int v) const {
        constexpr double eps = std::numeric_limits<double>::epsilon();
        double size = 0.0;
        for (const auto &table : tables[v]) {
            double most = 0.0;
            for (std::int64_t k = 0; k < table.size; ++k)
                if (const double x = std::abs(table.values[k]); x > most && x < INFINITY)
                    most = x;
            size += most;
        }
        const auto terms = static_cast<double>(tables[v].size());
        return eps * ((terms + 6.0) * (size + 1.0) + 8.0 * labels[v] + std::abs(log_sum));
    }

    bool eliminate(int v, int threads, Control &control) {
        const auto bucket = open_bucket<double>(v, tables[v], labels);
        const auto loop = frame(bucket, v);
        Table<double> result = make_table<double>(bucket.scope, labels);
        double *out = result.values.get();
        if (!detail::in_steps(loop, threads, control, [&](std::int64_t begin, std::int64_t end) {
                loop.run(begin, end, [&](double *rows, std::int64_t first) {
                    add_up(rows, loop.labels(), loop.block(), out + first);
                });
            }))
            return false;
        error += rounding(v);
        if (bucket.scope.empty()) {
            log_sum += sent_[v].taken = *out;
            return true;
        }
        // a constant moved to log Z keeps the entries small, and with them their rounding errors
        double top = *std::max_element(out, out + result.size);
        if (top == -INFINITY) {
            top = 0.0; // every labelling is forbidden
        } else {
            log_sum += top;
            for (std::int64_t k = 0; k < result.size; ++k)
                out[k] -= top;
        }
        const int to = bucket.scope[0];
        sent_[v] = {to, tables[to].size(), top};
        tables[to].push_back(std::move(result));
        return true;
    }

    // p[a, r] = probability of label a of v with state r of the bucket's scope. The message from
    // the parent is normalised, so that the sum of all p is 1.
    std::vector<double> joint(const Bucket<double> &bucket, int v, int threads) const {
        auto all = bucket;
        const double taken = -sent_[v].taken;
        const std::vector<std::int64_t> none(bucket.scope.size(), 0);
        all.operands.push_back({&taken, 0, none});
        if (sent_[v].to >= 0) {
            detail::Operand<double> down{tables[sent_[v].to][sent_[v].table].values.get(), 0, none};
            std::int64_t stride = 1;
            for (std::size_t k = bucket.scope.size(); k-- > 0; stride *= labels[bucket.scope[k]])
                down.stride[k] = labels[bucket.scope[k]] > 1 ? stride : 0;
            all.operands.push_back(std::move(down));
        }
        const auto loop = frame(all, v);
        std::vector<double> p(static_cast<std::size_t>(loop.total() * labels[v]));
        Control unlimited;
        detail::in_steps(loop, threads, unlimited, [&](std::int64_t begin, std::int64_t end) {
            loop.run(begin, end, [&](const double *rows, std::int64_t first) {
                for (int a = 0; a < labels[v]; ++a)
                    for (std::int64_t r = 0; r < loop.block(); ++r)
                        p[a * loop.total() + first + r] = std::exp(rows[a * loop.block() + r]);
            });
        });
        return p;
    }

    void take_marginals(int v, int threads) {
        const auto bucket = open_bucket<double>(v, tables[v], labels);
        const auto p = joint(bucket, v, threads);
        std::vector<int> sizes{labels[v]};
        for (const int u : bucket.scope)
            sizes.push_back(labels[u]);
        // The sums over the first half of the axes, and over the second half: most tables depend on
        // one half only, and are summed from these.
        const auto half = sizes.size() - sizes.size() / 2;
        std::vector<double> early, late;
        split_sums(p, sizes, half, early, late);
        for (std::size_t t = 0; t < tables[v].size(); ++t) {
            auto &table = tables[v][t];
            auto stride = bucket.operands[t].stride;
            stride.insert(stride.begin(), labels[v] > 1 ? bucket.operands[t].own : 0);
            std::vector<double> q(static_cast<std::size_t>(table.size), 0.0);
            project(p, early, late, half, sizes, stride, q.data());
            const bool message = is_message(v, t);
            for (std::int64_t k = 0; k < table.size; ++k)
                if (!message)
                    table.values[k] = q[k];
                else if (q[k] > 0.0 && table.values[k] != -INFINITY)
                    table.values[k] = std::log(q[k]) - table.values[k];
                else // states without probability: no message of theirs matters
                    table.values[k] = -INFINITY;
        }
    }

    // early[x] = sum of p over the axes from `half` on; late[a, y] = sum over the axes 1..half-1.
    static void split_sums(const std::vector<double> &p, const std::vector<int> &sizes,
                           std::size_t half, std::vector<double> &early,
                           std::vector<double> &late) {
        std::vector<std::int64_t> first(sizes.size(), 0), second(sizes.size(), 0);
        std::int64_t step = 1;
        for (std::size_t k = half; k-- > 0; step *= sizes[k])
            first[k] = sizes[k] > 1 ? step : 0;
        early.assign(static_cast<std::size_t>(step), 0.0);
        step = 1;
        for (std::size_t k = sizes.size(); k-- > half; step *= sizes[k])
            second[k] = sizes[k] > 1 ? step : 0;
        second[0] = step;
        late.assign(static_cast<std::size_t>(step * sizes[0]), 0.0);
        detail::add_projection(p.data(), sizes, first, early.data());
        detail::add_projection(p.data(), sizes, second, late.data());
    }
    static void project(const std::vector<double> &p, const std::vector<double> &early,
                        const std::vector<double> &late, std::size_t half,
                        const std::vector<int> &sizes, const std::vector<std::int64_t> &stride,
                        double *out) {
        const auto used = [](std::int64_t s) { return s != 0; };
        const auto middle = static_cast<std::ptrdiff_t>(half);
        if (std::none_of(stride.begin() + middle, stride.end(), used))
            detail::add_projection(early.data(), {sizes.begin(), sizes.begin() + middle},
                                   {stride.begin(), stride.begin() + middle}, out);
        else if (std::none_of(stride.begin() + 1, stride.begin() + middle, used)) {
            std::vector<int> kept{sizes[0]};
            std::vector<std::int64_t> steps{stride[0]};
            kept.insert(kept.end(), sizes.begin() + middle, sizes.end());
            steps.insert(steps.end(), stride.begin() + middle, stride.end());
            detail::add_projection(late.data(), kept, steps, out);
        } else
            detail::add_projection(p.data(), sizes, stride, out);
    }
};

} // namespace softmap::exact
