// What the binding files share: checked arrays, and the views that hold on to their arrays.
#pragma once

#include "families/all.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace softmap {

namespace nb = nanobind;

// One-dimensional, contiguous, of exactly this type: anything else is a TypeError of the call.
template <class T> using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using OutMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Release the GIL while C++ computes.
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

// An argument that is used as it is, never converted (a converted copy would be written in vain).
inline auto arg(const char *name) { return nb::arg(name).noconvert(); }

template <class... Parts> [[noreturn, gnu::cold]] void refuse(const Parts &...what) {
    std::ostringstream text;
    (text << ... << what);
    throw std::invalid_argument(text.str());
}

// The parts of the message are put together only where it is needed: many of these are in loops.
template <class... Parts> void require(bool holds, const Parts &...what) {
    if (!holds)
        refuse(what...);
}

template <class A> void require_size(const A &array, Index size, const char *name) {
    require(Index(array.size()) == size, name, " must have ", size, " entries, not ", array.size());
}

inline void require_range(Index first, Index last, Index count) {
    require(0 <= first && first <= last && last <= count, "the range ", first, "..", last,
            " is not within 0..", count);
}

// A view and the arrays that it points into.
template <class View> struct Held {
    View view{};
    std::vector<nb::object> arrays;

    template <class T> const T *keep(const In<T> &array) {
        arrays.push_back(nb::cast(array));
        return array.data();
    }
};

template <class S> using HeldLayout = Held<Layout<S>>;
template <class S> using HeldSchedule = Held<Schedule<S>>;

void bind_layout(nb::module_ &m);
void bind_planning(nb::module_ &m);
void bind_passes(nb::module_ &m);
void bind_stars(nb::module_ &m);
void bind_paper(nb::module_ &m);
void bind_proof(nb::module_ &m);
void bind_labels(nb::module_ &m);
void bind_exact(nb::module_ &m);
void bind_text(nb::module_ &m);
void bind_codes(nb::module_ &m);

} // namespace softmap
