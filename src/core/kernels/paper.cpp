// The paper's randomised methods, for one instruction set.
#include "kernels.hpp"
#include "paper/accelerated.hpp"
#include "paper/greedy.hpp"

namespace softmap {
namespace paper {

// Calls f(blocks, rule) with the types selected by updates.stars and updates.exact.
template <class F> static Index with_types(Updates updates, F f) {
    const auto with_rule = [&](auto blocks) {
        return updates.exact ? f(blocks, Minimise{}) : f(blocks, Descend{});
    };
    return updates.stars ? with_rule(StarBlocks{}) : with_rule(EdgeBlocks{});
}

void begin_standard(const StarOrder &order, const StandardArrays &arrays, double eta) {
    Standard(order, arrays, eta).begin();
}

Index run_standard(const StarOrder &order, const StandardArrays &arrays, double eta,
                   Updates updates, Random &random) {
    Standard method(order, arrays, eta);
    return with_types(updates, [&]<class Blocks, class Rule>(Blocks, Rule) {
        return method.run<Blocks, Rule>(updates.count, updates.distribution, random);
    });
}

template <class Scheme>
static Index run_scheme(const StarOrder &order, const AcceleratedArrays &arrays, double eta,
                        Updates updates, double &theta, Random &random) {
    Accelerated<Scheme> method(order, arrays.v, arrays.w, arrays.gain, eta);
    return with_types(updates, [&]<class Blocks, class Rule>(Blocks, Rule) {
        return method.template run<Blocks, Rule>(updates.count, theta, random);
    });
}

Index run_accelerated(const StarOrder &order, const AcceleratedArrays &arrays, double eta,
                      Updates updates, bool printed, double &theta, Random &random) {
    const auto run = printed ? &run_scheme<Printed> : &run_scheme<Proved>;
    return run(order, arrays, eta, updates, theta, random);
}

// Calls f(blocks) with the type selected by `stars`.
template <class F> static auto with_blocks(bool stars, F f) {
    return stars ? f(StarBlocks{}) : f(EdgeBlocks{});
}

void plant_greedy(const StarOrder &order, const StandardArrays &arrays, double eta, bool stars) {
    Greedy method(order, arrays, eta);
    with_blocks(stars, [&]<class Blocks>(Blocks) { method.plant<Blocks>(); });
}

Index run_greedy(const StarOrder &order, const StandardArrays &arrays, double eta, bool stars,
                 Index count) {
    Greedy method(order, arrays, eta);
    return with_blocks(stars, [&]<class Blocks>(Blocks) { return method.run<Blocks>(count); });
}

Index run_sampled(const StarOrder &order, const StandardArrays &arrays, double eta, bool stars,
                  Index count, Index sample, Random &random) {
    Greedy method(order, arrays, eta);
    return with_blocks(stars, [&]<class Blocks>(Blocks) {
        return method.run_sampled<Blocks>(count, sample, random);
    });
}

Index run_semi_greedy(const StarOrder &order, const AcceleratedArrays &arrays, double eta,
                      Index count, Index sample, double &theta, Random &random) {
    Accelerated<Proved> method(order, arrays.v, arrays.w, arrays.gain, eta);
    return method.run_semi_greedy<StarBlocks>(count, sample, theta, random);
}

} // namespace paper

void add_paper(Kernels &table) {
    table.begin_standard = paper::begin_standard;
    table.run_standard = paper::run_standard;
    table.run_accelerated = paper::run_accelerated;
    table.plant_greedy = paper::plant_greedy;
    table.run_greedy = paper::run_greedy;
    table.run_sampled = paper::run_sampled;
    table.run_semi_greedy = paper::run_semi_greedy;
}

} // namespace softmap
