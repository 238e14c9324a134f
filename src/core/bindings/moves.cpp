// Searches for better labels: annealing, and large moves by exact search.
#include "exact/moves.hpp"
#include "flat.hpp"
#include "labels/annealing.hpp"

#include <nanobind/stl/tuple.h>

namespace softmap {
namespace {

namespace ex = exact;

// Labels that moves improve.
class LargeMoves {
  public:
    LargeMoves(const FlatModel &flat, In<std::uint64_t> words) : held_(flat) {
        require_size(words, 4, "words");
        std::copy_n(words.data(), 4, words_);
        moves_ = std::make_unique<ex::Moves>(held_.in, words_);
    }

    Index improve(Out<Index> labels, Index count, const Deadline *deadline) {
        held_.check_labels(labels);
        nb::gil_scoped_release released;
        return moves_->improve({labels.data(), labels.size()}, count, deadline);
    }

    double free() const { return moves_->free(); }

  private:
    const FlatModel &held_;
    std::uint64_t words_[4];
    std::unique_ptr<ex::Moves> moves_;
};

// Labels that annealing improves.
class HeldAnnealing {
  public:
    HeldAnnealing(const FlatModel &flat, In<std::uint64_t> words) : held_(flat) {
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
    const FlatModel &held_;
    std::unique_ptr<Annealing> annealing_;
};

} // namespace

void bind_moves(nb::module_ &m) {
    nb::class_<LargeMoves>(m, "LargeMoves")
        .def(nb::init<const FlatModel &, In<std::uint64_t>>(), nb::keep_alive<1, 2>(),
             nb::arg("model"), arg("words"))
        .def("improve", &LargeMoves::improve, arg("labels"), arg("count"), deadline_arg(),
             "Improve labels in place by exact searches over some variables; return the number of "
             "improvements.")
        .def_prop_ro("free", &LargeMoves::free, "Number of free variables of the next move.");
    nb::class_<HeldAnnealing>(m, "Annealing")
        .def(nb::init<const FlatModel &, In<std::uint64_t>>(), nb::keep_alive<1, 2>(),
             nb::arg("model"), arg("words"))
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
