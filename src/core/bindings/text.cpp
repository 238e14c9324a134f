// Binding of the decimal number parser.
#include "base/decimals.hpp"
#include "bind.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

namespace softmap {
namespace {

std::pair<std::int64_t, std::vector<std::int64_t>> decimals(nb::bytes text, Out<double> values) {
    require(Index(values.size()) >= Index(text.size() + 1) / 2,
            "values needs an entry for every token");
    std::vector<std::int64_t> others;
    std::int64_t count;
    {
        nb::gil_scoped_release unlocked;
        count = read_decimals(text.c_str(), std::int64_t(text.size()), values.data(), others);
    }
    return {count, std::move(others)};
}

} // namespace

void bind_text(nb::module_ &m) {
    m.def("decimals", &decimals, arg("text"), arg("values"),
          "Parse decimal numbers separated by blanks into `values`. Return the number of tokens "
          "(-1 if most were rejected), and the index, begin and end of each rejected token.");
}

} // namespace softmap
