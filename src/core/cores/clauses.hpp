// Clauses and sums of literals, with what each literal wakes.
#pragma once

#include "base/layout.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace softmap::cores {

// Literal 2 v says that variable v is true, literal 2 v + 1 that it is false.
using Lit = std::int32_t;
using Id = std::int32_t;
inline Lit negated(Lit lit) { return lit ^ 1; }
inline std::size_t variable(Lit lit) { return std::size_t(lit >> 1); }

// Why a literal holds: a clause (its place, 0 or more), a sum (-2 - its number), or a decision.
using Why = std::int32_t;
constexpr Why decided = -1;
inline Why by_sum(Id sum) { return -2 - sum; }
inline bool is_sum(Why why) { return why < decided; }
inline Id sum_of(Why why) { return -2 - why; }

// The number of a constraint in the steps of a proof, or -1 - the number for a sum.
using Source = std::int32_t;

// Clauses one after another in one array: size, levels, activity, source, then the literals.
class ClauseStore {
  public:
    static constexpr Id header = 4;

    std::span<Lit> literals(Id at) {
        return {data_.data() + at + header, std::size_t(data_[std::size_t(at)])};
    }
    std::span<const Lit> literals(Id at) const {
        return {data_.data() + at + header, std::size_t(data_[std::size_t(at)])};
    }
    // The number of levels when the clause was learned; 0 if it is no learned clause.
    Id &levels(Id at) { return data_[std::size_t(at) + 1]; }
    Id &used(Id at) { return data_[std::size_t(at) + 2]; } // the last conflict that needed it

    Source source(Id at) const { return data_[std::size_t(at) + 3]; }

    Id add(std::span<const Lit> lits, Id levels, Id used, Source source) {
        const Id at = Id(data_.size());
        data_.push_back(Id(lits.size()));
        data_.push_back(levels);
        data_.push_back(used);
        data_.push_back(source);
        data_.insert(data_.end(), lits.begin(), lits.end());
        return at;
    }
    std::size_t size() const { return data_.size(); }
    bool full() const { return data_.size() > (std::size_t(1) << 30); }

    // Calls f(place) for each clause.
    template <class Function> void each(Function f) const {
        for (std::size_t at = 0; at < data_.size(); at += std::size_t(header + data_[at]))
            f(Id(at));
    }

  private:
    std::vector<Id> data_;
};

// Σ weight · literal ≥ bound, with weights from the largest to the smallest.
struct Sum {
    std::vector<Lit> lits;
    std::vector<std::int64_t> weights;
    std::int64_t bound = 0, total = 0;
    std::int64_t slack = 0; // sum of the weights of all literals that are not gone, minus bound
    struct Term {
        Lit lit;
        std::int64_t weight;
    };
    std::vector<Term> gone; // literals that fail, in the order in which they were counted
    Source source = 0;
};

// Brings Σ weight · literal ≥ bound into the form of `Sum`: positive weights of at most `bound`, a
// variable once. The weights must add up to less than 2^62.
inline Sum normal_sum(std::span<const Lit> lits, std::span<const std::int64_t> weights,
                      std::int64_t bound) {
    std::vector<std::pair<Lit, std::int64_t>> terms; // positive literals
    for (std::size_t k = 0; k < lits.size(); ++k) {
        const bool negative = lits[k] & 1;
        terms.emplace_back(lits[k] & ~1, negative ? -weights[k] : weights[k]);
        bound -= negative ? weights[k] : 0;
    }
    std::sort(terms.begin(), terms.end());
    std::size_t kept = 0;
    for (std::size_t k = 0; k < terms.size(); ++k)
        if (kept > 0 && terms[kept - 1].first == terms[k].first)
            terms[kept - 1].second += terms[k].second;
        else
            terms[kept++] = terms[k];
    terms.resize(kept);
    for (auto &[lit, weight] : terms)
        if (weight < 0) {
            bound -= weight;
            weight = -weight, lit = negated(lit);
        }
    std::erase_if(terms, [](const auto &term) { return term.second == 0; });
    std::stable_sort(terms.begin(), terms.end(),
                     [](const auto &a, const auto &b) { return a.second > b.second; });
    Sum out;
    out.bound = bound;
    for (const auto &[lit, weight] : terms) {
        out.lits.push_back(lit);
        out.weights.push_back(std::min(weight, std::max<std::int64_t>(bound, 0)));
        out.total += out.weights.back();
    }
    out.slack = out.total - out.bound;
    return out;
}

} // namespace softmap::cores
