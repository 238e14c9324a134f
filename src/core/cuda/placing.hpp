// Kernels that do not depend on the families, so that they compile fast.
#pragma once

#include "shim.hpp"

namespace softmap {
namespace device {

// out[place[k]] = from[k / share]: share = 1 scatters values of half-edges or nodes, share = 2
// values of edges to both their half-edges.
template <class A>
SOFTMAP_KERNEL scatter(const A *from, const unsigned *place, A *out, int share, int count) {
    const long long k = thread_number();
    if (k < count)
        out[place[k]] = from[k / share];
}

// Sets *apart = 1 if some value changes when it is rounded to S.
template <class S> SOFTMAP_KERNEL rounded_apart(const double *values, int *apart, int count) {
    const long long k = thread_number();
    if (k < count && double(S(values[k])) != values[k])
        *apart = 1;
}

} // namespace device
} // namespace softmap
