// Bindings of the paper's randomised methods. Python owns the arrays; half-edges are in star order.
#include "bind.hpp"
#include "kernels/kernels.hpp"
#include "paper/accelerated.hpp"
#include "paper/greedy.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

namespace softmap {
namespace {

using namespace paper;

Random &random_of(const Words &words) { return *reinterpret_cast<Random *>(generator(words)); }

std::uint64_t random_word(Words words) { return random_of(words).next(); }

Index random_below(Words words, Index bound) {
    require(bound > 0, "bound must be positive, not ", bound);
    return random_of(words).below(bound);
}

void require_updates(const StarOrder &order, Index count) {
    require(count >= 0, "count must not be negative, not ", count);
    require(count == 0 || !order.position.empty(), "a model without edges has nothing to update");
}

std::pair<Index, Index> draw_block(const StarOrder &order, bool stars, Words words) {
    require_updates(order, 1);
    Random &random = random_of(words);
    const DrawnBlock block =
        stars ? StarBlocks::draw(order, random) : EdgeBlocks::draw(order, random);
    return {block.first, block.size};
}

Index lam_size(const StarOrder &order) { return order.lay.half_at(2 * order.lay.m); }

// The arrays of one run of Algorithm 1, whose sizes the constructor checks.
struct StandardRun {
    const StarOrder &order;
    Held<StandardArrays> held;

    StandardRun(const StarOrder &order, Out<double> lam, Out<double> incoming, Out<double> S,
                Out<double> mu, OutMatrix<double> half, Out<double> node_level, Out<double> total,
                Out<double> saved, Out<Index> stamp, Out<Index> epoch)
        : order(order) {
        const Index entries = lam_size(order), halves = Index(order.position.size());
        const auto take = [&](const auto &array, Index size, const char *name) {
            require_size(array, size, name);
            return held.keep(array);
        };
        require(half.shape(1) == 2, "half must be (2m, 2)");
        held.view = {take(lam, entries, "lam"),
                     take(incoming, entries, "incoming"),
                     take(S, entries, "S"),
                     take(mu, order.lay.node_offset[order.lay.n], "mu"),
                     reinterpret_cast<HalfEdgeSlack *>(take(half, 2 * halves, "half")),
                     take(node_level, order.lay.n, "node_level"),
                     reinterpret_cast<SlackTotal *>(take(total, 3, "total")),
                     take(saved, entries, "saved"),
                     take(stamp, halves, "stamp"),
                     take(epoch, 1, "epoch")};
    }

    void begin(double eta) const { kernels->begin_standard(order, held.view, eta); }

    Index run(double eta, bool stars, bool exact, Index count, Words words,
              const std::optional<In<double>> &sums) const {
        require_updates(order, count);
        Updates updates{stars, exact, count};
        if (sums) {
            require_size(*sums, stars ? StarBlocks::count(order) : EdgeBlocks::count(order),
                         "sums");
            updates.distribution = {sums->data(), Index(sums->size())};
        }
        return kernels->run_standard(order, held.view, eta, updates, random_of(words));
    }

    Index run_sampled(double eta, bool stars, Index count, Index sample, Words words) const {
        require_updates(order, count);
        require(sample > 0, "sample must be positive, not ", sample);
        return kernels->run_sampled(order, held.view, eta, stars, count, sample, random_of(words));
    }

    // The arrays with a tournament, whose size is checked.
    StandardArrays with(const Out<double> &tree) const {
        require_size(tree, 2 * Tournament::leaves_for(order.lay.n), "tree");
        StandardArrays arrays = held.view;
        arrays.tree = tree.data();
        return arrays;
    }

    void plant(double eta, bool stars, Out<double> tree) const {
        kernels->plant_greedy(order, with(tree), eta, stars);
    }

    Index run_greedy(double eta, bool stars, Index count, Out<double> tree) const {
        require_updates(order, count);
        return kernels->run_greedy(order, with(tree), eta, stars, count);
    }
};

// The arrays of one run of an accelerated method, whose sizes the constructor checks.
struct AcceleratedRun {
    const StarOrder &order;
    Held<AcceleratedArrays> held;

    AcceleratedRun(const StarOrder &order, Out<double> v, Out<double> w, In<double> gain)
        : order(order) {
        require_size(v, lam_size(order), "v");
        require_size(w, lam_size(order), "w");
        require_size(gain, order.lay.n, "gain");
        held.view = {held.keep(v), held.keep(w), held.keep(gain)};
    }

    std::pair<double, Index> run(double eta, bool stars, bool exact, bool printed, Index count,
                                 double theta, Words words) const {
        require_updates(order, count);
        const Index work = kernels->run_accelerated(order, held.view, eta, {stars, exact, count},
                                                    printed, theta, random_of(words));
        return {theta, work};
    }

    std::pair<double, Index> run_semi_greedy(double eta, Index count, Index sample, double theta,
                                             Words words) const {
        require_updates(order, count);
        require(sample > 0, "sample must be positive, not ", sample);
        const Index work =
            kernels->run_semi_greedy(order, held.view, eta, count, sample, theta, random_of(words));
        return {theta, work};
    }
};

void bind_standard(nb::module_ &m) {
    nb::class_<StandardRun>(m, "StandardRun", "The arrays of a run of Algorithm 1.")
        .def(nb::init<const StarOrder &, Out<double>, Out<double>, Out<double>, Out<double>,
                      OutMatrix<double>, Out<double>, Out<double>, Out<double>, Out<Index>,
                      Out<Index>>(),
             nb::keep_alive<1, 2>(), arg("order"), arg("lam"), arg("incoming"), arg("S"), arg("mu"),
             arg("half"), arg("node_level"), arg("total"), arg("saved"), arg("stamp"), arg("epoch"))
        .def("begin", &StandardRun::begin, arg("eta"), Unlocked(),
             "Compute all arrays from lam, and make lam the best iterate so far.")
        .def(
            "run", &StandardRun::run, arg("eta"), arg("stars"), arg("exact"), arg("count"),
            arg("words"), arg("sums").none() = nb::none(), Unlocked(),
            "Make `count` updates; return the number of messages sent. `sums` are the partial sums "
            "of the probabilities of the blocks, by default those of the paper.")
        .def("run_sampled", &StandardRun::run_sampled, arg("eta"), arg("stars"), arg("count"),
             arg("sample"), arg("words"), Unlocked(),
             "The same, each update at the best of `sample` random blocks.")
        .def("plant", &StandardRun::plant, arg("eta"), arg("stars"), arg("tree"), Unlocked(),
             "Fill the tournament of a greedy run from the current slack.")
        .def("run_greedy", &StandardRun::run_greedy, arg("eta"), arg("stars"), arg("count"),
             arg("tree"), Unlocked(),
             "Make `count` updates of the blocks of largest slack; return the number of messages.");
}

} // namespace

void bind_paper(nb::module_ &m) {
    m.def("random_word", &random_word, arg("words"), "Return the next 64 random bits.");
    m.def("random_below", &random_below, arg("words"), arg("bound"),
          "Return an exactly uniform integer in 0..bound-1.");
    nb::class_<StarOrder>(m, "StarOrder",
                          "The half-edges sorted by node, so that each star is contiguous.")
        .def(
            "__init__",
            [](StarOrder *self, const HeldLayout &lay) { new (self) StarOrder(lay.view); },
            nb::keep_alive<1, 2>(), arg("layout"));
    m.def("draw_block", &draw_block, arg("order"), arg("stars"), arg("words"),
          "Draw a block as an update does; return its first position and its size.");
    bind_standard(m);
    nb::class_<AcceleratedRun>(m, "AcceleratedRun", "The arrays of a run of Algorithm 2 or 3.")
        .def(nb::init<const StarOrder &, Out<double>, Out<double>, In<double>>(),
             nb::keep_alive<1, 2>(), arg("order"), arg("v"), arg("w"), arg("gain"))
        .def("run", &AcceleratedRun::run, arg("eta"), arg("stars"), arg("exact"), arg("printed"),
             arg("count"), arg("theta"), arg("words"), Unlocked(),
             "Make `count` updates; return the last theta and the number of messages sent.")
        .def("run_semi_greedy", &AcceleratedRun::run_semi_greedy, arg("eta"), arg("count"),
             arg("sample"), arg("theta"), arg("words"), Unlocked(),
             "Make `count` semi-greedy updates of stars; return the last theta and the number of "
             "messages sent.");
}

} // namespace softmap
