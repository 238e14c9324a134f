// Searches for better labels: annealing, and large moves by exact search.
#include "exact/moves.hpp"
#include "bind.hpp"
#include "labels/annealing.hpp"

#include <nanobind/stl/tuple.h>

namespace softmap {
namespace {

namespace ex = exact;

template <class T> std::span<const T> span(const In<T> &array) {
    return {array.data(), array.size()};
}

// The arrays of a model without auxiliary nodes, checked and kept alive.
class HeldInput {
  public:
    HeldInput(In<Index> num_labels, In<double> unary, In<Index> scope_start, In<Index> scope,
              In<double> tables)
        : in{span(num_labels),
             span(unary),
             span(scope_start),
             span(scope),
             span(tables),
             0.0,
             {},
             {}},
          held_{nb::borrow(num_labels.object), nb::borrow(unary.object),
                nb::borrow(scope_start.object), nb::borrow(scope.object),
                nb::borrow(tables.object)} {
        check();
    }

    void check_labels(In<Index> labels) const {
        require_size(labels, in.n(), "labels");
        for (int i = 0; i < in.n(); ++i)
            require(0 <= labels.data()[i] && labels.data()[i] < in.num_labels[std::size_t(i)],
                    "variable ", i, " has no label ", labels.data()[i]);
    }

    const ex::Input in;

  private:
    void check() const {
        require(!in.scope_start.empty() && in.scope_start[0] == 0 &&
                    in.scope_start.back() == Index(in.scope.size()),
                "scope_start must run from 0 to the number of scope entries");
        Index labels = 0, entries = 0;
        for (const Index count : in.num_labels) {
            require(count >= 1, "a variable has no labels");
            labels += count;
        }
        require(labels == Index(in.unary.size()), "unary costs do not fit the variables");
        for (const Index i : in.scope)
            require(0 <= i && i < in.n(), "variable ", i, " is out of range");
        for (int f = 0; f < in.num_factors(); ++f) {
            require(in.scope_start[std::size_t(f)] < in.scope_start[std::size_t(f) + 1],
                    "a factor has no variables");
            entries += in.table_size(f);
        }
        require(entries == Index(in.tables.size()), "tables do not fit the factors");
    }

    std::array<nb::object, 5> held_;
};

// Labels that moves improve.
class LargeMoves {
  public:
    LargeMoves(In<Index> num_labels, In<double> unary, In<Index> scope_start, In<Index> scope,
               In<double> tables, In<std::uint64_t> words)
        : held_(num_labels, unary, scope_start, scope, tables) {
        require_size(words, 4, "words");
        std::copy_n(words.data(), 4, words_);
        moves_ = std::make_unique<ex::Moves>(held_.in, words_);
    }

    Index improve(Out<Index> labels, Index count, const Deadline *deadline) {
        held_.check_labels(labels);
        nb::gil_scoped_release released;
        const auto end =
            deadline == nullptr ? Deadline::Clock::time_point::max() : deadline->moment();
        Index better = 0;
        for (; count > 0 && !(deadline != nullptr && deadline->passed()); --count)
            better += moves_->improve({labels.data(), labels.size()}, 1, end);
        return better;
    }

    double free() const { return moves_->free(); }

  private:
    HeldInput held_;
    std::uint64_t words_[4];
    std::unique_ptr<ex::Moves> moves_;
};

// Labels that annealing improves.
class HeldAnnealing {
  public:
    HeldAnnealing(In<Index> num_labels, In<double> unary, In<Index> scope_start, In<Index> scope,
                  In<double> tables, In<std::uint64_t> words)
        : held_(num_labels, unary, scope_start, scope, tables) {
        require_size(words, 4, "words");
        annealing_ = std::make_unique<Annealing>(held_.in, words.data());
    }

    void offer(In<Index> labels) {
        held_.check_labels(labels);
        annealing_->offer({labels.data(), labels.size()});
    }

    Index run(Index work, const Deadline *deadline) {
        nb::gil_scoped_release released;
        Meter meter(deadline, work);
        annealing_->run(meter);
        return meter.used();
    }

    bool best(Out<Index> labels) const {
        require_size(labels, held_.in.n(), "labels");
        const auto &best = annealing_->best();
        std::copy(best.begin(), best.end(), labels.data());
        return !best.empty();
    }

    std::tuple<double, Index> state(Out<Index> labels, Out<double> costs) const {
        const LabelCosts &now = annealing_->costs();
        require_size(labels, now.n(), "labels");
        require_size(costs, Index(now.all().size()), "costs");
        std::copy(now.labels().begin(), now.labels().end(), labels.data());
        std::copy(now.all().begin(), now.all().end(), costs.data());
        return {now.energy(), now.violated()};
    }

    Index runs() const { return annealing_->runs(); }
    double least() const { return annealing_->least(); }
    double penalty() const { return annealing_->penalty(); }

  private:
    HeldInput held_;
    std::unique_ptr<Annealing> annealing_;
};

} // namespace

void bind_moves(nb::module_ &m) {
    nb::class_<LargeMoves>(m, "LargeMoves")
        .def(nb::init<In<Index>, In<double>, In<Index>, In<Index>, In<double>, In<std::uint64_t>>(),
             arg("num_labels"), arg("unary"), arg("scope_start"), arg("scope"), arg("tables"),
             arg("words"))
        .def("improve", &LargeMoves::improve, arg("labels"), arg("count"), deadline_arg(),
             "Improve labels in place by exact searches over some variables; return the number of "
             "improvements.")
        .def_prop_ro("free", &LargeMoves::free, "Number of free variables of the next move.");
    nb::class_<HeldAnnealing>(m, "Annealing")
        .def(nb::init<In<Index>, In<double>, In<Index>, In<Index>, In<double>, In<std::uint64_t>>(),
             arg("num_labels"), arg("unary"), arg("scope_start"), arg("scope"), arg("tables"),
             arg("words"))
        .def("offer", &HeldAnnealing::offer, arg("labels"),
             "Take labels over as the best ones if they cost less.")
        .def("run", &HeldAnnealing::run, arg("work"), deadline_arg(),
             "Go on until a limit is reached; return the work done.")
        .def("best", &HeldAnnealing::best, arg("labels"),
             "Write the best labels; return whether there are any.")
        .def("state", &HeldAnnealing::state, arg("labels"), arg("costs"),
             "Write the current labels, and the cost of each label given all others; return their "
             "energy with penalties and the number of violated constraints.")
        .def_prop_ro("penalty", &HeldAnnealing::penalty,
                     "Penalty of a violated constraint in the next run.")
        .def_prop_ro("runs", &HeldAnnealing::runs, "Number of complete runs.")
        .def_prop_ro("least", &HeldAnnealing::least, "Cost of the best labels; +inf if none.");
}

} // namespace softmap
