// Python binding of the exact solver.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "exact/solver.hpp"
#include "labels/annealing.hpp"

namespace nb = nanobind;
namespace ex = softmap::exact;

namespace {

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using SeedWords = nb::ndarray<const std::uint64_t, nb::shape<4>, nb::c_contig, nb::device::cpu>;

template <class T, class A> std::span<const T> view(const A &array) {
    return {array.data(), array.size()};
}

// A model with its search; every call resumes the search.
class ExactSearch {
  public:
    ExactSearch(Ints num_labels, Doubles unary, Ints scope_start, Ints scope, Doubles tables,
                double constant, Doubles lam, Ints incumbent, double relative_gap,
                double absolute_gap, double memory_limit, bool presolve, bool ascent,
                double dp_limit, double seconds, double tried_first, int threads,
                std::int64_t split_work, const std::string &log, std::int64_t anneal,
                SeedWords words)
        : held_{num_labels, scope_start, scope}, costs_{unary, tables, lam},
          in_{view<std::int64_t>(num_labels),
              view<double>(unary),
              view<std::int64_t>(scope_start),
              view<std::int64_t>(scope),
              view<double>(tables),
              constant,
              view<double>(lam),
              view<std::int64_t>(incumbent)},
          solver_(in_,
                  options(relative_gap, absolute_gap, presolve, ascent, dp_limit, seconds,
                          tried_first, threads, split_work, log),
                  control_),
          anneal_(anneal) {
        control_.max_open_bytes = static_cast<std::int64_t>(memory_limit);
        in_.incumbent = {}; // not kept alive
        std::copy_n(words.data(), words_.size(), words_.begin());
    }

    nb::dict go_on(Ints incumbent, double time_limit, double end, std::int64_t backtrack_limit,
                   const softmap::Deadline *stop) {
        control_.deadline = moment(time_limit);
        control_.end = moment(end);
        control_.max_backtracks =
            backtrack_limit < 0 ? INT64_MAX : control_.backtracks + backtrack_limit;
        control_.stop = stop != nullptr ? &stop->flag() : nullptr;
        control_.stopped = false;
        Signals signals(control_, stop != nullptr);
        if (incumbent.size() > 0)
            solver_.hear({incumbent.data(), incumbent.data() + incumbent.size()});
        ex::Result found;
        {
            nb::gil_scoped_release release;
            if (const auto work = std::exchange(anneal_, 0); work > 0)
                improve(work, time_limit);
            found = solver_.solve();
        }
        signals.raise();
        return as_dict(found);
    }

    // --- nodes that processes exchange between calls of `go_on` ---

    // What other processes need to know of the search: fingerprint, number of open nodes, lowest
    // bound of these, cost of the best labelling. None if they cannot share it.
    nb::object shared() {
        const auto *search = solver_.shareable();
        if (search == nullptr)
            return nb::none();
        const auto &frontier = search->frontier();
        return nb::make_tuple(solver_.fingerprint(), frontier.open_nodes(), frontier.here(),
                              search->known().cost);
    }
    std::vector<int> best() { return search().known().labels; }
    void hear(Ints labels, ex::Cost cost) { search().hear(view<std::int64_t>(labels), cost); }
    void set_elsewhere(ex::Cost bound) { search().set_elsewhere(bound); }
    nb::bytes give(std::int64_t count, int step) {
        const auto parcel = search().give(count, std::max(1, step));
        return nb::bytes(parcel.data(), parcel.size() * sizeof(std::int64_t));
    }
    void receive(const nb::bytes &sent) {
        ex::Parcel parcel(sent.size() / sizeof(std::int64_t));
        std::memcpy(parcel.data(), sent.data(), parcel.size() * sizeof(std::int64_t));
        search().receive(parcel);
    }

  private:
    // Anneals labels, the known ones among them, so that the search begins with a lower cut.
    void improve(std::int64_t work, double seconds) {
        softmap::Annealing annealing(in_, words_.data());
        if (!solver_.known().empty())
            annealing.offer(solver_.known());
        const softmap::Deadline end(seconds);
        softmap::Meter meter(&end, work);
        annealing.run(meter);
        if (!annealing.best().empty())
            solver_.hear(annealing.best());
    }
    ex::Search &search() {
        auto *search = solver_.shareable();
        if (search == nullptr)
            throw std::invalid_argument("no search that other processes could share");
        return *search;
    }
    // Python's signal handlers, which run in the main thread only: a search in that thread has to
    // call them, so that Ctrl-C reaches it. An exception of a handler is raised after the search.
    class Signals {
      public:
        Signals(ex::Control &control, bool wanted) : control_(control) {
            if (wanted)
                control_.poll = [this] { handle(); };
        }
        ~Signals() { control_.poll = nullptr; }
        Signals(const Signals &) = delete;
        void raise() {
            if (raised_)
                throw std::move(*raised_);
        }

      private:
        ex::Control &control_;
        std::optional<nb::python_error> raised_;

        void handle() {
            const nb::gil_scoped_acquire held;
            if (!raised_ && PyErr_CheckSignals() != 0)
                raised_.emplace();
            control_.stopped = control_.stopped || raised_;
        }
    };

    static ex::Options options(double relative_gap, double absolute_gap, bool presolve, bool ascent,
                               double dp_limit, double seconds, double tried_first, int threads,
                               std::int64_t split_work, const std::string &log) {
        ex::Options out;
        out.relative_gap = relative_gap;
        out.absolute_gap = absolute_gap;
        out.presolve = presolve;
        out.ascent = ascent;
        out.max_dp_entries = std::min(out.max_dp_entries, dp_limit);
        out.seconds = seconds;
        out.tried_first = tried_first;
        out.threads = std::max(1, threads);
        if (split_work >= 0)
            out.split_work = split_work;
        out.log = log;
        return out;
    }
    static ex::Control::Clock::time_point moment(double seconds) {
        using Clock = ex::Control::Clock;
        if (!(seconds < 1e8))
            return Clock::time_point::max();
        return Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }
    static nb::dict as_dict(const ex::Result &r) {
        nb::dict out;
        out["labels"] = nb::cast(r.labels);
        out["energy"] = r.energy;
        out["lower_bound"] = r.lower_bound;
        out["slack"] = r.slack;
        out["complete"] = r.complete;
        out["infeasible"] = r.infeasible;
        out["nodes"] = r.nodes;
        out["backtracks"] = r.backtracks;
        out["components"] = r.components;
        out["eliminated"] = r.eliminated;
        out["searched"] = r.searched;
        out["workers"] = r.workers;
        out["root_bound"] = r.root_bound;
        out["log"] = r.log;
        out["logged"] = r.logged;
        return out;
    }

    std::array<Ints, 3> held_; // keeps the input arrays of the solver alive
    std::array<Doubles, 3> costs_;
    ex::Control control_;
    ex::Input in_;
    ex::Solver solver_;
    std::int64_t anneal_; // work of annealing before the search
    std::array<std::uint64_t, 4> words_{};
};

} // namespace

namespace softmap {

void bind_exact(nb::module_ &m) {
    nb::class_<ExactSearch>(m, "ExactSearch", "Branch and bound over one model.")
        .def(nb::init<Ints, Doubles, Ints, Ints, Doubles, double, Doubles, Ints, double, double,
                      double, bool, bool, double, double, double, int, std::int64_t,
                      const std::string &, std::int64_t, SeedWords>(),
             nb::arg("num_labels"), nb::arg("unary"), nb::arg("scope_start"), nb::arg("scope"),
             nb::arg("tables"), nb::arg("constant"), nb::arg("lam"), nb::arg("incumbent"),
             nb::arg("relative_gap"), nb::arg("absolute_gap"), nb::arg("memory_limit"),
             nb::arg("presolve"), nb::arg("ascent"), nb::arg("dp_limit"), nb::arg("seconds"),
             nb::arg("tried_first"), nb::arg("threads"), nb::arg("split_work"), nb::arg("log"),
             nb::arg("anneal"), nb::arg("words"))
        .def("go_on", &ExactSearch::go_on, nb::arg("incumbent"), nb::arg("time_limit"),
             nb::arg("end"), nb::arg("backtrack_limit"), nb::arg("stop").none() = nb::none(),
             "Continue the search up to a limit of seconds or backtracks; return the result so "
             "far.")
        .def("shared", &ExactSearch::shared,
             "Fingerprint, number of open nodes, their lowest bound and the cost of the best "
             "labelling; None if other processes cannot share the search.")
        .def("best", &ExactSearch::best, "The best labelling of the search, in its own labels.")
        .def("hear", &ExactSearch::hear, nb::arg("labels"), nb::arg("cost"),
             "Take a labelling that another process found.")
        .def("set_elsewhere", &ExactSearch::set_elsewhere, nb::arg("bound"),
             "Set a lower bound of the nodes that other processes search.")
        .def("give", &ExactSearch::give, nb::arg("count"), nb::arg("step"),
             "Remove each step-th open node, from the lowest bound on and at most count of them; "
             "they count as nodes elsewhere from now on.")
        .def("receive", &ExactSearch::receive, nb::arg("parcel"),
             "Open nodes that another process gave away.");
}

} // namespace softmap
