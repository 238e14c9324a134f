// The library of kernels for one instruction set: a Python module that holds one capsule.
#include <Python.h>

#include "kernels.hpp"

#define SOFTMAP_TEXT_OF(name) #name
#define SOFTMAP_TEXT(name) SOFTMAP_TEXT_OF(name)
#define SOFTMAP_INIT_OF(name) PyInit_##name
#define SOFTMAP_INIT(name) SOFTMAP_INIT_OF(name)

static const softmap::Kernels &table() {
    static const softmap::Kernels kernels = [] {
        softmap::Kernels out{};
        out.level = SOFTMAP_LEVEL;
        out.width = softmap::native;
        softmap::add_passes(out);
        softmap::add_proof(out);
        softmap::add_paper(out);
        softmap::add_spins(out);
        return out;
    }();
    return kernels;
}

PyMODINIT_FUNC SOFTMAP_INIT(SOFTMAP_MODULE)() {
    static PyModuleDef definition{};
    definition.m_base = PyModuleDef_HEAD_INIT;
    definition.m_name = SOFTMAP_TEXT(SOFTMAP_MODULE);
    definition.m_doc = "Inner loops for one instruction set.";
    definition.m_size = -1;
    PyObject *module = PyModule_Create(&definition);
    void *pointer = const_cast<softmap::Kernels *>(&table());
    PyObject *capsule = PyCapsule_New(pointer, softmap::kernels_name, nullptr);
    if (!module || !capsule || PyModule_AddObject(module, "table", capsule) < 0)
        return nullptr;
    return module;
}
