// Sums over the labels near each label, and over those far from it, in time proportional to the
// labels and without a single difference: nothing is lost to cancellation.
#pragma once

#include "dense.hpp"

namespace softmap {

// Masses below `trace` are none.
template <int W> Pack<W> noticed(const Pack<W> &mass) {
    return choose(Pack<W>(trace), mass, mass, Pack<W>(0.0));
}

// exp(-η · value), 0 where that is less than a trace and where `value` is +inf.
template <int W> Pack<W> mass_of(const Pack<W> &value, double eta) {
    return noticed(unless_infinite(value, exp(Pack<W>(-eta) * greatest(value, Pack<W>(0.0)))));
}

// Labels in ascending or descending order.
struct Upwards {
    Index operator()(Index k) const { return k; }
};
struct Downwards {
    Index count;
    Index operator()(Index k) const { return count - 1 - k; }
};

// The step from each label to the next in some order, and one that changes nothing.
template <int W> struct Steps {
    const Pack<W> *into; // by label that is stepped to
    Pack<W> operator()(const Pack<W> &sum, Index label) const { return noticed(sum * into[label]); }
};
struct Still {
    template <int W> Pack<W> operator()(const Pack<W> &sum, Index) const { return sum; }
};

// Σ source[y] · (steps from y to x) over the `length` labels y before x, for every x in the order
// of `label`, and the like sums of source · steps · (number of steps): put(x, sum, sum_of_steps).
//
// Windows are put together from the end of one block of `length` labels and the beginning of the
// next (van Herk 1992, Gil and Werman 1993). `room` is 2 · count packs.
template <int W, class Label, class Step, class Put>
void trailing(Index count, Index length, const Pack<W> *source, Label label, Step step,
              Pack<W> *room, Put put) {
    const Pack<W> none(0.0), one(1.0);
    Pack<W> *end = room, *end_steps = room + count;
    put(label(0), none, none);
    if (length < count - 1) {
        Pack<W> sum = none, steps = none, path = one;
        for (Index k = count - 1, left = (count - 1) % length; k >= 0; --k) {
            const Pack<W> own = source[label(k)] * path;
            sum += own;
            steps += own * Pack<W>(double(length - 1 - left));
            end[k] = sum;
            end_steps[k] = steps;
            path = step(path, label(k));
            if (left-- == 0) {
                left = length - 1;
                sum = steps = none;
                path = one;
            }
        }
    }
    Pack<W> sum = none, steps = none, path = one;
    for (Index z = 0, place = 0; z + 1 < count; ++z) { // the window ends at z
        if (place == length)
            place = 0, sum = steps = none, path = one;
        steps = step(steps + sum, label(z));
        sum = step(sum, label(z)) + source[label(z)];
        path = step(path, label(z));
        Pack<W> all = sum, all_steps = steps;
        if (++place < length && z >= place) {
            const Pack<W> tail = path * end[z - length + 1];
            all += tail;
            all_steps += path * end_steps[z - length + 1] + tail * Pack<W>(double(place));
        }
        put(label(z + 1), step(all, label(z + 1)), step(all_steps + all, label(z + 1)));
    }
}

// Σ source[y] over labels y that are `reach` or more away from x, for every x.
template <int W> void far_sums(Index count, Index reach, const Pack<W> *source, Pack<W> *out) {
    Pack<W> sum(0.0);
    for (Index x = 0; x < count; ++x) {
        if (x >= reach)
            sum += source[x - reach];
        out[x] = sum;
    }
    sum = Pack<W>(0.0);
    for (Index x = count - 1; x >= 0; --x) {
        if (x + reach < count)
            sum += source[x + reach];
        out[x] += sum;
    }
}

} // namespace softmap
