// Python binding of variable elimination: orders, the best labellings, log Z and marginals.
#include "exact/cluster_tree.hpp"
#include "exact/ranking.hpp"
#include "exact/summing.hpp"
#include "flat.hpp"

#include <nanobind/stl/vector.h>

namespace softmap {
namespace {

namespace ex = exact;

std::vector<int> checked_order(In<Index> order, std::size_t n) {
    std::vector<int> out(order.data(), order.data() + order.size()), sorted = out;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t k = 0; k < sorted.size(); ++k)
        require(sorted[k] == static_cast<int>(k), "the order must name every variable once");
    require(out.size() == n, "the order must name every variable once");
    return out;
}

ex::Control limited(const Deadline *deadline) {
    ex::Control out;
    out.deadline = deadline;
    return out;
}

// log Z and the marginals of a model whose tables are logarithms.
class LogSums {
  public:
    LogSums(const FlatModel &flat, In<Index> order, int threads, bool keep)
        : in_(flat.in), threads_(threads), order_(checked_order(order, flat.in.num_labels.size())),
          rank_(order_.size()), buckets_(labels_in_order()) {
        for (std::size_t k = 0; k < order_.size(); ++k)
            rank_[order_[k]] = static_cast<int>(k);
        std::int64_t at = 0;
        for (int v = 0; v < in_.n(); at += in_.num_labels[v++])
            add({rank_[v]}, in_.unary.data() + at);
        at = 0;
        for (int f = 0; f < in_.num_factors(); at += in_.table_size(f++))
            add(ranks(f), in_.tables.data() + at);
        buckets_.begin();
        buckets_.keep = keep;
    }

    LogSums(const LogSums &) = delete;

    bool up(const Deadline *deadline) {
        auto control = limited(deadline);
        nb::gil_scoped_release release;
        return buckets_.go_up(threads_, control);
    }
    bool down(const Deadline *deadline) {
        require(buckets_.keep, "the tables were not kept");
        auto control = limited(deadline);
        nb::gil_scoped_release release;
        return buckets_.go_down(threads_, control);
    }
    double log_sum() const { return buckets_.log_sum; }
    double error() const { return buckets_.error; }

    // Marginals of the variables and of the factors, laid out as `unary` and `tables`.
    nb::tuple marginals() const {
        std::vector<double> nodes, factors;
        for (int v = 0; v < in_.n(); ++v)
            append(v, {rank_[v]}, nodes);
        for (int f = 0; f < in_.num_factors(); ++f)
            append(in_.n() + f, ranks(f), factors);
        return nb::make_tuple(handed_over<double>(std::move(nodes)),
                              handed_over<double>(std::move(factors)));
    }

  private:
    ex::Input in_;
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
        ex::Odometer from(sizes, stride);
        for (std::int64_t t = 0; t < table.size; ++t, from.step())
            out.push_back(table.values[from.at]);
    }
};

nb::tuple elimination_order(In<Index> num_labels, In<Index> scope_start, In<Index> scope,
                            double limit, const Deadline *deadline, int tries) {
    FlatModel::check_scopes(num_labels, scope_start, scope);
    auto control = limited(deadline);
    ex::EliminationOrder found;
    {
        nb::gil_scoped_release release;
        found = ex::best_order(ex::graph_of(span(num_labels), span(scope_start), span(scope)),
                               limit, control, {.tries = tries});
    }
    return nb::make_tuple(found.finite ? found.entries : INFINITY,
                          found.finite ? found.stored : INFINITY,
                          found.finite ? found.order : std::vector<int>{});
}

double live_entries(In<Index> num_labels, In<Index> scope_start, In<Index> scope, In<Index> order) {
    FlatModel::check_scopes(num_labels, scope_start, scope);
    const auto variables = checked_order(order, num_labels.size());
    nb::gil_scoped_release release;
    return ex::live_entries(ex::graph_of(span(num_labels), span(scope_start), span(scope)),
                            variables);
}

nb::tuple cluster_tree(In<Index> num_labels, In<Index> scope_start, In<Index> scope,
                       In<Index> order) {
    FlatModel::check_scopes(num_labels, scope_start, scope);
    const auto variables = checked_order(order, num_labels.size());
    const auto tree =
        ex::cluster_tree(ex::graph_of(span(num_labels), span(scope_start), span(scope)), variables);
    return nb::make_tuple(tree.members, tree.near, tree.home);
}

nb::dict best_labellings(const FlatModel &flat, In<Index> order, std::int64_t m, double upper,
                         int threads, const Deadline *deadline) {
    const auto ranks = checked_order(order, flat.in.num_labels.size());
    require(m >= 1, "m must be positive");
    auto control = limited(deadline);
    ex::Ranked found;
    {
        nb::gil_scoped_release release;
        found = ex::best_labellings(flat.in, ranks, static_cast<std::size_t>(m), upper, threads,
                                    control);
    }
    nb::dict out;
    out["labels"] = nb::cast(found.labels);
    out["bounds"] = nb::cast(found.bounds);
    out["slack"] = found.slack;
    out["complete"] = found.complete;
    return out;
}

} // namespace

void bind_elimination(nb::module_ &m) {
    m.def(
        "elimination_order", &elimination_order, arg("num_labels"), arg("scope_start"),
        arg("scope"), nb::arg("limit"), deadline_arg(), nb::arg("tries") = ex::OrderEffort{}.tries,
        "Return the table entries of variable elimination, those of its results, and the order of "
        "the variables; inf, inf and [] above the limit, or if no order was found in time.");
    m.def("live_entries", &live_entries, arg("num_labels"), arg("scope_start"), arg("scope"),
          arg("order"), "Return how many entries of results are needed at one time.");
    m.def("cluster_tree", &cluster_tree, arg("num_labels"), arg("scope_start"), arg("scope"),
          arg("order"),
          "Return the variables of each cluster of a tree decomposition, the clusters joined to "
          "it, and a cluster of each variable.");
    m.def("best_labellings", &best_labellings, nb::arg("model"), arg("order"), nb::arg("m"),
          nb::arg("upper"), nb::arg("threads"), deadline_arg(),
          "Return the m labellings of lowest cost, and a lower bound for each rank.");
    nb::class_<LogSums>(m, "LogSums", "Sums of exp(values) over all labellings, and marginals.")
        .def(nb::init<const FlatModel &, In<Index>, int, bool>(), nb::keep_alive<1, 2>(),
             nb::arg("model"), arg("order"), nb::arg("threads"), nb::arg("keep") = true)
        .def("up", &LogSums::up, deadline_arg(),
             "Eliminate variables until a deadline; return whether all are eliminated.")
        .def("down", &LogSums::down, deadline_arg(),
             "Compute marginals until a deadline; return whether all are computed.")
        .def_prop_ro("log_sum", &LogSums::log_sum, "The logarithm of the sum, after `up`.")
        .def_prop_ro("error", &LogSums::error, "A bound on the rounding error of `log_sum`.")
        .def("marginals", &LogSums::marginals,
             "Return the marginals of variables and of factors, after `down`.");
}

} // namespace softmap
