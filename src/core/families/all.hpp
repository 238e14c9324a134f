// The list of potential families. A new family is a header with its operations and one entry here.
#pragma once

#include "potts.hpp"
#include "projection.hpp"
#include "tables.hpp"
#include "truncated.hpp"

#include <stdexcept>

namespace softmap {

template <class... F> struct FamilyList {
    static constexpr Index size = sizeof...(F);
    static constexpr const char *names[] = {F::name...};

    // Calls f(family) with the family of index `kind`; throws if there is none.
    template <class Function> static auto visit(Index kind, Function &&f) {
        return step<0, F...>(kind, f);
    }

  private:
    template <Index K, class First, class... Rest, class Function>
    static auto step(Index kind, Function &f) {
        if constexpr (sizeof...(Rest) == 0) {
            if (kind != K)
                throw std::invalid_argument("unknown kind of potential");
            return f(First{});
        } else {
            return kind == K ? f(First{}) : step<K + 1, Rest...>(kind, f);
        }
    }
};

using Families =
    FamilyList<Tables, Potts, Truncated<LinearDistance>, Truncated<QuadraticDistance>, Projection>;

} // namespace softmap
