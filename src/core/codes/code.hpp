// Decodes one received word: a maximum-likelihood codeword, and dual multipliers λ that prove it.
//
// λ_ci is a cost of bit i in check c. For every λ, each codeword costs at least
//     Σ_i min(0, γ_i - Σ_c λ_ci)  +  Σ_c min over words of the check's parity of λ_c x_c,
// the dual objective of LP decoding (the linear program over the parity polytopes of all checks). A
// codeword w whose cost equals the bound is a maximum-likelihood codeword. Flip the sign of the
// cost of every bit that is 1 in w: then w becomes the all-zeros word, and the bound equals its
// cost 0 if every λ_c lies in the cone of its check (no even word costs less than 0) and the λ of
// every bit add up to at most its cost. Such a λ is searched for by Douglas-Rachford splitting,
// which needs only the projections onto the two sets and usually ends after finitely many steps.
// If it finds none, the words that λ does not exclude are searched.
#pragma once

#include "graph.hpp"
#include "parity.hpp"
#include "statistics.hpp"

#include <vector>

namespace softmap {

struct DecodingLimits {
    Index rounds; // iterations of min-sum belief propagation
    Index steps;  // Douglas-Rachford steps per attempted proof
    Index sweeps; // ADMM iterations on the linear program
    Index depth;  // of the combination sweep of ordered statistics; -1: no ordered statistics
    Index words;  // words that an exhaustive search may visit
};

// The result for one word: cost of the best codeword, best bound, and iterations of each phase.
struct Decoding {
    double cost = infinity, bound = -infinity;
    bool proved = false; // the codeword is proved optimal, without a tolerance
    Index rounds = 0, steps = 0, sweeps = 0;
};

// Decodes words of one code by belief propagation, ordered statistics, proofs and ADMM.
class Decoder {
  public:
    explicit Decoder(const Code &code)
        : code_(code), statistics_(code), turned_(code.bits), total_(code.bits), excess_(code.bits),
          x_(code.bits), z_(code.edges()), b_(code.edges()), u_(code.edges()), trial_(code.edges()),
          kept_(code.edges()), terms_(code.bits + code.checks), word_(code.bits) {
        Index most = 0;
        for (Index c = 0; c < code.checks; ++c)
            most = std::max(most, code.start[c + 1] - code.start[c]);
        for (Index i = 0; i < code.bits; ++i)
            most = std::max(most, code.degree[i]);
        room_.resize(most + 2);
        in_.resize(most + 2);
    }

    // Decodes costs `gamma` [bits] with check parities `odd` [checks] into the best codeword `word`
    // [bits] and the multipliers `lam` [edges] of the best bound.
    Decoding decode(const double *gamma, const std::uint8_t *odd, const DecodingLimits &limits,
                    std::uint8_t *word, double *lam) {
        begin(gamma, odd, word, lam);
        std::fill(trial_.begin(), trial_.end(), 0.0);
        const bool converged = propagate(limits.rounds);
        std::copy(word_.begin(), word_.end(), best_); // defines bit errors if there is no codeword
        bool better = converged ? take(word_.data()) : ordered(limits.depth);
        while (better) {
            for (Index e = 0; e < code_.edges(); ++e) {
                const Index i = code_.member[e];
                z_[e] = turn(i) * gamma_[i] / double(code_.degree[i]);
            }
            if (prove(limits))
                return found_;
            for (Index e = 0; e < code_.edges(); ++e)
                trial_[e] = turn(code_.member[e]) * b_[e];
            keep_bound();
            const Exhausted found = exhaust(limits.words);
            if (found.complete) {
                found_.proved = true;
                found_.bound = lower_cost(best_);
                return found_;
            }
            better = found.better;
        }
        keep_bound();
        relax(limits);
        return found_;
    }

    // Checks a word and costs `b` [edges] with signs flipped by the word, which may come from
    // anywhere: the result is a proof, rounding errors included, or is not `proved`.
    Decoding certified(const double *gamma, const std::uint8_t *odd, std::uint8_t *word,
                       const double *b) {
        constexpr double most = 1e200; // the sums below do not overflow
        begin(gamma, odd, word, trial_.data());
        for (Index e = 0; e < code_.edges(); ++e)
            if (!(std::abs(b[e]) < most)) // also if it is NaN
                return found_;
        if (!is_codeword(word))
            return found_;
        found_.cost = careful_sum(x_.data(), gather(word));
        std::copy(b, b + code_.edges(), b_.begin());
        std::fill(x_.begin(), x_.end(), 0.0);
        for (Index c = 0; c < code_.checks; ++c) {
            into_parity_cone(b_.data() + code_.start[c], size(c));
            for (Index e = code_.start[c]; e < code_.start[c + 1]; ++e)
                x_[code_.member[e]] += b_[e];
        }
        for (Index i = 0; i < code_.bits; ++i)
            turned_[i] = turn(i) * gamma_[i];
        found_.proved = proves();
        if (found_.proved)
            found_.bound = lower_cost(word);
        return found_;
    }

    // A lower bound on the dual objective at λ, and so on the cost of every codeword; rounding
    // errors are accounted for.
    double bound(const double *gamma, const std::uint8_t *odd, const double *lam) {
        std::copy(gamma, gamma + code_.bits, total_.begin());
        std::fill(turned_.begin(), turned_.end(), 0.0); // used here for Σ |rounding error| by bit
        for (Index e = 0; e < code_.edges(); ++e) {
            double &rest = total_[code_.member[e]];
            const double sum = rest - lam[e];
            turned_[code_.member[e]] += std::abs(error_of(rest, -lam[e], sum));
            rest = sum;
        }
        for (Index i = 0; i < code_.bits; ++i) {
            const double slack = 2.0 * turned_[i]; // twice: the sum of the errors is itself rounded
            const double rest = slack > 0.0 ? next_below(total_[i] - slack) : total_[i];
            terms_[i] = std::min(0.0, rest);
        }
        for (Index c = 0; c < code_.checks; ++c)
            terms_[code_.bits + c] =
                parity_minimum(lam + code_.start[c], size(c), odd[c], room_.data());
        return lower_sum(terms_.data(), Index(terms_.size()));
    }

  private:
    void begin(const double *gamma, const std::uint8_t *odd, std::uint8_t *word, double *lam) {
        gamma_ = gamma, odd_ = odd, best_ = word, lam_ = lam;
        found_ = Decoding{};
        std::fill(lam, lam + code_.edges(), 0.0);
        double sum = 0.0;
        for (Index i = 0; i < code_.bits; ++i)
            sum += std::abs(gamma[i]);
        scale_ = sum / double(code_.bits);
    }

    // Ordered statistics in the order of the sums of beliefs `x_`, with signs flipped by the hard
    // decision of the channel. Returns whether its word is the best so far.
    bool ordered(Index depth) {
        if (depth < 0)
            return false;
        for (Index i = 0; i < code_.bits; ++i)
            if (gamma_[i] < 0.0)
                x_[i] = -x_[i];
        return statistics_.decode(gamma_, odd_, x_.data(), depth, word_.data()) &&
               take(word_.data());
    }

    // Visits the words that λ does not exclude, at most `limit` of them.
    //
    // The cost of a word x is Σ_i ρ_i x_i + Σ_c λ_c x_c with ρ_i = γ_i - Σ_c λ_ci, and the bound is
    // the sum of the minima of these terms. So a word costs at least the bound and |ρ_i| for each
    // bit that does not have the sign of ρ_i; and for a single bit i also what its checks add.
    Exhausted exhaust(Index limit) {
        if (limit <= 0)
            return {};
        double sizes = 0.0; // Σ |γ| + Σ |λ|, which no partial sum below exceeds
        for (Index i = 0; i < code_.bits; ++i) {
            total_[i] = gamma_[i];
            turned_[i] = excess_[i] = 0.0;
            sizes += std::abs(gamma_[i]);
        }
        for (Index c = 0; c < code_.checks; ++c) {
            const Index first = code_.start[c], k = size(c);
            parity_messages(lam_ + first, k, odd_[c], room_.data());
            for (Index t = 0; t < k; ++t) {
                const Index i = code_.member[first + t];
                const double costs_more = lam_[first + t] + room_[t]; // of a 1 than of a 0
                turned_[i] += std::max(0.0, costs_more);
                excess_[i] += std::max(0.0, -costs_more);
                total_[i] -= lam_[first + t];
                sizes += std::abs(lam_[first + t]);
            }
        }
        for (Index i = 0; i < code_.bits; ++i) {
            turned_[i] += std::max(0.0, total_[i]);  // penalty of a 1
            excess_[i] += std::max(0.0, -total_[i]); // penalty of a 0
            word_[i] = turned_[i] < excess_[i];
            turned_[i] = std::max(turned_[i], excess_[i]);
            total_[i] = std::max(0.0, word_[i] ? -total_[i] : total_[i]);
        }
        // n additions of terms whose absolute values add up to `sizes` are off by n u sizes
        const double margin = 8.0 * double(code_.edges() + code_.bits) * unit * sizes;
        const Exclusion out{word_.data(), turned_.data(), total_.data(),
                            found_.cost - found_.bound + margin, margin};
        const Exhausted found = statistics_.exhaust(gamma_, odd_, out, limit, best_);
        if (found.better)
            found_.cost = careful_sum(x_.data(), gather(best_));
        return found;
    }

    Index size(Index c) const { return code_.start[c + 1] - code_.start[c]; }
    double turn(Index i) const { return best_[i] ? -1.0 : 1.0; }

    bool is_codeword(const std::uint8_t *word) const {
        for (Index c = 0; c < code_.checks; ++c)
            if (code_.violated(c, odd_[c], word))
                return false;
        return true;
    }

    // Writes the costs of the bits of a word to x_; returns how many.
    Index gather(const std::uint8_t *word) {
        Index count = 0;
        for (Index i = 0; i < code_.bits; ++i)
            if (word[i])
                x_[count++] = gamma_[i];
        return count;
    }

    // A lower bound (rounded down) on the cost of a word.
    double lower_cost(const std::uint8_t *word) {
        const Index count = gather(word);
        return lower_sum(x_.data(), count);
    }

    // Stores a codeword if its cost is the lowest so far; returns whether it was stored.
    bool take(const std::uint8_t *word) {
        const Index count = gather(word);
        const double cost = careful_sum(x_.data(), count);
        if (!(cost < found_.cost))
            return false;
        found_.cost = cost;
        std::copy(word, word + code_.bits, best_);
        return true;
    }

    // Normalised min-sum belief propagation, one check after the other (layered schedule). Returns
    // whether the hard decision `word_` became a codeword. x_ are the sums over all rounds of the
    // beliefs, which are a better order than oscillating last ones.
    bool propagate(Index rounds) {
        constexpr double smaller = 0.85;
        std::copy(gamma_, gamma_ + code_.bits, total_.begin());
        std::fill(u_.begin(), u_.end(), 0.0);
        std::fill(x_.begin(), x_.end(), 0.0);
        for (Index round = 0;; ++round) {
            for (Index i = 0; i < code_.bits; ++i) {
                word_[i] = total_[i] < 0.0;
                x_[i] += total_[i];
            }
            if (is_codeword(word_.data()))
                return true;
            if (round == rounds)
                return false;
            ++found_.rounds;
            for (Index c = 0; c < code_.checks; ++c) {
                const Index first = code_.start[c], k = size(c);
                for (Index t = 0; t < k; ++t)
                    in_[t] = total_[code_.member[first + t]] - u_[first + t];
                parity_messages(in_.data(), k, odd_[c], room_.data());
                for (Index t = 0; t < k; ++t) {
                    // the message to a bit that is alone in its check is infinite: clamp it
                    const double most = 1e3 * scale_ * double(code_.bits);
                    const double sent = std::clamp(smaller * room_[t], -most, most);
                    u_[first + t] = sent;
                    total_[code_.member[first + t]] = in_[t] + sent;
                }
            }
        }
    }

    // Douglas-Rachford splitting from z_ on, with signs flipped by the best word. Returns whether
    // it found a proof, which is then in λ. If a search follows, it stops as soon as
    // Σ_i max(0, Σ_c b_ci - cost of i) stagnates: then the best word is probably not optimal, or
    // the relaxation is not tight.
    bool prove(const DecodingLimits &limits) {
        constexpr Index every = 16;   // steps between two checks of progress
        constexpr double least = 0.7; // stop if the violation is above this part of the last one
        const double margin = 1e-4 * scale_;
        for (Index i = 0; i < code_.bits; ++i)
            turned_[i] = turn(i) * gamma_[i];
        std::fill(total_.begin(), total_.end(), 0.0);
        for (Index e = 0; e < code_.edges(); ++e)
            total_[code_.member[e]] += z_[e];
        double before = infinity;
        for (Index step = 1; step <= limits.steps; ++step) {
            ++found_.steps;
            const double violation = splitting_step(margin);
            if (violation == 0.0 && proves()) {
                for (Index e = 0; e < code_.edges(); ++e)
                    lam_[e] = turn(code_.member[e]) * b_[e];
                found_.proved = true;
                found_.bound = lower_cost(best_); // λ proves the exact cost; `cost` may be above it
                return true;
            }
            if (limits.words > 0 && step % every == 0) {
                if (violation > least * before)
                    return false;
                before = violation;
            }
        }
        return false;
    }

    // One step: z_ and its sums total_ by bit, b_ in the cones and its sums x_ by bit. Returns
    // Σ_i max(0, x_i - cost of i).
    double splitting_step(double margin) {
        constexpr double relaxation = 1.7;
        for (Index i = 0; i < code_.bits; ++i) {
            excess_[i] = std::max(0.0, total_[i] - turned_[i] + margin) /
                         double(std::max<Index>(code_.degree[i], 1));
            total_[i] = x_[i] = 0.0;
        }
        for (Index c = 0; c < code_.checks; ++c) {
            const Index first = code_.start[c], last = code_.start[c + 1];
            for (Index e = first; e < last; ++e)
                b_[e] = z_[e] - 2.0 * excess_[code_.member[e]];
            into_parity_cone(b_.data() + first, last - first);
            for (Index e = first; e < last; ++e) {
                const Index i = code_.member[e];
                z_[e] += relaxation * (b_[e] - z_[e] + excess_[i]);
                total_[i] += z_[e];
                x_[i] += b_[e];
            }
        }
        double violation = 0.0;
        for (Index i = 0; i < code_.bits; ++i)
            violation += std::max(0.0, x_[i] - turned_[i]);
        return violation;
    }

    // Whether Σ_c b_ci = x_i is at most the cost of each bit i, rounding errors included. Each b_c
    // already lies in the cone of its check.
    bool proves() {
        std::fill(excess_.begin(), excess_.end(), 0.0);
        for (Index e = 0; e < code_.edges(); ++e)
            excess_[code_.member[e]] += std::abs(b_[e]);
        for (Index i = 0; i < code_.bits; ++i)
            if (turned_[i] - x_[i] < 4.0 * double(code_.degree[i]) * unit * excess_[i])
                return false;
        return true;
    }

    // Solves the linear program by ADMM: z_ are points of the parity polytopes, and λ = -μ u are
    // the multipliers. Every `every` sweeps it evaluates the bound and rounds to the nearest word.
    void relax(const DecodingLimits &limits) {
        constexpr Index every = 10;
        constexpr double relaxation = 1.8;
        const double mu = penalty * (scale_ > 0.0 ? scale_ : 1.0);
        std::fill(u_.begin(), u_.end(), 0.0);
        std::fill(z_.begin(), z_.end(), 0.5);
        for (Index sweep = 1; sweep <= limits.sweeps; ++sweep) {
            ++found_.sweeps;
            sweep_once(mu, relaxation);
            if (sweep % every && sweep < limits.sweeps)
                continue;
            for (Index e = 0; e < code_.edges(); ++e)
                trial_[e] = -mu * u_[e];
            keep_bound();
            for (Index i = 0; i < code_.bits; ++i)
                word_[i] = x_[i] > 0.5;
            if (is_codeword(word_.data()) && take(word_.data())) {
                kept_ = z_;
                for (Index e = 0; e < code_.edges(); ++e)
                    z_[e] = turn(code_.member[e]) * trial_[e];
                if (prove(limits))
                    return;
                z_ = kept_;
            }
        }
    }

    static constexpr double penalty = 0.6; // μ, in units of the mean cost of a bit

    void sweep_once(double mu, double relaxation) {
        std::fill(total_.begin(), total_.end(), 0.0);
        for (Index e = 0; e < code_.edges(); ++e)
            total_[code_.member[e]] += z_[e] - u_[e];
        for (Index i = 0; i < code_.bits; ++i) {
            const double d = double(code_.degree[i]);
            const double x = d > 0.0 ? (total_[i] - gamma_[i] / mu) / d : gamma_[i] < 0.0;
            x_[i] = std::min(std::max(x, 0.0), 1.0);
        }
        for (Index c = 0; c < code_.checks; ++c) {
            const Index first = code_.start[c], k = size(c);
            for (Index t = 0; t < k; ++t) {
                const double x = x_[code_.member[first + t]], z = z_[first + t];
                in_[t] = b_[first + t] = relaxation * x + (1.0 - relaxation) * z + u_[first + t];
            }
            into_parity_hull(in_.data(), k, odd_[c], room_.data());
            for (Index t = 0; t < k; ++t) {
                u_[first + t] = b_[first + t] - in_[t];
                z_[first + t] = in_[t];
            }
        }
    }

    // Stores λ = `trial_` if its bound is the best so far.
    void keep_bound() {
        const double value = bound(gamma_, odd_, trial_.data());
        if (value > found_.bound) {
            found_.bound = value;
            std::copy(trial_.begin(), trial_.end(), lam_);
        }
    }

    const Code &code_;
    OrderedStatistics statistics_;
    const double *gamma_ = nullptr;
    const std::uint8_t *odd_ = nullptr;
    std::uint8_t *best_ = nullptr;
    double *lam_ = nullptr;
    double scale_ = 0.0;
    Decoding found_;
    std::vector<double> turned_, total_, excess_, x_, z_, b_, u_, trial_, kept_, terms_, room_, in_;
    std::vector<std::uint8_t> word_;
};

} // namespace softmap
