// The kernels of the CUDA backend, compiled for the host: a Python module for tests without a GPU.
#include "batches.hpp"
#include "decoding.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace softmap {
namespace device {
namespace {

using Words = const std::uint64_t *; // the arguments of a launch: pointers, integers, doubles
using Launch = std::function<void(long long, Words)>;

template <class T> T argument(std::uint64_t word) {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<T>(word);
    else if constexpr (std::is_class_v<T>) // a struct passed by value: the word is its address
        return *reinterpret_cast<const T *>(word);
    else if constexpr (std::is_floating_point_v<T>)
        return of_bits((long long)word);
    else
        return T((long long)word);
}

template <class... A, std::size_t... K>
Launch wrapped(void (*kernel)(A...), std::index_sequence<K...>) {
    return [kernel](long long threads, Words words) {
        for (current_thread = 0; current_thread < threads; ++current_thread)
            kernel(argument<A>(words[K])...);
    };
}
template <class... A> Launch launch_of(void (*kernel)(A...)) {
    return wrapped(kernel, std::index_sequence_for<A...>{});
}

std::map<std::string, Launch> kernels;

// Calls `add` for both directions of a half pass and each way of computing messages.
template <class Add> void each_half(const std::string &shape, Add add) {
    const auto both = [&]<bool Forward>() {
        const std::string begin = shape + (Forward ? ", true, " : ", false, ");
        add.template operator()<Forward, hard, false>(begin + "0, false");
        add.template operator()<Forward, mild, true>(begin + "1, true");
        add.template operator()<Forward, cold, true>(begin + "2, true");
    };
    both.template operator()<true>();
    both.template operator()<false>();
}

template <class H> void add_passes(const std::string &shape) {
    each_half(shape, []<bool Forward, int Heat, bool Moving>(const std::string &half) {
        const std::string begin = "half_pass<" + half + ", ";
        kernels[begin + "1>"] = launch_of(&half_pass<H, Forward, Heat, Moving, 1>);
        if constexpr (teamed<H>)
            for (const char *ways : {"2>", "4>", "8>"}) // the same code if a block is one thread
                kernels[begin + ways] = launch_of(&half_pass<H, Forward, Heat, Moving, 8>);
    });
}

template <class H> void add_links(const std::string &shape) {
    each_half(shape, []<bool Forward, int Heat, bool Moving>(const std::string &half) {
        kernels["add_up_nodes<" + half + ">"] = launch_of(&add_up_nodes<H, Forward, Heat, Moving>);
        kernels["send_along<" + half + ">"] = launch_of(&send_along<H, Forward, Heat, Moving>);
    });
}

template <class H> void add_arrangement(const std::string &shape) {
    kernels["arrange<" + shape + ", float>"] = launch_of(&arrange<H, float>);
    kernels["arrange<" + shape + ", double>"] = launch_of(&arrange<H, double>);
}

template <class H> void add(const std::string &shape) {
    if constexpr (H::Linked)
        add_links<H>(shape);
    else
        add_passes<H>(shape);
    if constexpr (!H::bounded) {
        kernels["bounds<" + shape + ">"] = launch_of(&bounds<H>);
        kernels["soft_nodes<" + shape + ">"] = launch_of(&soft_nodes<H>);
        kernels["sample<" + shape + ">"] = launch_of(&sample<H>);
        kernels["mean_nodes<" + shape + ">"] = launch_of(&mean_nodes<H>);
        kernels["couple_edges<" + shape + ">"] = launch_of(&couple_edges<H>);
        kernels["decide<" + shape + ">"] = launch_of(&decide<H>);
        kernels["energies<" + shape + ">"] = launch_of(&energies<H>);
        kernels["to_lam<" + shape + ">"] = launch_of(&to_lam<H>);
        kernels["from_lam<" + shape + ">"] = launch_of(&from_lam<H>);
        kernels["node_order<" + shape + ", float>"] = launch_of(&node_order<H, float>);
        kernels["node_order<" + shape + ", double>"] = launch_of(&node_order<H, double>);
        kernels["batch_passes<" + shape + ", 1>"] = launch_of(&batch_passes<H, mild>);
        kernels["batch_passes<" + shape + ", 2>"] = launch_of(&batch_passes<H, cold>);
        kernels["batch_look<" + shape + ">"] = launch_of(&batch_look<H>);
        kernels["batch_keep<" + shape + ">"] = launch_of(&batch_keep<H>);
        if constexpr (H::Kind == tables)
            add_arrangement<H>(shape);
    }
}

#define SOFTMAP_ADD(...) add<Shape<Facts{__VA_ARGS__}>>("Shape<Facts{" #__VA_ARGS__ "}>")

// The shapes that tests use; every other model uses a general shape.
void add_all() {
    kernels["tick"] = launch_of(&tick);
    kernels["sampled"] = launch_of(&sampled);
    kernels["totals"] = launch_of(&totals);
    kernels["decode_shots"] = launch_of(&decode_shots);
    kernels["scatter<double>"] = launch_of(&scatter<double>);
    kernels["scatter<unsigned char>"] = launch_of(&scatter<unsigned char>);
    kernels["scatter<int>"] = launch_of(&scatter<int>);
    kernels["scatter<long long>"] = launch_of(&scatter<long long>);
    kernels["rounded_apart<float>"] = launch_of(&rounded_apart<float>);
    kernels["rounded_apart<double>"] = launch_of(&rounded_apart<double>);
    SOFTMAP_ADD(.labels = 128, .spread = true);
    SOFTMAP_ADD(.doubles = true, .labels = 128, .spread = true);
    SOFTMAP_ADD(.kind = tables, .labels = 3, .spread = true);
    SOFTMAP_ADD(.kind = tables, .labels = 3, .early = 2, .late = 2, .spread = true);
    SOFTMAP_ADD(.kind = tables, .labels = 3, .exact = true, .linked = true);
    SOFTMAP_ADD(.doubles = true, .kind = tables, .labels = 3, .exact = true, .linked = true);
    SOFTMAP_ADD(.kind = potts, .labels = 3, .spread = true, .plain = true);
    SOFTMAP_ADD(.kind = potts, .labels = 3, .plain = true);
    SOFTMAP_ADD(.kind = potts, .labels = 3, .early = 2, .late = 2, .spread = true, .plain = true);
    SOFTMAP_ADD(.kind = potts, .labels = 3, .late = 4, .spread = true, .plain = true);
    SOFTMAP_ADD(.kind = potts, .labels = 3, .early = 4, .spread = true, .plain = true);
    SOFTMAP_ADD(.kind = linear, .labels = 5, .reach = 2, .spread = true, .plain = true);
    SOFTMAP_ADD(.kind = linear, .labels = 5, .reach = 2, .early = 2, .late = 2, .spread = true,
                .plain = true);
    SOFTMAP_ADD(.kind = linear, .labels = 32, .reach = 3, .spread = true, .plain = true);
    SOFTMAP_ADD(.kind = linear, .labels = 32, .reach = 3, .early = 2, .late = 2, .spread = true,
                .plain = true);
    SOFTMAP_ADD(.kind = quadratic, .labels = 5, .reach = 2, .spread = true, .plain = true);
    SOFTMAP_ADD(.kind = quadratic, .labels = 5, .reach = 2, .early = 2, .late = 2, .spread = true,
                .plain = true);
    SOFTMAP_ADD(.kind = shared_tables, .labels = 3, .spread = true);
    // shapes of batches
    SOFTMAP_ADD(.labels = 128, .spread = true, .ragged = true);
    SOFTMAP_ADD(.doubles = true, .labels = 128, .spread = true, .ragged = true);
    SOFTMAP_ADD(.kind = tables, .labels = 3, .exact = true, .ragged = true);
    SOFTMAP_ADD(.kind = potts, .labels = 3, .plain = true, .ragged = true);
}

void launch(const std::string &name, long long threads,
            nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> words) {
    const auto found = kernels.find(name);
    if (found == kernels.end())
        throw std::invalid_argument("no kernel " + name);
    const Words begin = words.data();
    nb::gil_scoped_release unlocked;
    found->second(threads, begin);
}

} // namespace
} // namespace device
} // namespace softmap

NB_MODULE(_device, m) {
    using namespace softmap::device;
    m.doc() = "The kernels of the CUDA backend, compiled for the host.";
    add_all();
    m.def("launch", &launch, nb::arg("name"), nb::arg("threads"), nb::arg("words").noconvert(),
          "Run a kernel, thread by thread.");
    m.def(
        "names",
        [] {
            std::vector<std::string> names;
            for (const auto &[name, call] : kernels)
                names.push_back(name);
            return names;
        },
        "The kernels there are.");
}
