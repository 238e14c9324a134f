// Messages of every family against long double, and bounds against whole numbers.
#include "models.hpp"
#include "proof/minima.hpp"

using namespace softmap;

namespace checks {
namespace {

// softmin (min at η = ∞) over the sender's labels of a + C, in long double.
long double plain_message(const Model &model, Index e, int receiver, Index y, const double *a,
                          double eta) {
    const auto number = [](double x) { return (long double)x; };
    const long double none = infinity;
    const Index senders = model.num_labels[model.node[2 * e + 1 - receiver]];
    std::vector<long double> value;
    for (Index x = 0; x < senders; ++x)
        value.push_back(a[x] + (receiver ? model.cost<long double>(e, x, y, none, number)
                                         : model.cost<long double>(e, y, x, none, number)));
    const long double low = *std::min_element(value.begin(), value.end());
    if (eta == infinity || low == none)
        return low;
    long double mass = 0.0L;
    for (const long double one : value)
        mass += std::exp(-(long double)eta * (one - low));
    return low - std::log(mass) / eta;
}

// Edges 0..W-1 of a model, alike in every lane.
template <int W, class Edges>
void compare(const Model &model, const Edges &edges, int receiver, double eta, Numbers &numbers) {
    Room room(message_room(model.lay.widest, W));
    std::vector<Pack<W>> a(std::size_t(edges.senders)), out(std::size_t(edges.receivers));
    for (auto &one : a)
        one = Pack<W>::of([&](int) { return numbers.fraction(40); });
    edges.message(a.data(), out.data(), room.numbers(), eta);
    for (int k = 0; k < W; ++k) {
        std::vector<double> own;
        for (const auto &one : a)
            one.each(W, [&](int lane, double value) { lane == k ? own.push_back(value) : void(); });
        for (Index y = 0; y < edges.receivers; ++y) {
            const long double plain = plain_message(model, k, receiver, y, own.data(), eta);
            double found = 0.0;
            out[y].each(W, [&](int lane, double value) { found = lane == k ? value : found; });
            CHECK(std::abs(found - plain) <= 2e-12L * (1.0L + std::abs(plain)));
        }
    }
}

// Squared distances of many labels take other functions.
void check_many_labels(Numbers &numbers) {
    using Family = Truncated<QuadraticDistance>;
    const Index edges[] = {0, 1, 2, 3, 4, 5, 6, 7};
    for (const double cut : {97.0 * 97.0, 110.5 * 110.5, 1e9}) {
        Model model(quadratic, 30, lanes, 130, 5, 40);
        std::fill(model.truncation.begin(), model.truncation.end(), cut);
        for (const double eta : {1e-4, 0.01, 1.0, 40.0, 2000.0, infinity}) {
            compare<lanes>(model, Family::at<lanes>(model.lay, 0, edges, 1), 1, eta, numbers);
            compare<1>(model, Family::at<1>(model.lay, 0, edges, 1), 1, eta, numbers);
        }
    }
}

} // namespace

void check_messages() {
    Numbers numbers(4);
    check_many_labels(numbers);
    for (int kind = 0; kind < kinds; ++kind)
        for (const Index labels : {2, 3, 5, 8, 19}) {
            Model model(Kind(kind), 30, lanes, labels, 5, 40);
            for (double &cut : model.truncation)
                cut = model.truncation[0]; // lanes of a tile are alike
            for (const double eta : {1.0, 40.0, 2000.0, infinity})
                for (const int receiver : {0, 1})
                    Families::visit(kind, [&](auto family) {
                        const Index edges[] = {0, 1, 2, 3, 4, 5, 6, 7};
                        if (labels <= 8 || kind != projection)
                            compare<lanes>(model,
                                           family.template at<lanes>(model.lay, 0, edges, receiver),
                                           receiver, eta, numbers);
                        compare<1>(model, family.template at<1>(model.lay, 0, edges, receiver),
                                   receiver, eta, numbers);
                    });
        }
}

// The bound of a λ is at most what whole numbers make of it, and close to it.
void check_bounds() {
    using Whole = __int128;
    const auto number = [](double x) { return Whole(std::ldexp(x, 30)); };
    const Whole never = Whole(1) << 100;
    for (int kind = 0; kind < kinds; ++kind)
        for (int round = 0; round < 10; ++round) {
            const Model model(Kind(kind), 24, 60, 2 + round % 5, std::uint64_t(round), 30);
            const Layout &lay = model.lay;
            Numbers numbers(std::uint64_t(100 + round));
            std::vector<double> lam(std::size_t(lay.half_at(2 * lay.m)));
            for (double &one : lam)
                one = std::ldexp(numbers.fraction(30), -int(numbers.below(20)));
            const auto exact = [](double x) { return Whole(std::ldexp(x, 60)); };
            Whole sum = 0;
            for (Index i = 0; i < lay.n; ++i) {
                Whole low = never;
                for (Index x = 0; x < lay.num_labels[i]; ++x) {
                    Whole value = exact(lay.unary[lay.node_offset[i] + x]);
                    for (Index p = lay.start[i]; p < lay.start[i + 1]; ++p)
                        value -= exact(lam[lay.half_at(lay.half[p]) + x]);
                    low = std::min(low, value);
                }
                sum += low;
            }
            for (Index e = 0; e < lay.m; ++e) {
                Whole low = never;
                for (Index x = 0; x < lay.labels_at(2 * e); ++x)
                    for (Index y = 0; y < lay.labels_at(2 * e + 1); ++y)
                        low = std::min(low, model.cost<Whole>(e, x, y, never, number) +
                                                exact(lam[lay.half_at(2 * e) + x]) +
                                                exact(lam[lay.half_at(2 * e + 1) + y]));
                sum += low;
            }
            const double bound = dual_bound(lay, lam.data(), 0.0, 1);
            CHECK(Whole(std::ceil(std::ldexp(bound, 60))) <= sum);
            CHECK(double(sum - exact(bound)) <= std::ldexp(1e-13, 60));
        }
}

} // namespace checks
