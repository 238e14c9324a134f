// Allocations that fail on purpose, loaded before the interpreter (LD_PRELOAD).
//
// Replaces operator new of the whole process. Calls from some address ranges (the compiled core and
// the C++ library) are counted, and the one with a given number fails. All live blocks are counted.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr int most_ranges = 16;
std::uintptr_t range_begin[most_ranges], range_end[most_ranges];
std::atomic<int> ranges{0};
std::atomic<long> calls{0}, live{0}, failing{0}, failed{0};

bool inside(const void *caller) {
    const auto at = reinterpret_cast<std::uintptr_t>(caller);
    for (int k = 0; k < ranges.load(std::memory_order_relaxed); ++k)
        if (range_begin[k] <= at && at < range_end[k])
            return true;
    return false;
}

void *allocate(std::size_t size, std::size_t alignment, const void *caller) {
    const long limit = failing.load(std::memory_order_relaxed);
    if (limit >= 0 && inside(caller) && calls.fetch_add(1) + 1 == limit) {
        failed.fetch_add(1);
        return nullptr;
    }
    void *found = nullptr;
    if (alignment <= alignof(std::max_align_t))
        found = std::malloc(size ? size : 1);
    else if (posix_memalign(&found, alignment, size ? size : 1) != 0)
        found = nullptr;
    if (found != nullptr)
        live.fetch_add(1, std::memory_order_relaxed);
    return found;
}

void *allocate_or_throw(std::size_t size, std::size_t alignment, const void *caller) {
    void *found = allocate(size, alignment, caller);
    if (found == nullptr)
        throw std::bad_alloc();
    return found;
}

void release(void *block) {
    if (block != nullptr)
        live.fetch_sub(1, std::memory_order_relaxed);
    std::free(block);
}

} // namespace

extern "C" {
// Counts calls from begin..end-1 from now on.
void allocations_watch(std::uintptr_t begin, std::uintptr_t end) {
    const int k = ranges.load();
    if (k < most_ranges) {
        range_begin[k] = begin;
        range_end[k] = end;
        ranges.store(k + 1);
    }
}
// Lets call `number` fail; 0: none. Counts from 0 again.
void allocations_arm(long number) {
    calls = 0;
    failed = 0;
    failing = number;
}
long allocations_calls() { return calls; }
long allocations_failed() { return failed; }
long allocations_live() { return live; }
}

#define CALLER __builtin_return_address(0)

void *operator new(std::size_t size) { return allocate_or_throw(size, 0, CALLER); }
void *operator new[](std::size_t size) { return allocate_or_throw(size, 0, CALLER); }
void *operator new(std::size_t size, std::align_val_t alignment) {
    return allocate_or_throw(size, std::size_t(alignment), CALLER);
}
void *operator new[](std::size_t size, std::align_val_t alignment) {
    return allocate_or_throw(size, std::size_t(alignment), CALLER);
}
void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
    return allocate(size, 0, CALLER);
}
void *operator new[](std::size_t size, const std::nothrow_t &) noexcept {
    return allocate(size, 0, CALLER);
}
void operator delete(void *block) noexcept { release(block); }
void operator delete[](void *block) noexcept { release(block); }
void operator delete(void *block, std::size_t) noexcept { release(block); }
void operator delete[](void *block, std::size_t) noexcept { release(block); }
void operator delete(void *block, std::align_val_t) noexcept { release(block); }
void operator delete[](void *block, std::align_val_t) noexcept { release(block); }
void operator delete(void *block, std::size_t, std::align_val_t) noexcept { release(block); }
void operator delete[](void *block, std::size_t, std::align_val_t) noexcept { release(block); }
