// The Python module: bindings, and all code other than inner loops. It is compiled for the baseline
// instruction set.
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

static void exponentials(In<double> values, Out<double> out) {
    require(values.size() == out.size(), "values and out differ in size");
    nb::gil_scoped_release unlocked;
    kernels->exponentials(values.data(), out.data(), Index(values.size()));
}

} // namespace softmap

NB_MODULE(_native, m) {
    using namespace softmap;
    m.doc() = "The compiled core of softmap.";
    // Objects that live until the interpreter ends, as in a traceback, are not reported as leaks.
    nb::set_leak_warnings(false);
    m.def("use", &use, nb::arg("table"), "Use the inner loops of a table of kernels.");
    m.def("level", [] { return kernels->level; }, "Return the instruction set of the inner loops.");
    m.def(
        "width", [] { return kernels->width; },
        "Return the number of doubles in a vector register of that instruction set.");
    m.def("cpu_level", &cpu_level,
          "Return the highest instruction set that this machine supports.");
    m.def("exponentials", &exponentials, arg("values"), arg("out"),
          "Write exp(values) into `out` for values <= 0, with the function that passes use.");
    m.def("give_back", &give_back, "Return freed heap memory to the operating system.");
    bind_deadline(m);
    bind_layout(m);
    bind_planning(m);
    bind_passes(m);
    bind_stars(m);
    bind_paper(m);
    bind_labels(m);
    bind_proof(m);
    bind_elimination(m);
    bind_exact(m);
    bind_permutations(m);
    bind_text(m);
    bind_codes(m);
    bind_cuts(m);
    bind_interior(m);
    bind_spins(m);
    bind_cores(m);
    bind_feasibility(m);
    bind_moves(m);
    bind_transport(m);
}
