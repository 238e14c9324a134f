// A wavefront: threads advance through the steps of one loop without a barrier after every step.
//
// The work of each step is divided into bands. A band may start step s when certain bands have
// finished all steps before s. Bands are processed mainly by the same thread, so that what a band
// writes in one step is still in that core's cache in the next step. A thread whose own bands are
// blocked for some microseconds processes other bands: a thread that the operating system has
// suspended delays only what depends on the band that it is working on.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

namespace softmap {

inline constexpr int most_bands = 64; // bits of a set of bands
using Bands = std::uint64_t;          // a set of bands, one bit each

// How the bands of a plan are joined for a number of threads: `groups` groups of `size` bands each.
// With few groups, steps are long, and less time is lost between them. With several groups per
// thread, a thread works on one while others wait for a neighbour.
struct Grouping {
    int groups, size;

    Grouping(int bands, int threads) : groups(1) {
        while (groups < bands && groups < 4 * threads)
            groups *= 2;
        size = bands / groups;
    }

    // The groups that have a band in a set of bands.
    Bands of(Bands set) const {
        if (size == 1)
            return set;
        Bands out = 0;
        for (const Bands all = (Bands(1) << size) - 1; set;) {
            const int group = std::countr_zero(set) / size;
            out |= Bands(1) << group;
            set &= ~(all << (group * size));
        }
        return out;
    }
};

// Thrown in the threads that have to leave because another one has failed.
struct Abandoned {};

// The state of the wavefronts of a call, shared by its threads. Counters only grow, from one
// wavefront to the next, so that a delayed thread sees which wavefronts are over.
class Wave {
  public:
    explicit Wave(int threads)
        : threads_(threads), band_(threads > 1 ? new Band[most_bands] : nullptr) {}

    // The position of one thread: steps and bands of all earlier wavefronts.
    struct Place {
        std::uint64_t steps = 0, bands = 0;
    };

    // Calls work(step, b, b + 1) for every step < steps and band b < bands; `after(step, b)` is the
    // set of bands that must have finished the earlier steps. All threads must call this with equal
    // arguments, and all wavefronts of a call have the same number of bands. The function returns
    // when all bands have finished, and throws if a thread has failed. With one thread it calls
    // work(step, 0, bands).
    template <class After, class Work>
    void run(int thread, Place &place, std::int64_t steps, int bands, After after, Work work) {
        if (threads_ == 1 || steps == 0) {
            for (std::int64_t step = 0; step < steps; ++step)
                work(step, 0, bands);
            return;
        }
        const std::uint64_t base = place.steps, end = place.bands + std::uint64_t(bands);
        const auto advance = [&](int b) { return step_of(b, base, steps, after, work); };
        const int first = thread * bands / threads_, last = (thread + 1) * bands / threads_;
        const auto over = [&] {
            return std::int64_t(finished_.load(std::memory_order_acquire) - end) >= 0 ||
                   abandoned_.load(std::memory_order_acquire);
        };
        const auto advance_any = [&] {
            for (int k = 0; k < bands; ++k)
                if (advance((last + k) % bands))
                    return true;
            return false;
        };
        // After a band of another thread was free, that thread is probably suspended: the next ones
        // are processed without delay.
        for (int idle = 0, eager = 0; !over();) {
            bool moved = false;
            for (int b = first; b < last; ++b)
                moved = advance(b) || moved;
            if (!moved && (eager || idle > own_spins)) {
                moved = advance_any();
                eager = moved ? eager_rounds : eager / 2;
            }
            if (moved)
                idle = 0;
            else if (++idle < spins)
                pause();
            else
                sleep_unless([&] { return over() || advance_any(); });
        }
        if (abandoned_.load(std::memory_order_acquire))
            throw Abandoned();
        place = {base + std::uint64_t(steps), end};
    }

    // Lets all threads leave their wavefront: one of them has failed, and its band never ends.
    void abandon() {
        abandoned_.store(true, std::memory_order_release);
        wake_sleepers();
    }

  private:
    struct alignas(64) Band {
        std::atomic<std::uint64_t> taken{0}, done{0}; // steps begun, steps finished
    };

    // Does the next step of band b, if no other thread does it and the bands before it are ready.
    template <class After, class Work>
    bool step_of(int b, std::uint64_t base, std::int64_t steps, After &after, Work &work) {
        Band &band = band_[b];
        std::uint64_t done = band.done.load(std::memory_order_acquire);
        const std::int64_t step = std::int64_t(done - base);
        if (step >= steps || band.taken.load(std::memory_order_relaxed) != done)
            return false;
        for (Bands left = after(step, b); left; left &= left - 1)
            if (band_[std::countr_zero(left)].done.load(std::memory_order_acquire) < done)
                return false;
        if (!band.taken.compare_exchange_strong(done, done + 1, std::memory_order_relaxed))
            return false;
        work(step, b, b + 1);
        band.done.store(done + 1, std::memory_order_release);
        if (step + 1 == steps)
            finished_.fetch_add(1, std::memory_order_acq_rel);
        wake_sleepers();
        return true;
    }

    // Blocks until a step has finished, unless ready(). The fences order the store of one thread
    // before its load of what the other thread stores: either the sleeper sees the finished step,
    // or the other thread sees the sleeper.
    template <class Ready> void sleep_unless(Ready ready) {
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        const std::uint32_t now = events_.load(std::memory_order_seq_cst);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (!ready())
            events_.wait(now, std::memory_order_acquire);
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }
    void wake_sleepers() {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (sleepers_.load(std::memory_order_relaxed) == 0)
            return;
        events_.fetch_add(1, std::memory_order_seq_cst);
        // notify_all first checks whether a thread is waiting, which must not come before the count
        std::atomic_thread_fence(std::memory_order_seq_cst);
        events_.notify_all();
    }
    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ __volatile__("isb"); // `yield` does nothing on most processors
#endif
    }

    static constexpr int own_spins = 20; // then a thread processes bands of other threads
    static constexpr int eager_rounds = 4;
    static constexpr int spins = 200; // then it sleeps, so that its core is free

    const int threads_;
    std::unique_ptr<Band[]> band_;
    alignas(64) std::atomic<std::uint64_t> finished_{0}; // bands that finished a wavefront
    alignas(64) std::atomic<std::uint32_t> events_{0};   // changes when a sleeper must look again
    std::atomic<int> sleepers_{0};
    std::atomic<bool> abandoned_{false};
};

} // namespace softmap
