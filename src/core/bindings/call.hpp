// Bound functions: one function reads the arguments of all of them, from tables of their types.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace softmap {

namespace nb = nanobind;

// What follows the function in a definition: a parameter, the documentation, or a trait of the
// call.
struct Entry {
    enum Kind { PARAMETER, TEXT, UNLOCKED, KEPT };

    Kind kind;
    const char *text = "";                    // the name of the parameter
    bool converted = false, nullable = false; // of the argument
    PyObject *standard = nullptr; // the default, if there is one: a reference of its own

    constexpr Entry(Kind kind) : kind(kind) {}
    constexpr Entry(const char *text, Kind kind = TEXT, bool converted = false)
        : kind(kind), text(text), converted(converted) {}

    Entry none() const {
        Entry out = *this;
        out.nullable = true;
        return out;
    }
    template <class T> Entry operator=(const T &value) const {
        Entry out = *this;
        if constexpr (std::is_same_v<T, bool> || std::is_base_of_v<nb::handle, T>)
            out.standard = nb::cast(value).release().ptr();
        else if constexpr (std::is_integral_v<T>)
            out.standard = PyLong_FromLongLong(value);
        else
            out.standard = PyFloat_FromDouble(value);
        return out;
    }
};

// An argument that is never converted: results written into a converted copy would be lost.
inline Entry arg(const char *name) { return {name, Entry::PARAMETER}; }

// An argument that may be converted, as an integer to a double.
inline Entry number(const char *name) { return {name, Entry::PARAMETER, true}; }

// The deadline of a call, or None.
inline Entry deadline_arg() { return arg("deadline").none() = nb::none(); }

// Release the GIL while C++ computes.
constexpr Entry Unlocked() { return Entry::UNLOCKED; }

// A constructor's arguments live as long as the object.
constexpr Entry Kept() { return Entry::KEPT; }

// The object that a constructor makes: memory of Python, not yet constructed.
template <class T> struct Fresh {
    T *at;
};

// How arguments of one type are read into memory, and what the type is called: `text`, or the name
// of a bound class.
struct Reader {
    static constexpr std::size_t room = 64; // bytes of one argument, as C++ reads it

    bool (*read)(nb::handle from, void *to, bool converted);
    void (*clear)(void *at); // null if there is nothing to do
    nb::handle (*type)();    // null if `text` says it
    const char *text;
    bool pointer; // reads None as a null pointer, if None is allowed
};

template <class T> nb::handle class_of() { return nb::type<T>(); }

template <class T> [[gnu::noinline]] bool read_pointer(nb::handle from, void *to, bool) {
    if (!nb::isinstance<T>(from) || !nb::inst_ready(from))
        return false;
    ::new (to) void *(nb::inst_ptr<T>(from));
    return true;
}
template <class T> bool read_fresh(nb::handle from, void *to, bool) {
    if (!nb::isinstance<T>(from) || nb::inst_ready(from))
        return false;
    ::new (to) void *(nb::inst_ptr<T>(from));
    return true;
}
template <class T> [[gnu::noinline]] bool read_value(nb::handle from, void *to, bool converted) {
    static_assert(sizeof(T) <= Reader::room && alignof(T) <= 16);
    T *value = ::new (to) T();
    if (nb::try_cast(from, *value, converted))
        return true;
    value->~T();
    return false;
}
template <class T> void clear_value(void *at) { static_cast<T *>(at)->~T(); }

template <class T>
inline constexpr bool is_bound = nb::detail::is_base_caster_v<nb::detail::make_caster<T>>;

template <class A> struct Read {
    using Value = std::remove_cv_t<std::remove_reference_t<std::remove_pointer_t<A>>>;
    static constexpr bool bound = is_bound<Value>, pointer = bound && std::is_pointer_v<A>;

    static constexpr Reader make() {
        if constexpr (bound)
            return {&read_pointer<Value>, nullptr, &class_of<Value>, "", pointer};
        else
            return {&read_value<Value>,
                    std::is_trivially_destructible_v<Value> ? nullptr : &clear_value<Value>,
                    nullptr, nb::detail::make_caster<Value>::Name.text, false};
    }
    static constexpr Reader reader = make();

    static A get(void *at) {
        if constexpr (pointer)
            return *static_cast<Value **>(at);
        else if constexpr (bound)
            return **static_cast<Value **>(at);
        else
            return static_cast<A>(*static_cast<Value *>(at));
    }
};
template <class T> struct Read<Fresh<T>> {
    static constexpr Reader reader{&read_fresh<T>, nullptr, &class_of<T>, "", false};
    static Fresh<T> get(void *at) { return {*static_cast<T **>(at)}; }
};

// Releases the GIL for the time that it lives, if asked to.
class Released {
  public:
    explicit Released(bool really);
    ~Released();
    Released(const Released &) = delete;

  private:
    PyThreadState *state_;
};

using Memory = unsigned char (*)[Reader::room];

// How a function of C++ is called: with its address, and its arguments in memory.
struct Signature {
    PyObject *(*call)(const void *target, Memory memory, bool unlocked);
    const Reader *const *readers;
    std::size_t count, size; // numbers of arguments and of bytes of the address
    nb::handle (*type)();    // of what is returned: as in a Reader
    const char *text;
};

template <class R> [[gnu::noinline]] PyObject *to_python(R &&value) {
    return nb::cast(std::move(value)).release().ptr();
}

template <class F, class R, class... A> struct Caller {
    static constexpr const Reader *readers[sizeof...(A) + 1] = {&Read<A>::reader..., nullptr};

    template <std::size_t... k>
    static R run(const void *target, Memory memory, bool unlocked, std::index_sequence<k...>) {
        const F &f = *static_cast<const F *>(target);
        const Released released(unlocked);
        if constexpr (std::is_member_function_pointer_v<F>)
            return [&]<class Self, class... Rest>(Self &&self, Rest &&...rest) -> R {
                return (self.*f)(std::forward<Rest>(rest)...);
            }(Read<A>::get(memory[k])...);
        else
            return f(Read<A>::get(memory[k])...);
    }
    static PyObject *call(const void *target, Memory memory, bool unlocked) {
        constexpr auto each = std::index_sequence_for<A...>();
        if constexpr (std::is_void_v<R>) {
            run(target, memory, unlocked, each);
            return nullptr;
        } else {
            return to_python<R>(run(target, memory, unlocked, each));
        }
    }
    static constexpr Signature make() {
        if constexpr (std::is_void_v<R>)
            return {&call, readers, sizeof...(A), sizeof(F), nullptr, "None"};
        else if constexpr (is_bound<R>)
            return {&call, readers, sizeof...(A), sizeof(F), &class_of<R>, ""};
        else
            return {&call,     readers, sizeof...(A),
                    sizeof(F), nullptr, nb::detail::make_caster<R>::Name.text};
    }
    static constexpr Signature signature = make();
};

template <class R, class... A> constexpr const Signature *signature_of(R (*)(A...)) {
    return &Caller<R (*)(A...), R, A...>::signature;
}
template <class C, class R, class... A> constexpr const Signature *signature_of(R (C::*)(A...)) {
    return &Caller<R (C::*)(A...), R, C &, A...>::signature;
}
template <class C, class R, class... A>
constexpr const Signature *signature_of(R (C::*)(A...) const) {
    return &Caller<R (C::*)(A...) const, R, const C &, A...>::signature;
}

// Makes a function of a module, or a method of a class.
void add_function(nb::handle scope, bool method, const char *name, const Signature *signature,
                  const void *target, const Entry *entries, std::size_t count);

template <class F, class... Rest>
void define(nb::handle scope, bool method, const char *name, F f, const Rest &...rest) {
    if constexpr (std::is_class_v<F>) {
        define(scope, method, name, +f, rest...);
    } else {
        const Entry entries[] = {rest..., ""};
        add_function(scope, method, name, signature_of(f), &f, entries, sizeof...(Rest));
    }
}

// The module, with functions that `define` makes.
struct Module : nb::module_ {
    explicit Module(const nb::module_ &m) : nb::module_(m) {}

    template <class F, class... Rest> void def(const char *name, F f, const Rest &...rest) {
        define(*this, false, name, f, rest...);
    }
};

template <class... A> struct Init {};

// A class, with methods that `define` makes.
template <class T> struct Class : nb::class_<T> {
    using nb::class_<T>::class_;

    template <class F, class... Rest> Class &def(const char *name, F f, const Rest &...rest) {
        define(*this, true, name, f, rest...);
        return *this;
    }
    template <class... A, class... Rest> Class &def(Init<A...>, const Rest &...rest) {
        return def(
            "__init__", [](Fresh<T> self, A... a) { ::new (self.at) T(std::move(a)...); }, rest...);
    }
    template <class... Rest> Class &def_prop_ro(Rest &&...rest) {
        nb::class_<T>::def_prop_ro(std::forward<Rest>(rest)...);
        return *this;
    }
    template <class... Rest> Class &def_prop_rw(Rest &&...rest) {
        nb::class_<T>::def_prop_rw(std::forward<Rest>(rest)...);
        return *this;
    }
};

} // namespace softmap
