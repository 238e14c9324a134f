// Bindings of parity factors and of the decoder for parity-check codes.
#include "base/team.hpp"
#include "bind.hpp"
#include "codes/code.hpp"

#include <atomic>
#include <memory>

namespace softmap {
namespace {

using Bytes = In<std::uint8_t>;

void require_rows(const OutMatrix<double> &values, const Bytes &odd) {
    require_size(odd, Index(values.shape(0)), "odd");
    require(values.shape(1) > 0, "a parity needs a variable");
}

// Calls work(row, length, odd) for each row of a matrix.
template <class F> void for_rows(const OutMatrix<double> &values, const Bytes &odd, F work) {
    const Index k = Index(values.shape(1));
    for (Index r = 0; r < Index(values.shape(0)); ++r)
        work(values.data() + r * k, k, odd.data()[r] != 0);
}

void messages(OutMatrix<double> values, Bytes odd) {
    require_rows(values, odd);
    std::vector<double> in(values.shape(1));
    for_rows(values, odd, [&](double *v, Index k, bool parity) {
        std::copy(v, v + k, in.begin());
        parity_messages(in.data(), k, parity, v);
    });
}

void minima(OutMatrix<double> values, Bytes odd, Out<double> out) {
    require_rows(values, odd);
    require_size(out, Index(values.shape(0)), "out");
    std::vector<double> room(values.shape(1) + 1);
    double *place = out.data();
    for_rows(values, odd, [&](double *v, Index k, bool parity) {
        *place++ = parity_minimum(v, k, parity, room.data());
    });
}

void hulls(OutMatrix<double> values, Bytes odd) {
    require_rows(values, odd);
    std::vector<double> room(values.shape(1));
    for_rows(values, odd,
             [&](double *v, Index k, bool parity) { into_parity_hull(v, k, parity, room.data()); });
}

void cones(OutMatrix<double> values) {
    const Index k = Index(values.shape(1));
    require(k > 0, "a parity needs a variable");
    for (Index r = 0; r < Index(values.shape(0)); ++r)
        into_parity_cone(values.data() + r * k, k);
}

// A parity-check code; keeps its arrays alive.
class HeldCode {
  public:
    HeldCode(In<Index> start, In<std::int32_t> member, In<Index> degree) {
        const Index checks = Index(start.size()) - 1, bits = Index(degree.size());
        require(checks >= 0 && bits > 0 && start.data()[0] == 0,
                "start must begin with 0, and degree must not be empty");
        for (Index c = 0; c < checks; ++c)
            require(start.data()[c] <= start.data()[c + 1], "start must not decrease");
        require_size(member, start.data()[checks], "member");
        std::vector<Index> count(bits, 0);
        for (Index e = 0; e < Index(member.size()); ++e) {
            const std::int32_t i = member.data()[e];
            require(0 <= i && i < bits, "member names a bit that does not exist");
            ++count[i];
        }
        require(std::equal(count.begin(), count.end(), degree.data()),
                "degree differs from the number of checks of a bit");
        view = {bits, checks, held_.keep(start), held_.keep(member), held_.keep(degree)};
    }
    HeldCode(const HeldCode &) = delete;

    Code view;

  private:
    Held<int> held_;
};

// λ for each word, to be checked as a proof, and the number of iterations that it took; 0: no λ.
struct Proposals {
    Proposals(Matrix<double> lam, In<std::int32_t> iterations) : lam(lam), iterations(iterations) {
        held.keep(lam), held.keep(iterations);
    }
    Matrix<double> lam;
    In<std::int32_t> iterations;

  private:
    Held<int> held;
};

void decode(const HeldCode &held, Matrix<double> costs, Matrix<std::uint8_t> odd,
            const DecodingLimits &limits, OutMatrix<std::uint8_t> words, OutMatrix<double> lam,
            OutMatrix<double> found, const Proposals &given, int threads) {
    const Code &code = held.view;
    const Index count = Index(words.shape(0)), kept = Index(lam.shape(0));
    const auto fits = [&](const auto &array, Index columns, Index rows) {
        return Index(array.shape(0)) == rows && Index(array.shape(1)) == columns;
    };
    const bool shared = costs.shape(0) == 1; // one row of costs for all words
    require(fits(costs, code.bits, shared ? 1 : count) && fits(odd, code.checks, count) &&
                fits(words, code.bits, count) && fits(found, 4, count) &&
                fits(lam, code.edges(), kept) && (kept == count || kept == 0),
            "the arrays of the words do not fit the code");
    const Index proposals = Index(given.iterations.size()); // 0, or one for each word
    require((proposals == 0 || (proposals == count && kept == 0)) &&
                fits(given.lam, code.edges(), proposals),
            "the proposals do not fit the words");
    require(threads > 0, "threads must be positive");
    nb::gil_scoped_release unlocked;
    const int team = int(std::min<Index>(threads, std::max<Index>(count, 1)));
    std::vector<Decoder> decoders;
    for (int t = 0; t < team; ++t)
        decoders.emplace_back(code);
    std::vector<std::vector<double>> room(team, std::vector<double>(kept ? 0 : code.edges()));
    std::atomic<Index> next{0};
    together(team, [&](Member &me) {
        for (Index w = next++; w < count; w = next++) {
            const double *gamma = costs.data() + (shared ? 0 : w * code.bits);
            const std::uint8_t *parity = odd.data() + w * code.checks;
            std::uint8_t *word = words.data() + w * code.bits;
            Decoding d;
            if (proposals && given.iterations.data()[w] > 0) {
                d = decoders[me.thread].certified(gamma, parity, word,
                                                  given.lam.data() + w * code.edges());
                d.steps = given.iterations.data()[w];
            }
            if (!d.proved)
                d = decoders[me.thread].decode(gamma, parity, limits, word,
                                               kept ? lam.data() + w * code.edges()
                                                    : room[me.thread].data());
            double *row = found.data() + 4 * w;
            row[0] = d.cost, row[1] = d.bound, row[2] = d.proved;
            row[3] = double(d.rounds + d.steps + d.sweeps);
        }
    });
}

bool ordered_statistics(const HeldCode &held, In<double> costs, Bytes odd, In<double> keys,
                        Index depth, Out<std::uint8_t> word) {
    const Code &code = held.view;
    require_size(costs, code.bits, "costs");
    require_size(keys, code.bits, "keys");
    require_size(odd, code.checks, "odd");
    require_size(word, code.bits, "word");
    return OrderedStatistics(code).decode(costs.data(), odd.data(), keys.data(), depth,
                                          word.data());
}

double bound(const HeldCode &held, In<double> costs, Bytes odd, In<double> lam) {
    const Code &code = held.view;
    require_size(costs, code.bits, "costs");
    require_size(odd, code.checks, "odd");
    require_size(lam, code.edges(), "lam");
    return Decoder(code).bound(costs.data(), odd.data(), lam.data());
}

} // namespace

void bind_codes(nb::module_ &m) {
    m.def("parity_messages", &messages, arg("values"), arg("odd"),
          "Replace the costs sent to parity factors, one per row, by the factors' messages.");
    m.def("parity_minima", &minima, arg("values"), arg("odd"), arg("out"),
          "Write a lower bound on the cost of all labellings of each row's parity to `out`.");
    m.def("parity_hulls", &hulls, arg("values"), arg("odd"),
          "Project each row onto the convex hull of all labellings of its parity.");
    m.def("parity_cones", &cones, arg("values"),
          "Project each row onto the cone of costs at which no even labelling costs less than 0.");
    nb::class_<HeldCode>(m, "ParityCode", "The checks of a code.")
        .def(nb::init<In<Index>, In<std::int32_t>, In<Index>>(), arg("start"), arg("member"),
             arg("degree"));
    using L = DecodingLimits;
    nb::class_<L>(m, "DecodingLimits", "How much of what a decoder does with one word.")
        .def(nb::init<Index, Index, Index, Index, Index>(), nb::kw_only(), nb::arg("rounds"),
             nb::arg("steps"), nb::arg("sweeps") = 0, nb::arg("depth") = -1, nb::arg("words") = 0)
        .def_ro("rounds", &L::rounds, "Iterations of min-sum belief propagation.")
        .def_ro("steps", &L::steps, "Douglas-Rachford steps per attempted proof.")
        .def_ro("sweeps", &L::sweeps, "ADMM iterations on the linear program.")
        .def_ro("depth", &L::depth, "Depth of ordered statistics; -1: none.")
        .def_ro("words", &L::words, "Words that an exhaustive search may visit.");
    nb::class_<Proposals>(m, "Proposals", "λ of each word with its number of iterations, or none.")
        .def(nb::init<Matrix<double>, In<std::int32_t>>(), arg("lam"), arg("iterations"));
    m.def("decode", &decode, nb::arg("code"), arg("costs"), arg("odd"), nb::arg("limits"),
          arg("words"), arg("lam"), arg("found"), nb::arg("proposals"), nb::arg("threads"),
          "Decode words; a row of `found` is cost, bound, whether proved optimal, iterations. If "
          "a word has proposed iterations, the word and its λ may be a proof: it is checked.");
    m.def("ordered_statistics", &ordered_statistics, nb::arg("code"), arg("costs"), arg("odd"),
          arg("keys"), nb::arg("depth"), arg("word"),
          "Write the best word of ordered statistics; False if no word has the parities.");
    m.def("code_bound", &bound, nb::arg("code"), arg("costs"), arg("odd"), arg("lam"),
          "Return the dual bound at λ, rounded down.");
}

} // namespace softmap
