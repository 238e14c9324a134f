// Ordered-statistics decoding: a word with a given syndrome, by elimination over GF(2).
//
// The bits are visited in ascending order of a key. The first linearly independent columns of the
// parity-check matrix form a basis. For every choice of the remaining bits, the syndrome determines
// the bits of the basis. `decode` starts at the hard decision of the remaining bits and flips one
// of them, or two of the first `depth` of them (a combination sweep), as long as the cost falls.
// `exhaust` visits all choices that a bound does not exclude, and so proves the best word optimal.
#pragma once

#include "base/sums.hpp"
#include "graph.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace softmap {

// What a lower bound on all words says about each bit: a word whose bit i is not `prefers[i]` costs
// at least bound + penalty[i], and bound + Σ reduced[i] over all such bits.
struct Exclusion {
    const std::uint8_t *prefers;     // [bits]
    const double *penalty, *reduced; // [bits]
    double gap;                      // cost of the best word - bound + margin
    double margin;                   // larger than all rounding errors of sums of costs
};

// The result of `exhaust`: whether all choices were visited, and whether a better word was found.
struct Exhausted {
    bool complete = false, better = false;
};

class OrderedStatistics {
  public:
    explicit OrderedStatistics(const Code &code)
        : code_(code), width_((code.checks + 63) / 64), first_(code.bits + 1, 0),
          check_(code.edges()), order_(code.bits), columns_(code.checks * width_), free_(width_),
          parity_(width_), change_(width_), row_bit_(code.checks), row_cost_(code.checks) {
        for (Index e = 0; e < code.edges(); ++e)
            ++first_[code.member[e] + 1];
        std::partial_sum(first_.begin(), first_.end(), first_.begin());
        std::vector<Index> next(first_.begin(), first_.end() - 1);
        for (Index c = 0; c < code.checks; ++c)
            for (Index e = code.start[c]; e < code.start[c + 1]; ++e)
                check_[next[code.member[e]]++] = std::int32_t(c);
    }

    // Writes the best word found to `word` [bits], given costs `gamma` [bits], check parities `odd`
    // [checks] and keys [bits]. Returns false if no word has these parities.
    bool decode(const double *gamma, const std::uint8_t *odd, const double *key, Index depth,
                std::uint8_t *word) {
        order_.resize(code_.bits);
        std::iota(order_.begin(), order_.end(), std::int32_t(0));
        sort_by(key);
        rank_ = eliminate(rank_);
        scale_ = 0.0;
        for (Index i = 0; i < code_.bits; ++i) {
            word[i] = gamma[i] < 0.0;
            scale_ += std::abs(gamma[i]);
        }
        if (!solve(odd, word))
            return false;
        while (improve(gamma, depth, word)) {
        }
        return true;
    }

    // Visits the words that are not excluded, up to `limit` of them, in ascending order of the
    // reduced costs of the remaining bits. `word` [bits] is the best word known; it is replaced by
    // each better one. Costs are compared exactly.
    Exhausted exhaust(const double *gamma, const std::uint8_t *odd, const Exclusion &out,
                      Index limit, std::uint8_t *word) {
        order_.clear();
        for (Index i = 0; i < code_.bits; ++i)
            if (out.penalty[i] <= out.gap)
                order_.push_back(std::int32_t(i));
        sort_by(out.reduced);
        eliminate(-1);
        base_.assign(out.prefers, out.prefers + code_.bits);
        if (!solve(odd, base_.data())) // every word is excluded: the best word is optimal
            return {true, false};
        price(gamma, base_.data());
        moves_.resize(others_.size() * width_);
        for (std::size_t k = 0; k < others_.size(); ++k)
            transformed(others_[k], moves_.data() + k * width_);
        search_ = {gamma, out.reduced, word, out.gap, out.margin, 0.0, limit, {}};
        for (Index i = 0; i < code_.bits; ++i) // cost of the base minus that of the best word
            if (base_[i] != word[i])
                search_.above += base_[i] ? gamma[i] : -gamma[i];
        chosen_.clear();
        path_.assign(width_, Word(0));
        visit(0.0);
        search_.found.complete = descend(0, 0.0, 0.0) && search_.left >= 0;
        return search_.found;
    }

  private:
    using Word = std::uint64_t;

    struct Search {
        const double *gamma, *reduced;
        std::uint8_t *word; // the best word
        double gap, margin; // as in `Exclusion`
        double above;       // cost of the base minus that of the best word
        Index left;         // words that may still be visited
        Exhausted found;
    };

    void sort_by(const double *key) {
        std::sort(order_.begin(), order_.end(), [&](std::int32_t i, std::int32_t j) {
            return key[i] < key[j] || (key[i] == key[j] && i < j);
        });
    }

    // Visits all choices that add bits others_[k], others_[k + 1], ... to the choice of path_,
    // whose reduced costs add up to `reduced`, and whose remaining bits change the cost of the base
    // by `change`. Returns false if the limit was reached.
    bool descend(Index k, double reduced, double change) {
        for (; k < Index(others_.size()); ++k) {
            const Index i = others_[k];
            const double sum = reduced + search_.reduced[i];
            if (sum > search_.gap)
                break; // the bits are in ascending order of their reduced costs
            if (--search_.left < 0)
                return false;
            const double own = change + (base_[i] ? -search_.gamma[i] : search_.gamma[i]);
            chosen_.push_back(std::int32_t(i));
            toggle(k);
            visit(own);
            const bool whole = descend(k + 1, sum, own);
            toggle(k);
            chosen_.pop_back();
            if (!whole)
                return false;
        }
        return true;
    }

    void toggle(Index k) {
        for (Index w = 0; w < width_; ++w)
            path_[w] ^= moves_[k * width_ + w];
    }

    // Compares the choice of path_ with the best word.
    void visit(double change) {
        if (change + flipped(path_.data()) + search_.above > search_.margin)
            return;
        trial_ = base_;
        for (const std::int32_t i : chosen_)
            trial_[i] ^= 1;
        flip(path_.data(), trial_.data());
        difference_.clear();
        for (Index i = 0; i < code_.bits; ++i)
            if (trial_[i] != search_.word[i])
                difference_.push_back(trial_[i] ? search_.gamma[i] : -search_.gamma[i]);
        const double less = careful_sum(difference_.data(), Index(difference_.size()));
        if (!(less < 0.0)) // the sign of a sum that is rounded once is exact
            return;
        search_.found.better = true;
        search_.above -= less;
        search_.gap += less;
        std::copy(trial_.begin(), trial_.end(), search_.word);
    }

    // Calls use(row) for each set bit of a vector of rows.
    template <class F> void for_rows(const Word *v, F use) const {
        for (Index w = 0; w < width_; ++w)
            for (Word rest = v[w]; rest; rest &= rest - 1)
                use(64 * w + std::countr_zero(rest));
    }

    Word *column(Index c) { return columns_.data() + c * width_; }

    // out = (product of all row operations) · (column of bit i)
    void transformed(Index i, Word *out) {
        std::fill(out, out + width_, Word(0));
        for (Index k = first_[i]; k < first_[i + 1]; ++k) {
            const Word *own = column(check_[k]);
            for (Index w = 0; w < width_; ++w)
                out[w] ^= own[w];
        }
    }

    // Gauss-Jordan elimination: chooses the basis among the bits of order_; others_ are the
    // remaining ones, in order. Returns the size of the basis. A basis of size `rank` is complete.
    Index eliminate(Index rank) {
        std::fill(columns_.begin(), columns_.end(), Word(0));
        std::fill(free_.begin(), free_.end(), Word(0));
        for (Index c = 0; c < code_.checks; ++c) {
            column(c)[c / 64] |= Word(1) << (c % 64);
            free_[c / 64] |= Word(1) << (c % 64);
        }
        Index pivots = 0;
        others_.clear();
        for (const std::int32_t i : order_) {
            if (pivots == rank) {
                others_.push_back(i);
                continue;
            }
            transformed(i, change_.data());
            const Index row = free_row(change_.data());
            if (row < 0) {
                others_.push_back(i);
                continue;
            }
            ++pivots;
            row_bit_[row] = i;
            free_[row / 64] &= ~(Word(1) << (row % 64));
            change_[row / 64] &= ~(Word(1) << (row % 64));
            add_row(row);
        }
        return pivots;
    }

    Index free_row(const Word *v) const {
        for (Index w = 0; w < width_; ++w)
            if (const Word rest = v[w] & free_[w])
                return 64 * w + std::countr_zero(rest);
        return -1;
    }

    // Adds row `row` to all rows of change_.
    void add_row(Index row) {
        const Index at = row / 64, shift = row % 64;
        for (Index c = 0; c < code_.checks; ++c) {
            Word *own = column(c);
            if (own[at] >> shift & 1)
                for (Index w = 0; w < width_; ++w)
                    own[w] ^= change_[w];
        }
    }

    // Sets the bits of the basis so that the word has the parities; false if that is impossible.
    bool solve(const std::uint8_t *odd, std::uint8_t *word) {
        std::fill(parity_.begin(), parity_.end(), Word(0));
        for (Index c = 0; c < code_.checks; ++c)
            if (code_.violated(c, odd[c], word))
                for (Index w = 0; w < width_; ++w)
                    parity_[w] ^= column(c)[w];
        if (free_row(parity_.data()) >= 0)
            return false;
        flip(parity_.data(), word);
        return true;
    }

    void flip(const Word *rows, std::uint8_t *word) {
        for_rows(rows, [&](Index row) { word[row_bit_[row]] ^= 1; });
    }

    double flipped(const Word *rows) const {
        double sum = 0.0;
        for_rows(rows, [&](Index row) { sum += row_cost_[row]; });
        return sum;
    }

    // row_cost_ = change of the cost if the basis bit of a row is flipped; 0 for rows without one.
    void price(const double *gamma, const std::uint8_t *word) {
        for (Index c = 0; c < code_.checks; ++c) {
            const Index i = row_bit_[c];
            const bool none = free_[c / 64] >> (c % 64) & 1;
            row_cost_[c] = none ? 0.0 : word[i] ? -gamma[i] : gamma[i];
        }
    }

    // Applies the best flip of one remaining bit, or of two of the first `depth`; returns whether
    // the cost fell.
    bool improve(const double *gamma, Index depth, std::uint8_t *word) {
        const auto cost = [&](Index i) { return word[i] ? -gamma[i] : gamma[i]; };
        price(gamma, word);
        double best = -least_gain * scale_; // rounding errors must not lead to a cycle
        Index one = -1, two = -1;
        const Index rest = Index(others_.size()), few = std::min(depth, rest);
        kept_.resize(few * width_);
        for (Index k = 0; k < rest; ++k) {
            Word *own = k < few ? kept_.data() + k * width_ : change_.data();
            transformed(others_[k], own);
            const double change = cost(others_[k]) + flipped(own);
            if (change < best)
                best = change, one = k, two = -1;
        }
        for (Index k = 0; k < few; ++k)
            for (Index l = 0; l < k; ++l) {
                both(k, l);
                const double change = cost(others_[k]) + cost(others_[l]) + flipped(change_.data());
                if (change < best)
                    best = change, one = k, two = l;
            }
        for (const Index k : {one, two})
            if (k >= 0) {
                transformed(others_[k], change_.data());
                word[others_[k]] ^= 1;
                flip(change_.data(), word);
            }
        return one >= 0;
    }

    void both(Index k, Index l) {
        for (Index w = 0; w < width_; ++w)
            change_[w] = kept_[k * width_ + w] ^ kept_[l * width_ + w];
    }

    static constexpr double least_gain = 1e-9; // of a flip, relative to the sum of all |costs|

    const Code code_;
    const Index width_; // 64-bit words per vector of rows
    Index rank_ = -1;   // -1 until the first elimination
    double scale_ = 0.0;
    std::vector<Index> first_;        // [bits + 1] first entry of each bit in check_
    std::vector<std::int32_t> check_; // [edges] the checks of bit 0, of bit 1, ...
    std::vector<std::int32_t> order_, others_;
    std::vector<Word> columns_; // [checks × width] columns of the product of all row operations
    std::vector<Word> free_, parity_, change_, kept_;
    Search search_{};
    std::vector<std::uint8_t> base_, trial_;
    std::vector<std::int32_t> chosen_; // the remaining bits that differ from the base
    std::vector<Word> path_, moves_;   // rows of the basis that the chosen bits, or each bit, flip
    std::vector<double> difference_;
    std::vector<std::int32_t> row_bit_; // [checks] the bit of the basis in each row
    std::vector<double> row_cost_;      // [checks] change of the cost if the row's bit is flipped
};

} // namespace softmap
