// Robust tabu search over swaps of labels (Taillard), for pairwise costs over permutations.
#pragma once

#include <algorithm>
#include <vector>

#include "permutations/dual.hpp"

namespace softmap::permutations {

// A search that every call of `run` continues. Conditional costs of all labels are kept up to date,
// so that the gain of a swap takes constant time, and a step 4 N L additions and N² gains.
class SwapSearch {
  public:
    std::vector<Index> best; // labels of the best assignment
    Cost energy = 0;         // its cost

    SwapSearch(Costs costs, std::uint64_t seed) : costs_(std::move(costs)) {
        spread_seed(seed, random_.word);
        labels_.resize(std::size_t(costs_.labels));
        for (Index p = 0; p < costs_.labels; ++p)
            labels_[p] = p;
        shuffle();
        best = visible();
        energy = now_;
    }

    Index width() const { return costs_.labels; }

    // Continues from other labels, if they are better than the best ones.
    void offer(const Index *labels) {
        const std::vector<Index> kept = labels_;
        std::vector<bool> used(labels_.size(), false);
        for (Index i = 0; i < costs_.variables; ++i)
            used[labels_[i] = labels[i]] = true;
        for (Index p = 0, k = costs_.variables; p < costs_.labels; ++p)
            if (!used[p])
                labels_[k++] = p;
        begin();
        if (now_ < energy) {
            keep();
        } else {
            labels_ = kept;
            begin();
        }
    }

    // Makes swaps until the deadline or a limit of work, which counts table entries.
    void run(Meter &meter) {
        const Index n = costs_.variables, d = costs_.labels;
        if (d < 2)
            return;
        while (!meter.spent()) {
            step();
            meter.use(2 * n * d);
            if (now_ < energy)
                keep();
            else if (++idle_ > 1000 * n + 50 * n * n)
                shuffle();
        }
    }

  private:
    // Positions from N on hold the labels that no variable has.
    Index held() const { return costs_.variables; }
    std::vector<Index> visible() const { return {labels_.begin(), labels_.begin() + held()}; }
    void keep() {
        best = visible();
        energy = now_;
        idle_ = 0;
    }

    void shuffle() {
        for (std::size_t k = labels_.size(); k > 1; --k)
            std::swap(labels_[k - 1], labels_[random_.below(Index(k))]);
        begin();
    }

    // Recomputes all conditional costs: of label p of variable i, given the labels of all others.
    void begin() {
        const Index n = held(), d = costs_.labels;
        cost_.assign(costs_.unary.get(), costs_.unary.get() + costs_.size());
        for (Index j = 0; j < n; ++j)
            add(j, labels_[j], 1);
        now_ = 0;
        for (Index i = 0; i < n; ++i)
            now_ += costs_.unary[costs_.at(i, labels_[i])] + cost_[costs_.at(i, labels_[i])];
        now_ /= 2; // each pair was counted twice, and so were unary costs
        exchange_.assign(std::size_t(n * n), 0);
        for (Index i = 0; i < n; ++i)
            renew(i);
        until_.assign(std::size_t(n * d), 0);
        for (Cost &until : until_)
            until = -random_.below(n * d) - 1;
        steps_ = idle_ = 0;
    }
    void add(Index j, Index p, Cost sign) {
        const Cost *block = costs_.block(j, p);
        for (std::size_t k = 0; k < cost_.size(); ++k)
            cost_[k] += sign * block[k];
    }
    // Costs of i and each other variable j for exchanged and for current labels, added up.
    void renew(Index i) {
        const Index a = labels_[i];
        for (Index j = 0; j < held(); ++j) {
            const Index b = labels_[j];
            const Cost both =
                i == j ? 0
                       : costs_.block(i, a)[costs_.at(j, b)] + costs_.block(i, b)[costs_.at(j, a)];
            exchange_[i * held() + j] = exchange_[j * held() + i] = both;
        }
    }

    // The best swap that is not tabu or leads to the best assignment; now and then, one of labels
    // that their variables have not had for long.
    void step() {
        const Index n = held(), d = costs_.labels;
        const Cost aspired = energy - now_;
        const Cost long_ago = steps_ % d == 0 ? steps_ - 5 * n * d : never;
        Index first = -1, second = -1;
        Cost lowest = std::numeric_limits<Cost>::max();
        for (Index i = 0; i < n; ++i) {
            const Index a = labels_[i];
            const Cost *cost = &cost_[i * d], *until = &until_[i * d];
            const Cost *exchange = &exchange_[i * n];
            for (Index k = i + 1; k < d; ++k) {
                const Index b = labels_[k];
                Cost change = cost[b] - cost[a];
                if (k < n)
                    change += cost_[k * d + a] - cost_[k * d + b] + exchange[k];
                if (change >= lowest && long_ago == never)
                    continue;
                const Cost own = until[b], other = k < n ? until_[k * d + a] : own;
                if (std::max(own, other) < long_ago)
                    change = never; // this swap is made, whatever its gain
                else if (std::min(own, other) > steps_ && change >= aspired)
                    continue;
                if (change < lowest) {
                    lowest = change;
                    first = i;
                    second = k;
                }
            }
        }
        ++steps_;
        if (first >= 0)
            swap(first, second);
    }

    Cost gain(Index i, Index k) const {
        const Index a = labels_[i], b = labels_[k];
        const Cost own = cost_[costs_.at(i, b)] - cost_[costs_.at(i, a)];
        if (k >= held())
            return own;
        return own + cost_[costs_.at(k, a)] - cost_[costs_.at(k, b)] + exchange_[i * held() + k];
    }

    void swap(Index i, Index k) {
        now_ += gain(i, k);
        until_[costs_.at(i, labels_[i])] = steps_ + tenure();
        if (k < held())
            until_[costs_.at(k, labels_[k])] = steps_ + tenure();
        move(i, labels_[i], labels_[k]);
        if (k < held())
            move(k, labels_[k], labels_[i]);
        std::swap(labels_[i], labels_[k]);
        renew(i);
        if (k < held())
            renew(k);
    }
    void move(Index i, Index from, Index to) {
        const Cost *before = costs_.block(i, from), *after = costs_.block(i, to);
        for (std::size_t k = 0; k < cost_.size(); ++k)
            cost_[k] += after[k] - before[k];
    }
    Cost tenure() {
        const double x = uniform(random_.word);
        return 2 + Cost(8.0 * double(costs_.labels) * x * x * x);
    }

    static constexpr Cost never = std::numeric_limits<Cost>::min();

    Costs costs_;
    std::vector<Index> labels_;
    std::vector<Cost> cost_, exchange_, until_;
    Cost now_ = 0, steps_ = 0, idle_ = 0;
    Random random_;
};

} // namespace softmap::permutations
