// Sums over the labels near to each label, and over the labels far from it, in O(labels) and
// without subtractions, so that there is no cancellation.
#pragma once

#include "dense.hpp"

namespace softmap {

// The mass, or 0 if it is below `trace`.
template <int W> Pack<W> noticed(const Pack<W> &mass) {
    return choose(Pack<W>(trace), mass, mass, Pack<W>(0.0));
}

// exp(-η · max(value, 0)); 0 if that is below `trace` or if `value` is +inf.
template <int W> Pack<W> mass_of(const Pack<W> &value, double eta) {
    return noticed(unless_infinite(value, exp(Pack<W>(-eta) * greatest(value, Pack<W>(0.0)))));
}

// Flushes denormal numbers to 0 in this thread for the lifetime of the object, because arithmetic
// with them is slow. Has no effect on processors without such a mode.
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

// Steps: multiplication by the factor into[label] of the step to `label` from its predecessor.
// Still: the factor 1. `plus` multiplies and then adds `more`.
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

// Windowed sums Σ_y source[y] · (product of the step factors from y to x) over the labels y in a
// window before x and, if `counting`, the same sums weighted by the number of steps. Labels are
// taken in ascending or descending order.
//
// Blocks have the length of the window. A window is the end of one block and the beginning of the
// next (van Herk 1992, Gil and Werman 1993).
template <int W, bool counting, bool ascending, class Step> class Trail {
  public:
    using P = Pack<W>;

    Trail(Index count, const P *source, Step step, P *room)
        : last_(count - 1), source_(source), step_(step), end_(room), end_steps_(room + count) {}

    // Resets the running sums at the border of a block.
    void begin() {
        sum_ = steps_ = P(0.0);
        path_ = P(1.0);
    }
    // Backward pass through a block: adds the k-th label, which is `before` steps before the last
    // label of the block.
    void collect(Index k, Index before) {
        const P own = source_[label(k)] * path_;
        end_[k] = sum_ += own;
        if constexpr (counting)
            end_steps_[k] = steps_ = fused(own, P(double(before)), steps_);
        path_ = step_(path_, label(k));
    }
    // Forward pass: adds the k-th label to the window.
    void enter(Index k) {
        if constexpr (counting)
            steps_ = step_(steps_ + sum_, label(k));
        sum_ = step_.plus(sum_, label(k), source_[label(k)]);
        path_ = step_(path_, label(k));
    }
    // Calls put(x, sum, sum weighted by steps) for the label x after the k-th. In the second form
    // the window begins at index `from` of the previous block, and `place` of its labels are in the
    // current block.
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

// Runs the ascending and the descending trail with windows of `length` labels in one loop. Each
// trail is a chain of dependent operations, so that two of them interleave well.
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

// out[x] = Σ source[y] over the labels y with |x - y| >= reach.
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
