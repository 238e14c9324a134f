// Soft messages out[y] = -(1/η) log Σ_x exp(-η (a[x] + weight · min((x - y)², truncation))) along
// one edge with many labels, in about O(labels · log labels) at every η.
//
// Labels of the receiver are taken in blocks. Let c be the centre of a block, y = c + t, X any
// number and κ = 2 η weight. Then the sum over near senders is
//
//     exp(-η weight · t² + κ (X - c) t) · Σ p[x] exp(κ (x - X) t),  p[x] = exp(-η v(x, c)),
//
// with v(x, y) = a[x] + weight · (x - y)². The last sum is an entire function of t. It is evaluated
// at 16 Chebyshev points, as a polynomial in exp(κ t), and interpolated. Senders with η (v(x, y) -
// min v) > `depth` for all labels y of the block are left out: the first and the last sender that
// matters grow with y.
//
// How exact that is: let X be the mean of p. Then the sum S(t) is convex with S'(0) = 0, so that
// S(t) >= S(0). Its Chebyshev coefficients of even degree are Σ p[x] 2 I_n(κ (x - X) h), with
// modified Bessel functions I_n >= 0, h half the length of the block. If all exponents are at most
// 16, the terms from degree 16 on are together at most 0.5 of that of degree 14 (I_n / I_{n-1} <=
// 16 / 2n), and an interpolation at Chebyshev points is wrong by at most twice their sum.
#pragma once

#include "parabolas.hpp"
#include "windows.hpp"

namespace softmap {

class Gaussians {
  public:
    using P = Pack<lanes>;

    // `ceiling`: the cost of labels at least `reach` apart, if there are any.
    Gaussians(Index labels, Index reach, double weight, double ceiling, double *room)
        : labels_(labels), reach_(reach), weight_(weight), ceiling_(ceiling), near_(room),
          last_(near_ + labels), mass_(last_ + labels), far_(mass_ + labels), p_(far_ + labels),
          left_(p_ + labels + lanes), right_(left_ + labels / 2 + lanes) {}
    static constexpr Index room(Index labels) { return 6 * labels + 3 * lanes; }

    void message(const double *a, double *out, double eta) {
        const double low = *std::min_element(a, a + labels_);
        if (low == infinity) {
            std::fill_n(out, labels_, infinity);
            return;
        }
        const Flushed flushed;
        a_ = a, out_ = out, eta_ = eta, rate_ = 2.0 * eta * weight_, top_ = low + ceiling_;
        Parabolas(labels_, weight_, a, near_);
        find_last();
        if (reach_ < labels_)
            sum_far(low);
        longest_ = Index(std::min(1.4 / std::sqrt(0.5 * rate_), 1e9));
        for (first_ = 0; first_ < labels_; first_ += count_) {
            while (all_.begin + 1 < labels_ && !matters(all_.begin, first_))
                ++all_.begin;
            if (!by_interpolation() && !label_by_label())
                directly();
        }
    }

  private:
    static constexpr double depth = 34.0;      // exp(-34) is 2e-15
    static constexpr double exact = 1e-12;     // relative error of an interpolated sum
    static constexpr Index points = 2 * lanes; // of the interpolation
    static constexpr double steep = 16.0;      // largest exponent κ (x - X) t if interpolated
    static constexpr double steepest = 200.0;  // largest one otherwise

    struct Senders {
        Index begin, end;
    };
    struct Points { // one number for each of `points`
        P part[2];
    };

    bool matters(Index x, Index y) const {
        const double step = double(x - y);
        return eta_ * (a_[x] + weight_ * (step * step) - near_[y]) <= depth;
    }

    // last_[y] = the last sender that matters for y.
    void find_last() const {
        Index x = labels_ - 1;
        for (Index y = labels_ - 1; y >= 0; --y) {
            while (x > 0 && !matters(x, y))
                --x;
            last_[y] = double(x);
        }
    }

    // far_[y] = Σ exp(-η (a[x] - low)) over the senders at least `reach` from y. left_ and right_:
    // exp(η (ceiling - weight · k²)) for k < reach, 0 from there on; k ascends in left_.
    void sum_far(double low) {
        exponentials(a_, low, mass_, labels_);
        far_sums(labels_, reach_, reinterpret_cast<const Pack<1> *>(mass_),
                 reinterpret_cast<Pack<1> *>(far_));
        const double most = 300.0 / (rate_ * double(reach_)); // factors are below exp(300)
        edge_ = std::min({labels_ / 4, reach_ / 2, Index(std::min(most, 1e9))});
        std::fill_n(left_, 2 * edge_ + lanes, 0.0);
        std::fill_n(right_, 2 * edge_ + lanes, 0.0);
        for (Index k = 0; k < edge_; ++k) {
            const double step = double(reach_ - 1 - k);
            left_[edge_ - 1 - k] = right_[edge_ + k] =
                exp_one(eta_ * (ceiling_ - weight_ * (step * step)));
        }
    }

    // to = exp(-η (from - low)).
    void exponentials(const double *from, double low, double *to, Index count) const {
        Index x = 0;
        for (; x + lanes <= count; x += lanes)
            exp(P(-eta_) * (P::load(from + x) - P(low))).store(to + x);
        for (; x < count; ++x)
            to[x] = exp_one(-eta_ * (from[x] - low));
    }

    // Chooses the senders of the block: those that matter, and of them those that are near for all
    // of its labels if far ones matter, too. Returns whether the block is short enough for that.
    bool choose_senders() {
        const Index last = first_ + count_ - 1;
        const auto [low, high] = std::minmax_element(near_ + first_, near_ + last + 1);
        half_ = 0.5 * double(count_ - 1);
        all_.end = Index(last_[last]) + 1;
        inner_ = all_;
        far_ones_ = reach_ < labels_ && eta_ * (top_ - *high) <= depth;
        near_ones_ = !far_ones_ || eta_ * (*low - top_) <= depth;
        if (!far_ones_)
            return true;
        inner_.begin = std::max(inner_.begin, last - reach_ + 1);
        inner_.end = near_ones_ ? std::min(inner_.end, first_ + reach_) : inner_.begin;
        return count_ <= edge_;
    }

    // Computes the messages to up to `longest_` labels by interpolation; false if that would be too
    // few labels.
    bool by_interpolation() {
        count_ = std::min(std::max(longest_, 2 * points), labels_ - first_);
        for (; count_ > points; longest_ = count_ = count_ * 3 / 4) {
            const double error = choose_senders() ? interpolate() : 1.0;
            if (error <= exact) {
                if (error < 0.01 * exact)
                    longest_ = count_ + count_ / 3;
                return true;
            }
        }
        return false;
    }

    // The relative error of the messages to the block; writes them if it is small enough.
    double interpolate() {
        if (!weigh(steep))
            return 1.0;
        double term[points] = {};
        if (lowest_ < infinity)
            coefficients(sums(P(half_) * node(0), P(half_) * node(1)), term);
        const double error = lowest_ < infinity ? term[points - 2] / sum_ : 0.0;
        if (error <= exact)
            finish([&](Index, const P &t) { return series(term, t * P(1.0 / half_)); });
        return error;
    }

    // Computes the messages to the next labels, up to 16, each by its own sum.
    bool label_by_label() {
        count_ = std::min(points, labels_ - first_);
        if (!choose_senders() || !weigh(steepest))
            return false;
        const auto label = [&](int part) {
            return P::of([&](int k) {
                return std::min(double(part * lanes + k), double(count_ - 1)) - half_;
            });
        };
        const Points found = sums(label(0), label(1));
        finish([&](Index k, const P &) { return found.part[k / lanes]; });
        return true;
    }

    // Computes the messages to the next labels, one for each lane, term by term.
    void directly() {
        count_ = std::min<Index>(lanes, labels_ - first_);
        choose_senders();
        const P receiver = P::of([&](int k) { return double(first_ + k); });
        const P low = P::of([&](int k) { return near_[first_ + std::min<Index>(k, count_ - 1)]; });
        const P wide(far_ones_ ? double(reach_) : infinity);
        P mass(0.0);
        for (Index x = all_.begin; x < all_.end; ++x) {
            const P step = receiver - P(double(x));
            const P value = P(a_[x]) + P(weight_) * (step * step);
            const P one = exp(P(-eta_) * greatest(value - low, P(0.0)));
            mass += choose(size_of(step), wide, one, P(0.0));
        }
        P found = low - log(greatest(mass, P(1e-300))) * P(1.0 / eta_);
        if (far_ones_)
            found = with_far(found, P::load(far_ + first_));
        found.each(int(count_), [&](int k, double one) { out_[first_ + k] = one; });
    }

    // Sets p, its sum and its mean for the inner senders, and `lowest_`, the least v(x, c), +inf if
    // there is none. Returns whether the exponents κ (x - X) t are at most `most`.
    bool weigh(double most) {
        const Index count = inner_.end - inner_.begin;
        lowest_ = infinity;
        if (count <= 0)
            return true;
        // at most for any X, and with squares of exp(κ t) below exp(400)
        if (!(0.25 * rate_ * half_ * double(std::max<Index>(count, 4)) <= most))
            return false;
        const double centre = double(first_) + half_;
        for (Index k = 0; k < count; ++k) {
            const double step = double(inner_.begin + k) - centre;
            p_[k] = a_[inner_.begin + k] + weight_ * (step * step);
            lowest_ = std::min(lowest_, p_[k]);
        }
        if (!(lowest_ < infinity))
            return true;
        exponentials(p_, lowest_, p_, count);
        p_[count] = sum_ = mean_ = 0.0;
        for (Index k = 0; k < count; ++k) {
            sum_ += p_[k];
            mean_ += double(k) * p_[k];
        }
        mean_ /= sum_;
        return rate_ * half_ * std::max(mean_, double(count - 1) - mean_) <= most;
    }

    // Σ p[x] exp(κ (x - X) t) for 16 numbers t, as polynomials in exp(2 κ t).
    Points sums(const P &s, const P &t) const {
        const P z[] = {power(s), power(t)}, zz[] = {z[0] * z[0], z[1] * z[1]};
        P even[] = {P(0.0), P(0.0)}, odd[] = {P(0.0), P(0.0)};
        for (Index k = (inner_.end - inner_.begin - 1) / 2 * 2; k >= 0; k -= 2)
            for (int part = 0; part < 2; ++part) {
                even[part] = fused(even[part], zz[part], P(p_[k]));
                odd[part] = fused(odd[part], zz[part], P(p_[k + 1]));
            }
        const P back(-rate_ * mean_);
        return {{fused(odd[0], z[0], even[0]) * exp(back * s),
                 fused(odd[1], z[1], even[1]) * exp(back * t)}};
    }

    // exp(κ t), with an error that stays small in high powers: a Taylor series, squared repeatedly.
    P power(const P &t) const {
        int halvings = 0;
        double largest = rate_ * half_;
        for (; largest > 0.25; largest *= 0.5)
            ++halvings;
        const P u = P(std::ldexp(rate_, -halvings)) * t;
        P out(1.0);
        for (int k = 12; k >= 1; --k)
            out = fused(out * u, P(1.0 / k), P(1.0));
        for (; halvings > 0; --halvings)
            out *= out;
        return out;
    }

    // Writes the messages to the block: sum(k, t) is the sum of its k-th label and the following
    // ones, at t.
    template <class Sum> void finish(Sum sum) {
        const double tilt = 2.0 * weight_ * (double(inner_.begin) + mean_ - double(first_) - half_);
        for (Index k = 0; k < count_; k += lanes) {
            const P t = P::of([&](int lane) { return double(k + lane) - half_; });
            P value(infinity);
            if (lowest_ < infinity)
                value = P(lowest_) + t * (P(weight_) * t - P(tilt)) -
                        log(greatest(sum(k, t), P(1e-300))) * P(1.0 / eta_);
            if (far_ones_)
                value = with_far(value, P::load(far_ + first_ + k) + crossing(first_ + k));
            value.each(int(std::min<Index>(lanes, count_ - k)),
                       [&](int lane, double one) { out_[first_ + k + lane] = one; });
        }
    }

    // Σ exp(-η (a[x] - low) + η (ceiling - weight · (x - y)²)) over the senders that are near for
    // some labels of the block only, for y, y + 1, ...
    P crossing(Index y) const {
        P sum(0.0);
        if (!near_ones_)
            return sum;
        const Index last = first_ + count_ - 1;
        for (Index x = std::max(all_.begin, first_ - reach_ + 1);
             x < std::min(inner_.begin, all_.end); ++x)
            sum = fused(P(mass_[x]), P::load(left_ + (y - x - reach_ + edge_)), sum);
        for (Index x = std::max(inner_.end, all_.begin); x < std::min(all_.end, last + reach_); ++x)
            sum = fused(P(mass_[x]), P::load(right_ + (y - x + reach_ - 1 + edge_)), sum);
        return sum;
    }

    // The soft minimum of `near` and of far senders with this mass.
    P with_far(const P &near, const P &mass) const {
        const P low = least(near, P(top_)), cold(-eta_);
        const P sum = fused(mass, exp(cold * (P(top_) - low)), exp(cold * (near - low)));
        return low - log(greatest(sum, P(1e-300))) * P(1.0 / eta_);
    }

    // --- Chebyshev polynomials -------------------------------------------------------------------

    // cos(m π / 32)
    static constexpr double cosine(int m) {
        constexpr double table[] = {1.0,
                                    0.99518472667219693,
                                    0.98078528040323043,
                                    0.95694033573220894,
                                    0.92387953251128674,
                                    0.88192126434835505,
                                    0.83146961230254524,
                                    0.77301045336273699,
                                    0.70710678118654757,
                                    0.63439328416364549,
                                    0.55557023301960218,
                                    0.47139673682599764,
                                    0.38268343236508978,
                                    0.29028467725446233,
                                    0.19509032201612825,
                                    0.098017140329560604,
                                    0.0};
        m %= 64;
        m = m > 32 ? 64 - m : m;
        return m > 16 ? -table[32 - m] : table[m];
    }
    static P node(int part) {
        return P::of([=](int k) { return cosine(2 * (part * lanes + k) + 1); });
    }

    // The coefficients of the interpolating polynomial.
    static void coefficients(const Points &values, double *term) {
        double value[points];
        values.part[0].store(value);
        values.part[1].store(value + lanes);
        for (int degree = 0; degree < points; ++degree) {
            double sum = 0.0;
            for (int k = 0; k < points; ++k)
                sum += value[k] * cosine(degree * (2 * k + 1));
            term[degree] = sum * ((degree ? 2.0 : 1.0) / points);
        }
    }
    // Its value (Clenshaw's recurrence).
    static P series(const double *term, const P &t) {
        P one(0.0), two(0.0);
        for (int degree = points - 1; degree > 0; --degree) {
            const P next = fused(t + t, one, P(term[degree]) - two);
            two = one, one = next;
        }
        return fused(t, one, P(term[0]) - two);
    }

    const Index labels_, reach_;
    const double weight_, ceiling_;
    double *near_, *last_, *mass_, *far_, *p_, *left_, *right_;
    const double *a_ = nullptr;
    double *out_ = nullptr;
    double eta_ = 0.0, rate_ = 0.0, top_ = 0.0; // rate_ = κ
    Index edge_ = 0, longest_ = 0;
    // of the current block
    Index first_ = 0, count_ = 0;
    Senders all_{0, 0}, inner_{0, 0};
    bool far_ones_ = false, near_ones_ = true;
    double half_ = 0.0, lowest_ = 0.0, sum_ = 0.0, mean_ = 0.0; // the mean from inner_.begin on
};

} // namespace softmap
