// A model without auxiliary nodes, as factor tables: checked once, shared by several searches.
#pragma once

#include <array>

#include "bind.hpp"
#include "exact/input.hpp"

namespace softmap {

template <class T> std::span<const T> span(const In<T> &array) {
    return {array.data(), array.size()};
}

class FlatModel {
  public:
    FlatModel(In<Index> num_labels, In<double> unary, In<Index> scope_start, In<Index> scope,
              In<double> tables, double constant)
        : in{span(num_labels),
             span(unary),
             span(scope_start),
             span(scope),
             span(tables),
             constant,
             {},
             {}},
          held_{nb::borrow(num_labels.object), nb::borrow(unary.object),
                nb::borrow(scope_start.object), nb::borrow(scope.object),
                nb::borrow(tables.object)} {
        check_scopes(num_labels, scope_start, scope);
        require(!in.scope_start.empty() && in.scope_start[0] == 0 &&
                    in.scope_start.back() == Index(in.scope.size()),
                "scope_start must run from 0 to the number of scope entries");
        Index labels = 0, entries = 0;
        for (const Index count : in.num_labels) {
            require(count >= 1, "every variable needs a label");
            labels += count;
        }
        require(labels == Index(in.unary.size()), "unary must have one cost per label");
        for (int f = 0; f < in.num_factors(); ++f) {
            require(in.scope_start[std::size_t(f)] < in.scope_start[std::size_t(f) + 1],
                    "a factor has no variables");
            entries += in.table_size(f);
        }
        require(entries == Index(in.tables.size()), "tables must have all entries");
    }

    void check_labels(In<Index> labels) const {
        require_size(labels, in.n(), "labels");
        for (int i = 0; i < in.n(); ++i)
            require(0 <= labels.data()[i] && labels.data()[i] < in.num_labels[std::size_t(i)],
                    "variable ", i, " has no label ", labels.data()[i]);
    }
    static void check_scopes(In<Index> num_labels, In<Index> scope_start, In<Index> scope) {
        for (const Index i : span(scope))
            require(0 <= i && i < Index(num_labels.size()), "variable ", i, " is out of range");
        Index last = 0;
        for (const Index s : span(scope_start)) {
            require(s >= last, "scope_start must not decrease");
            require(s <= Index(scope.size()), "scope_start must not exceed scope");
            last = s;
        }
    }

    const exact::Input in;

  private:
    std::array<nb::object, 5> held_;
};

} // namespace softmap
