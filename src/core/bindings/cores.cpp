// Core-guided search for the least cost of Boolean variables under clauses and sums.
#include "bind.hpp"
#include "cores/guided.hpp"

namespace softmap {
namespace {

namespace co = cores;

// Literals are +v and -v for variables v = 1, 2, ….
class CoreSearch {
  public:
    CoreSearch(In<bool> phases, Index logged) {
        if (logged > 0)
            guided_.engine.steps = std::make_unique<co::ProofSteps>(std::size_t(logged));
        require(phases.size() < (std::size_t(1) << 29), "too many variables");
        for (std::size_t v = 0; v < phases.size(); ++v)
            guided_.engine.fresh(phases.data()[v]);
        given_ = Index(phases.size());
    }

    void add_clauses(In<Index> literals, In<Index> start, In<Index> tables) {
        require_size(tables, Index(start.size()) - 1, "tables");
        each(literals, start, [&](std::vector<co::Lit> lits, Index k, Index) {
            const co::Source source = given(co::Given::TABLE, {tables.data()[k]}, lits);
            guided_.engine.add_clause(std::move(lits), source);
        });
    }

    void add_sums(In<Index> literals, In<Index> start, In<Index> weights, In<Index> bounds,
                  In<Index> sources) {
        require_size(sources, 4 * (Index(start.size()) - 1), "sources");
        require_size(weights, Index(literals.size()), "weights");
        require_size(bounds, Index(start.size()) - 1, "bounds");
        each(literals, start, [&](const std::vector<co::Lit> &lits, Index k, Index first) {
            double total = std::abs(double(bounds.data()[k]));
            for (std::size_t j = 0; j < lits.size(); ++j)
                total += std::abs(double(weights.data()[first + Index(j)]));
            require(total < 0x1p60, "the weights of sum ", k, " are too large");
            const Index *from = sources.data() + 4 * k;
            const co::Source source =
                -1 - given(co::Given(from[0]), {from[1], from[2], from[3]}, {});
            guided_.engine.add_sum(lits, {weights.data() + first, lits.size()}, bounds.data()[k],
                                   source);
        });
    }

    void add_costs(In<Index> literals, In<Index> weights) {
        require_size(weights, Index(literals.size()), "weights");
        for (std::size_t k = 0; k < literals.size(); ++k) {
            require(weights.data()[k] > 0, "cost ", k, " is not positive");
            total_ += double(weights.data()[k]);
            require(total_ < 0x1p60, "the costs are too large");
            guided_.add_cost(literal(literals.data()[k]), weights.data()[k]);
        }
    }

    bool run(Index conflicts, const Deadline *deadline) {
        nb::gil_scoped_release release;
        guided_.run(conflicts, deadline);
        return guided_.done();
    }

    void below(Index cost) { guided_.below(cost); }
    Index lower() const { return std::min(guided_.lower(), guided_.upper()); }
    Index cores() const { return guided_.cores(); }
    Index conflicts() const { return guided_.engine.conflicts(); }
    bool full() const { return guided_.engine.steps && guided_.engine.steps->full(); }
    Index write(const std::string &path) const {
        require(guided_.engine.steps != nullptr, "no proof was kept");
        exact::Log out(path);
        guided_.engine.steps->write(out);
        return out.finish();
    }
    bool read(Out<bool> values) const {
        require_size(values, given_, "values");
        const std::vector<char> &own = guided_.values();
        for (Index v = 0; v < given_ && !own.empty(); ++v)
            values.data()[v] = own[std::size_t(v)];
        return !own.empty();
    }

  private:
    co::Source given(co::Given what, std::initializer_list<std::int64_t> numbers,
                     std::span<const co::Lit> lits) {
        co::ProofSteps *steps = guided_.engine.steps.get();
        return steps == nullptr ? 0 : steps->given(what, numbers, lits);
    }
    co::Lit literal(Index lit) const {
        require(lit != 0 && std::abs(lit) <= given_, "literal ", lit, " is out of range");
        return co::Lit(2 * (std::abs(lit) - 1) + (lit < 0));
    }
    template <class Function>
    void each(const In<Index> &literals, const In<Index> &start, Function f) {
        require(start.size() > 0, "start needs one entry more than there are constraints");
        for (std::size_t k = 0; k + 1 < start.size(); ++k) {
            const Index first = start.data()[k], last = start.data()[k + 1];
            require(0 <= first && first <= last && last <= Index(literals.size()), "constraint ", k,
                    " is out of range");
            std::vector<co::Lit> lits;
            for (Index j = first; j < last; ++j)
                lits.push_back(literal(literals.data()[j]));
            f(std::move(lits), Index(k), first);
        }
    }

    co::Guided guided_;
    Index given_ = 0;
    double total_ = 0.0;
};

} // namespace

void bind_cores(nb::module_ &m) {
    using C = CoreSearch;
    nb::class_<C>(m, "CoreSearch")
        .def(nb::init<In<bool>, Index>(), arg("phases"), arg("logged") = 0,
             "Variables with the values tried first, and the largest size of a proof, in integers; "
             "none is kept if it is 0.")
        .def("add_clauses", &C::add_clauses, arg("literals"), arg("start"), arg("tables"),
             "Add clauses, each of a table: at least one literal of each holds.")
        .def("add_sums", &C::add_sums, arg("literals"), arg("start"), arg("weights"), arg("bounds"),
             arg("sources"),
             "Add sums: the weights of the literals that hold add up to the bound or more. Four "
             "integers per sum say for the proof where it comes from.")
        .def("add_costs", &C::add_costs, arg("literals"), arg("weights"),
             "Add costs of literals that hold.")
        .def("run", &C::run, arg("conflicts"), deadline_arg(),
             "Continue; return whether the least cost is known.")
        .def("below", &C::below, arg("cost"), "Look only for values that cost less.")
        .def("read", &C::read, arg("values"),
             "Write the best values so far; return whether there are any.")
        .def("write", &C::write, arg("path"),
             "Write the records of the proof; return their size in bytes, 0 after an error.")
        .def_prop_ro("full", &C::full, "Whether the proof was too large to be kept.")
        .def_prop_ro("lower", &C::lower)
        .def_prop_ro("cores", &C::cores)
        .def_prop_ro("conflicts", &C::conflicts);
}

} // namespace softmap
