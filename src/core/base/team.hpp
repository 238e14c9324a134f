// A few threads that run one loop together for the length of one call.
//
// Threads are started by the call and joined before it returns: nothing is left behind, and a
// process may fork between calls. All of them go through the same phases, and the parts of a phase
// are done by whoever comes first: a thread that has no core at the moment holds nobody up, and on
// a busy machine a call takes no longer than with one thread.
#pragma once

#include "layout.hpp"

#include <atomic>
#include <thread>
#include <vector>

namespace softmap {

// One part of a phase, the same whoever does it.
struct Part {
    int index, parts;

    // Its share of the items begin..end-1.
    Index first(Index begin, Index end) const { return begin + (end - begin) * index / parts; }
    Index last(Index begin, Index end) const { return begin + (end - begin) * (index + 1) / parts; }
};

// What the threads of a call know of each other: which parts of a phase are taken, and how many
// parts of all phases are finished. Both count up, so that a thread that comes late sees it.
class Team {
  public:
    explicit Team(int threads) : threads_(threads), taken_(std::size_t(threads)) {}

    int threads() const { return threads_; }

    // Whether part `index` of a phase is for the caller to do.
    bool take(int index, std::uint32_t phase) {
        std::atomic<std::uint32_t> &count = taken_[std::size_t(index)].count;
        std::uint32_t expected = phase;
        return count.load(std::memory_order_relaxed) == phase &&
               count.compare_exchange_strong(expected, phase + 1, std::memory_order_acq_rel);
    }

    void finish(std::uint32_t phase) {
        const std::uint32_t now = finished_.fetch_add(1, std::memory_order_acq_rel) + 1;
        if (now == end_of(phase)) {
            // notify_all looks whether anybody sleeps, which must not happen before the count is
            // seen: somebody might fall asleep in between, for ever
            std::atomic_thread_fence(std::memory_order_seq_cst);
            finished_.notify_all();
        }
    }

    // A thread that waits looks for the others for some microseconds, which is as long as a phase
    // lasts, and then sleeps: on a busy machine its core is free for whoever needs it.
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
        std::atomic<std::uint32_t> count{0}; // phases in which the part was taken
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
    const int threads_;
    std::vector<Taken> taken_;
    alignas(64) std::atomic<std::uint32_t> finished_{0};
};

// One thread of a call. What a thread reads to decide which phases there are must not change during
// the call: it may come late.
class Member {
  public:
    Member(int thread, Team &team) : thread(thread), team_(team) {}

    // work(part) for all parts of the next phase, together with the others; its own part first.
    template <class F> void phase(F work) {
        const int parts = team_.threads();
        if (parts == 1)
            return work(Part{0, 1});
        for (int k = 0; k < parts; ++k) {
            const int index = (thread + k) % parts;
            if (team_.take(index, phase_)) {
                work(Part{index, parts});
                team_.finish(phase_);
            }
        }
        team_.wait(phase_++);
    }

    // A phase of one part only.
    template <class F> void once(F work) {
        phase([&](Part part) {
            if (part.index == 0)
                work();
        });
    }

    const int thread;

  private:
    Team &team_;
    std::uint32_t phase_ = 0;
};

// A function of the caller's, held by its address: what takes one is compiled once, not once for
// each function that it is given.
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

// work(member) on that many threads, the calling one among them.
[[gnu::noinline]] inline void together(int threads, Task<Member &> work) {
    Team team(threads);
    const auto run = [&](int thread) {
        Member me(thread, team);
        work(me);
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t)
        others.emplace_back(run, t);
    run(0);
    for (auto &other : others)
        other.join();
}

inline constexpr Index worthwhile =
    8192; // items under which a second thread costs more than it saves

// work(first, last) over `count` independent items, in one part per thread.
[[gnu::noinline]] inline void split(int threads, Index count, Task<Index, Index> work) {
    if (threads < 2 || count < worthwhile) {
        work(Index(0), count);
        return;
    }
    together(threads, [&](Member &me) {
        me.phase([&](Part part) { work(part.first(0, count), part.last(0, count)); });
    });
}

} // namespace softmap
