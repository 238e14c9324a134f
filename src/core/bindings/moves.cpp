// Large moves by exact search.
#include "exact/moves.hpp"
#include "bind.hpp"

namespace softmap {
namespace {

namespace ex = exact;

template <class T> std::span<const T> span(const In<T> &array) {
    return {array.data(), array.size()};
}

// A model, and labels that moves improve; keeps its arrays alive.
class LargeMoves {
  public:
    LargeMoves(In<Index> num_labels, In<double> unary, In<Index> scope_start, In<Index> scope,
               In<double> tables, In<std::uint64_t> words)
        : held_{nb::borrow(num_labels.object), nb::borrow(unary.object),
                nb::borrow(scope_start.object), nb::borrow(scope.object),
                nb::borrow(tables.object)},
          in_{span(num_labels),
              span(unary),
              span(scope_start),
              span(scope),
              span(tables),
              0.0,
              {},
              {}} {
        require_size(words, 4, "words");
        std::copy_n(words.data(), 4, words_);
        check();
        moves_ = std::make_unique<ex::Moves>(in_, words_);
    }

    Index improve(Out<Index> labels, Index count, double seconds) {
        require_size(labels, in_.n(), "labels");
        for (int i = 0; i < in_.n(); ++i)
            require(0 <= labels.data()[i] && labels.data()[i] < in_.num_labels[std::size_t(i)],
                    "variable ", i, " has no label ", labels.data()[i]);
        nb::gil_scoped_release released;
        using Clock = ex::Control::Clock;
        const auto end = Clock::now() +
                         std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(std::min(std::max(seconds, 0.0), 1e8)));
        return moves_->improve({labels.data(), labels.size()}, count, end);
    }

    double free() const { return moves_->free(); }

  private:
    void check() const {
        require(!in_.scope_start.empty() && in_.scope_start[0] == 0 &&
                    in_.scope_start.back() == Index(in_.scope.size()),
                "scope_start must run from 0 to the number of scope entries");
        Index labels = 0, entries = 0;
        for (const Index count : in_.num_labels) {
            require(count >= 1, "a variable has no labels");
            labels += count;
        }
        require(labels == Index(in_.unary.size()), "unary costs do not fit the variables");
        for (const Index i : in_.scope)
            require(0 <= i && i < in_.n(), "variable ", i, " is out of range");
        for (int f = 0; f < in_.num_factors(); ++f) {
            require(in_.scope_start[std::size_t(f)] < in_.scope_start[std::size_t(f) + 1],
                    "a factor has no variables");
            entries += in_.table_size(f);
        }
        require(entries == Index(in_.tables.size()), "tables do not fit the factors");
    }

    std::array<nb::object, 5> held_;
    ex::Input in_;
    std::uint64_t words_[4];
    std::unique_ptr<ex::Moves> moves_;
};

} // namespace

void bind_moves(nb::module_ &m) {
    nb::class_<LargeMoves>(m, "LargeMoves")
        .def(nb::init<In<Index>, In<double>, In<Index>, In<Index>, In<double>, In<std::uint64_t>>(),
             arg("num_labels"), arg("unary"), arg("scope_start"), arg("scope"), arg("tables"),
             arg("words"))
        .def("improve", &LargeMoves::improve, arg("labels"), arg("count"), nb::arg("seconds"),
             "Improve labels in place by exact searches over some variables; return the number of "
             "improvements.")
        .def_prop_ro("free", &LargeMoves::free, "Number of free variables of the next move.");
}

} // namespace softmap
