// Decoding of one word: its likeliest codeword, and multipliers that prove it.
//
// λ gives each check a cost of each of its bits. Whatever λ is, no codeword costs less than
//     Σ_i min(0, γ_i - Σ_c λ_ci)  +  Σ_c min over words of the check's parity of λ_c x_c,
// the dual of the linear program over the hulls of all checks. A codeword w of just this cost is
// likeliest. Turned by w (costs of bits that are 1 change their signs) it is the word of zeros, and
// that both sums are 0 says: λ_c lies in the cone of its check, and the λ of a bit add up to at
// most its cost. Such a λ is looked for by Douglas and Rachford's method, which needs only the
// projections to the two sets, and mostly ends after finitely many steps.
#pragma once

#include "parity.hpp"

#include <vector>

namespace softmap {

struct Code {
    Index bits, checks;
    const Index *start;         // [checks + 1] where the members of each check begin
    const std::int32_t *member; // the bits of all checks
    const Index *degree;        // [bits] in how many checks a bit is

    Index edges() const { return start[checks]; }
};

struct DecodingLimits {
    Index rounds; // of belief propagation
    Index steps;  // towards a proof
    Index sweeps; // towards the optimum of the linear program
};

struct Decoding {
    double cost = infinity, bound = -infinity;
    bool proved = false; // exactly: not up to a tolerance
    Index rounds = 0, steps = 0, sweeps = 0;
};

class Decoder {
  public:
    explicit Decoder(const Code &code)
        : code_(code), turned_(code.bits), total_(code.bits), x_(code.bits), z_(code.edges()),
          b_(code.edges()), u_(code.edges()), trial_(code.edges()), kept_(code.edges()),
          terms_(code.bits + code.checks), word_(code.bits) {
        Index most = 0;
        for (Index c = 0; c < code.checks; ++c)
            most = std::max(most, code.start[c + 1] - code.start[c]);
        for (Index i = 0; i < code.bits; ++i)
            most = std::max(most, code.degree[i]);
        room_.resize(most + 2);
        in_.resize(most + 2);
    }

    // `word` and `lam` are the best found; costs are `gamma`, the parity of check c is `odd[c]`.
    Decoding decode(const double *gamma, const std::uint8_t *odd, const DecodingLimits &limits,
                    std::uint8_t *word, double *lam) {
        gamma_ = gamma, odd_ = odd, best_ = word, lam_ = lam;
        found_ = Decoding{};
        std::fill(lam, lam + code_.edges(), 0.0);
        double sum = 0.0;
        for (Index i = 0; i < code_.bits; ++i)
            sum += std::abs(gamma[i]);
        scale_ = sum / double(code_.bits);
        if (propagate(limits.rounds)) {
            take(word_.data());
            for (Index e = 0; e < code_.edges(); ++e) {
                const Index i = code_.member[e];
                z_[e] = turn(i) * gamma_[i] / double(code_.degree[i]);
            }
            if (prove(limits.steps))
                return found_;
            for (Index e = 0; e < code_.edges(); ++e)
                trial_[e] = turn(code_.member[e]) * b_[e];
        } else { // some word, for those who count wrong bits
            std::copy(word_.begin(), word_.end(), best_);
            std::fill(trial_.begin(), trial_.end(), 0.0);
        }
        keep_bound();
        relax(limits);
        return found_;
    }

    // A number certainly no larger than the bound that λ proves.
    double bound(const double *gamma, const std::uint8_t *odd, const double *lam) {
        std::copy(gamma, gamma + code_.bits, total_.begin());
        std::fill(turned_.begin(), turned_.end(), 0.0); // room for the sizes of rounding errors
        for (Index e = 0; e < code_.edges(); ++e) {
            double &rest = total_[code_.member[e]];
            const double sum = rest - lam[e];
            turned_[code_.member[e]] += std::abs(error_of(rest, -lam[e], sum));
            rest = sum;
        }
        for (Index i = 0; i < code_.bits; ++i) {
            const double slack = 2.0 * turned_[i]; // sums of errors are themselves rounded
            const double rest = slack > 0.0 ? next_below(total_[i] - slack) : total_[i];
            terms_[i] = std::min(0.0, rest);
        }
        for (Index c = 0; c < code_.checks; ++c)
            terms_[code_.bits + c] =
                parity_minimum(lam + code_.start[c], size(c), odd[c], room_.data());
        return lower_sum(terms_.data(), Index(terms_.size()));
    }

  private:
    Index size(Index c) const { return code_.start[c + 1] - code_.start[c]; }
    double turn(Index i) const { return best_[i] ? -1.0 : 1.0; }

    bool is_codeword(const std::uint8_t *word) const {
        for (Index c = 0; c < code_.checks; ++c) {
            std::uint8_t parity = odd_[c];
            for (Index e = code_.start[c]; e < code_.start[c + 1]; ++e)
                parity ^= word[code_.member[e]];
            if (parity)
                return false;
        }
        return true;
    }

    // Keep a codeword if it is the best; whether it is.
    bool take(const std::uint8_t *word) {
        Index count = 0;
        for (Index i = 0; i < code_.bits; ++i)
            if (word[i])
                x_[count++] = gamma_[i];
        const double cost = careful_sum(x_.data(), count);
        if (!(cost < found_.cost))
            return false;
        found_.cost = cost;
        std::copy(word, word + code_.bits, best_);
        return true;
    }

    // Min-sum, check after check, with messages made a little smaller; whether it ends in a
    // codeword, `word_`.
    bool propagate(Index rounds) {
        constexpr double smaller = 0.85;
        std::copy(gamma_, gamma_ + code_.bits, total_.begin());
        std::fill(u_.begin(), u_.end(), 0.0);
        for (Index round = 0;; ++round) {
            for (Index i = 0; i < code_.bits; ++i)
                word_[i] = total_[i] < 0.0;
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
                    // alone in its check, a bit is certain: that is as good as a large cost
                    const double most = 1e3 * scale_ * double(code_.bits);
                    const double sent = std::clamp(smaller * room_[t], -most, most);
                    u_[first + t] = sent;
                    total_[code_.member[first + t]] = in_[t] + sent;
                }
            }
        }
    }

    // Douglas and Rachford's method from z_ on, turned by the best word; whether it ends in a
    // proof, which is then in λ.
    bool prove(Index steps) {
        constexpr double relaxation = 1.7;
        const double margin = 1e-4 * scale_;
        for (Index i = 0; i < code_.bits; ++i)
            turned_[i] = turn(i) * gamma_[i];
        for (Index step = 0; step < steps; ++step) {
            ++found_.steps;
            add_up(z_);
            for (Index i = 0; i < code_.bits; ++i)
                total_[i] = std::max(0.0, total_[i] - turned_[i] + margin) /
                            double(std::max<Index>(code_.degree[i], 1));
            for (Index c = 0; c < code_.checks; ++c) {
                const Index first = code_.start[c], last = code_.start[c + 1];
                for (Index e = first; e < last; ++e)
                    b_[e] = z_[e] - 2.0 * total_[code_.member[e]];
                into_parity_cone(b_.data() + first, last - first);
                for (Index e = first; e < last; ++e)
                    z_[e] += relaxation * (b_[e] - z_[e] + total_[code_.member[e]]);
            }
            if (proves()) {
                for (Index e = 0; e < code_.edges(); ++e)
                    lam_[e] = turn(code_.member[e]) * b_[e];
                found_.proved = true;
                found_.bound = found_.cost;
                return true;
            }
        }
        return false;
    }

    void add_up(const std::vector<double> &values) {
        std::fill(total_.begin(), total_.end(), 0.0);
        for (Index e = 0; e < code_.edges(); ++e)
            total_[code_.member[e]] += values[e];
    }

    // Whether the numbers b_ of each bit, all in the cones of their checks, add up to at most its
    // cost, in spite of all rounding.
    bool proves() {
        add_up(b_);
        for (Index i = 0; i < code_.bits; ++i)
            if (total_[i] > turned_[i])
                return false;
        std::fill(x_.begin(), x_.end(), 0.0);
        for (Index e = 0; e < code_.edges(); ++e)
            x_[code_.member[e]] += std::abs(b_[e]);
        for (Index i = 0; i < code_.bits; ++i)
            if (turned_[i] - total_[i] < 4.0 * double(code_.degree[i]) * unit * x_[i])
                return false;
        return true;
    }

    // The linear program by the method of multipliers, whose z_ are points of the hulls and whose
    // multipliers are λ = -μ u. Every few sweeps, the bound and the nearest word are looked at.
    void relax(const DecodingLimits &limits) {
        constexpr Index every = 10;
        constexpr double relaxation = 1.8, settled = 1e-4;
        const double mu = penalty * (scale_ > 0.0 ? scale_ : 1.0);
        std::fill(u_.begin(), u_.end(), 0.0);
        std::fill(z_.begin(), z_.end(), 0.5);
        for (Index sweep = 1; sweep <= limits.sweeps; ++sweep) {
            ++found_.sweeps;
            const double moved = sweep_once(mu, relaxation);
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
                if (prove(limits.steps))
                    return;
                z_ = kept_;
            }
            if (moved < settled)
                return;
        }
    }

    static constexpr double penalty = 0.6; // μ, in units of the mean cost of a bit

    double sweep_once(double mu, double relaxation) {
        std::fill(total_.begin(), total_.end(), 0.0);
        for (Index e = 0; e < code_.edges(); ++e)
            total_[code_.member[e]] += z_[e] - u_[e];
        for (Index i = 0; i < code_.bits; ++i) {
            const double d = double(code_.degree[i]);
            const double x = d > 0.0 ? (total_[i] - gamma_[i] / mu) / d : gamma_[i] < 0.0;
            x_[i] = std::min(std::max(x, 0.0), 1.0);
        }
        double moved = 0.0;
        for (Index c = 0; c < code_.checks; ++c) {
            const Index first = code_.start[c], k = size(c);
            for (Index t = 0; t < k; ++t) {
                const double x = x_[code_.member[first + t]], z = z_[first + t];
                in_[t] = b_[first + t] = relaxation * x + (1.0 - relaxation) * z + u_[first + t];
            }
            into_parity_hull(in_.data(), k, odd_[c], room_.data());
            for (Index t = 0; t < k; ++t) {
                moved = std::max({moved, std::abs(in_[t] - z_[first + t]),
                                  std::abs(in_[t] - x_[code_.member[first + t]])});
                u_[first + t] = b_[first + t] - in_[t];
                z_[first + t] = in_[t];
            }
        }
        return moved;
    }

    // Keep λ = `trial_` if its bound is the best.
    void keep_bound() {
        const double value = bound(gamma_, odd_, trial_.data());
        if (value > found_.bound) {
            found_.bound = value;
            std::copy(trial_.begin(), trial_.end(), lam_);
        }
    }

    const Code &code_;
    const double *gamma_ = nullptr;
    const std::uint8_t *odd_ = nullptr;
    std::uint8_t *best_ = nullptr;
    double *lam_ = nullptr;
    double scale_ = 0.0;
    Decoding found_;
    std::vector<double> turned_, total_, x_, z_, b_, u_, trial_, kept_, terms_, room_, in_;
    std::vector<std::uint8_t> word_;
};

} // namespace softmap
