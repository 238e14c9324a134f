// Arithmetic rounded towards -inf: a sum or product so computed is at most the exact one.
#pragma once

#include <cfenv>

namespace softmap {

// Sets the rounding mode of this thread to FE_DOWNWARD for the lifetime of the object.
class RoundedDown {
  public:
    RoundedDown() : before_(std::fegetround()) {
        std::fesetround(FE_DOWNWARD);
        fence();
    }
    ~RoundedDown() {
        fence();
        std::fesetround(before_);
    }
    RoundedDown(const RoundedDown &) = delete;
    RoundedDown &operator=(const RoundedDown &) = delete;

    static bool works() { // whether the CPU rounds down in this mode
        const RoundedDown down;
        volatile double one = 1.0, tiny = 0x1p-80;
        return one - tiny < 1.0 && one + tiny == 1.0;
    }

  private:
    // A compiler barrier: operations on values in memory are not moved across it.
    static void fence() { asm volatile("" ::: "memory"); }
    const int before_;
};

} // namespace softmap
