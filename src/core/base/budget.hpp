// A limit on the work and the time of one call.
#pragma once

#include "layout.hpp"

#include <algorithm>
#include <chrono>

namespace softmap {

// The limit of one call. Work is counted in table entries, so that a run can be repeated exactly;
// seconds are a wall-clock timeout and cannot be repeated.
class Budget {
  public:
    Budget(Index work, double seconds)
        : work_(work),
          end_(Clock::now() +
               std::chrono::duration_cast<Clock::duration>(
                   std::chrono::duration<double>(std::min(std::max(seconds, 0.0), 1e9)))) {}

    void use(Index work) {
        used_ += work;
        since_ += work;
        if (since_ >= often) {
            since_ = 0;
            late_ |= Clock::now() >= end_;
        }
    }
    bool late() const { return late_; }
    bool spent() const { return late_ || used_ >= work_; }
    Index used() const { return used_; }
    double left() const { return std::chrono::duration<double>(end_ - Clock::now()).count(); }
    // A budget of its own with the work that is left, and the same end.
    Budget rest() const { return Budget(std::max<Index>(work_ - used_, 0), end_); }

  private:
    using Clock = std::chrono::steady_clock;
    Budget(Index work, Clock::time_point end) : work_(work), end_(end) {}
    static constexpr Index often = 1 << 14; // table entries between two readings of the clock
    const Index work_;
    const Clock::time_point end_;
    Index used_ = 0, since_ = often;
    bool late_ = false;
};

} // namespace softmap
