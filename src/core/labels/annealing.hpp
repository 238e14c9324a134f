// Simulated annealing: changes of single labels at falling temperatures, in runs that can stop and
// continue anywhere.
//
// For each variable the cost of each of its labels, given all other labels, is stored, and updated
// when a neighbour changes. What a run does depends on its number, and on the labels from which it
// starts; not on where calls were stopped.
#pragma once

#include "base/budget.hpp"
#include "base/random.hpp"
#include "exact/input.hpp"

#include <array>
#include <cstring>
#include <string_view>
#include <unordered_map>

namespace softmap {

struct AnnealingOptions {
    Index first = 16;       // sweeps of the first two runs; the next two have twice as many, etc.
    double hot = 1.0;       // first temperature, in units of the upper quantile of cost differences
    double cold = 0.12;      // last temperature, in units of the lower quantile
    double upper = 0.75, lower = 0.1; // quantiles of the cost of changing a label, of all variables
    double ratio = 300.0; // largest ratio of the two
    Index again = 6; // runs from the best labels after each run from random ones
    double reheat = 0.65;    // first temperature of runs that start from the best labels, relative
    double relax = 0.8, stiffen = 2.0; // factors of the penalty after labels with and without
                                       // violated constraints
};

class Annealing {
  public:
    // The arrays of `in` must outlive the object.
    Annealing(const exact::Input &in, const std::uint64_t *words, const AnnealingOptions &options = {})
        : in_(in), options_(options), x_(in.n(), 0), best_(in.n(), 0) {
        std::copy_n(words, 4, seed_.begin());
        link();
        cost_.resize(in.unary.size());
        draw_noise();
        set_penalty();
    }

    // Takes labels over as the best ones if they cost less.
    void offer(std::span<const std::int64_t> labels) {
        const double energy = exact::energy(in_, labels);
        if (energy < least_) {
            least_ = energy;
            best_.assign(labels.begin(), labels.end());
        }
    }

    // Goes on until the budget is spent.
    void run(Budget &budget) {
        while (n() > 0 && !budget.spent()) {
            if (at_ == 0 && sweep_ == 0)
                begin();
            sweep(budget);
            if (at_ == n())
                end_sweep();
        }
    }

    const std::vector<std::int64_t> &best() const { return best_; }
    double least() const { return least_; }
    Index runs() const { return runs_; }
    std::span<const double> costs() const { return cost_; }
    std::span<const std::int64_t> labels() const { return x_; }
    double penalty() const { return penalty_; }

  private:
    // A factor of two variables, seen from one of them.
    struct Arc {
        Index to, table, own, step; // start of the table, and steps of the two labels in it
    };

    Index n() const { return Index(in_.n()); }
    Index labels(Index i) const { return offset_[i + 1] - offset_[i]; }
    double soft(double cost) const { return cost == infinity ? penalty_ : cost; }

    void link() {
        offset_.assign(n() + 1, 0);
        for (Index i = 0; i < n(); ++i)
            offset_[i + 1] = offset_[i] + in_.num_labels[i];
        arc_start_.assign(n() + 1, 0), factor_start_.assign(n() + 1, 0);
        each_factor([&](Index, Index, std::span<const std::int64_t> scope) {
            for (const Index i : scope)
                ++(scope.size() == 2 ? arc_start_ : factor_start_)[i + 1];
        });
        std::partial_sum(arc_start_.begin(), arc_start_.end(), arc_start_.begin());
        std::partial_sum(factor_start_.begin(), factor_start_.end(), factor_start_.begin());
        arcs_.resize(arc_start_.back()), factors_.resize(factor_start_.back());
        auto arc = arc_start_, factor = factor_start_;
        std::unordered_multimap<std::size_t, Index> known;
        each_factor([&](Index f, Index at, std::span<const std::int64_t> scope) {
            const Index table = shared(known, at, in_.table_size(int(f)));
            table_.push_back(table);
            if (scope.size() != 2) {
                for (const Index i : scope)
                    factors_[factor[i]++] = f;
                return;
            }
            const Index i = scope[0], j = scope[1], columns = labels(j);
            const bool same = symmetric(table, labels(i), columns);
            arcs_[arc[i]++] = {j, table, columns, 1};
            arcs_[arc[j]++] = {i, table, same ? columns : 1, same ? 1 : columns};
        });
    }

    // The first table with the same entries: fewer tables need less of the cache.
    Index shared(std::unordered_multimap<std::size_t, Index> &known, Index table, Index size) const {
        const auto *costs = reinterpret_cast<const char *>(in_.tables.data() + table);
        const std::string_view bytes(costs, std::size_t(size) * sizeof(double));
        const std::size_t hash = std::hash<std::string_view>()(bytes);
        const auto [first, last] = known.equal_range(hash);
        for (auto at = first; at != last; ++at)
            if (at->second + size <= table &&
                std::memcmp(in_.tables.data() + at->second, costs, bytes.size()) == 0)
                return at->second;
        known.emplace(hash, table);
        return table;
    }

    // Whether a table of pairs is symmetric; its rows are then read instead of its columns.
    bool symmetric(Index table, Index rows, Index columns) const {
        if (rows != columns)
            return false;
        const double *costs = in_.tables.data() + table;
        for (Index x = 0; x < rows; ++x)
            for (Index y = 0; y < x; ++y)
                if (costs[x * rows + y] != costs[y * rows + x])
                    return false;
        return true;
    }

    template <class Body> void each_factor(Body body) const {
        Index table = 0;
        for (Index f = 0; f < in_.num_factors(); ++f) {
            const Index first = in_.scope_start[f], last = in_.scope_start[f + 1];
            body(f, table, in_.scope.subspan(first, last - first));
            table += in_.table_size(int(f));
        }
    }

    // Quantiles of the exponential and of the Gumbel distribution, in random order.
    void draw_noise() {
        std::array<std::uint64_t, 4> words{1, 2, 3, 4};
        for (Index k = 0; k < drawn; ++k)
            noise_[k] = -std::log((double(k) + 0.5) / double(drawn));
        for (Index k = drawn - 1; k > 0; --k)
            std::swap(noise_[k], noise_[below(words.data(), k + 1)]);
        for (Index k = 0; k < drawn; ++k)
            gumbel_[k] = -std::log(noise_[k]);
        std::copy_n(gumbel_.begin(), wide, gumbel_.begin() + drawn);
    }

    // The first penalty: the mean over all variables of the ranges of their finite costs.
    void set_penalty() {
        double sum = 0.0;
        const auto range = [&](std::span<const double> costs, double times) {
            double low = infinity, high = -infinity;
            for (const double cost : costs) {
                hard_ |= cost == infinity;
                if (cost < infinity)
                    low = std::min(low, cost), high = std::max(high, cost);
            }
            sum += high > low ? times * (high - low) : 0.0;
        };
        for (Index i = 0; i < n(); ++i)
            range(in_.unary.subspan(offset_[i], labels(i)), 1.0);
        each_factor([&](Index f, Index table, std::span<const std::int64_t> scope) {
            range(in_.tables.subspan(table, in_.table_size(int(f))), double(scope.size()));
        });
        penalty_ = sum > 0.0 ? sum / double(n()) : 1.0;
        margin_ = finest_ = 1e-12 * penalty_;
    }

    // The labels, costs and temperatures of the next run.
    void begin() {
        for (std::size_t k = 0; k < 4; ++k)
            words_[k] = mixed(seed_[k] + std::uint64_t(runs_) * 4 + k);
        const Index turn = runs_ % (1 + options_.again);
        again_ = turn > 0 && least_ < infinity;
        sweeps_ = options_.first << std::min<Index>(runs_ / (1 + options_.again), 40);
        start_ = hot_;
        if (again_) {
            sweeps_ = std::max<Index>(sweeps_ / options_.again, options_.first);
            start_ = std::max(hot_ * std::pow(options_.reheat, double(turn)), cold_);
        }
        if (again_)
            x_ = best_;
        else
            for (Index i = 0; i < n(); ++i)
                x_[i] = below(words_.data(), labels(i));
        compute();
        temperature_ = 0.0;
        if (hot_ == 0.0)
            sweeps_ = 0; // a descent, from which temperatures are taken
    }

    static std::uint64_t mixed(std::uint64_t word) { // splitmix64
        word += 0x9e3779b97f4a7c15;
        word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
        word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
        return word ^ (word >> 31);
    }

    // All costs, the energy and the number of violated constraints of the labels.
    void compute() {
        energy_ = 0.0, broken_ = 0;
        used_ += Index(cost_.size() + in_.scope.size());
        for (std::size_t k = 0; k < cost_.size(); ++k)
            cost_[k] = soft(in_.unary[k]);
        for (Index i = 0; i < n(); ++i)
            note(in_.unary[offset_[i] + x_[i]]);
        each_factor([&](Index, Index table, std::span<const std::int64_t> scope) {
            Index at = table, step = 1;
            for (std::size_t k = scope.size(); k-- > 0; step *= labels(scope[k]))
                at += step * x_[scope[k]];
            note(in_.tables[at]);
            step = 1;
            for (std::size_t k = scope.size(); k-- > 0; step *= labels(scope[k])) {
                const Index i = scope[k], start = at - step * x_[i];
                for (Index x = 0; x < labels(i); ++x)
                    cost_[offset_[i] + x] += soft(in_.tables[start + x * step]);
            }
        });
    }

    void note(double cost) {
        energy_ += soft(cost);
        broken_ += cost == infinity;
    }

    // Visits variables from where the last call has ended, until the end of the sweep.
    void sweep(Budget &budget) {
        if (at_ == 0)
            temper();
        for (; at_ < n() && !budget.spent(); ++at_) {
            const Index i = at_, count = labels(i), now = x_[i];
            const double *cost = cost_.data() + offset_[i];
            Index next = now;
            if (count == 2) {
                const double rise = cost[1 - now] - cost[now];
                if (rise < 10.0 * temperature_ ? rise < temperature_ * noise() : rise < -margin_)
                    next = 1 - now;
            } else if (count > 2) {
                next = drawn_label(cost, count, now);
            }
            used_ += count;
            if (next != now)
                change(i, next);
            if (used_ >= 256) {
                budget.use(used_);
                used_ = 0;
            }
        }
    }

    double noise() { return noise_[next_word(words_.data()) >> (64 - bits)]; }

    // A label by heat bath: the cheapest after random costs.
    Index drawn_label(const double *cost, Index count, Index now) {
        Index next = now;
        if (temperature_ > 0.0) {
            double least = infinity;
            for (Index from = 0; from < count; from += wide) {
                const double *noise = gumbel_.data() + (next_word(words_.data()) >> (64 - bits));
                for (Index x = from; x < std::min(count, from + wide); ++x) {
                    const double value = cost[x] - temperature_ * noise[x - from];
                    if (value < least)
                        least = value, next = x;
                }
            }
        } else {
            double least = cost[now] - margin_;
            for (Index x = 0; x < count; ++x)
                if (cost[x] < least)
                    least = cost[x], next = x;
        }
        return next;
    }

    void temper() {
        changed_ = 0;
        if (sweep_ >= sweeps_) {
            temperature_ = 0.0;
            return;
        }
        const double done = double(sweep_) / double(std::max<Index>(sweeps_ - 1, 1));
        temperature_ = start_ * std::pow(std::min(cold_ / start_, 1.0), done);
    }

    void change(Index i, Index next) {
        const Index now = x_[i];
        energy_ += cost_[offset_[i] + next] - cost_[offset_[i] + now];
        broken_ += (in_.unary[offset_[i] + next] == infinity) - (in_.unary[offset_[i] + now] == infinity);
        x_[i] = next;
        ++changed_;
        for (Index k = arc_start_[i]; k < arc_start_[i + 1]; ++k) {
            const Arc &arc = arcs_[k];
            const double *to = in_.tables.data() + arc.table + next * arc.own;
            const double *from = in_.tables.data() + arc.table + now * arc.own;
            const Index at = x_[arc.to] * arc.step;
            shift(arc.to, to, from, arc.step);
            if (hard_)
                broken_ += (to[at] == infinity) - (from[at] == infinity);
        }
        for (Index k = factor_start_[i]; k < factor_start_[i + 1]; ++k)
            change_factor(factors_[k], i, next - now);
    }

    void change_factor(Index f, Index i, Index by) {
        Index at = table_[f], step = 1, own = 0;
        const Index first = in_.scope_start[f];
        for (Index k = in_.scope_start[f + 1]; k-- > first; step *= labels(in_.scope[k])) {
            at += step * x_[in_.scope[k]];
            own = in_.scope[k] == i ? step : own;
        }
        const double *to = in_.tables.data() + at, *from = to - by * own;
        broken_ += (*to == infinity) - (*from == infinity);
        step = 1;
        for (Index k = in_.scope_start[f + 1]; k-- > first; step *= labels(in_.scope[k]))
            if (const Index j = in_.scope[k]; j != i)
                shift(j, to - step * x_[j], from - step * x_[j], step);
    }

    // Adds the difference of two lines of a table to the costs of a variable.
    void shift(Index j, const double *to, const double *from, Index step) {
        double *cost = cost_.data() + offset_[j];
        const Index count = labels(j);
        used_ += count;
        if (!hard_ && step == 1)
            for (Index y = 0; y < count; ++y)
                cost[y] += to[y] - from[y];
        else if (!hard_)
            for (Index y = 0; y < count; ++y)
                cost[y] += to[y * step] - from[y * step];
        else
            for (Index y = 0; y < count; ++y)
                cost[y] += soft(to[y * step]) - soft(from[y * step]);
    }

    void end_sweep() {
        at_ = 0;
        ++sweep_;
        if (broken_ == 0 && energy_ < least_ - margin_)
            offer(x_);
        if (sweep_ > sweeps_ && (changed_ == 0 || sweep_ > sweeps_ + longest))
            end();
    }

    void end() {
        const double was = least_;
        runs_ += hot_ > 0.0;
        if (!again_)
            set_temperatures();
        if (least_ < infinity)
            combine();
        if (getenv("TRACE") && hot_ > 0 && runs_>0) fprintf(stderr, "%ld turn %ld sweeps %ld start %.4g hot %.4g cold %.4g end %.7g least %.7g won %.4g\n", long(runs_-1), long((runs_-1)%(1+options_.again)), long(sweeps_), start_, hot_, cold_, energy_, least_, was-least_);
        if (hard_)
            penalty_ *= broken_ == 0 ? options_.relax : options_.stiffen;
        sweep_ = 0;
    }

    // Takes the best labels in each connected part of the difference to them in which they cost
    // less; the outcome costs no more than either.
    void combine() {
        met_.assign(n(), 0);
        for (Index i = 0; i < n(); ++i)
            if (x_[i] != best_[i] && !met_[i])
                combine_part(i);
        if (broken_ == 0 && energy_ < least_ - margin_)
            offer(x_);
    }

    void combine_part(Index root) {
        part_.assign(1, root);
        met_[root] = 1;
        const auto meet = [&](Index j) {
            if (x_[j] != best_[j] && !met_[j]) {
                met_[j] = 1;
                part_.push_back(j);
            }
        };
        for (std::size_t k = 0; k < part_.size(); ++k) {
            const Index i = part_[k];
            for (Index a = arc_start_[i]; a < arc_start_[i + 1]; ++a)
                meet(arcs_[a].to);
            for (Index a = factor_start_[i]; a < factor_start_[i + 1]; ++a)
                for (Index s = in_.scope_start[factors_[a]]; s < in_.scope_start[factors_[a] + 1]; ++s)
                    meet(in_.scope[s]);
        }
        const double before = energy_;
        before_.clear();
        for (const Index i : part_) {
            before_.push_back(x_[i]);
            change(i, best_[i]);
        }
        if (energy_ > before)
            for (std::size_t k = part_.size(); k-- > 0;)
                change(part_[k], before_[k]);
    }

    // The range of temperatures, from the smallest rise of the cost by a change of each variable.
    void set_temperatures() {
        std::vector<double> rises, all;
        for (Index i = 0; i < n(); ++i) {
            const double *cost = cost_.data() + offset_[i];
            double least = infinity;
            for (Index x = 0; x < labels(i); ++x)
                if (cost[x] > cost[x_[i]] + margin_) {
                    least = std::min(least, cost[x] - cost[x_[i]]);
                    all.push_back(cost[x] - cost[x_[i]]);
                }
            if (least < infinity)
                rises.push_back(least);
        }
        std::sort(rises.begin(), rises.end());
        std::sort(all.begin(), all.end());
        const auto quantile = [&](auto &rises, double share) {
            return rises.empty() ? 1.0 : rises[std::size_t(share * double(rises.size() - 1))];
        };
        hot_ = options_.hot * quantile(rises, options_.upper);
        cold_ = options_.cold * std::min(quantile(rises, options_.lower), quantile(all, options_.lower));
        cold_ = std::clamp(cold_, hot_ / options_.ratio, hot_);
        margin_ = std::max(finest_, 1e-9 * cold_);
    }

    static constexpr int bits = 12;
    static constexpr Index drawn = 1 << bits, wide = 64; // size of the tables of random numbers
    static constexpr Index longest = 1000;              // sweeps of the descent that ends a run

    const exact::Input in_;
    const AnnealingOptions options_;
    std::array<std::uint64_t, 4> seed_, words_{};
    std::array<double, drawn> noise_;
    std::array<double, drawn + wide> gumbel_;
    std::vector<Index> offset_, arc_start_, factor_start_, factors_, table_;
    std::vector<Arc> arcs_;
    std::vector<std::int64_t> x_, best_;
    std::vector<Index> part_, before_;
    std::vector<char> met_;
    std::vector<double> cost_;
    double least_ = infinity, energy_ = 0.0, penalty_ = 1.0;
    double start_ = 0.0, hot_ = 0.0, cold_ = 0.0, margin_ = 0.0, finest_ = 0.0, temperature_ = 0.0;
    Index broken_ = 0, runs_ = 0, sweeps_ = 0, sweep_ = 0, at_ = 0, changed_ = 0, used_ = 0;
    bool hard_ = false, again_ = false;
};

} // namespace softmap
