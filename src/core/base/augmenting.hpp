// Shortest augmenting paths for linear assignment.
#pragma once

#include "layout.hpp"

#include <utility>
#include <vector>

namespace softmap {

// The state of an assignment of rows to different columns, with dual values: row + column value of
// an entry is at most its cost, and equal at the chosen entries.
template <class Number> class Augmenting {
  public:
    std::vector<Index> row, column; // of a column, of a row; -1: none
    std::vector<Number> u, v;       // dual values of rows and columns

    // `unreachable` is larger than any cost that is not forbidden.
    explicit Augmenting(Number unreachable) : unreachable_(unreachable) {}

    // Starts again without assigned rows, at dual values 0.
    void reset(Index rows, Index cols) {
        row.assign(std::size_t(cols), -1);
        column.assign(std::size_t(rows), -1);
        u.assign(std::size_t(rows), 0);
        v.assign(std::size_t(cols), 0);
    }

    // Adds row `first`. costs(r) is the array of the costs of row r; stop(n), called before n
    // columns are read, is true if time has run out. Returns false then, and leaves a row without a
    // column if it can have none.
    template <class Costs, class Stop> bool add(Index first, Costs costs, Stop stop) {
        begin();
        Number reach = 0;
        Index end = -1;
        for (Index r = first; end < 0;) {
            if (stop(Index(open_.size())))
                return false;
            const std::size_t next = relax(r, costs(r), reach);
            if (next == open_.size() || length_[open_[next]] == unreachable_)
                return true;
            const Index c = open_[next];
            reach = length_[c];
            open_[next] = open_.back();
            open_.pop_back();
            closed_.push_back(c);
            if (row[c] < 0)
                end = c;
            else
                r = row[c];
        }
        u[first] += reach;
        for (const Index c : closed_) {
            if (row[c] >= 0)
                u[row[c]] += reach - length_[c];
            v[c] -= reach - length_[c];
        }
        for (Index c = end, r = -1; r != first; std::swap(c, column[r])) {
            r = from_[c];
            row[c] = r;
        }
        return true;
    }

  private:
    void begin() {
        open_.resize(row.size());
        for (std::size_t c = 0; c < row.size(); ++c)
            open_[c] = Index(c);
        length_.assign(row.size(), unreachable_);
        from_.resize(row.size());
        closed_.clear();
    }

    // Shortens the paths to open columns by row r, which is reached at `reach`. Returns the place
    // of the nearest column, a free one if several are; the number of open columns if none is.
    std::size_t relax(Index r, const Number *costs, Number reach) {
        const Number own = u[r];
        Number lowest = unreachable_;
        std::size_t next = open_.size();
        for (std::size_t k = 0; k < open_.size(); ++k) {
            const Index c = open_[k];
            const Number path = reach + (costs[c] - own - v[c]);
            if (path < length_[c]) {
                length_[c] = path;
                from_[c] = r;
            }
            if (length_[c] < lowest || (length_[c] == lowest && row[c] < 0)) {
                lowest = length_[c];
                next = k;
            }
        }
        return next;
    }

    Number unreachable_;
    std::vector<Index> open_, closed_, from_;
    std::vector<Number> length_;
};

} // namespace softmap
