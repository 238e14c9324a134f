// What couplings of chains cost, for one instruction set.
#include "proof/pricing.hpp"
#include "kernels.hpp"

namespace softmap {

void add_pricing(Kernels &table) {
    table.doubles.price_portions = price_portions<double>;
    table.singles.price_portions = price_portions<float>;
}

} // namespace softmap
