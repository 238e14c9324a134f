// Lower envelope of parabolas: out[y] = min over x of v(x, y) = a[x] + weight · (x - y)², in
// O(labels · log labels).
//
// For x < x' the difference v(x, y) - v(x', y) grows with y, so that minimisers grow with y, too.
// The middle one of a range of receivers is evaluated: senders beyond its minimisers cannot be
// better for the receivers on the other side.
//
// Bounds rest on that: with rounding towards -inf, a sender is left out only if its v(x, y),
// rounded down, is above an upper bound of the minimum. Then it is not better in exact arithmetic,
// for all receivers on the other side of y, and the result is a lower bound as if no sender were
// left out.
#pragma once

#include "dense.hpp"

#include <algorithm>
#include <cmath>

namespace softmap {

class Parabolas {
  public:
    using P = Pack<lanes>;

    Parabolas(Index labels, double weight, const double *a, double *out)
        : weight_(weight), a_(a), out_(out) {
        lower(0, labels, 0, labels);
    }

  private:
    struct Senders {
        Index begin, end;
    };

    // Computes out for the receivers first..last-1, whose minimisers are in from..to-1.
    void lower(Index first, Index last, Index from, Index to) const {
        if (last - first <= lanes || to - from <= lanes) {
            for (Index y = first; y < last; y += lanes)
                lower_few(y, std::min<Index>(lanes, last - y), from, to);
            return;
        }
        const Index middle = (first + last) / 2;
        const Senders found = minimisers(middle, from, to);
        lower(first, middle, from, found.end);
        lower(middle, last, found.begin, to);
    }

    // Computes out[y], out[y + 1], ... from all senders.
    void lower_few(Index y, Index count, Index from, Index to) const {
        const P receiver = P::of([&](int k) { return double(y + k); });
        P low(infinity);
        for (Index x = from; x < to; ++x) {
            const P step = receiver - P(double(x));
            low = least(P(a_[x]) + P(weight_) * (step * step), low);
        }
        low.each(int(count), [&](int k, double one) { out_[y + k] = one; });
    }

    // The shortest range that contains all senders in from..to-1 whose v(x, y) may be the minimum.
    Senders minimisers(Index y, Index from, Index to) const {
        P best(infinity);
        double low = infinity;
        Index x = from;
        for (; x + lanes <= to; x += lanes)
            best = least(at<lanes>(x, y), best);
        for (; x < to; ++x)
            low = std::min(low, at<1>(x, y).part[0]);
        low = std::min(low, lowest(best));
        // The exact v is less than 2^-52 of each rounded term above the rounded one; 2^-50 is four
        // times as much, so that this sum may itself be rounded down.
        const double widest = double(std::max(y - from, to - y));
        const double most =
            low + ((std::abs(low) + weight_ * (widest * widest)) * 0x1p-50 + 0x1p-1060);
        Senders found{from, to};
        while (found.begin + lanes <= to && !(lowest(at<lanes>(found.begin, y)) <= most))
            found.begin += lanes;
        while (found.begin < to && !(at<1>(found.begin, y).part[0] <= most))
            ++found.begin;
        while (found.end - lanes >= from && !(lowest(at<lanes>(found.end - lanes, y)) <= most))
            found.end -= lanes;
        while (found.end > from && !(at<1>(found.end - 1, y).part[0] <= most))
            --found.end;
        return found.begin < found.end ? found : Senders{from, to};
    }

    // v(x, y), v(x + 1, y), ...
    template <int W> Pack<W> at(Index x, Index y) const {
        const Pack<W> step = Pack<W>::of([&](int k) { return double(x + k - y); });
        return Pack<W>::load(a_ + x) + Pack<W>(weight_) * (step * step);
    }
    static double lowest(const P &a) { return -largest(0.0 - a); }

    const double weight_;
    const double *a_;
    double *out_;
};

} // namespace softmap
