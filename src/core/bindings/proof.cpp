// Bindings for checks: dual bounds, couplings and their costs, soft marginals of nodes.
#include "base/shared_sums.hpp"
#include "bind.hpp"
#include "kernels/kernels.hpp"
#include "proof/couplings.hpp"
#include "proof/cycles.hpp"
#include "proof/minima.hpp"
#include "proof/short_cycles.hpp"
#include "proof/transport.hpp"

#include <nanobind/stl/optional.h>

#include <atomic>
#include <optional>

namespace softmap {
namespace {

using Lay = HeldLayout;
template <class T> using Maybe = std::optional<Out<T>>;

void require_lam(const Layout &v, const In<double> &lam, const char *name) {
    require_size(lam, v.half_at(2 * v.m), name);
}

void reduced_unary_of(const Lay &lay, In<double> lam, Out<double> out, int threads) {
    const Layout &v = lay.view;
    require_lam(v, lam, "lam");
    require_size(out, v.node_offset[v.n], "out");
    split(threads, v.n,
          [&](Index first, Index last) { reduced_unary(v, lam.data(), out.data(), first, last); });
}

void node_minima_of(const Lay &lay, In<double> lam, Out<double> out, int threads) {
    require_lam(lay.view, lam, "lam");
    require_size(out, lay.view.n, "out");
    split_by_lanes(threads, lay.view.n, [&](Index first, Index last) {
        kernels->node_minima(lay.view, lam.data(), out.data(), first, last);
    });
}

void edge_minima_of(const Lay &lay, In<double> lam, Out<double> out, int threads) {
    require_lam(lay.view, lam, "lam");
    require_size(out, lay.view.m, "out");
    split_by_lanes(threads, lay.view.m, [&](Index first, Index last) {
        kernels->edge_minima(lay.view, lam.data(), out.data(), first, last);
    });
}

double dual_bound_of(const Lay &lay, In<double> lam, double constant, int threads) {
    require_lam(lay.view, lam, "lam");
    return kernels->dual_bound(lay.view, lam.data(), constant, threads);
}

// First entry of the plan of each listed edge, and the total length.
std::vector<Index> plan_offsets(const Layout &v, const EdgeList &list) {
    std::vector<Index> at(std::size_t(list.count) + 1, 0);
    for (Index k = 0; k < list.count; ++k)
        at[k + 1] = at[k] + v.labels_at(2 * list[k]) * v.labels_at(2 * list[k] + 1);
    return at;
}

// What `couple` writes for each listed edge: the cost of its coupling; and, unless they are None,
// the entropy, the slack and the coupling itself.
struct CouplingArrays {
    CouplingArrays(Out<double> cost, Maybe<double> entropy, Maybe<double> slack, Maybe<double> plan)
        : count(Index(cost.size())), entries(plan ? Index(plan->size()) : -1),
          cost(held.keep(cost)), plan(plan ? held.keep(*plan) : nullptr) {
        const auto place = [&](Maybe<double> &array, const char *name) -> double * {
            if (array)
                require_size(*array, count, name);
            return array ? held.keep(*array) : nullptr;
        };
        this->entropy = place(entropy, "entropy");
        this->slack = place(slack, "slack");
    }
    CouplingArrays(const CouplingArrays &) = delete;

    Held<int> held;
    Index count, entries;
    double *cost, *plan, *entropy, *slack;
};

void couple_of(const Lay &lay, In<double> coupling, double eta, In<double> nodes,
               std::optional<In<Index>> edges, const CouplingArrays &out, int threads,
               const Deadline *deadline) {
    const Layout &v = lay.view;
    require(eta > 0.0, "eta must be positive");
    require_lam(v, coupling, "coupling");
    require_size(nodes, v.node_offset[v.n], "nodes");
    const EdgeList list{edges ? edges->data() : nullptr, edges ? Index(edges->size()) : v.m};
    for (Index k = 0; k < list.count; ++k)
        require(0 <= list[k] && list[k] < v.m, "there is no edge ", list[k]);
    require_size(std::size_t(out.count), list.count, "cost");
    std::vector<Index> plan_at;
    if (out.plan != nullptr) {
        plan_at = plan_offsets(v, list);
        require_size(std::size_t(out.entries), plan_at.back(), "plan");
    }
    const Couplings ask{coupling.data(), nodes.data(), eta,      out.cost,
                        out.entropy,     out.slack,    out.plan, plan_at.data()};
    constexpr Index some = 64 * lanes; // edges between two looks at the deadline
    std::atomic<bool> late = false;
    split_by_lanes(threads, list.count, [&](Index first, Index last) {
        for (Index k = first; k < last && !late; k += deadline == nullptr ? last : some) {
            kernels->couple(v, list, ask, k, deadline == nullptr ? last : std::min(k + some, last));
            if (deadline != nullptr && deadline->passed())
                late = true;
        }
    });
    if (late)
        throw OutOfTime();
}

void soft_nodes_of(const Lay &lay, In<double> share, double eta, Out<double> out,
                   Out<double> entropy, Out<double> minimum, int threads) {
    const Layout &v = lay.view;
    require_size(share, v.node_offset[v.n], "share");
    require_size(out, v.node_offset[v.n], "out");
    require_size(entropy, v.n, "entropy");
    require_size(minimum, v.n, "minimum");
    split_by_lanes(threads, v.n, [&](Index first, Index last) {
        kernels->soft_nodes(v, share.data(), eta, out.data(), entropy.data(), minimum.data(), first,
                            last);
    });
}

void require_stack(const Stack<double> &cost, const OutStack<double> &plan) {
    for (int k = 0; k < 3; ++k)
        require(cost.shape(k) == plan.shape(k), "costs and plans differ in shape");
}

void transport_batch(Stack<double> cost, Matrix<double> p, Matrix<double> q, OutStack<double> out,
                     Out<double> stranded) {
    require_stack(cost, out);
    const Index count = cost.shape(0), rows = cost.shape(1), cols = cost.shape(2);
    require(Index(p.shape(0)) == count && Index(p.shape(1)) == rows, "p does not fit the costs");
    require(Index(q.shape(0)) == count && Index(q.shape(1)) == cols, "q does not fit the costs");
    require_size(stranded, count, "stranded");
    Transport solve;
    for (Index k = 0; k < count; ++k)
        stranded.data()[k] = solve(cost.data() + k * rows * cols, p.data() + k * rows,
                                   q.data() + k * cols, rows, cols, out.data() + k * rows * cols);
}

void exchange_batch(Stack<double> cost, OutStack<double> plan) {
    require_stack(cost, plan);
    const Index count = cost.shape(0), rows = cost.shape(1), cols = cost.shape(2);
    std::vector<Pack<1>> ahead(static_cast<std::size_t>(cols));
    for (Index k = 0; k < count; ++k)
        exchange<1>(reinterpret_cast<const Pack<1> *>(cost.data()) + k * rows * cols,
                    reinterpret_cast<Pack<1> *>(plan.data()) + k * rows * cols, ahead.data(), rows,
                    cols);
}

void cycle_gains_of(Stack<double> tables, In<Index> code, Index n, Matrix<Index> variables,
                    Out<double> out, int threads, const Deadline *deadline) {
    const Index count = variables.shape(0), length = variables.shape(1);
    require(tables.shape(1) == tables.shape(2), "the tables of pairs are not square");
    require_size(code, Index(tables.shape(0)), "code");
    require(length > 0, "a cycle has no pairs");
    require_size(out, count, "out");
    const Cycles cycles{
        tables.data(), Index(tables.shape(1)), code.data(), Index(code.size()), n, variables.data(),
        length};
    constexpr Index portions = 256;
    const Index each = length * cycles.width * cycles.width * cycles.width, work = count * each;
    std::atomic<bool> complete = true;
    split_portions(threads, portions, work, [&](Part part) {
        CycleGain gain(cycles);
        Meter meter(deadline);
        part.each(0, count, [&](Index k) {
            if (!gain.find(k))
                complete = false;
            else
                out.data()[k] = meter.tick(each) ? 0.0 : gain();
        });
    });
    require(complete, "two consecutive variables of a cycle have no table");
}

void move_blocks_of(In<double> source, In<Index> begin, In<Index> size, Out<double> out,
                    In<Index> target, int threads) {
    const Index count = Index(begin.size());
    require_size(size, count, "size");
    require_size(target, count, "target");
    Index total = 0;
    for (Index k = 0; k < count; ++k) {
        require_range(begin.data()[k], begin.data()[k] + size.data()[k], Index(source.size()));
        require_range(target.data()[k], target.data()[k] + size.data()[k], Index(out.size()));
        total += size.data()[k];
    }
    constexpr Index portions = 256;
    split_portions(threads, portions, total, [&](Part part) {
        part.each(0, count, [&](Index k) {
            std::copy_n(source.data() + begin.data()[k], size.data()[k],
                        out.data() + target.data()[k]);
        });
    });
}

nb::list short_cycles_of(In<Index> start, In<Index> neighbour, int longest, Index most, Index kept,
                         Index first, Index last, int threads, const Deadline *deadline) {
    const Index n = Index(start.size()) - 1;
    require(n >= 0 && start.data()[0] == 0, "start must begin with 0");
    for (Index i = 0; i < n; ++i)
        require(start.data()[i] <= start.data()[i + 1], "start must not fall");
    require_size(neighbour, start.data()[n], "neighbour");
    for (std::size_t k = 0; k < neighbour.size(); ++k)
        require_range(0, neighbour.data()[k] + 1, n);
    require_range(first, last, n);
    const Neighbours graph{n, start.data(), neighbour.data()};
    CycleRows found;
    {
        nb::gil_scoped_release unlocked;
        found = short_cycles(graph, longest, most, kept, first, last, threads, deadline);
    }
    nb::list out;
    for (int length = 3; length <= std::min(longest, 6); ++length)
        out.append(handed_over<Index>(std::move(found[std::size_t(length - 3)])));
    return out;
}

double careful_sum_of(In<double> values, int threads) {
    if (threads < 2 || Index(values.size()) < worthwhile)
        return careful_sum(values.data(), Index(values.size()));
    const double *from = values.data();
    const Index count = Index(values.size());
    return shared_sum(0.0, count, threads, [=](Part part, auto add) {
        part.each(0, count, [&](Index k) { add(from[k]); });
    });
}

// cost · mass, and 0 if the mass is 0, also at cost +inf.
double priced_mass(double cost, double mass) { return mass == 0.0 ? 0.0 : cost * mass; }

// Σ costs · mass, each product and the sum rounded once, with inf · 0 = 0.
double careful_product(In<double> costs, In<double> mass, int threads) {
    require_size(mass, Index(costs.size()), "mass");
    const double *cost = costs.data(), *amount = mass.data();
    const Index count = Index(costs.size());
    return shared_sum(0.0, count, threads, [=](Part part, auto add) {
        part.each(0, count, [&](Index k) { add(priced_mass(cost[k], amount[k])); });
    });
}

// Calls put(x, share) for the marginals of node i, stored in single precision and divided by their
// sum.
template <class Put>
void each_normalised(const Layout &v, const In<float> &mass, Index i, Put put) {
    const float *own = mass.data() + v.node_offset[i];
    double sum = 0.0;
    for (Index x = 0; x < v.num_labels[i]; ++x)
        sum += double(own[x]);
    for (Index x = 0; x < v.num_labels[i]; ++x)
        put(x, double(own[x]) / sum);
}

// The cost of the nodes at marginals in single precision, which stand for `normalise_nodes` of
// them: as `careful_product`.
double careful_node_cost(const HeldLayout &lay, In<float> mass, int threads) {
    const Layout &v = lay.view;
    require_size(mass, v.node_offset[v.n], "mass");
    return shared_sum(0.0, Index(mass.size()), threads, [&](Part part, auto add) {
        part.each(0, v.n, [&](Index i) {
            const Index begin = v.node_offset[i];
            each_normalised(v, mass, i, [&](Index x, double share) {
                add(priced_mass(v.unary[begin + x], share));
            });
        });
    });
}

// out = marginals that are stored in single precision, each node's divided by their sum.
void normalise_nodes(const HeldLayout &lay, In<float> mass, Out<double> out, int threads) {
    const Layout &v = lay.view;
    require_size(mass, v.node_offset[v.n], "mass");
    require_size(out, Index(mass.size()), "out");
    split(threads, v.n, [&](Index first, Index last) {
        for (Index i = first; i < last; ++i) {
            double *to = out.data() + v.node_offset[i];
            each_normalised(v, mass, i, [&](Index x, double share) { to[x] = share; });
        }
    });
}

double lower_sum_of(In<double> values) { return lower_sum(values.data(), Index(values.size())); }

} // namespace

void bind_proof(nb::module_ &m) {
    if (!RoundedDown::works())
        throw std::runtime_error("this CPU cannot round down, and bounds would not be valid");
    m.attr("FEASIBLE") = feasible;
    m.attr("EXCHANGED") = exchanged;
    m.def("reduced_unary", &reduced_unary_of, arg("layout"), arg("lam"), arg("out"),
          nb::arg("threads") = 1, Unlocked(),
          "Compute C_i - Σ λ of every node state, in plain floating-point arithmetic.");
    m.def("node_minima", &node_minima_of, arg("layout"), arg("lam"), arg("out"),
          nb::arg("threads") = 1, Unlocked(),
          "Compute a lower bound on min C_i - Σ λ for each node.");
    m.def("edge_minima", &edge_minima_of, arg("layout"), arg("lam"), arg("out"),
          nb::arg("threads") = 1, Unlocked(),
          "Compute a lower bound on min C_e + λ_i + λ_j over allowed labels for each edge.");
    m.def("dual_bound", &dual_bound_of, arg("layout"), arg("lam"), nb::arg("constant"),
          nb::arg("threads") = 1, Unlocked(),
          "Return a lower bound, in real numbers, on the dual objective at λ plus a constant.");
    nb::class_<CouplingArrays>(m, "CouplingArrays", "What `couple` writes, by edge.")
        .def(nb::init<Out<double>, Maybe<double>, Maybe<double>, Maybe<double>>(), arg("cost"),
             arg("entropy").none() = nb::none(), arg("slack").none() = nb::none(),
             arg("plan").none() = nb::none());
    m.def("couple", &couple_of, arg("layout"), arg("coupling"), nb::arg("eta"), arg("nodes"),
          arg("edges").none(), nb::arg("out"), nb::arg("threads") = 1, deadline_arg(), Unlocked(),
          "Couple node marginals along edges (by default all); compute the couplings' costs.");
    m.def("soft_nodes", &soft_nodes_of, arg("layout"), arg("share"), nb::arg("eta"), arg("out"),
          arg("entropy"), arg("minimum"), nb::arg("threads") = 1, Unlocked(),
          "Compute soft marginals of nodes, their entropies and their soft minima.");
    m.def("transport_batch", &transport_batch, arg("cost"), arg("p"), arg("q"), arg("out"),
          arg("stranded"), Unlocked(), "Compute optimal transport plans of a stack of problems.");
    m.def("exchange_batch", &exchange_batch, arg("cost"), arg("plan"), Unlocked(),
          "Improve the couplings of a stack by moves among two rows and two columns.");
    m.def("cycle_gains", &cycle_gains_of, arg("tables"), arg("code"), nb::arg("n"),
          arg("variables"), arg("out"), nb::arg("threads") = 1, deadline_arg(), Unlocked(),
          "Compute, for each cycle, the smallest joint cost of its pairs minus the sum of their "
          "minima.");
    m.def("move_blocks", &move_blocks_of, arg("source"), arg("begin"), arg("size"), arg("out"),
          arg("target"), nb::arg("threads") = 1, Unlocked(),
          "Copy blocks of an array, which start at `begin`, to blocks of another one, which start "
          "at `target` and do not overlap.");
    m.def("short_cycles", &short_cycles_of, arg("start"), arg("neighbour"), nb::arg("longest"),
          nb::arg("most"), nb::arg("kept"), nb::arg("first"), nb::arg("last"),
          nb::arg("threads") = 1, deadline_arg(),
          "Return the chordless cycles of 3 to `longest` vertices whose smallest vertex is in "
          "first..last - 1, one flat array per length.");
    m.def("lower_sum", &lower_sum_of, arg("values"), Unlocked(),
          "Return a lower bound on Σ values.");
    m.def("careful_sum", &careful_sum_of, arg("values"), nb::arg("threads") = 1, Unlocked(),
          "Return Σ values, rounded once.");
    m.def("careful_product", &careful_product, arg("costs"), arg("mass"), nb::arg("threads") = 1,
          Unlocked(),
          "Return Σ costs · mass, with inf · 0 = 0; products and sum are rounded once.");
    m.def("careful_node_cost", &careful_node_cost, arg("layout"), arg("mass"),
          nb::arg("threads") = 1, Unlocked(),
          "Return Σ unary costs · normalised mass, as careful_product of `normalise`.");
    m.def("normalise", &normalise_nodes, arg("layout"), arg("mass"), arg("out"), arg("threads") = 1,
          Unlocked(), "Divide marginals in single precision by their sums, node by node.");
}

} // namespace softmap
