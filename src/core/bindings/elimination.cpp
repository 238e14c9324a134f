// Python binding of variable elimination: orders, the best labellings, log Z and marginals.
#include "bind.hpp"
#include "exact/ranking.hpp"
#include "exact/summing.hpp"

#include <array>

#include <nanobind/stl/vector.h>

namespace nb = nanobind;
namespace ex = softmap::exact;

namespace {

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T, class A> std::span<const T> view(const A &array) {
    return {array.data(), array.size()};
}

using softmap::require;

void check_scopes(const Ints &num_labels, const Ints &scope_start, const Ints &scope) {
    const auto n = static_cast<std::int64_t>(num_labels.size());
    for (const auto v : view<std::int64_t>(scope))
        require(v >= 0 && v < n, "a scope names a variable that does not exist");
    std::int64_t last = 0;
    for (const auto s : view<std::int64_t>(scope_start)) {
        require(s >= last, "scope_start must not decrease");
        require(s <= static_cast<std::int64_t>(scope.size()), "scope_start must not exceed scope");
        last = s;
    }
}

// The model as given; every array is checked for its size.
ex::Input checked(const Ints &num_labels, const Doubles &unary, const Ints &scope_start,
                  const Ints &scope, const Doubles &tables, double constant) {
    check_scopes(num_labels, scope_start, scope);
    require(scope_start.size() > 0 && scope_start.data()[0] == 0, "scope_start must begin with 0");
    ex::Input in{view<std::int64_t>(num_labels),
                 view<double>(unary),
                 view<std::int64_t>(scope_start),
                 view<std::int64_t>(scope),
                 view<double>(tables),
                 constant,
                 {},
                 {}};
    std::int64_t states = 0, entries = 0;
    for (const auto d : in.num_labels) {
        require(d > 0, "every variable needs a label");
        states += d;
    }
    for (int f = 0; f < in.num_factors(); ++f)
        entries += in.table_size(f);
    require(states == static_cast<std::int64_t>(unary.size()),
            "unary must have one cost per label");
    require(entries == static_cast<std::int64_t>(tables.size()), "tables must have all entries");
    return in;
}

std::vector<int> checked_order(const Ints &order, std::size_t n) {
    std::vector<int> out(order.data(), order.data() + order.size()), sorted = out;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t k = 0; k < sorted.size(); ++k)
        require(sorted[k] == static_cast<int>(k), "the order must name every variable once");
    require(out.size() == n, "the order must name every variable once");
    return out;
}

ex::Control limited(double seconds) {
    using Clock = ex::Control::Clock;
    ex::Control out;
    if (seconds < 1e8)
        out.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(seconds));
    return out;
}

// log Z and the marginals of a model whose tables are logarithms.
class LogSums {
  public:
    LogSums(Ints num_labels, Doubles unary, Ints scope_start, Ints scope, Doubles tables,
            Ints order, int threads)
        : in_(checked(num_labels, unary, scope_start, scope, tables, 0.0)),
          held_{num_labels, scope_start, scope}, threads_(threads),
          order_(checked_order(order, num_labels.size())), rank_(order_.size()),
          buckets_(labels_in_order()) {
        for (std::size_t k = 0; k < order_.size(); ++k)
            rank_[order_[k]] = static_cast<int>(k);
        std::int64_t at = 0;
        for (int v = 0; v < in_.n(); at += in_.num_labels[v++])
            add({rank_[v]}, in_.unary.data() + at);
        at = 0;
        for (int f = 0; f < in_.num_factors(); at += in_.table_size(f++))
            add(ranks(f), in_.tables.data() + at);
        buckets_.begin();
    }

    LogSums(const LogSums &) = delete;

    bool up(double seconds) {
        auto control = limited(seconds);
        nb::gil_scoped_release release;
        return buckets_.go_up(threads_, control);
    }
    bool down(double seconds) {
        auto control = limited(seconds);
        nb::gil_scoped_release release;
        return buckets_.go_down(threads_, control);
    }
    double log_sum() const { return buckets_.log_sum; }

    // Marginals of the variables and of the factors, laid out as `unary` and `tables`.
    nb::tuple marginals() const {
        std::vector<double> nodes, factors;
        for (int v = 0; v < in_.n(); ++v)
            append(v, {rank_[v]}, nodes);
        for (int f = 0; f < in_.num_factors(); ++f)
            append(in_.n() + f, ranks(f), factors);
        return nb::make_tuple(softmap::handed_over<double>(std::move(nodes)),
                              softmap::handed_over<double>(std::move(factors)));
    }

  private:
    ex::Input in_;
    std::array<Ints, 3> held_; // keeps the arrays alive that `in_` refers to after the constructor
    int threads_;
    std::vector<int> order_, rank_;
    ex::LogBuckets buckets_;
    std::vector<std::pair<int, std::size_t>> place_; // bucket and table of variables and factors

    std::vector<int> labels_in_order() const {
        std::vector<int> out;
        for (const int v : order_)
            out.push_back(static_cast<int>(in_.num_labels[v]));
        return out;
    }
    std::vector<int> ranks(int f) const {
        std::vector<int> out;
        for (auto k = in_.scope_start[f]; k < in_.scope_start[f + 1]; ++k)
            out.push_back(rank_[in_.scope[k]]);
        return out;
    }
    void add(const std::vector<int> &scope, const double *values) {
        auto table = ex::ordered_table(scope, values, buckets_.labels);
        place_.emplace_back(table.scope[0], buckets_.tables[table.scope[0]].size());
        buckets_.add(std::move(table));
    }
    // Appends the marginal of a table with its axes in the order of the model.
    void append(int number, const std::vector<int> &scope, std::vector<double> &out) const {
        const auto &[bucket, index] = place_[number];
        const auto &table = buckets_.tables[bucket][index];
        std::vector<std::int64_t> stride(scope.size(), 1);
        for (std::size_t k = 0; k < scope.size(); ++k)
            for (const int u : table.scope)
                stride[k] *= u > scope[k] ? buckets_.labels[u] : 1;
        std::vector<int> sizes;
        for (const int u : scope)
            sizes.push_back(buckets_.labels[u]);
        ex::detail::Odometer from(sizes, stride);
        for (std::int64_t t = 0; t < table.size; ++t, from.step())
            out.push_back(table.values[from.at]);
    }
};

nb::tuple elimination_order(Ints num_labels, Ints scope_start, Ints scope, double limit) {
    check_scopes(num_labels, scope_start, scope);
    const auto found =
        ex::best_order(ex::graph_of(view<std::int64_t>(num_labels), view<std::int64_t>(scope_start),
                                    view<std::int64_t>(scope)),
                       limit);
    return nb::make_tuple(found.finite ? found.entries : INFINITY,
                          found.finite ? found.stored : INFINITY,
                          found.finite ? found.order : std::vector<int>{});
}

nb::dict best_labellings(Ints num_labels, Doubles unary, Ints scope_start, Ints scope,
                         Doubles tables, double constant, Ints order, std::int64_t m, double upper,
                         int threads, double seconds) {
    const auto in = checked(num_labels, unary, scope_start, scope, tables, constant);
    const auto ranks = checked_order(order, num_labels.size());
    require(m >= 1, "m must be positive");
    auto control = limited(seconds);
    ex::Ranked found;
    {
        nb::gil_scoped_release release;
        found =
            ex::best_labellings(in, ranks, static_cast<std::size_t>(m), upper, threads, control);
    }
    nb::dict out;
    out["labels"] = nb::cast(found.labels);
    out["bounds"] = nb::cast(found.bounds);
    out["slack"] = found.slack;
    out["complete"] = found.complete;
    return out;
}

} // namespace

namespace softmap {

void bind_elimination(nb::module_ &m) {
    m.def(
        "elimination_order", &elimination_order, nb::arg("num_labels"), nb::arg("scope_start"),
        nb::arg("scope"), nb::arg("limit"),
        "Return the table entries of variable elimination, those of its results, and the order of "
        "the variables; inf, inf and [] above the limit.");
    m.def("best_labellings", &best_labellings, nb::arg("num_labels"), nb::arg("unary"),
          nb::arg("scope_start"), nb::arg("scope"), nb::arg("tables"), nb::arg("constant"),
          nb::arg("order"), nb::arg("m"), nb::arg("upper"), nb::arg("threads"), nb::arg("seconds"),
          "Return the m labellings of lowest cost, and a lower bound for each rank.");
    nb::class_<LogSums>(m, "LogSums", "Sums of exp(values) over all labellings, and marginals.")
        .def(nb::init<Ints, Doubles, Ints, Ints, Doubles, Ints, int>(), nb::arg("num_labels"),
             nb::arg("unary"), nb::arg("scope_start"), nb::arg("scope"), nb::arg("tables"),
             nb::arg("order"), nb::arg("threads"))
        .def("up", &LogSums::up, nb::arg("seconds"),
             "Eliminate variables for some seconds; return whether all are eliminated.")
        .def("down", &LogSums::down, nb::arg("seconds"),
             "Compute marginals for some seconds; return whether all are computed.")
        .def_prop_ro("log_sum", &LogSums::log_sum, "The logarithm of the sum, after `up`.")
        .def("marginals", &LogSums::marginals,
             "Return the marginals of variables and of factors, after `down`.");
}

} // namespace softmap
