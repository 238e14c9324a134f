// The Python module. It is compiled once per instruction set, as _native_<level>.
#include <nanobind/nanobind.h>

#include "cpu.hpp"

namespace nb = nanobind;

namespace {

// Doubles in a register of the instruction set this file is compiled for.
constexpr int lanes() {
#if defined(__AVX512F__)
    return 8;
#elif defined(__AVX__)
    return 4;
#else
    return 2;
#endif
}

} // namespace

NB_MODULE(SOFTMAP_MODULE, m) {
    m.doc() = "The compiled core of softmap, for one instruction set.";
    m.def(
        "level", [] { return SOFTMAP_LEVEL; }, "The instruction set this module is compiled for.");
    m.def("lanes", &lanes, "Doubles in one vector register.");
    m.def("cpu_level", &softmap::cpu_level, "The highest instruction set that this machine runs.");
}
