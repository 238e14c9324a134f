// Sums of the masses exp(-η (C + κ_i + κ_j)) over pairs of near labels, for costs C(|x - y|).
//
// A band represents a banded matrix φ(x, y). The mass of a pair, relative to the largest mass, is
// left[x] · φ(x, y) · right[y], and each factor is at most 1, so that a factor that underflows
// belongs to a negligible mass. The classes below compute weighted row and column sums of φ over
// near labels (|x - y| < reach). All arrays are indexed by label.
#pragma once

#include "windows.hpp"

namespace softmap {

// Factors exp(-η (weight ∓ (height[x] - height[x - 1]))) between neighbouring labels. They are at
// most 1 if heights of neighbouring labels differ by no more than the weight.
template <int W> class Slopes {
  public:
    using P = Pack<W>;

    Slopes(Index count, P *room) : count_(count), up_(room), down_(room + count + 2) {}
    static Index room(Index count) { return 2 * count + 2; }

    void set(const P *height, const P &weight, double eta) const {
        up_[0] = up_[count_] = down_[-1] = down_[count_ - 1] = P(0.0);
        for (Index x = 1; x < count_; ++x) {
            const P rise = height[x] - height[x - 1];
            up_[x] = mass_of(weight - rise, eta);
            down_[x - 1] = mass_of(weight + rise, eta);
        }
    }

    // The factor exp(-η weight) between all neighbouring labels.
    void set_evenly(const P &weight, double eta) const {
        up_[0] = up_[count_] = down_[-1] = down_[count_ - 1] = P(0.0);
        const P step = mass_of(weight, eta);
        for (Index x = 1; x < count_; ++x)
            up_[x] = down_[x - 1] = step;
    }

    // Calls put(x, Σ_y φ(x, y) source[y], Σ_y φ(x, y) source[y] |x - y|) once for the near labels
    // y < x and once for the near labels y > x, unless there are none. `room` has 4 · count packs.
    template <class Put> void gather(const P *source, Index reach, P *room, Put put) const {
        both<true>(source, reach, Steps<W>{up_}, Steps<W>{down_}, room, put);
    }
    // As `gather`, without the sum weighted by |x - y|.
    template <class Put> void gather_plainly(const P *source, Index reach, P *room, Put put) const {
        both<false>(source, reach, Steps<W>{up_}, Steps<W>{down_}, room, put);
    }
    // As `gather_plainly`, with φ(y, x) for φ(x, y).
    template <class Put> void scatter(const P *source, Index reach, P *room, Put put) const {
        both<false>(source, reach, Steps<W>{down_ - 1}, Steps<W>{up_ + 1}, room, put);
    }
    // As `gather`, with φ = 1.
    template <class Put> void count(const P *source, Index reach, P *room, Put put) const {
        both<true>(source, reach, Still{}, Still{}, room, put);
    }

    P into_greater(Index x) const { return up_[x]; }  // the factor from x - 1 to x
    P into_lesser(Index x) const { return down_[x]; } // the factor from x + 1 to x

  private:
    template <bool counting, class Up, class Down, class Put>
    void both(const P *source, Index reach, Up up, Down down, P *room, Put put) const {
        if (reach > 1)
            walk(count_, reach - 1, Trail<W, counting, true, Up>(count_, source, up, room),
                 Trail<W, counting, false, Down>(count_, source, down, room + 2 * count_), put);
    }

    Index count_;
    P *up_, *down_;
};

// Band of costs weight · |x - y|: φ(x, y) is the product of the factors from label y to label x.
template <int W> class LinearBand {
  public:
    using P = Pack<W>;

    LinearBand(Index count, Index reach, const P &weight, P *room)
        : count_(count), reach_(reach), weight_(weight), slopes_(count, room),
          room_(room + Slopes<W>::room(count)) {}
    static Index room(Index count, Index) { return Slopes<W>::room(count) + 4 * count; }

    // Sets φ, left and right. `row` is κ_i, `col` is κ_j, `height` the hard message from κ_j to the
    // labels x, and `low` the minimum of C + κ_i + κ_j.
    void begin(const P *row, const P *col, const P *height, const P &low, double eta, P *left,
               P *right) const {
        slopes_.set(height, weight_, eta);
        for (Index x = 0; x < count_; ++x) {
            left[x] = mass_of(row[x] + height[x] - low, eta);
            right[x] = mass_of(col[x] - height[x], eta);
        }
    }

    // Sets φ = exp(-η C); the caller keeps left and right within the range of doubles.
    void begin_evenly(double eta) const { slopes_.set_evenly(weight_, eta); }

    // sum[x] = Σ_y φ(x, y) right[y] and toll[x] = Σ_y φ(x, y) right[y] C(x, y) over near labels y.
    void rows(const P *right, P *sum, P *toll) const {
        start(right, sum, toll);
        slopes_.gather(right, reach_, room_, adding(sum, toll));
    }
    // sum[y] = Σ_x left[x] φ(x, y) over near labels x.
    void cols(const P *left, P *sum) const {
        for (Index y = 0; y < count_; ++y)
            sum[y] = left[y];
        slopes_.scatter(left, reach_, room_,
                        [&](Index y, const P &one, const P &) { sum[y] += one; });
    }
    // sum[x] = Σ_y right[y] and toll[x] = Σ_y right[y] C(x, y) over near labels y.
    void plainly(const P *right, P *sum, P *toll) const {
        start(right, sum, toll);
        slopes_.count(right, reach_, room_, adding(sum, toll));
    }
    // Calls put(y, φ(x, y)) for each near label y of x.
    template <class Put> void each(Index x, Put put) const {
        P path(1.0);
        put(x, path);
        for (Index y = x - 1; y >= 0 && y > x - reach_; --y)
            put(y, path *= slopes_.into_greater(y + 1));
        path = P(1.0);
        for (Index y = x + 1; y < count_ && y < x + reach_; ++y)
            put(y, path *= slopes_.into_lesser(y - 1));
    }

  private:
    void start(const P *right, P *sum, P *toll) const {
        for (Index x = 0; x < count_; ++x) {
            sum[x] = right[x];
            toll[x] = P(0.0);
        }
    }
    auto adding(P *sum, P *toll) const {
        return [=, weight = weight_](Index x, const P &one, const P &steps) {
            sum[x] += one;
            toll[x] = fused(weight, steps, toll[x]);
        };
    }

    Index count_, reach_;
    P weight_;
    Slopes<W> slopes_;
    P *room_;
};

// Band of any costs C(|x - y|): φ(x, y) is the mass itself, stored in a table.
template <int W, class Distance> class TableBand {
  public:
    using P = Pack<W>;

    TableBand(Index count, Index reach, const P &weight, P *room)
        : count_(count), reach_(reach), stride_(width(count, reach)), weight_(weight),
          table_(room) {}
    static Index room(Index count, Index reach) { return count * width(count, reach); }

    void begin(const P *row, const P *col, const P *, const P &low, double eta, P *left,
               P *right) const {
        for (Index x = 0; x < count_; ++x) {
            left[x] = right[x] = P(1.0);
            near(x,
                 [&](Index y, P &phi) { phi = mass_of(row[x] + cost(x, y) + col[y] - low, eta); });
        }
    }
    void begin_evenly(double eta) const {
        for (Index x = 0; x < count_; ++x)
            near(x, [&](Index y, P &phi) {
                phi = x > 0 && y > 0 ? table_[(x - 1) * stride_ + y - 1 - first(x - 1)]
                                     : mass_of(cost(x, y), eta);
            });
    }
    void rows(const P *right, P *sum, P *toll) const {
        for (Index x = 0; x < count_; ++x) {
            sum[x] = toll[x] = P(0.0);
            near(x, [&](Index y, const P &phi) {
                const P mass = phi * right[y];
                sum[x] += mass;
                toll[x] = fused(mass, cost(x, y), toll[x]);
            });
        }
    }
    void cols(const P *left, P *sum) const {
        for (Index y = 0; y < count_; ++y)
            sum[y] = P(0.0);
        for (Index x = 0; x < count_; ++x)
            near(x, [&](Index y, const P &phi) { sum[y] = fused(left[x], phi, sum[y]); });
    }
    void plainly(const P *right, P *sum, P *toll) const {
        for (Index x = 0; x < count_; ++x) {
            sum[x] = toll[x] = P(0.0);
            near(x, [&](Index y, const P &) {
                sum[x] += right[y];
                toll[x] = fused(right[y], cost(x, y), toll[x]);
            });
        }
    }
    template <class Put> void each(Index x, Put put) const {
        near(x, [&](Index y, const P &phi) { put(y, phi); });
    }

  private:
    static Index width(Index count, Index reach) { return std::min(count, 2 * reach - 1); }
    P cost(Index x, Index y) const { return weight_ * P(Distance::of(x < y ? y - x : x - y)); }

    template <class F> void near(Index x, F work) const {
        const Index last = std::min(count_, x + reach_);
        for (Index y = first(x); y < last; ++y)
            work(y, table_[x * stride_ + y - first(x)]);
    }
    Index first(Index x) const { return std::max<Index>(0, x - reach_ + 1); }

    Index count_, reach_, stride_;
    P weight_;
    P *table_;
};

} // namespace softmap
