// Stops passes at a deadline, so that all threads agree on where.
#pragma once

#include "base/deadline.hpp"
#include "momentum.hpp"

#include <optional>

namespace softmap {

// Where the passes of one call have stopped: within the half pass of this number, counted from 0.
//
// A thread that was delayed may look after others have gone on to later half passes: it has to ask
// about its own half pass. Nothing is done in a half pass after a part of it was left out, because
// the number is set before that part counts as finished.
class PassStop {
  public:
    explicit PassStop(const Deadline &deadline) : deadline_(deadline) {}

    const Deadline &deadline() const { return deadline_; }
    bool in(Index half) const { return half_.load(std::memory_order_relaxed) == half; }
    void set(Index half) { half_.store(half, std::memory_order_relaxed); }
    // The number of half passes that were completed, of `halves`.
    Index completed(Index halves) const {
        const Index half = half_.load(std::memory_order_relaxed);
        return half < 0 ? halves : half;
    }

    // One thread, before a pass with momentum: keeps what `extrapolate` will change.
    void note(const Clock &clock) {
        before = clock;
        beta = (clock.now() - 1.0) / clock.following();
    }
    Clock before{};
    double beta = 0.0; // the factor of the drift in this pass

  private:
    const Deadline &deadline_;
    std::atomic<Index> half_{-1};
};

// The arrays of a call that may stop at a deadline, if there is one.
template <class Arrays> class Stoppable {
  public:
    Stoppable(const Arrays &arrays, const Deadline *deadline) : view(arrays) {
        if (deadline != nullptr)
            view.stop = &stop_.emplace(*deadline);
    }
    Stoppable(const Stoppable &) = delete;
    Index completed(Index halves) const { return stop_ ? stop_->completed(halves) : halves; }

    Arrays view;

  private:
    std::optional<PassStop> stop_;
};

// A half pass as one thread sees it, which looks at the deadline between pieces of its work.
class HalfWatch {
  public:
    // `stop` may be null. A piece of `entries` entries each takes well below a millisecond.
    HalfWatch(PassStop *stop, Index half, Index entries) : stop_(stop), half_(half) {
        if (stop != nullptr && !stop->deadline().counted())
            piece_ = std::clamp<Index>(most / std::max<Index>(entries, 1), 1, 256);
    }

    // Calls work(first, last) for pieces of a range, as long as it is not late.
    template <class Work> void pieces(Index first, Index last, Work work) const {
        if (stop_ == nullptr)
            return work(first, last);
        for (; first < last && !stop_->in(half_); first += piece_) {
            if (stop_->deadline().passed())
                stop_->set(half_);
            else
                work(first, std::min(first + piece_, last));
        }
    }
    bool stopped() const { return stop_ != nullptr && stop_->in(half_); }

  private:
    static constexpr Index most = 1 << 18;
    PassStop *stop_;
    const Index half_;
    Index piece_ = 1;
};

} // namespace softmap
