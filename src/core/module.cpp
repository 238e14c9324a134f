// The Python module. It is compiled once per instruction set, as _native_<level>.
#include "bind.hpp"
#include "cpu.hpp"

NB_MODULE(SOFTMAP_MODULE, m) {
    using namespace softmap;
    m.doc() = "The compiled core of softmap, for one instruction set.";
    m.def(
        "level", [] { return SOFTMAP_LEVEL; }, "The instruction set this module is compiled for.");
    m.def("width", [] { return native; }, "Doubles in one vector register.");
    m.def("cpu_level", &cpu_level, "The highest instruction set that this machine runs.");
    bind_layout(m);
    bind_passes(m);
    bind_stars(m);
    bind_paper(m);
    bind_labels(m);
    bind_proof(m);
    bind_exact(m);
}
