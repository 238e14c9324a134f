// Cost tables over a few variables: adding a table over fewer variables, minimising over one.
#pragma once

#include "layout.hpp"

#include <algorithm>
#include <vector>

namespace softmap {

// The axis lengths of a table, slowest axis first, and the stride of a term along each axis (0 if
// the term does not depend on that axis's variable).
class Axes {
  public:
    void clear() { count_ = 0; }
    int count() const { return count_; }
    Index length(int k) const { return length_[k]; }
    Index &step(int k) { return step_[k]; }

    void push(Index length) {
        length_[count_] = length;
        step_[count_++] = 0;
    }

    // The same iteration space with neighbouring axes merged wherever the term's strides allow it.
    Axes joined() const {
        Axes out;
        for (int k = 0; k < count_; ++k) {
            const int last = out.count_ - 1;
            if (last >= 0 && out.step_[last] == step_[k] * length_[k]) {
                out.length_[last] *= length_[k];
                out.step_[last] = step_[k];
            } else {
                out.push(length_[k]);
                out.step_[last + 1] = step_[k];
            }
        }
        return out;
    }

    static constexpr int most = 40; // axes; 2^40 entries would not fit into memory

  private:
    int count_ = 0;
    Index length_[most], step_[most];
};

namespace detail {

// table[a · columns + b] += term[a · outer + b · inner] over the two fastest axes. N is the number
// of columns if known at compile time, else 0.
template <int N>
void add_rows(double *table, Index rows, Index columns, const double *term, Index outer,
              Index inner) {
    const Index wide = N > 0 ? N : columns;
    if (inner == 0)
        for (Index a = 0; a < rows; ++a)
            for (Index b = 0; b < wide; ++b)
                table[a * wide + b] += term[a * outer];
    else if (inner == 1)
        for (Index a = 0; a < rows; ++a)
            for (Index b = 0; b < wide; ++b)
                table[a * wide + b] += term[a * outer + b];
    else
        for (Index a = 0; a < rows; ++a)
            for (Index b = 0; b < wide; ++b)
                table[a * wide + b] += term[a * outer + b * inner];
}

// table[2a] and table[2a + 1] += term[a]: a term that does not depend on a binary fastest variable.
inline void add_twice(double *__restrict table, Index rows, const double *__restrict term) {
    for (Index a = 0; a < rows; ++a) {
        table[2 * a] += term[a];
        table[2 * a + 1] += term[a];
    }
}

inline void add_plane(double *table, Index rows, Index columns, const double *term, Index outer,
                      Index inner) {
    if (columns == 2 && inner == 0 && outer == 1)
        add_twice(table, rows, term);
    else if (columns == 2)
        add_rows<2>(table, rows, columns, term, outer, inner);
    else
        add_rows<0>(table, rows, columns, term, outer, inner);
}

} // namespace detail

// table += term, broadcast along the axes that the term does not depend on.
inline void add_term(double *table, const Axes &given, const double *term) {
    Axes axes = given.joined();
    const int count = axes.count();
    if (count == 0) {
        *table += *term;
        return;
    }
    const Index columns = axes.length(count - 1), inner = axes.step(count - 1);
    const Index rows = count > 1 ? axes.length(count - 2) : 1;
    const Index outer = count > 1 ? axes.step(count - 2) : 0;
    Index at[Axes::most] = {}, from = 0;
    for (;;) {
        detail::add_plane(table, rows, columns, term + from, outer, inner);
        table += rows * columns;
        int k = count - 3;
        for (; k >= 0; --k) {
            from += axes.step(k);
            if (++at[k] < axes.length(k))
                break;
            from -= axes.length(k) * axes.step(k);
            at[k] = 0;
        }
        if (k < 0)
            return;
    }
}

// out[r] = min over x of table[x · slice + r], the slowest axis having `labels` slices; choice[r] =
// the minimising x. Ties are broken in favour of `first`.
template <class Choice>
void minimise_out(const double *__restrict table, Index labels, Index slice, Index first,
                  double *__restrict out, Choice *__restrict choice) {
    if (labels == 2) {
        const double *stay = table + first * slice, *leave = table + (1 - first) * slice;
        const Choice kept = Choice(first), other = Choice(1 - first);
        for (Index r = 0; r < slice; ++r)
            choice[r] = leave[r] < stay[r] ? other : kept;
        for (Index r = 0; r < slice; ++r)
            out[r] = leave[r] < stay[r] ? leave[r] : stay[r];
        return;
    }
    std::copy_n(table + first * slice, slice, out);
    std::fill_n(choice, slice, Choice(first));
    for (Index x = 0; x < labels; ++x) {
        const double *row = table + x * slice;
        for (Index r = 0; r < slice; ++r) {
            const bool better = row[r] < out[r];
            out[r] = better ? row[r] : out[r];
            choice[r] = better ? Choice(x) : choice[r];
        }
    }
}

} // namespace softmap
