// A team of threads that run one loop together for the duration of one call.
//
// The call starts the threads and joins them before it returns, so that a process may fork between
// calls. All threads go through the same phases. The parts of a phase are taken dynamically: a
// thread that the operating system has suspended does not delay the others, and on a busy machine a
// call takes no longer than with one thread.
#pragma once

#include "layout.hpp"
#include "wave.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>

namespace softmap {

// One part of a phase. What it covers does not depend on the thread that executes it.
struct Part {
    int index, parts;

    // This part of the items begin..end-1 is first(begin, end)..last(begin, end)-1.
    Index first(Index begin, Index end) const { return begin + (end - begin) * index / parts; }
    Index last(Index begin, Index end) const { return begin + (end - begin) * (index + 1) / parts; }

    // Calls work(k) for each item k of this part.
    template <class F> void each(Index begin, Index end, F work) const {
        const Index stop = last(begin, end);
        for (Index k = first(begin, end); k < stop; ++k)
            work(k);
    }
};

// The state that the threads of a call share: in how many phases each part was taken, and how many
// parts of all phases are finished. Both counters only grow, so that a delayed thread sees which
// phases are over. After an exception in one thread the others do no further work: they leave at
// the end of their phase.
class Team {
  public:
    explicit Team(int threads) : wave(threads), threads_(threads), taken_(std::size_t(threads)) {}

    int threads() const { return threads_; }

    Wave wave;

    // Calls work() unless a thread has failed; keeps the first exception.
    template <class F> void attempt(F work) noexcept {
        try {
            if (!failed())
                work();
        } catch (const Abandoned &) {
        } catch (...) {
            fail(std::current_exception());
        }
    }

    bool failed() const { return failed_.load(std::memory_order_acquire); }

    // Throws the first exception again, after all threads have ended.
    void rethrow() const {
        if (error_)
            std::rethrow_exception(error_);
    }

    // Claims part `index` of a phase for the calling thread; false if another thread has it.
    bool take(int index, std::uint32_t phase) {
        std::atomic<std::uint32_t> &count = taken_[std::size_t(index)].count;
        std::uint32_t expected = phase;
        return count.load(std::memory_order_relaxed) == phase &&
               count.compare_exchange_strong(expected, phase + 1, std::memory_order_acq_rel);
    }

    void finish(std::uint32_t phase) {
        const std::uint32_t now = finished_.fetch_add(1, std::memory_order_acq_rel) + 1;
        if (now == end_of(phase)) {
            // notify_all first checks whether a thread is waiting. Without this fence that check
            // could come before the new count is visible: a thread that starts to wait in between
            // would never be woken
            std::atomic_thread_fence(std::memory_order_seq_cst);
            finished_.notify_all();
        }
    }

    // Blocks until all parts of a phase are finished. The thread spins for some microseconds, about
    // the duration of a phase, and then sleeps, so that its core is free on a busy machine.
    void wait(std::uint32_t phase) const {
        std::uint32_t now = finished_.load(std::memory_order_acquire);
        for (int k = 0; k < spins && before(now, end_of(phase)); ++k) {
            pause();
            now = finished_.load(std::memory_order_acquire);
        }
        while (before(now, end_of(phase))) {
            finished_.wait(now, std::memory_order_acquire);
            now = finished_.load(std::memory_order_acquire);
        }
    }

  private:
    static constexpr int spins = 400;
    struct alignas(64) Taken {
        std::atomic<std::uint32_t> count{0}; // number of phases in which the part was taken
    };
    std::uint32_t end_of(std::uint32_t phase) const {
        return (phase + 1) * std::uint32_t(threads_);
    }
    static bool before(std::uint32_t a, std::uint32_t b) { return std::int32_t(a - b) < 0; }
    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    void fail(std::exception_ptr error) {
        if (!failing_.exchange(true, std::memory_order_acq_rel)) {
            error_ = error;
            failed_.store(true, std::memory_order_release);
            wave.abandon();
        }
    }

    const int threads_;
    std::vector<Taken> taken_;
    std::exception_ptr error_;
    std::atomic<bool> failing_{false}, failed_{false};
    alignas(64) std::atomic<std::uint32_t> finished_{0};
};

// One thread of a call. Conditions that decide which phases there are must not change during the
// call, because a delayed thread may read them late.
class Member {
  public:
    Member(int thread, Team &team) : thread(thread), team_(team) {}

    // Calls work(part) for the parts of the next phase that no other thread takes, beginning with
    // the part of this thread's own index, and waits until the phase is finished. Throws if a
    // thread has failed.
    template <class F> void phase(F work) {
        const int parts = team_.threads();
        if (parts == 1)
            return work(Part{0, 1});
        for (int k = 0; k < parts; ++k) {
            const int index = (thread + k) % parts;
            if (team_.take(index, phase_)) {
                team_.attempt([&] { work(Part{index, parts}); });
                team_.finish(phase_);
            }
        }
        team_.wait(phase_++);
        if (team_.failed())
            throw Abandoned();
    }

    // A phase in which work(k) is called for each of the items begin..end-1.
    template <class F> void each(Index begin, Index end, F work) {
        phase([&](Part part) { part.each(begin, end, work); });
    }

    // A phase in which one thread calls work().
    template <class F> void once(F work) {
        phase([&](Part part) {
            if (part.index == 0)
                work();
        });
    }

    // Calls work(step, first band, last band + 1) for all steps and bands of the next wavefront, as
    // `Wave::run`.
    template <class After, class Work> void wave(Index steps, int bands, After after, Work work) {
        team_.wave.run(thread, place_, steps, bands, after, work);
    }

    int threads() const { return team_.threads(); }

    const int thread;

  private:
    Team &team_;
    std::uint32_t phase_ = 0;
    Wave::Place place_;
};

// A non-owning reference to a callable. A function that takes a Task is compiled once, not once per
// callable type.
template <class... Given> class Task {
  public:
    template <class F>
    Task(const F &function)
        : function_(&function),
          call_([](const void *f, Given... given) { (*static_cast<const F *>(f))(given...); }) {}

    void operator()(Given... given) const { call_(function_, given...); }

  private:
    const void *function_;
    void (*call_)(const void *, Given...);
};

// Calls work(member) on `threads` threads, one of which is the calling thread; on fewer if no more
// can be started. The first exception of any of them is thrown again when all have ended.
void together(int threads, Task<Member &> work);

inline constexpr Index worthwhile =
    8192; // items; with fewer, starting a second thread costs more than it saves

// Calls work(first, last) on ranges that cover `count` independent items, one range per thread.
void split(int threads, Index count, Task<Index, Index> work);

// Calls work(part) for all `portions` parts of `count` items; the result of a part must not depend
// on the thread that computes it.
void split_portions(int threads, Index portions, Index count, Task<Part> work);

// As split_portions, for a few portions of very different work: a thread that is free takes the
// next one.
void split_one_by_one(int threads, Index portions, Task<Index> work);

} // namespace softmap
