// The course of `AssignmentDual`: passes, and heat when they stall.
#pragma once

#include "permutations/dual.hpp"

namespace softmap::permutations {

// Raises the bound of one dual; every call of `run` continues, and the best multipliers are kept.
//
// Passes without heat raise the bound until they stall, as coordinate ascent does. Then heat moves
// a part of the bound itself back to the pairs, less from pass to pass. Each cooling takes longer
// than the one before.
class DualAscent {
  public:
    DualAscent(Costs costs, std::uint64_t seed) : dual_(std::move(costs)), best_(dual_) {
        spread_seed(seed, random_.word);
    }

    const AssignmentDual &best() const { return best_; }
    Index coolings() const { return coolings_; }

    void run(Meter &meter) {
        if (started_ < dual_.costs.size()) {
            started_ = dual_.start(started_, meter);
            keep();
            if (started_ < dual_.costs.size())
                return;
        }
        while (!meter.spent()) {
            const Cost before = dual_.bound;
            const bool all = dual_.pass(random_, Cost(heat_ * double(dual_.bound)), meter);
            meter.use(dual_.costs.size() * dual_.costs.size());
            const bool cold = heat_ == 0.0;
            keep();
            if (!all)
                return;
            heat_ = heat_ < least ? 0.0 : heat_ * decay_;
            if (cold && double(dual_.bound - before) <= stalled * double(dual_.bound))
                reheat();
        }
    }

  private:
    void keep() {
        if (dual_.bound > best_.bound)
            best_ = dual_;
    }
    void reheat() {
        ++coolings_;
        heat_ = hottest / double(dual_.costs.variables);
        decay_ = 1.0 - (1.0 - decay_) / 1.5;
        if (2 * dual_.bound < best_.bound)
            dual_ = best_;
    }

    // Fractions of the bound per variable, or in all.
    static constexpr double hottest = 0.02, least = 1e-6, stalled = 2e-5;
    AssignmentDual dual_, best_;
    Random random_;
    double heat_ = 0.0, decay_ = 0.93;
    Index coolings_ = 0;
    Index started_ = 0; // blocks of the first bound
};

} // namespace softmap::permutations
