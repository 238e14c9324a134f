// The paper's randomised methods. Arrays belong to Python, half-edges in them are in star order.
#include "bind.hpp"
#include "kernels/kernels.hpp"

#include <nanobind/stl/pair.h>

namespace softmap {
namespace {

using namespace paper;

// The words of the generator, in place.
Random &generator(const Out<std::uint64_t> &words) {
    require_size(words, 4, "words");
    return *reinterpret_cast<Random *>(words.data());
}

std::uint64_t random_word(Out<std::uint64_t> words) { return generator(words).next(); }

Index random_below(Out<std::uint64_t> words, Index bound) {
    require(bound > 0, "bound must be positive, not ", bound);
    return generator(words).below(bound);
}

void require_updates(const StarOrder &order, Index count) {
    require(count >= 0, "count must not be negative, not ", count);
    require(count == 0 || !order.position.empty(), "a model without edges has nothing to update");
}

std::pair<Index, Index> draw_block(const StarOrder &order, bool stars, Out<std::uint64_t> words) {
    require_updates(order, 1);
    Random &random = generator(words);
    const DrawnBlock block =
        stars ? StarBlocks::draw(order, random) : EdgeBlocks::draw(order, random);
    return {block.first, block.size};
}

Index lam_size(const StarOrder &order) { return order.lay.half_at(2 * order.lay.m); }

// Arrays of a run of Algorithm 1, checked once.
struct HeldStandard {
    const StarOrder &order;
    Out<double> lam, incoming, S, mu;
    OutMatrix<double> half;
    Out<double> node_level, total, saved;
    Out<Index> stamp, epoch;

    void check() const {
        const Index entries = lam_size(order), halves = Index(order.position.size());
        require_size(lam, entries, "lam");
        require_size(incoming, entries, "incoming");
        require_size(S, entries, "S");
        require_size(saved, entries, "saved");
        require_size(mu, order.lay.node_offset[order.lay.n], "mu");
        require_size(node_level, order.lay.n, "node_level");
        require(Index(half.shape(0)) == halves && half.shape(1) == 2, "half must be (2m, 2)");
        require_size(stamp, halves, "stamp");
        require_size(total, 3, "total");
        require_size(epoch, 1, "epoch");
    }

    StandardArrays arrays() const {
        return {lam.data(),
                incoming.data(),
                S.data(),
                mu.data(),
                reinterpret_cast<HalfEdgeSlack *>(half.data()),
                node_level.data(),
                reinterpret_cast<SlackTotal *>(total.data()),
                saved.data(),
                stamp.data(),
                epoch.data()};
    }

    void begin(double eta) const { kernels->begin_standard(order, arrays(), eta); }

    Index run(double eta, bool stars, bool exact, Index count, Out<std::uint64_t> words) const {
        require_updates(order, count);
        return kernels->run_standard(order, arrays(), eta, {stars, exact, count}, generator(words));
    }
};

std::pair<double, Index> accelerated(const StarOrder &order, double eta, bool stars, bool exact,
                                     bool printed, Index count, double theta, Out<double> v,
                                     Out<double> w, In<double> gain, Out<std::uint64_t> words) {
    require_updates(order, count);
    require_size(v, lam_size(order), "v");
    require_size(w, lam_size(order), "w");
    require_size(gain, order.lay.n, "gain");
    const AcceleratedArrays arrays{v.data(), w.data(), gain.data()};
    const Index work = kernels->run_accelerated(order, arrays, eta, {stars, exact, count}, printed,
                                                theta, generator(words));
    return {theta, work};
}

void bind_standard(nb::module_ &m) {
    nb::class_<HeldStandard>(m, "StandardRun", "The arrays of a run of Algorithm 1.")
        .def(
            "__init__",
            [](HeldStandard *self, const StarOrder &order, Out<double> lam, Out<double> incoming,
               Out<double> S, Out<double> mu, OutMatrix<double> half, Out<double> node_level,
               Out<double> total, Out<double> saved, Out<Index> stamp, Out<Index> epoch) {
                HeldStandard held{order,      lam,   incoming, S,     mu,   half,
                                  node_level, total, saved,    stamp, epoch};
                held.check();
                new (self) HeldStandard(std::move(held));
            },
            nb::keep_alive<1, 2>(), arg("order"), arg("lam"), arg("incoming"), arg("S"), arg("mu"),
            arg("half"), arg("node_level"), arg("total"), arg("saved"), arg("stamp"), arg("epoch"))
        .def("begin", &HeldStandard::begin, arg("eta"), Unlocked(),
             "Fill everything that follows from lam, which is the best iterate so far.")
        .def("run", &HeldStandard::run, arg("eta"), arg("stars"), arg("exact"), arg("count"),
             arg("words"), Unlocked(), "Make `count` updates; return the number of messages sent.");
}

} // namespace

void bind_paper(nb::module_ &m) {
    m.def("random_word", &random_word, arg("words"), "The next 64 random bits.");
    m.def("random_below", &random_below, arg("words"), arg("bound"),
          "An integer of 0..bound-1, exactly uniform.");
    nb::class_<StarOrder>(m, "StarOrder", "The half-edges of each node one after the other.")
        .def(
            "__init__",
            [](StarOrder *self, const HeldLayout<double> &lay) { new (self) StarOrder(lay.view); },
            nb::keep_alive<1, 2>(), arg("layout"));
    m.def("draw_block", &draw_block, arg("order"), arg("stars"), arg("words"),
          "Draw a block as an update does: its first position and its size.");
    bind_standard(m);
    m.def("run_accelerated", &accelerated, arg("order"), arg("eta"), arg("stars"), arg("exact"),
          arg("printed"), arg("count"), arg("theta"), arg("v"), arg("w"), arg("gain"), arg("words"),
          Unlocked(),
          "Make `count` updates of Algorithm 2 or 3; return the last theta and the number of "
          "messages sent.");
}

} // namespace softmap
