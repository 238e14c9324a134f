// Simulated annealing over single labels: a sequence of runs, each at falling temperatures.
//
// What a run does depends on its number and on the labels from which it starts, not on where calls
// have stopped: a longer limit continues what a shorter one has begun.
#pragma once

#include "base/deadline.hpp"
#include "base/random.hpp"
#include "label_costs.hpp"

#include <array>

namespace softmap {

struct AnnealingOptions {
    Index first = 16;     // sweeps of the first run from random labels; each has twice as many
    Index again = 6;      // runs from the best labels after each of these, about as long together
    double reheat = 0.65; // factor from one of their first temperatures to the next
    double upper = 0.75;  // the first temperature: this quantile of the least rise of each variable
    double lower = 0.1;   // the last one: `cold` times this quantile of the rises
    double cold = 0.12;
    double ratio = 300.0;  // largest ratio of the first and the last temperature
    double relax = 0.8;    // factor of the penalty after a run without violated constraints
    double stiffen = 2.0;  // and after one with some
    double margin = 1e-12; // least change of the cost, in units of the scale of the costs
};

class Annealing {
  public:
    // The arrays of `in` must outlive the object.
    Annealing(const exact::Input &in, const std::uint64_t *words,
              const AnnealingOptions &options = {});

    // Takes labels over as the best ones if they cost less.
    void offer(std::span<const std::int64_t> labels);

    // Goes on until the meter is spent.
    void run(Meter &meter);

    const LabelCosts &costs() const { return costs_; }
    const std::vector<std::int64_t> &best() const { return best_; } // empty if there are none
    double least() const { return least_; }                         // cost of the best labels
    double penalty() const { return penalty_; } // of a violated constraint in the next run
    Index runs() const { return runs_; }        // number of complete runs

  private:
    // The first labels and temperature of the next run. Run 0 is a descent from random labels, at
    // whose end the first temperatures are computed.
    void begin();

    static std::uint64_t mixed(std::uint64_t word);

    // Visits variables from where the last call has ended, until the end of the sweep.
    void sweep(Meter &meter);

    void count_work(Meter &meter);

    // The next label of a variable: by Metropolis' rule for two labels, by heat bath (the cheapest
    // one after random costs) for more; at temperature 0 the cheapest one.
    Index drawn_label(Index i, Index now);

    template <class Table> const double *drawn(const Table &table) {
        return table.data() + (next_word(words_.data()) >> (64 - bits));
    }

    Index cheapest(const double *cost, Index count, Index now) const;

    void end_sweep();

    void keep();

    // The temperatures of later runs, from the rises of the cost by changes of single labels.
    void set_temperatures();

    // Takes the best labels in each connected part of the difference to them where they cost less.
    // The outcome costs no more than the best labels: each part is independent of the others.
    void combine();

    bool differs(Index i) const { return costs_.label(i) != best_[i] && !met_[i]; }

    void combine_part(Index root);

    static constexpr int bits = 12;
    static constexpr Index drawn_from = 1 << bits, wide = 64; // sizes of the tables of `Noise`
    static constexpr double most = 9.02;                      // above all of `exponential`
    static constexpr Index often = 256;                       // work between two looks at the meter

    // Quantiles of the exponential and of the Gumbel distribution, in random order.
    struct Noise {
        std::array<double, drawn_from> exponential;
        std::array<double, drawn_from + wide> gumbel;

        Noise() {
            std::uint64_t words[4] = {1, 2, 3, 4};
            for (Index k = 0; k < drawn_from; ++k)
                exponential[k] = -std::log((double(k) + 0.5) / double(drawn_from));
            for (Index k = drawn_from - 1; k > 0; --k)
                std::swap(exponential[k], exponential[below(words, k + 1)]);
            for (Index k = 0; k < drawn_from + wide; ++k)
                gumbel[k] = -std::log(exponential[k % drawn_from]);
        }
        static const Noise &tables() {
            static const Noise made; // some 8,000 logarithms: once for all models
            return made;
        }
    };

    const exact::Input in_;
    const AnnealingOptions options_;
    LabelCosts costs_;
    double penalty_, margin_;
    std::array<std::uint64_t, 4> seed_, words_{};
    const Noise &noise_ = Noise::tables();
    std::vector<std::int64_t> best_;
    std::vector<Index> part_, before_;
    std::vector<char> met_;
    double least_ = infinity, hot_ = 1.0, cold_ = 1.0, start_ = 1.0, temperature_ = 0.0;
    Index runs_ = 0, sweeps_ = 0, sweep_ = 0, at_ = 0, read_ = 0, counted_ = 0;
    bool again_ = false, changed_ = false;
};

} // namespace softmap
