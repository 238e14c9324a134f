// The numbers of momentum over whole passes; see passes/momentum.hpp.
#pragma once

namespace softmap {

struct MomentumRule {
    double relax; // at 1 some directions would only swing to and fro
    double turn;  // how far momentum has to point back for a restart; at 0 noise restarts
};
inline constexpr MomentumRule chain_momentum{0.75, 0.3};
inline constexpr MomentumRule star_momentum{0.0, 0.0};

} // namespace softmap
