// Sums over the labels near each label, and over those far from it, in time proportional to the
// labels and without a single difference: nothing is lost to cancellation.
#pragma once

#include "dense.hpp"

namespace softmap {

// Masses below `trace` are none.
template <int W> Pack<W> noticed(const Pack<W> &mass) {
    return choose(Pack<W>(trace), mass, mass, Pack<W>(0.0));
}

// exp(-η · value), 0 where that is less than a trace and where `value` is +inf.
template <int W> Pack<W> mass_of(const Pack<W> &value, double eta) {
    return noticed(unless_infinite(value, exp(Pack<W>(-eta) * greatest(value, Pack<W>(0.0)))));
}

// While it lives, numbers too small for full precision are 0 to this thread: they are slow. Where
// the processor has no such switch, they stay.
class Flushed {
  public:
#if defined(__SSE2__)
    Flushed() : before_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(before_ | 0x8040); }
    ~Flushed() { __builtin_ia32_ldmxcsr(before_); }

  private:
    unsigned before_;
#elif defined(__aarch64__)
    Flushed() {
        asm volatile("mrs %0, fpcr" : "=r"(before_));
        asm volatile("msr fpcr, %0" ::"r"(before_ | 1u << 24) : "memory");
    }
    ~Flushed() { asm volatile("msr fpcr, %0" ::"r"(before_) : "memory"); }

  private:
    std::uint64_t before_;
#else
    Flushed() {}
#endif
  public:
    Flushed(const Flushed &) = delete;
    Flushed &operator=(const Flushed &) = delete;
};

// The step from one label to the next, by label that is stepped to; and one that changes nothing.
// `plus` adds to what was stepped.
template <int W> struct Steps {
    const Pack<W> *into;
    Pack<W> operator()(const Pack<W> &sum, Index label) const { return sum * into[label]; }
    Pack<W> plus(const Pack<W> &sum, Index label, const Pack<W> &more) const {
        return fused(sum, into[label], more);
    }
};
struct Still {
    template <int W> Pack<W> operator()(const Pack<W> &sum, Index) const { return sum; }
    template <int W> Pack<W> plus(const Pack<W> &sum, Index, const Pack<W> &more) const {
        return sum + more;
    }
};

// Σ source[y] · (steps from y to x) over the labels y in a window before x, and where `counting`
// the like sums of source · steps · (number of steps). Labels are in ascending or descending order.
//
// Windows are put together from the end of one block of labels, as long as the window, and the
// beginning of the next (van Herk 1992, Gil and Werman 1993).
template <int W, bool counting, bool ascending, class Step> class Trail {
  public:
    using P = Pack<W>;

    Trail(Index count, const P *source, Step step, P *room)
        : last_(count - 1), source_(source), step_(step), end_(room), end_steps_(room + count) {}

    // A block begins, or (backwards) ends.
    void begin() {
        sum_ = steps_ = P(0.0);
        path_ = P(1.0);
    }
    // Backwards through a block: the k-th label, so many steps before the block's last.
    void collect(Index k, Index before) {
        const P own = source_[label(k)] * path_;
        end_[k] = sum_ += own;
        if constexpr (counting)
            end_steps_[k] = steps_ = fused(own, P(double(before)), steps_);
        path_ = step_(path_, label(k));
    }
    // Forwards: the k-th label is now part of the window.
    void enter(Index k) {
        if constexpr (counting)
            steps_ = step_(steps_ + sum_, label(k));
        sum_ = step_.plus(sum_, label(k), source_[label(k)]);
        path_ = step_(path_, label(k));
    }
    // put(x, sum, sum_of_steps) for the label x after the k-th; the window begins at `from` in the
    // block before, and `place` labels of it are in this one.
    template <class Put> void leave(Index k, Put put) const { give(k, sum_, steps_, put); }
    template <class Put> void leave(Index k, Index from, Index place, Put put) const {
        const P tail = path_ * end_[from];
        P steps = steps_;
        if constexpr (counting)
            steps += fused(path_, end_steps_[from], tail * P(double(place)));
        give(k, sum_ + tail, steps, put);
    }

  private:
    Index label(Index k) const { return ascending ? k : last_ - k; }

    template <class Put> void give(Index k, const P &sum, const P &steps, Put put) const {
        const Index x = label(k + 1);
        put(x, step_(sum, x), counting ? step_(steps + sum, x) : steps);
    }

    Index last_;
    const P *source_;
    Step step_;
    P *end_, *end_steps_, sum_, steps_, path_;
};

// Both trails of every label, with windows of `length` labels, side by side: each is a chain of
// operations that wait for one another.
template <class One, class Other, class Put>
void walk(Index count, Index length, One one, Other other, Put put) {
    if (length < count - 1) {
        one.begin();
        other.begin();
        for (Index k = count - 1, left = (count - 1) % length; k >= 0; --k) {
            one.collect(k, length - 1 - left);
            other.collect(k, length - 1 - left);
            if (left-- == 0) {
                left = length - 1;
                one.begin();
                other.begin();
            }
        }
    }
    for (Index k = 0, place = length; k + 1 < count; ++k) { // the window ends at k
        if (place == length) {
            place = 0;
            one.begin();
            other.begin();
        }
        one.enter(k);
        other.enter(k);
        if (++place < length && k >= place) {
            one.leave(k, k - length + 1, place, put);
            other.leave(k, k - length + 1, place, put);
        } else {
            one.leave(k, put);
            other.leave(k, put);
        }
    }
}

// Σ source[y] over labels y that are `reach` or more away from x, for every x.
template <int W> void far_sums(Index count, Index reach, const Pack<W> *source, Pack<W> *out) {
    Pack<W> sum(0.0);
    for (Index x = 0; x < count; ++x) {
        if (x >= reach)
            sum += source[x - reach];
        out[x] = sum;
    }
    sum = Pack<W>(0.0);
    for (Index x = count - 1; x >= 0; --x) {
        if (x + reach < count)
            sum += source[x + reach];
        out[x] += sum;
    }
}

} // namespace softmap
