// Starting and joining the threads of a call.
#include "base/team.hpp"

#include <thread>

namespace softmap {

void together(int threads, Task<Member &> work) {
    Team team(threads);
    const auto run = [&](int thread) noexcept {
        Member me(thread, team);
        team.attempt([&] { work(me); });
    };
    std::vector<std::thread> others;
    others.reserve(std::size_t(threads - 1));
    try {
        for (int t = 1; t < threads; ++t)
            others.emplace_back(run, t);
    } catch (...) { // the threads that have started take all parts
    }
    run(0);
    for (auto &other : others)
        other.join();
    team.rethrow();
}

void split(int threads, Index count, Task<Index, Index> work) {
    if (threads < 2 || count < worthwhile) {
        work(Index(0), count);
        return;
    }
    together(threads, [&](Member &me) {
        me.phase([&](Part part) { work(part.first(0, count), part.last(0, count)); });
    });
}

void split_portions(int threads, Index portions, Index count, Task<Part> work) {
    together(count < worthwhile ? 1 : threads, [&](Member &me) {
        me.each(0, portions, [&](Index p) { work(Part{int(p), int(portions)}); });
    });
}

void split_one_by_one(int threads, Index portions, Task<Index> work) {
    std::atomic<Index> next = 0;
    together(int(std::min<Index>(threads, portions)), [&](Member &) {
        for (Index p = next++; p < portions; p = next++)
            work(p);
    });
}

} // namespace softmap
