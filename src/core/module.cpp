// The compiled part of softmap: inner loops over flat arrays.
#include "bind.hpp"

#ifndef SOFTMAP_MODULE
#define SOFTMAP_MODULE _native_plain
#endif

NB_MODULE(SOFTMAP_MODULE, m) {
    m.doc() = "Inner loops of softmap over flat arrays.";
    softmap::bind_layout(m);
    softmap::bind_proof(m);
}
