// The Python module: bindings, and all code that is no inner loop, compiled for every processor.
#include "base/cpu.hpp"
#include "bind.hpp"
#include "kernels/kernels.hpp"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace softmap {

// Returns freed heap memory to the operating system. glibc keeps it: short-lived arrays leave holes
// between arrays that are still in use.
static void give_back() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

// Makes the functions of this module use the kernels in the capsule.
static void use(nb::object table) {
    require(PyCapsule_IsValid(table.ptr(), kernels_name), "this is no table of kernels");
    kernels = static_cast<const Kernels *>(PyCapsule_GetPointer(table.ptr(), kernels_name));
}

} // namespace softmap

NB_MODULE(_native, m) {
    using namespace softmap;
    m.doc() = "The compiled core of softmap.";
    // Objects that live until the interpreter ends, as in a traceback, are not reported as leaks.
    nb::set_leak_warnings(false);
    m.def("use", &use, nb::arg("table"), "Take the inner loops from a library of kernels.");
    m.def("level", [] { return kernels->level; }, "The instruction set of the inner loops.");
    m.def("width", [] { return kernels->width; }, "Doubles in one of its vector registers.");
    m.def("cpu_level", &cpu_level, "The highest instruction set that this machine runs.");
    m.def("give_back", &give_back, "Hand memory that was freed back to the system.");
    bind_layout(m);
    bind_planning(m);
    bind_passes(m);
    bind_stars(m);
    bind_paper(m);
    bind_labels(m);
    bind_proof(m);
    bind_exact(m);
    bind_text(m);
    bind_codes(m);
    bind_cuts(m);
}
