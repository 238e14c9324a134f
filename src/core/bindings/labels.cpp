// Bindings for labellings: decoding, local search, arc consistency, and orders of nodes.
#include "base/graph.hpp"
#include "bind.hpp"
#include "labels/arcs.hpp"
#include "labels/decoding.hpp"
#include "labels/energy.hpp"
#include "labels/first.hpp"
#include "labels/forests.hpp"
#include "labels/modes.hpp"
#include "labels/ranges.hpp"
#include "labels/tree_optimum.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

namespace softmap {
namespace {

using Lay = HeldLayout;

void require_nodes(const In<Index> &order, Index n) {
    for (std::size_t k = 0; k < order.size(); ++k)
        require(0 <= order.data()[k] && order.data()[k] < n, "there is no node ", order.data()[k]);
}

void sequential(const Lay &held, In<double> lam, Out<double> reduced, In<Index> order,
                Index variables, Out<Index> labels, const Deadline *deadline) {
    const Layout &lay = held.view;
    require_size(lam, lay.half_at(2 * lay.m), "lam");
    require_size(reduced, lay.node_offset[lay.n], "reduced");
    require_size(labels, lay.n, "labels");
    require_nodes(order, lay.n);
    SequentialDecoder decoder(lay, lam.data(), reduced.data(), variables);
    std::fill_n(labels.data(), lay.n, Index(-1));
    decoder.decide_all(order.data(), Index(order.size()), labels.data(), Meter(deadline));
}

LabelGraph label_graph(const Layout &lay, const In<Index> &stride, Index variables) {
    require_size(stride, 2 * lay.m, "stride");
    require_range(0, variables, lay.n);
    return {lay, stride.data(), variables};
}

void iterated_modes(const Lay &held, Out<Index> labels, In<Index> stride, Index variables,
                    Index max_sweeps, const Deadline *deadline) {
    require_labels(held.view, labels);
    IteratedModes(label_graph(held.view, stride, variables), labels.data())
        .run(max_sweeps, Meter(deadline));
}

void independent_modes(const Lay &held, Out<Index> labels, Index max_rounds, int threads,
                       const Deadline *deadline) {
    require_labels(held.view, labels);
    require(0 <= max_rounds && max_rounds <= 1 << 20, "max_rounds is not within 0..2**20");
    IndependentModes(held.view, labels.data()).run(max_rounds, deadline, threads);
}

double energy_of(const Lay &held, In<Index> labels, double constant, int threads) {
    require_labels(held.view, labels);
    return energy(held.view, labels.data(), constant, threads);
}

void first_labels(const Lay &held, Out<Index> labels, int threads, const Deadline *deadline) {
    require_size(labels, held.view.n, "labels");
    FirstLabels(held.view).find(labels.data(), deadline, std::max(threads, 1));
}

void forest_rounds(const Lay &held, Out<Index> labels, Words words, Index count, double heat,
                   int threads, const Deadline *deadline) {
    require_labels(held.view, labels);
    Forests(held.view, labels.data(), generator(words), threads).run(count, heat, deadline);
}

bool tree_optimum(const Lay &held, Out<Index> labels, Out<double> lam) {
    const Layout &lay = held.view;
    require_size(labels, lay.n, "labels");
    require_size(lam, lay.half_at(2 * lay.m), "lam");
    return TreeOptimum(lay, labels.data(), lam.data()).solve();
}

void scattered_forest(const Lay &held, Out<Index> labels, std::uint64_t seed, double heat,
                      Out<Index> level, int threads) {
    require_labels(held.view, labels);
    require_size(level, held.view.n, "level");
    ScatteredForests forests(held.view, labels.data());
    forests.run({seed}, {heat}, nullptr, std::max(threads, 1));
    for (Index i = 0; i < held.view.n; ++i)
        level.data()[i] = forests.level(i);
}

Index next_forest(const Lay &held, Index begin, Index end, Words words, Out<Index> nodes,
                  Out<Index> links, Out<Index> parent) {
    require_range(begin, end, held.view.n);
    require(begin < end, "the range is empty");
    for (const auto *array : {&nodes, &links, &parent})
        require_size(*array, end - begin, "arrays by node");
    RangeForest drawn(held.view, nullptr);
    drawn.grow({begin, end}, generator(words));
    std::copy(drawn.forest().begin(), drawn.forest().end(), nodes.data());
    std::copy(drawn.links().begin(), drawn.links().end(), links.data());
    std::copy(drawn.parent().begin(), drawn.parent().end(), parent.data());
    return Index(drawn.forest().size());
}

Index arc_consistency(const Lay &held, Out<bool> allowed, int threads, const Deadline *deadline) {
    require_size(allowed, held.view.node_offset[held.view.n], "allowed");
    return Arcs(held.view, allowed.data()).everywhere(std::max(threads, 1), deadline);
}

bool decide_labels(const Lay &held, In<double> preference, Out<bool> allowed, In<Index> order,
                   Out<Index> labels, const Deadline *deadline) {
    const Layout &lay = held.view;
    require_size(preference, lay.node_offset[lay.n], "preference");
    require_size(allowed, lay.node_offset[lay.n], "allowed");
    require_size(labels, lay.n, "labels");
    require_nodes(order, lay.n);
    Arcs arcs(lay, allowed.data());
    std::fill_n(labels.data(), lay.n, Index(0));
    return decide(arcs, preference.data(), order.data(), Index(order.size()), labels.data(),
                  Meter(deadline));
}

using Optional = std::optional<In<double>>;
using Mask = std::optional<In<bool>>;

// A large-neighbourhood search; each call continues it. Keeps its arrays alive.
class Neighbourhoods {
  public:
    Neighbourhoods(const Lay &held, In<Index> stride, Index variables, Words words, double heat,
                   Index max_entries, Index max_total, Index rounds, Optional guide, double penalty,
                   Mask open)
        : graph_(label_graph(held.view, stride, variables)) {
        arrays_.keep(stride);
        // The search stores a table's minimising labels in 16 bits, hence the limit on max_entries.
        require(max_entries >= 2 && max_entries <= 65536 && max_entries <= max_total &&
                    max_total <= Index(1) << 30,
                "2 <= max_entries <= 65536 and max_entries <= max_total <= 2**30 are needed");
        require(rounds >= 1, "a cycle needs at least one round");
        std::copy_n(generator(words), 4, words_);
        options_ = {max_entries, max_total, rounds, heat, nullptr, penalty, nullptr};
        if (guide) {
            require_size(*guide, graph_.lay.node_offset[graph_.lay.n], "guide");
            options_.guide = arrays_.keep(*guide);
        }
        if (open) {
            require_size(*open, variables, "open");
            options_.open = arrays_.keep(*open);
        }
    }

    std::tuple<Index, Index, Index> improve(Out<Index> labels, Index work, int threads,
                                            const Deadline *deadline) {
        require_labels(graph_.lay, labels, "labels", threads);
        nb::gil_scoped_release released;
        if (search_ == nullptr)
            search_ = std::make_unique<RangeSearch>(graph_, labels.data(), words_, options_);
        const Index used = search_->improve(labels.data(), work, deadline, threads);
        return {used, search_->cycles(), search_->falls()};
    }

  private:
    Held<int> arrays_;
    const LabelGraph graph_;
    std::uint64_t words_[4];
    SearchOptions options_;
    std::unique_ptr<RangeSearch> search_;
};

bool merge_labels(const Lay &held, Out<Index> labels, Out<Index> other, In<Index> stride,
                  Index variables) {
    require_labels(held.view, labels);
    require_labels(held.view, other);
    const LabelGraph graph = label_graph(held.view, stride, variables);
    std::vector<std::int32_t> part(std::size_t(held.view.n), 0);
    return Merge(graph, {0, variables}, part.data())(labels.data(), other.data());
}

Incidence incidence(const In<std::int32_t> &node, const In<Index> &start,
                    const In<std::int32_t> &half) {
    require(start.size() > 0, "start needs n + 1 entries");
    const Index n = Index(start.size()) - 1, halves = Index(node.size());
    require_size(half, halves, "half");
    require(halves % 2 == 0 && start.data()[0] == 0 && start.data()[n] == halves,
            "start must run from 0 to the number of half-edges");
    for (Index k = 0; k < halves; ++k)
        require(0 <= half.data()[k] && half.data()[k] < halves && 0 <= node.data()[k] &&
                    node.data()[k] < n,
                "half-edge ", k, " is out of range");
    return {n, node.data(), start.data(), half.data()};
}

void sort_half_edges(In<std::int32_t> node, Out<Index> start, Out<std::int32_t> half) {
    require(start.size() > 0, "start needs n + 1 entries");
    require_size(half, Index(node.size()), "half");
    const Index n = Index(start.size()) - 1;
    for (std::size_t h = 0; h < node.size(); ++h)
        require(0 <= node.data()[h] && node.data()[h] < n, "half-edge ", h, " is out of range");
    sort_halves(node.data(), Index(node.size()), n, start.data(), half.data());
}

Index width_of_grid(In<std::int32_t> node) {
    require(node.size() % 2 == 0, "node must have two entries per edge");
    return grid_width(node.data(), Index(node.size() / 2));
}

void colour_nodes(In<std::int32_t> node, In<Index> start, In<std::int32_t> half,
                  Out<std::int32_t> out) {
    const Incidence graph = incidence(node, start, half);
    require_size(out, graph.n, "colour");
    greedy_colouring(graph, out.data());
}

void level_nodes(In<std::int32_t> node, In<Index> start, In<std::int32_t> half, In<Index> rank,
                 Out<std::int32_t> out) {
    const Incidence graph = incidence(node, start, half);
    require_size(rank, graph.n, "rank");
    require_size(out, graph.n, "level");
    depth_levels(graph, rank.data(), out.data());
}

void number_halves(In<std::int32_t> node, In<Index> start, In<std::int32_t> half, In<Index> level,
                   In<Index> turn, Out<std::int32_t> number, Out<std::int32_t> early, int threads) {
    const Incidence graph = incidence(node, start, half);
    require_size(level, graph.n, "level");
    require_size(turn, graph.n, "turn");
    require_size(number, Index(node.size()), "number");
    require_size(early, graph.n, "early");
    order_halves(graph, level.data(), turn.data(), number.data(), early.data(), threads);
}

void lay_halves(In<std::int32_t> node, In<std::int32_t> number, In<std::int32_t> early,
                In<Index> place, In<std::int32_t> group, In<std::int32_t> most_early,
                Out<std::uint32_t> slot, Out<std::uint32_t> mate, int threads) {
    const Index n = Index(place.size()), tiles = Index(group.size()), halves = Index(node.size());
    require_size(number, halves, "number");
    require_size(slot, halves, "slot");
    require_size(early, n, "early");
    require_size(most_early, tiles, "most_early");
    for (Index i = 0; i < n; ++i)
        require(0 <= place.data()[i] && place.data()[i] / 32 < tiles, "node ", i, " has no tile");
    for (Index h = 0; h < halves; ++h) {
        const Index i = node.data()[h];
        require(0 <= i && i < n, "half-edge ", h, " is out of range");
        const Index tile = place.data()[i] / 32, k = number.data()[h], own = early.data()[i];
        const Index at = group.data()[tile] + (k < own ? k : k - own + most_early.data()[tile]);
        require(0 <= at && at < Index(mate.size()) / 32, "half-edge ", h, " has no slot");
    }
    place_halves(node.data(), halves, number.data(), early.data(), place.data(), group.data(),
                 most_early.data(), slot.data(), mate.data(), threads);
}

void sort_keys(In<Index> key, Out<std::int32_t> order) {
    require_size(order, Index(key.size()), "order");
    for (std::size_t k = 0; k < key.size(); ++k)
        require(key.data()[k] >= 0, "key ", k, " is negative");
    order_by(key.data(), Index(key.size()), order.data());
}

// The values of row i are values[start[i]], ..., values[start[i + 1] - 1]; no row is empty.
void require_rows(In<Index> start, Index count, Index size) {
    require(Index(start.size()) > count, "start needs one entry more than there are rows");
    for (Index i = 0; i < count; ++i) {
        const Index begin = start.data()[i], end = start.data()[i + 1];
        require(0 <= begin && begin < end && end <= size, "row ", i, " has no values");
    }
}

void row_extremes(In<double> values, In<Index> start, Out<double> low, Out<double> high) {
    const Index count = Index(low.size());
    require_size(high, count, "high");
    require_rows(start, count, Index(values.size()));
    for (Index i = 0; i < count; ++i) {
        double least = infinity, most = -infinity;
        for (Index k = start.data()[i]; k < start.data()[i + 1]; ++k) {
            const double value = values.data()[k];
            least = value < least ? value : least;
            most = (value > most) & (value < infinity) ? value : most; // without a branch
        }
        const bool finite = least < infinity;
        low.data()[i] = finite ? least : 0.0;
        high.data()[i] = finite ? most : 0.0;
    }
}

// Labels of the first variables, from values of all node states.
void require_states(const Layout &v, Index states, const Out<Index> &labels) {
    require(states == v.node_offset[v.n], "there must be one value per node state");
    require(Index(labels.size()) <= v.n, "there are more labels than nodes");
}

void cheapest(const HeldLayout &lay, In<double> costs, Out<Index> labels) {
    const Layout &v = lay.view;
    require_states(v, Index(costs.size()), labels);
    for (Index i = 0; i < Index(labels.size()); ++i) {
        const double *own = costs.data() + v.node_offset[i];
        labels.data()[i] = std::min_element(own, own + v.num_labels[i]) - own;
    }
}

// Masses that differ by less than the fraction `tie` of the largest count as equal.
template <class T>
void most_likely(const HeldLayout &lay, In<T> mass, double tie, Out<Index> labels, int threads) {
    const Layout &v = lay.view;
    require_states(v, Index(mass.size()), labels);
    split(threads, Index(labels.size()), [&](Index first, Index last) {
        for (Index i = first; i < last; ++i) {
            const T *own = mass.data() + v.node_offset[i];
            const Index own_labels = v.num_labels[i];
            const double most = *std::max_element(own, own + own_labels);
            const double enough = std::min(most, (1.0 - tie) * most);
            labels.data()[i] =
                std::find_if(own, own + own_labels - 1, [&](double one) { return one >= enough; }) -
                own;
        }
    });
}

void spanning_forest_of(Index n, Matrix<Index> pairs, In<Index> order, Out<bool> chosen) {
    const Index count = Index(pairs.shape(0));
    require_size(order, count, "order");
    require_size(chosen, count, "chosen");
    require(count == 0 || pairs.shape(1) == 2, "pairs must have two columns");
    for (Index k = 0; k < count; ++k) {
        require_range(0, order.data()[k] + 1, count);
        require_range(0, pairs.data()[2 * k] + 1, n);
        require_range(0, pairs.data()[2 * k + 1] + 1, n);
    }
    spanning_forest(n, pairs.data(), order.data(), count, chosen.data());
}

} // namespace

void bind_labels(nb::module_ &m) {
    m.def("row_extremes", &row_extremes, arg("values"), arg("start"), arg("low"), arg("high"),
          Unlocked(), "Write the smallest and largest finite value of each row; 0 if it has none.");
    m.def("cheapest", &cheapest, arg("layout"), arg("costs"), arg("labels"), Unlocked(),
          "Write the label of least cost of each variable, ties to the first label.");
    m.def("most_likely", &most_likely<double>, arg("layout"), arg("mass"), nb::arg("tie"),
          arg("labels"), arg("threads") = 1, Unlocked(),
          "Write the label of largest mass of each variable, ties to the first label.");
    m.def("most_likely", &most_likely<float>, arg("layout"), arg("mass"), nb::arg("tie"),
          arg("labels"), arg("threads") = 1, Unlocked());
    m.def("sequential", &sequential, arg("layout"), arg("lam"), arg("reduced"), arg("order"),
          arg("num_variables"), arg("labels"), deadline_arg(), Unlocked(),
          "Fix the nodes sequentially in an order, each given those before it; those that are left "
          "at the deadline at once.");
    m.def("iterated_modes", &iterated_modes, arg("layout"), arg("labels"), arg("stride"),
          arg("num_variables"), arg("max_sweeps"), deadline_arg(), Unlocked(),
          "Run ICM in place: minimise the violated constraints first, then the cost.");
    m.def("independent_modes", &independent_modes, arg("layout"), arg("labels"), arg("max_rounds"),
          arg("threads") = 1, deadline_arg(), Unlocked(),
          "As iterated_modes, but in rounds that change independent nodes on several threads.");
    m.def("energy", &energy_of, arg("layout"), arg("labels"), nb::arg("constant") = 0.0,
          arg("threads") = 1, Unlocked(), "Return the energy of a labelling, rounded once.");
    m.def("first_labels", &first_labels, arg("layout"), arg("labels"), nb::arg("threads"),
          deadline_arg(), Unlocked(),
          "Assign labels by one backward pass of messages, as far as time allows, and decoding.");
    m.def("tree_optimum", &tree_optimum, arg("layout"), arg("labels"), arg("lam"), Unlocked(),
          "Labels of least cost, and λ that proves them, of a forest of finite costs; false if the "
          "graph has a cycle.");
    m.def("forest_rounds", &forest_rounds, arg("layout"), arg("labels"), arg("words"), arg("count"),
          nb::arg("heat"), arg("threads") = 1, deadline_arg(), Unlocked(),
          "Run tree moves on random forests in place, with noise that decreases from heat to 0.");
    m.def(
        "scattered_forest", &scattered_forest, arg("layout"), arg("labels"), nb::arg("seed"),
        nb::arg("heat"), arg("level"), nb::arg("threads"), Unlocked(),
        "Solve one forest that all threads draw together, as forest_rounds does on random graphs; "
        "fill in the levels of its nodes.");
    m.def("next_forest", &next_forest, arg("layout"), arg("begin"), arg("end"), arg("words"),
          arg("nodes"), arg("links"), arg("parent"), Unlocked(),
          "Draw a forest of a range of nodes as forest_rounds does; return its number of nodes.");
    m.def("arc_consistency", &arc_consistency, arg("layout"), arg("allowed"), arg("threads"),
          deadline_arg(), Unlocked(),
          "Remove unsupported states from `allowed`; return a node without states, or -1.");
    m.def("decide", &decide_labels, arg("layout"), arg("preference"), arg("allowed"), arg("order"),
          arg("labels"), deadline_arg(), Unlocked(),
          "Fix labels sequentially, maintaining arc consistency; return whether it succeeded.");
    nb::class_<Neighbourhoods>(m, "Neighbourhoods")
        .def(nb::init<const Lay &, In<Index>, Index, Words, double, Index, Index, Index, Optional,
                      double, Mask>(),
             nb::keep_alive<1, 2>(), arg("layout"), arg("stride"), arg("num_variables"),
             arg("words"), nb::arg("heat") = 0.0, arg("max_entries") = 4096,
             arg("max_total") = Index(1) << 24, arg("rounds") = 3, arg("guide") = nb::none(),
             nb::arg("penalty") = infinity, arg("open") = nb::none())
        .def("improve", &Neighbourhoods::improve, arg("labels"), arg("work"),
             nb::arg("threads") = 1, deadline_arg(),
             "Go on with a large-neighbourhood search, in place; return (work, cycles, "
             "improvements), the last two of all calls.");
    m.def("merge", &merge_labels, arg("layout"), arg("labels"), arg("other"), arg("stride"),
          arg("num_variables"), Unlocked(),
          "Take the connected components of the change to `other` that do not raise the cost; "
          "return whether it fell.");
    m.def("sort_halves", &sort_half_edges, arg("node"), arg("start"), arg("half"), Unlocked(),
          "Sort the half-edges by node; start[i] is the index of the first one of node i.");
    m.def("grid_width", &width_of_grid, arg("node"), Unlocked(),
          "Return the number of columns if the edges join neighbours of a grid, else 0.");
    m.def("greedy_colouring", &colour_nodes, arg("node"), arg("start"), arg("half"), arg("colour"),
          Unlocked(), "Compute a greedy (first-fit) colouring in node order.");
    m.def("depth_levels", &level_nodes, arg("node"), arg("start"), arg("half"), arg("rank"),
          arg("level"), Unlocked(),
          "Compute the depth of each node in the graph whose edges point to higher rank.");
    m.def("order_halves", &number_halves, arg("node"), arg("start"), arg("half"), arg("level"),
          arg("turn"), arg("number"), arg("early"), arg("threads") = 1, Unlocked(),
          "Number the half-edges of each node, those to earlier nodes first, and count these.");
    m.def("place_halves", &lay_halves, arg("node"), arg("number"), arg("early"), arg("place"),
          arg("group"), arg("most_early"), arg("slot"), arg("mate"), arg("threads") = 1, Unlocked(),
          "Compute the slots of half-edges in tiles of 32 nodes, and of their opposite "
          "half-edges.");
    m.def("order_by", &sort_keys, arg("key"), arg("order"), Unlocked(),
          "Sort non-negative integers: write the stable ascending order to `order`.");
    m.def("spanning_forest", &spanning_forest_of, nb::arg("n"), arg("pairs"), arg("order"),
          arg("chosen"), Unlocked(),
          "Mark the pairs of the spanning forest that Kruskal's algorithm takes in this order.");
}

} // namespace softmap
