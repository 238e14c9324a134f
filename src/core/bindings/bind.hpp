// Shared by the binding files: array arguments with checks, and views that own their arrays.
#pragma once

#include "base/deadline.hpp"
#include "base/team.hpp"
#include "families/all.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <concepts>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace softmap {

namespace nb = nanobind;

// A C-contiguous array argument of exactly this type and number of dimensions; any other argument
// is a TypeError. It is not copied: it points into the caller's object, which outlives the call.
// Code that keeps the pointer for longer must hold a reference to `object`.
template <class T, int dimensions> class Array {
  public:
    Array() = default;
    // A writable array converts to a read-only one.
    template <class U>
        requires std::is_same_v<T, const U>
    Array(const Array<U, dimensions> &other) : object(other.object), data_(other.data()) {
        for (int k = 0; k < dimensions; ++k)
            shape_[k] = other.shape(k);
    }

    T *data() const { return data_; }
    std::size_t shape(int k) const { return shape_[k]; }
    std::size_t size() const {
        std::size_t out = 1;
        for (const std::size_t length : shape_)
            out *= length;
        return out;
    }

    nb::handle object;

  private:
    friend nb::detail::type_caster<Array>;
    T *data_ = nullptr;
    std::size_t shape_[dimensions] = {};
};

template <class T> using In = Array<const T, 1>;
template <class T> using Out = Array<T, 1>;
template <class T> using Matrix = Array<const T, 2>;
template <class T> using OutMatrix = Array<T, 2>;
template <class T> using Stack = Array<const T, 3>;
template <class T> using OutStack = Array<T, 3>;

} // namespace softmap

// Converts arguments with nanobind's own array caster, in one function per array type. The caster's
// reference counting would otherwise be inlined for every argument of every bound function.
template <class T, int dimensions>
struct nanobind::detail::type_caster<softmap::Array<T, dimensions>> {
    using Given = softmap::Array<T, dimensions>;
    using Reader = make_caster<ndarray<T, ndim<dimensions>, c_contig, device::cpu>>;
    NB_TYPE_CASTER(Given, Reader::Name)

    template <class Flags>
    [[gnu::noinline]] bool from_python(handle source, Flags flags, cleanup_list *list) noexcept {
        Reader reader;
        if (!reader.from_python(source, flags & Flags(~Flags(cast_flags::convert)), list))
            return false;
        value.object = source;
        value.data_ = reader.value.data();
        for (int k = 0; k < dimensions; ++k)
            value.shape_[k] = reader.value.shape(k);
        return true;
    }
};

namespace softmap {

// Release the GIL while C++ computes.
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

// An argument that is never converted: results written into a converted copy would be lost.
inline auto arg(const char *name) { return nb::arg(name).noconvert(); }

// The deadline of a call, or None.
inline auto deadline_arg() { return nb::arg("deadline").none() = nb::none(); }

// One part of an error message: a text or an integer.
struct Said {
    Said(const char *text) : text(text) {}
    Said(const std::string &text) : text(text.c_str()) {}
    template <std::integral T> Said(T number) : number(Index(number)) {}

    const char *text = nullptr;
    Index number = 0;
};

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse(std::initializer_list<Said> message) {
    std::string text;
    for (const Said &said : message)
        text += said.text ? std::string(said.text) : std::to_string(said.number);
    throw std::invalid_argument(text);
}

// Throws std::invalid_argument unless `holds`. The message is composed only then, because many
// checks are in loops.
template <class... Parts> void require(bool holds, const Parts &...what) {
    if (!holds) [[unlikely]]
        refuse({what...});
}

[[gnu::noinline]] inline void require_size(std::size_t given, Index size, const char *name) {
    require(Index(given) == size, name, " must have ", size, " entries, not ", given);
}
template <class A> void require_size(const A &array, Index size, const char *name) {
    require_size(array.size(), size, name);
}

// The four words of the random generator, updated in place (see base/random.hpp).
using Words = Out<std::uint64_t>;
inline std::uint64_t *generator(const Words &words) {
    require_size(words, 4, "words");
    return words.data();
}

inline void require_range(Index first, Index last, Index count) {
    require(0 <= first && first <= last && last <= count, "the range ", first, "..", last,
            " is not within 0..", count);
}

// Requires one label of each node.
[[gnu::noinline]] inline void require_labels(const Layout &lay, const In<Index> &labels,
                                             const char *name = "labels", int threads = 1) {
    require_size(labels, lay.n, name);
    std::atomic<bool> wrong = false;
    split(threads, lay.n, [&](Index first, Index last) {
        bool own = false;
        for (Index i = first; i < last; ++i)
            own |= std::uint64_t(labels.data()[i]) >= std::uint64_t(lay.num_labels[i]);
        if (own)
            wrong = true;
    });
    for (Index i = 0; wrong && i < lay.n; ++i)
        require(0 <= labels.data()[i] && labels.data()[i] < lay.num_labels[i], "node ", i,
                " has no label ", labels.data()[i]);
}

// A view together with references to the arrays that it points into.
template <class View> struct Held {
    View view{};
    std::vector<nb::object> arrays;

    template <class T, int dimensions> T *keep(const Array<T, dimensions> &array) {
        arrays.push_back(nb::borrow(array.object));
        return array.data();
    }
    // Keeps the array of a name, and returns its size.
    template <class T> Index take(const nb::dict &named, const char *name, const T *&place) {
        const auto array = nb::cast<In<T>>(named[name]);
        place = keep(array);
        return Index(array.size());
    }
};

// A numpy array that takes ownership of the elements of a vector.
template <class As, class T>
nb::object handed_over(std::vector<T> &&from, std::size_t columns = 1) {
    auto *held = new std::vector<T>(std::move(from));
    held->shrink_to_fit();
    nb::capsule owner(held, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    As *data = reinterpret_cast<As *>(held->data());
    const std::size_t rows = held->size();
    if (columns == 1)
        return nb::cast(nb::ndarray<nb::numpy, As, nb::ndim<1>>(data, {rows}, owner));
    return nb::cast(nb::ndarray<nb::numpy, As, nb::ndim<2>>(data, {rows, columns}, owner));
}

using HeldLayout = Held<Layout>;
using HeldSchedule = Held<Schedule>;

// Called once, when the module is imported: compiled for size, which takes less time.
[[gnu::cold]] void bind_deadline(nb::module_ &m);
[[gnu::cold]] void bind_layout(nb::module_ &m);
[[gnu::cold]] void bind_planning(nb::module_ &m);
[[gnu::cold]] void bind_passes(nb::module_ &m);
[[gnu::cold]] void bind_stars(nb::module_ &m);
[[gnu::cold]] void bind_paper(nb::module_ &m);
[[gnu::cold]] void bind_proof(nb::module_ &m);
[[gnu::cold]] void bind_labels(nb::module_ &m);
[[gnu::cold]] void bind_elimination(nb::module_ &m);
[[gnu::cold]] void bind_exact(nb::module_ &m);
[[gnu::cold]] void bind_permutations(nb::module_ &m);
[[gnu::cold]] void bind_text(nb::module_ &m);
[[gnu::cold]] void bind_codes(nb::module_ &m);
[[gnu::cold]] void bind_cuts(nb::module_ &m);
[[gnu::cold]] void bind_cores(nb::module_ &m);
[[gnu::cold]] void bind_feasibility(nb::module_ &m);
[[gnu::cold]] void bind_moves(nb::module_ &m);
[[gnu::cold]] void bind_interior(nb::module_ &m);
[[gnu::cold]] void bind_spins(nb::module_ &m);
[[gnu::cold]] void bind_transport(nb::module_ &m);

} // namespace softmap
