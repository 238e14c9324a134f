// Costs as fixed-point integers, limits of a run, and the queue used by propagation.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

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

// When to stop. `spend` reads the clock only after 2^18 units of work.
struct Control {
#ifdef SOFTMAP_EXACT_CLOCK // a clock of CPU time, for measurements on a busy machine
    using Clock = SOFTMAP_EXACT_CLOCK;
#else
    using Clock = std::chrono::steady_clock;
#endif
    Clock::time_point deadline = Clock::time_point::max(); // deadline of this call
    Clock::time_point end = Clock::time_point::max();      // deadline of all calls
    std::int64_t max_backtracks = INT64_MAX;
    std::int64_t max_open_bytes = std::int64_t{1} << 30;
    const std::atomic<bool> *stop = nullptr;
    std::function<void()> poll; // called at this interval if not empty; it may set `stop`
    Clock::duration poll_interval = std::chrono::milliseconds(20);
    std::int64_t backtracks = 0;
    std::int64_t nodes = 0;
    bool stopped = false;
    std::int64_t work = 0, total = 0; // units of work since the clock was read last, and before

    bool check_now() {
        const auto now = Clock::now();
        if (poll && now >= next_poll_) {
            poll();
            next_poll_ = Clock::now() + poll_interval;
        }
        if (stop != nullptr && stop->load(std::memory_order_relaxed))
            stopped = true;
        if (backtracks >= max_backtracks || now >= deadline)
            stopped = true;
        return stopped || behind(now);
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
    // Counts entries of an elimination in progress (`ToTheEnd`), beside `spend`.
    void progress(double entries) { done_ += entries; }
    double seconds_left() const {
        if (deadline == Clock::time_point::max())
            return 1e9;
        return std::chrono::duration<double>(deadline - Clock::now()).count();
    }
    static Clock::time_point after(double seconds) {
        if (!(seconds < 1e8))
            return Clock::time_point::max();
        return Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }

    // While it lives, the deadline is that of all calls: what runs cannot be resumed. If the number
    // of `entries` of an elimination is given, `spend` also returns true if these entries will
    // take too long: if, after a tenth of the time, less than half of what should be done is.
    class ToTheEnd {
      public:
        explicit ToTheEnd(Control &control, double entries = 0)
            : control_(control), before_(control.deadline) {
            control.deadline = std::max(control.deadline, control.end);
            control.expected_ = entries;
            control.done_ = 0;
            control.begin_ = Clock::now();
        }
        ~ToTheEnd() {
            control_.deadline = before_;
            control_.expected_ = 0;
        }
        ToTheEnd(const ToTheEnd &) = delete;

      private:
        Control &control_;
        Clock::time_point before_;
    };

  private:
    Clock::time_point next_poll_ = Clock::time_point::min(), begin_;
    double expected_ = 0, done_ = 0; // entries of the elimination in progress

    bool behind(Clock::time_point now) const {
        if (expected_ <= 0 || deadline == Clock::time_point::max())
            return false;
        const double used = std::chrono::duration<double>(now - begin_) / (deadline - begin_);
        return used > 0.1 && done_ < 0.5 * used * expected_;
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
