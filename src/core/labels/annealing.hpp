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
    Index longest = 1000;  // limit on the sweeps of the descent that ends a run
};

class Annealing {
  public:
    // The arrays of `in` must outlive the object.
    Annealing(const exact::Input &in, const std::uint64_t *words,
              const AnnealingOptions &options = {})
        : in_(in), options_(options), costs_(in), penalty_(costs_.scale()),
          margin_(options.margin * penalty_) {
        std::copy_n(words, 4, seed_.begin());
    }

    // Takes labels over as the best ones if they cost less.
    void offer(std::span<const std::int64_t> labels) {
        if (const double energy = exact::energy(in_, labels); energy < least_) {
            least_ = energy;
            best_.assign(labels.begin(), labels.end());
        }
    }

    // Goes on until the meter is spent.
    void run(Meter &meter) {
        while (costs_.n() > 0 && !meter.spent()) {
            if (sweep_ == 0 && at_ == 0)
                begin();
            sweep(meter);
            if (at_ == costs_.n())
                end_sweep();
        }
    }

    const LabelCosts &costs() const { return costs_; }
    const std::vector<std::int64_t> &best() const { return best_; } // empty if there are none
    double least() const { return least_; }                         // cost of the best labels
    double penalty() const { return penalty_; } // of a violated constraint in the next run
    Index runs() const { return runs_; }        // number of complete runs

  private:
    // The first labels and temperature of the next run. Run 0 is a descent from random labels, at
    // whose end the first temperatures are computed.
    void begin() {
        for (std::size_t k = 0; k < 4; ++k)
            words_[k] = mixed(seed_[k] + 4 * std::uint64_t(runs_) + k);
        const Index turn = runs_ == 0 ? 0 : (runs_ - 1) % (1 + options_.again);
        const Index level = runs_ == 0 ? 0 : (runs_ - 1) / (1 + options_.again);
        again_ = turn > 0 && !best_.empty();
        sweeps_ = runs_ == 0 ? 0 : options_.first << std::min<Index>(level, 40);
        start_ = hot_;
        if (again_) {
            sweeps_ = std::max(sweeps_ / options_.again, options_.first);
            start_ = std::max(hot_ * std::pow(options_.reheat, double(turn)), cold_);
            costs_.set(best_, penalty_);
            return;
        }
        std::vector<std::int64_t> labels(std::size_t(costs_.n()));
        for (Index i = 0; i < costs_.n(); ++i)
            labels[i] = below(words_.data(), costs_.count(i));
        costs_.set(labels, penalty_);
    }

    static std::uint64_t mixed(std::uint64_t word) { // splitmix64
        word += 0x9e3779b97f4a7c15;
        word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
        word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
        return word ^ (word >> 31);
    }

    // Visits variables from where the last call has ended, until the end of the sweep.
    void sweep(Meter &meter) {
        if (at_ == 0) {
            const double done = double(sweep_) / double(std::max<Index>(sweeps_ - 1, 1));
            temperature_ = sweep_ < sweeps_ ? start_ * std::pow(cold_ / start_, done) : 0.0;
            changed_ = false;
        }
        for (; at_ < costs_.n() && !meter.spent(); ++at_) {
            const Index now = costs_.label(at_), next = drawn_label(at_, now);
            read_ += costs_.count(at_);
            if (next != now) {
                costs_.change(at_, next);
                changed_ = true;
            }
            if (read_ + costs_.work() - counted_ >= often)
                count_work(meter);
        }
        if (at_ == costs_.n())
            count_work(meter);
    }

    void count_work(Meter &meter) {
        const Index work = read_ + costs_.work();
        meter.use(work - counted_);
        counted_ = work;
    }

    // The next label of a variable: by Metropolis' rule for two labels, by heat bath (the cheapest
    // one after random costs) for more; at temperature 0 the cheapest one.
    Index drawn_label(Index i, Index now) {
        const double *cost = costs_.of(i);
        const Index count = costs_.count(i);
        if (temperature_ == 0.0)
            return cheapest(cost, count, now);
        if (count == 2) {
            const double rise = cost[1 - now] - cost[now];
            const bool may =
                rise < most * temperature_ && rise < temperature_ * *drawn(noise_.exponential);
            return may ? 1 - now : now;
        }
        double least = infinity;
        Index next = now;
        for (Index first = 0; first < count && count > 1; first += wide) {
            const double *random = drawn(noise_.gumbel) - first;
            for (Index x = first; x < std::min(count, first + wide); ++x)
                if (const double value = cost[x] - temperature_ * random[x]; value < least)
                    least = value, next = x;
        }
        return next;
    }

    template <class Table> const double *drawn(const Table &table) {
        return table.data() + (next_word(words_.data()) >> (64 - bits));
    }

    Index cheapest(const double *cost, Index count, Index now) const {
        double least = cost[now] - margin_;
        for (Index x = 0; x < count; ++x)
            if (cost[x] < least)
                least = cost[x], now = x;
        return now;
    }

    void end_sweep() {
        at_ = 0;
        ++sweep_;
        keep();
        if (sweep_ <= sweeps_ || (changed_ && sweep_ < sweeps_ + options_.longest))
            return;
        if (!again_)
            set_temperatures();
        if (!best_.empty())
            combine();
        if (costs_.hard())
            penalty_ *= costs_.violated() == 0 ? options_.relax : options_.stiffen;
        ++runs_;
        sweep_ = 0;
    }

    void keep() {
        if (costs_.violated() == 0 && costs_.energy() < least_ - margin_)
            offer(costs_.labels());
    }

    // The temperatures of later runs, from the rises of the cost by changes of single labels.
    void set_temperatures() {
        std::vector<double> least, all;
        for (Index i = 0; i < costs_.n(); ++i) {
            double lowest = infinity;
            for (Index x = 0; x < costs_.count(i); ++x)
                if (const double rise = costs_.of(i)[x] - costs_.of(i)[costs_.label(i)];
                    rise > margin_) {
                    lowest = std::min(lowest, rise);
                    all.push_back(rise);
                }
            if (lowest < infinity)
                least.push_back(lowest);
        }
        const auto quantile = [](std::vector<double> &rises, double share) {
            std::sort(rises.begin(), rises.end());
            return rises.empty() ? 1.0 : rises[std::size_t(share * double(rises.size() - 1))];
        };
        hot_ = quantile(least, options_.upper);
        cold_ = options_.cold *
                std::min(quantile(least, options_.lower), quantile(all, options_.lower));
        cold_ = std::clamp(cold_, hot_ / options_.ratio, hot_);
    }

    // Takes the best labels in each connected part of the difference to them where they cost less.
    // The outcome costs no more than the best labels: each part is independent of the others.
    void combine() {
        met_.assign(std::size_t(costs_.n()), 0);
        for (Index i = 0; i < costs_.n(); ++i)
            if (differs(i))
                combine_part(i);
        keep();
    }

    bool differs(Index i) const { return costs_.label(i) != best_[i] && !met_[i]; }

    void combine_part(Index root) {
        part_.assign(1, root), before_.clear();
        met_[root] = 1;
        for (std::size_t k = 0; k < part_.size(); ++k)
            costs_.neighbours(part_[k], [&](Index j) {
                if (differs(j)) {
                    met_[j] = 1;
                    part_.push_back(j);
                }
            });
        const double energy = costs_.energy();
        for (const Index i : part_) {
            before_.push_back(costs_.label(i));
            costs_.change(i, best_[i]);
        }
        if (costs_.energy() > energy)
            for (std::size_t k = 0; k < part_.size(); ++k)
                costs_.change(part_[k], before_[k]);
    }

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
