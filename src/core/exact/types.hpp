// Costs as fixed-point integers, limits of a run, and the queue used by propagation.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/deadline.hpp"

namespace softmap::exact {

using Cost = std::int64_t;
using Wide = __int128;

// Finite costs stay below 2^57 in absolute value after any shifts between cost functions. A cost of
// HALF or more is forbidden.
inline constexpr Cost INF = Cost{1} << 60;
inline constexpr Cost HALF = INF / 2;
inline constexpr Cost SHIFT_LIMIT = Cost{1} << 57;

inline bool forbidden(Cost c) { return c >= HALF; }
inline Cost sum(Cost a, Cost b) { return forbidden(a) || forbidden(b) ? INF : a + b; }
inline Cost less(Cost a, Cost b) { return forbidden(a) ? INF : a - b; }

// Whether an elimination will not end in its time, of which it has `used` a fraction for a fraction
// `done` of its entries. The first entries may take twice as long as the others (decision 118).
inline bool falls_behind(double used, double done) {
    return used > 0.1 && done < (used < 0.2 ? 0.5 : 0.8) * used;
}

// When to stop. `spend` looks at the deadline only after 2^18 units of work, some 0.5 ms.
struct Control {
    const Deadline *deadline = nullptr; // of this call; null: none
    const Deadline *end = nullptr;      // of all calls; null: that of this call
    std::int64_t max_backtracks = INT64_MAX;
    std::int64_t max_open_bytes = std::int64_t{1} << 30;
    std::int64_t backtracks = 0;
    std::int64_t nodes = 0;
    bool stopped = false;
    std::int64_t work = 0, total = 0; // units of work since the last look, and before

    bool check_now() {
        if (backtracks >= max_backtracks || (deadline != nullptr && deadline->passed()))
            stopped = true;
        return stopped || behind();
    }
    // Counts work and returns whether to stop. `amount` is roughly the number of table entries
    // read.
    bool spend(std::int64_t amount) {
        if ((work += amount) < (1 << 18))
            return stopped;
        total += work;
        work = 0;
        return check_now();
    }
    // As `spend`, for work that does not count: planning must not change what a limit on work
    // means.
    bool pass(std::int64_t amount) {
        if ((passed_ += amount) < (1 << 16))
            return stopped;
        passed_ = 0;
        return check_now();
    }
    // Counts entries of an elimination in progress (`ToTheEnd`), beside `spend`.
    void progress(double entries) { done_ += entries; }
    double seconds_left() const { return deadline == nullptr ? INFINITY : deadline->left(); }

    // While it lives, the deadline is that of all calls: what runs cannot be resumed. If the number
    // of `entries` of an elimination is given, `spend` also returns true if it falls behind.
    class ToTheEnd {
      public:
        explicit ToTheEnd(Control &control, double entries = 0)
            : control_(control), before_(control.deadline) {
            if (before_ != nullptr && control.end != nullptr && control.end->end() > before_->end())
                control.deadline = control.end;
            control.expected_ = entries;
            control.done_ = 0;
            control.begin_ = Deadline::now();
        }
        ~ToTheEnd() {
            control_.deadline = before_;
            control_.expected_ = 0;
        }
        ToTheEnd(const ToTheEnd &) = delete;

      private:
        Control &control_;
        const Deadline *before_;
    };

  private:
    std::int64_t passed_ = 0;
    double begin_ = 0, expected_ = 0, done_ = 0; // of the elimination in progress

    bool behind() const {
        if (expected_ <= 0 || deadline == nullptr)
            return false;
        const double used = (Deadline::now() - begin_) / (deadline->end() - begin_);
        return falls_behind(used, done_ / expected_);
    }
};

// A set of small integers, with removal of the smallest or the largest.
class RankQueue {
  public:
    explicit RankQueue(int n = 0) : words_((n + 63) / 64, 0) {}
    void push(int r) {
        const int w = r >> 6;
        words_[w] |= std::uint64_t{1} << (r & 63);
        low_ = std::min(low_, w);
        high_ = std::max(high_, w);
    }
    bool empty() {
        while (low_ <= high_ && words_[low_] == 0)
            ++low_;
        while (high_ >= low_ && words_[high_] == 0)
            --high_;
        if (low_ > high_) {
            low_ = static_cast<int>(words_.size());
            high_ = -1;
        }
        return high_ < 0;
    }
    int pop_min() { // the set must not be empty
        const int bit = std::countr_zero(words_[low_]);
        words_[low_] &= words_[low_] - 1;
        return low_ * 64 + bit;
    }
    int pop_max() { // the set must not be empty
        const int bit = 63 - std::countl_zero(words_[high_]);
        words_[high_] &= ~(std::uint64_t{1} << bit);
        return high_ * 64 + bit;
    }
    void clear() {
        for (int w = low_; w <= high_; ++w)
            words_[w] = 0;
        low_ = static_cast<int>(words_.size());
        high_ = -1;
    }

  private:
    std::vector<std::uint64_t> words_;
    int low_ = 1 << 30, high_ = -1;
};

} // namespace softmap::exact
