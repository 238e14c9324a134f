// Variable elimination over tables: the loop over all states of a bucket, on several threads.
//
// Variables are numbered by their position in the order of elimination. The axes of every table
// are in this order and the table is row-major, so the variable that is eliminated first is the
// first axis, and the states with one label of it are contiguous.
#pragma once

#include <cmath>
#include <numeric>

#include "base/team.hpp"
#include "odometer.hpp"
#include "types.hpp"

namespace softmap::exact {

// A table of costs (int64) or of logarithms (double).
template <class T> struct Table {
    std::vector<int> scope;
    std::int64_t size = 0;
    std::unique_ptr<T[]> values;
};

template <class T> Table<T> make_table(std::vector<int> scope, const std::vector<int> &labels) {
    Table<T> out;
    out.size = 1;
    for (const int v : scope)
        out.size *= labels[v];
    out.scope = std::move(scope);
    out.values = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(out.size));
    return out;
}

// The sum of values; a sum with a forbidden cost is forbidden. Costs are not negative, and a sum of
// up to seven of them does not overflow.
inline Cost clamped(Cost c) { return c >= HALF ? INF : c; }
inline double clamped(double c) { return c; }

namespace detail {

// A table as a function of the label of the eliminated variable and of the axes of a frame.
template <class T> struct Operand {
    const T *values;
    std::int64_t own;                 // stride along the eliminated variable
    std::vector<std::int64_t> stride; // strides along the axes; 0: does not depend on this axis
};

// The loop over all states of some axes, in blocks of the last axes. For each block, rows[a, r] is
// the sum of all operands for label a of the eliminated variable and state r of the block.
template <class T> class Frame {
  public:
    Frame(std::vector<int> sizes, int labels, std::vector<Operand<T>> operands)
        : sizes_(std::move(sizes)), labels_(labels), first_(sizes_.size()) {
        constexpr std::int64_t row_entries = 4096; // entries of all rows of a block: 32 KiB
        while (first_ > 0 && (block_ == 1 || block_ * sizes_[first_ - 1] * labels <= row_entries))
            block_ *= sizes_[--first_];
        for (const int s : sizes_)
            total_ *= s;
        inner_.assign(static_cast<std::size_t>(labels_ * block_), T{0});
        for (auto &operand : operands)
            sort_in(std::move(operand));
    }

    std::int64_t total() const { return total_; }
    std::int64_t block() const { return block_; }
    std::int64_t blocks() const { return total_ / block_; }
    int labels() const { return labels_; }
    std::int64_t work_per_block() const {
        return block_ * labels_ * static_cast<std::int64_t>(2 + mixed_.size());
    }

    // Calls emit(rows, index of the first state) for the blocks begin..end-1.
    template <class Emit> void run(std::int64_t begin, std::int64_t end, Emit &&emit) const {
        std::vector<int> state(first_);
        std::vector<std::int64_t> at(outer_.size() + mixed_.size(), 0);
        std::int64_t rest = begin;
        for (std::size_t k = first_; k-- > 0; rest /= sizes_[k])
            advance(at, k, state[k] = static_cast<int>(rest % sizes_[k]));
        std::vector<T> rows(static_cast<std::size_t>(labels_ * block_));
        for (std::int64_t b = begin; b < end; ++b) {
            fill(rows.data(), at);
            emit(rows.data(), b * block_);
            for (std::size_t k = first_; k-- > 0;) {
                const bool wrap = ++state[k] == sizes_[k];
                advance(at, k, wrap ? 1 - sizes_[k] : 1);
                if (!wrap)
                    break;
                state[k] = 0;
            }
        }
    }

  private:
    // An operand that depends on axes in and before the block. In a block it consists of runs of
    // `run` entries, which are contiguous, or all the same.
    struct Mixed {
        Operand<T> operand;
        std::int64_t run;
        bool constant;
        std::vector<std::int64_t> offset; // of each run
    };
    std::vector<int> sizes_;
    int labels_;
    std::size_t first_; // first axis of a block
    std::int64_t block_ = 1, total_ = 1;
    std::vector<T> inner_;          // sum of the operands that depend on the block only
    std::vector<Operand<T>> outer_; // operands that are constant in a block
    std::vector<Mixed> mixed_;

    void sort_in(Operand<T> operand) {
        const auto split = operand.stride.begin() + static_cast<std::ptrdiff_t>(first_);
        const auto used = [](std::int64_t s) { return s != 0; };
        if (std::none_of(split, operand.stride.end(), used)) {
            outer_.push_back(std::move(operand));
            return;
        }
        const bool before = std::any_of(operand.stride.begin(), split, used);
        Mixed m{std::move(operand), 1, false, {}};
        set_runs(m);
        if (before)
            mixed_.push_back(std::move(m));
        else
            for (int a = 0; a < labels_; ++a) {
                add(m, m.operand.values + a * m.operand.own, inner_.data() + a * block_);
                for (std::int64_t r = 0; r < block_; ++r)
                    inner_[a * block_ + r] = clamped(inner_[a * block_ + r]);
            }
    }
    void set_runs(Mixed &m) const {
        const auto &stride = m.operand.stride;
        std::size_t k = sizes_.size();
        m.constant = stride[k - 1] == 0;
        while (k > first_ && stride[k - 1] == (m.constant ? 0 : m.run))
            m.run *= sizes_[--k];
        m.offset.assign(static_cast<std::size_t>(block_ / m.run), 0);
        Odometer runs({sizes_.data() + first_, k - first_}, {stride.data() + first_, k - first_});
        for (auto &o : m.offset) {
            o = runs.at;
            runs.step();
        }
    }
    void advance(std::vector<std::int64_t> &at, std::size_t axis, int by) const {
        for (std::size_t p = 0; p < outer_.size(); ++p)
            at[p] += outer_[p].stride[axis] * by;
        for (std::size_t p = 0; p < mixed_.size(); ++p)
            at[outer_.size() + p] += mixed_[p].operand.stride[axis] * by;
    }
    static void add(const Mixed &m, const T *values, T *row) {
        if (m.run == 1) {
            for (std::size_t q = 0; q < m.offset.size(); ++q)
                row[q] += values[m.offset[q]];
            return;
        }
        for (const auto offset : m.offset) {
            const T *from = values + offset;
            if (m.constant)
                for (std::int64_t r = 0; r < m.run; ++r)
                    row[r] += *from;
            else
                for (std::int64_t r = 0; r < m.run; ++r)
                    row[r] += from[r];
            row += m.run;
        }
    }
    void fill(T *rows, const std::vector<std::int64_t> &at) const {
        for (int a = 0; a < labels_; ++a) {
            T shift{0};
            for (std::size_t p = 0; p < outer_.size(); ++p)
                shift = clamped(shift + outer_[p].values[at[p] + a * outer_[p].own]);
            T *row = rows + a * block_;
            const T *inner = inner_.data() + a * block_;
            for (std::int64_t r = 0; r < block_; ++r)
                row[r] = inner[r] + shift;
            for (std::size_t p = 0; p < mixed_.size(); ++p) {
                const auto &o = mixed_[p].operand;
                add(mixed_[p], o.values + at[outer_.size() + p] + a * o.own, row);
                if (p % 4 == 3) // no more than six costs are added without clamping
                    for (std::int64_t r = 0; r < block_; ++r)
                        row[r] = clamped(row[r]);
            }
        }
    }
};

// Calls work(begin, end) on ranges of the blocks of a frame. The ranges of one step are independent
// of each other; the clock is read between two steps. Returns false if time ran out.
template <class T, class Work>
bool in_steps(const Frame<T> &frame, int threads, Control &control, Work &&work) {
    const std::int64_t most =
        std::max<std::int64_t>(1, (std::int64_t{1} << 22) / frame.work_per_block());
    for (std::int64_t begin = 0; begin < frame.blocks();) {
        const auto count = std::min(frame.blocks() - begin, most * threads);
        const bool large = count * frame.work_per_block() > (1 << 19);
        if (large && threads > 1)
            together(threads, [&](Member &me) {
                me.phase([&](Part part) {
                    work(part.first(begin, begin + count), part.last(begin, begin + count));
                });
            });
        else
            work(begin, begin + count);
        begin += count;
        control.progress(static_cast<double>(count * frame.block() * frame.labels()));
        if (control.spend(count * frame.work_per_block()))
            return false;
    }
    return true;
}

} // namespace detail

// The tables of each variable that was not eliminated before, as axes and strides of a frame.
template <class T> struct Bucket {
    std::vector<int> scope; // variables of the result
    std::vector<detail::Operand<T>> operands;
};

// Opens the bucket of `v`: all `tables` have v as their first axis.
template <class T, class Tables>
Bucket<T> open_bucket(int v, const Tables &tables, const std::vector<int> &labels) {
    Bucket<T> out;
    for (const auto &table : tables)
        out.scope.insert(out.scope.end(), table.scope.begin(), table.scope.end());
    std::sort(out.scope.begin(), out.scope.end());
    out.scope.erase(std::unique(out.scope.begin(), out.scope.end()), out.scope.end());
    std::erase(out.scope, v);
    for (const auto &table : tables) {
        detail::Operand<T> operand{table.values.get(), table.size / labels[v], {}};
        operand.stride.assign(out.scope.size(), 0);
        std::int64_t stride = 1;
        for (std::size_t k = table.scope.size(); k-- > 1; stride *= labels[table.scope[k]])
            operand.stride[std::lower_bound(out.scope.begin(), out.scope.end(), table.scope[k]) -
                           out.scope.begin()] = labels[table.scope[k]] > 1 ? stride : 0;
        out.operands.push_back(std::move(operand));
    }
    return out;
}

// out[state] = values[state], where the axes of `out` are those of `scope` in increasing order, and
// `values` is row-major over `scope`.
template <class T>
Table<T> ordered_table(const std::vector<int> &scope, const T *values,
                       const std::vector<int> &labels) {
    std::vector<int> sorted = scope, sizes;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::int64_t> stride(scope.size());
    for (const int v : sorted)
        sizes.push_back(labels[v]);
    std::int64_t step = 1;
    for (std::size_t k = scope.size(); k-- > 0; step *= labels[scope[k]])
        stride[std::lower_bound(sorted.begin(), sorted.end(), scope[k]) - sorted.begin()] = step;
    auto out = make_table<T>(std::move(sorted), labels);
    Odometer from(sizes, stride);
    for (std::int64_t to = 0; to < out.size; ++to, from.step())
        out.values[to] = values[from.at];
    return out;
}

// All tables, each in the bucket of its first variable. Tables that are sent between buckets stay
// there, so that the last step of a labelling can be repeated for any labels.
template <class T> class Buckets {
  public:
    explicit Buckets(std::vector<int> labels) : labels(std::move(labels)) {
        tables.resize(this->labels.size());
    }
    Buckets(Buckets &&) = default;
    Buckets(const Buckets &) = delete;
    const std::vector<int> labels; // number of labels of each variable
    std::vector<std::vector<Table<T>>> tables;

    int n() const { return static_cast<int>(labels.size()); }
    void add(Table<T> table) { tables[table.scope[0]].push_back(std::move(table)); }
    // The bucket of v with tables joined, so that the loop over its states adds few of them.
    detail::Frame<T> frame(const Bucket<T> &bucket, int v) const {
        std::vector<int> sizes;
        for (const int u : bucket.scope)
            sizes.push_back(labels[u]);
        return {sizes, labels[v], bucket.operands};
    }
};

} // namespace softmap::exact
