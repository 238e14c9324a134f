// Numbers at their places: needs nothing of the families, so that it is compiled in no time.
#pragma once

#include "shim.hpp"

namespace softmap {
namespace device {

// Numbers at their places: of every half-edge or node (share 1), of every edge at both its ends
// (2).
template <class A>
SOFTMAP_KERNEL scatter(const A *from, const unsigned *place, A *out, int share, int count) {
    const long long k = thread_number();
    if (k < count)
        out[place[k]] = from[k / share];
}

// Whether some number changes when it is rounded.
template <class S> SOFTMAP_KERNEL rounded_apart(const double *values, int *apart, int count) {
    const long long k = thread_number();
    if (k < count && double(S(values[k])) != values[k])
        *apart = 1;
}

} // namespace device
} // namespace softmap
