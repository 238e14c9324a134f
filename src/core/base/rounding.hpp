// Arithmetic that is certainly not above the truth.
#pragma once

#include <cfenv>

namespace softmap {

// While it lives, arithmetic of this thread rounds towards -inf.
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

    static bool works() { // whether this machine can
        const RoundedDown down;
        volatile double one = 1.0, tiny = 0x1p-80;
        return one - tiny < 1.0 && one + tiny == 1.0;
    }

  private:
    // Values come from memory and go to memory: none is computed on the other side of this.
    static void fence() { asm volatile("" ::: "memory"); }
    const int before_;
};

} // namespace softmap
