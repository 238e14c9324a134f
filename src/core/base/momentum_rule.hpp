// The two parameters of momentum over whole passes; see passes/momentum.hpp.
#pragma once

namespace softmap {

struct MomentumRule {
    double relax; // over-relaxation of the step, in [0, 1); at 1 some directions only oscillate
    double turn;  // restart threshold, relative to the squared step; at 0 rounding noise restarts
};
inline constexpr MomentumRule chain_momentum{0.75, 0.3};
inline constexpr MomentumRule star_momentum{0.0, 0.0};

} // namespace softmap
