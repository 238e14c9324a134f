// The kernels of the CUDA backend, compiled for the host: a Python module for tests without a GPU.
#include "batches.hpp"

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

using Words = const std::uint64_t *; // the arguments of a launch: pointers, integers and doubles
using Launch = std::function<void(long long, Words)>;

template <class T> T argument(std::uint64_t word) {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<T>(word);
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

template <class H, bool Forward> void add_passes(const std::string &shape) {
    const std::string begin = "half_pass<" + shape + (Forward ? ", true, " : ", false, ");
    kernels[begin + "0, false>"] = launch_of(&half_pass<H, Forward, hard, false>);
    kernels[begin + "1, true>"] = launch_of(&half_pass<H, Forward, mild, true>);
    kernels[begin + "2, true>"] = launch_of(&half_pass<H, Forward, cold, true>);
}

template <class H, bool Forward> void add_together(const std::string &shape) {
    const std::string begin = "half_pass_together<" + shape + (Forward ? ", true, " : ", false, ");
    for (const char *ways : {"2>", "4>", "8>"}) { // all the same, where a block is one thread
        kernels[begin + "0, false, " + ways] =
            launch_of(&half_pass_together<H, Forward, hard, false, 8>);
        kernels[begin + "1, true, " + ways] =
            launch_of(&half_pass_together<H, Forward, mild, true, 8>);
        kernels[begin + "2, true, " + ways] =
            launch_of(&half_pass_together<H, Forward, cold, true, 8>);
    }
}

template <class H, bool Forward> void add_links(const std::string &shape) {
    const std::string moved = Forward ? ", true>" : ", false>";
    kernels["add_up_nodes<" + shape + moved] = launch_of(&add_up_nodes<H, Forward>);
    const std::string begin = "send_along<" + shape + (Forward ? ", true, " : ", false, ");
    kernels[begin + "0, false>"] = launch_of(&send_along<H, Forward, hard, false>);
    kernels[begin + "1, true>"] = launch_of(&send_along<H, Forward, mild, true>);
    kernels[begin + "2, true>"] = launch_of(&send_along<H, Forward, cold, true>);
}

template <class H> void add_arrangement(const std::string &shape) {
    kernels["arrange<" + shape + ", float>"] = launch_of(&arrange<H, float>);
    kernels["arrange<" + shape + ", double>"] = launch_of(&arrange<H, double>);
}

template <class H> void add(const char *parameters) {
    const std::string shape = std::string("Shape<") + parameters + ">";
    if constexpr (!H::Linked) {
        add_passes<H, true>(shape);
        add_passes<H, false>(shape);
    }
    if constexpr (H::Linked) {
        add_links<H, true>(shape);
        add_links<H, false>(shape);
    } else if constexpr (teamed<H>) {
        add_together<H, true>(shape);
        add_together<H, false>(shape);
    }
    if constexpr (!H::bounded) {
        kernels["bounds<" + shape + ">"] = launch_of(&bounds<H>);
        kernels["soft_nodes<" + shape + ">"] = launch_of(&soft_nodes<H>);
        kernels["sample<" + shape + ">"] = launch_of(&sample<H>);
        kernels["mean_nodes<" + shape + ">"] = launch_of(&mean_nodes<H>);
        kernels["couple_edges<" + shape + ">"] = launch_of(&couple_edges<H>);
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

#define SOFTMAP_ADD(...) add<Shape<__VA_ARGS__>>(#__VA_ARGS__)

// Shapes that tests ask for; every other model runs in the general one.
void add_all() {
    kernels["tick"] = launch_of(&tick);
    kernels["sampled"] = launch_of(&sampled);
    kernels["totals"] = launch_of(&totals);
    kernels["scatter<double>"] = launch_of(&scatter<double>);
    kernels["scatter<unsigned char>"] = launch_of(&scatter<unsigned char>);
    kernels["scatter<int>"] = launch_of(&scatter<int>);
    kernels["scatter<long long>"] = launch_of(&scatter<long long>);
    kernels["rounded_apart<float>"] = launch_of(&rounded_apart<float>);
    kernels["rounded_apart<double>"] = launch_of(&rounded_apart<double>);
    SOFTMAP_ADD(float, -1, 128, 0, 0, 0, true, false, false, false, false, false);
    SOFTMAP_ADD(double, -1, 128, 0, 0, 0, true, false, false, false, false, false);
    SOFTMAP_ADD(float, 0, 3, 0, 0, 0, true, false, false, false, false, false);
    SOFTMAP_ADD(float, 0, 3, 0, 2, 2, true, false, false, true, false, false);
    SOFTMAP_ADD(float, 0, 3, 0, 0, 0, false, false, true, false, false, true);
    SOFTMAP_ADD(double, 0, 3, 0, 0, 0, false, false, true, false, false, true);
    SOFTMAP_ADD(float, 1, 3, 0, 0, 0, true, true, false, false, false, false);
    SOFTMAP_ADD(float, 1, 3, 0, 0, 0, false, true, false, false, false, false);
    SOFTMAP_ADD(float, 1, 3, 0, 2, 2, true, true, false, true, false, false);
    SOFTMAP_ADD(float, 1, 3, 0, 0, 4, true, true, false, true, false, false);
    SOFTMAP_ADD(float, 1, 3, 0, 4, 0, true, true, false, true, false, false);
    SOFTMAP_ADD(float, 2, 5, 2, 0, 0, true, true, false, false, false, false);
    SOFTMAP_ADD(float, 2, 5, 2, 2, 2, true, true, false, true, false, false);
    SOFTMAP_ADD(float, 2, 32, 3, 0, 0, true, true, false, false, false, false);
    SOFTMAP_ADD(float, 2, 32, 3, 2, 2, true, true, false, true, false, false);
    SOFTMAP_ADD(float, 3, 5, 2, 0, 0, true, true, false, false, false, false);
    SOFTMAP_ADD(float, 3, 5, 2, 2, 2, true, true, false, false, false, false);
    SOFTMAP_ADD(float, 5, 3, 0, 0, 0, true, false, false, false, false, false);
    // of batches
    SOFTMAP_ADD(float, -1, 128, 0, 0, 0, true, false, false, false, true, false);
    SOFTMAP_ADD(double, -1, 128, 0, 0, 0, true, false, false, false, true, false);
    SOFTMAP_ADD(float, 0, 3, 0, 0, 0, false, false, true, false, true, false);
    SOFTMAP_ADD(float, 1, 3, 0, 0, 0, false, true, false, false, true, false);
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
