// The end of a run, as all its loops see it, and the work that one loop may do.
#pragma once

#include "layout.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>

namespace softmap {

// When loops have to stop: at a time of the steady clock, or once somebody calls `stop`.
//
// Any thread may look, stop or set the end at any time. `at` and `within` make a deadline with an
// earlier end that is stopped together with this one.
class Deadline {
  public:
    using Clock = std::chrono::steady_clock;

    explicit Deadline(double seconds = infinity) { set_end(now() + seconds); }
    Deadline(const Deadline &other) : shared_(other.shared_), end_(other.end_.load()) {}

    // Seconds of the steady clock; on Linux that of Python's time.perf_counter.
    static double now() { return 1e-9 * double(ticks()); }

    // Whether loops have to stop: one of the shared flags, then the clock (some 20 ns).
    bool passed() const {
        if (stopped())
            return true;
        if (counted() && shared_->looks.fetch_sub(1, std::memory_order_relaxed) <= 1)
            stop();
        else if (shared_->poll != nullptr && shared_->poll())
            stop();
        return stopped() || ticks() >= end_.load(std::memory_order_relaxed);
    }

    // Stops this deadline and all that share its flag, for good. Safe in a signal handler.
    void stop() const { shared_->stopped.store(true, std::memory_order_relaxed); }
    bool stopped() const { return shared_->stopped.load(std::memory_order_relaxed); }
    const std::atomic<bool> &flag() const { return shared_->stopped; }

    double end() const {
        const std::int64_t end = end_.load(std::memory_order_relaxed);
        return end == never ? infinity : 1e-9 * double(end);
    }
    void set_end(double seconds) {
        end_ = !(seconds < 9e9) ? never : std::int64_t(1e9 * std::max(seconds, 0.0));
    }
    Clock::time_point moment() const { // the end
        const std::int64_t end = end_.load(std::memory_order_relaxed);
        return end == never ? Clock::time_point::max()
                            : Clock::time_point(std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::nanoseconds(end)));
    }
    double left() const { return stopped() ? 0.0 : std::max(0.0, end() - now()); }

    Deadline at(double end) const {
        Deadline out(*this);
        out.set_end(std::min(end, this->end()));
        return out;
    }
    Deadline within(double seconds) const { return at(now() + seconds); }

    // For tests: the k-th look from now on stops the loops, at the same place in every run.
    void stop_after(Index looks) { shared_->looks = looks; }
    bool counted() const { return shared_->looks.load(std::memory_order_relaxed) >= 0; }

    // Sets a function that is called at each look, and stops the loops if it returns true. Python's
    // signal handlers run in the main thread only: a loop in that thread has to call them.
    void set_poll(bool (*poll)()) { shared_->poll = poll; }

  private:
    struct Shared {
        std::atomic<bool> stopped{false};
        std::atomic<Index> looks{-1}; // negative: not counted
        bool (*poll)() = nullptr;
    };
    static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
    static std::int64_t ticks() {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
            .count();
    }
    std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
    std::atomic<std::int64_t> end_{never}; // in nanoseconds
};

// What a computation throws whose result is of no use before it is complete.
struct OutOfTime : std::exception {
    const char *what() const noexcept override { return "the deadline passed"; }
};
inline void require_time(const Deadline *deadline) {
    if (deadline != nullptr && deadline->passed())
        throw OutOfTime();
}

// The work of one loop in one thread, in table entries, with a limit on it and a deadline or null.
// A limit on work can be repeated exactly, a deadline cannot. The deadline is looked at by the way,
// some thousand times a second.
class Meter {
  public:
    static constexpr Index unlimited = std::numeric_limits<Index>::max();

    explicit Meter(const Deadline *deadline, Index work = unlimited)
        : deadline_(deadline), work_(work),
          often_(deadline != nullptr && deadline->counted() ? 1 : often), since_(often) {}

    void use(Index work) {
        used_ += work;
        tick(work);
    }
    // Lets about as much time pass as this work takes, which does not count; returns `late`.
    bool tick(Index work) {
        since_ += work;
        if (since_ >= often_)
            look();
        return late_;
    }
    // Whether the deadline has passed, as far as `use` has seen.
    bool late() const { return late_; }
    // Looks at the deadline now.
    bool look() {
        since_ = 0;
        return late_ = late_ || (deadline_ != nullptr && deadline_->passed());
    }
    bool spent() const { return late_ || used_ >= work_; }
    Index used() const { return used_; }
    const Deadline *deadline() const { return deadline_; }
    // A meter of its own for the work that is left.
    Meter rest() const { return Meter(deadline_, std::max<Index>(work_ - used_, 0)); }

  private:
    static constexpr Index often = 1 << 14; // entries between two looks: some 10 microseconds
    const Deadline *deadline_;
    const Index work_, often_;
    Index used_ = 0, since_;
    bool late_ = false;
};

} // namespace softmap
