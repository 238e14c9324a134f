// A few threads that run one loop together for the length of one call.
//
// Threads are started by the call and joined before it returns: nothing is left behind, and a
// process may fork between calls. Between the phases of a loop they meet at a barrier.
#pragma once

#include "layout.hpp"

#include <atomic>
#include <thread>
#include <vector>

namespace softmap {

// A thread that arrives early looks for the others for some microseconds, which is as long as a
// phase lasts, and then sleeps: on a busy machine its core is free for whoever needs it.
class Barrier {
  public:
    explicit Barrier(int threads) : threads_(threads) {}

    void wait() {
        if (threads_ == 1)
            return;
        const std::uint32_t phase = phase_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
            arrived_.store(0, std::memory_order_relaxed);
            phase_.store(phase + 1, std::memory_order_release);
            // notify_all looks whether anybody sleeps, which must not happen before the store is
            // seen: somebody might fall asleep in between, for ever
            std::atomic_thread_fence(std::memory_order_seq_cst);
            phase_.notify_all();
            return;
        }
        for (int k = 0; k < spins; ++k) {
            if (phase_.load(std::memory_order_acquire) != phase)
                return;
            pause();
        }
        while (phase_.load(std::memory_order_acquire) == phase)
            phase_.wait(phase, std::memory_order_acquire);
    }

  private:
    static constexpr int spins = 400;
    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    const int threads_;
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<std::uint32_t> phase_{0};
};

// Which thread of a call this is.
struct Member {
    int thread, threads;
    Barrier &barrier;

    // Its part of the items begin..end-1.
    Index first(Index begin, Index end) const { return begin + (end - begin) * thread / threads; }
    Index last(Index begin, Index end) const {
        return begin + (end - begin) * (thread + 1) / threads;
    }
};

// work(member) on so many threads, the calling one among them.
template <class Work> void together(int threads, Work work) {
    Barrier barrier(threads);
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t)
        others.emplace_back([&, t] { work(Member{t, threads, barrier}); });
    work(Member{0, threads, barrier});
    for (auto &other : others)
        other.join();
}

inline constexpr Index worthwhile =
    8192; // items under which a second thread costs more than it saves

// work(first, last) over `count` independent items, in one part per thread.
template <class Work> void split(int threads, Index count, Work work) {
    if (threads < 2 || count < worthwhile) {
        work(Index(0), count);
        return;
    }
    together(threads, [&](Member me) { work(me.first(0, count), me.last(0, count)); });
}

} // namespace softmap
