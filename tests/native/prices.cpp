// Prices of couplings are never less than what the couplings cost.
#include "check.hpp"
#include "proof/couplings.hpp"

#include <limits>
#include <vector>

using namespace softmap;

namespace checks {
namespace {

using Wide = long double;

// What sums of `count` numbers of the wide type may be wrong by, relatively.
Wide doubt(Index count) { return 4 * Wide(count) * std::numeric_limits<Wide>::epsilon(); }

// A distribution in whole multiples of 2^-52, of any size.
std::vector<std::int64_t> distribution(Numbers &numbers, Index labels) {
    const std::int64_t all = std::int64_t(1) << 52;
    std::vector<std::int64_t> out(std::size_t(labels), 0);
    std::int64_t left = all;
    for (Index x = 0; x + 1 < labels; ++x) {
        const std::int64_t part = left >> (1 + numbers.below(30));
        out[x] = part ? numbers.below(std::min(part, std::int64_t(1) << 30)) : 0;
        left -= out[x];
    }
    out[numbers.below(labels)] += left;
    return out;
}

std::vector<Pack<1>> as_numbers(const std::vector<std::int64_t> &units) {
    std::vector<Pack<1>> out;
    for (const std::int64_t one : units)
        out.push_back(Pack<1>(std::ldexp(double(one), -52)));
    return out;
}

// Steps only, or the hub only: the cheapest coupling is known exactly.
void lines() {
    Numbers numbers(5);
    for (int round = 0; round < 2000; ++round) {
        const Index labels = 2 + numbers.below(round % 10 ? 12 : 300);
        std::vector<std::int64_t> p = distribution(numbers, labels), q = p;
        if (round % 3) // nearly equal: sums of differences cancel
            for (int k = 0; k < 6; ++k) {
                const Index x = numbers.below(labels), y = numbers.below(labels);
                const std::int64_t part = std::min<std::int64_t>(q[x], 1 + numbers.below(9));
                q[x] -= part, q[y] += part;
            }
        else
            q = distribution(numbers, labels);
        std::int64_t before = 0, differing = 0;
        Wide steps = 0;
        for (Index x = 0; x < labels; ++x) {
            before += p[x] - q[x];
            steps += Wide(std::abs(before));
            differing += std::max<std::int64_t>(p[x] - q[x], 0);
        }
        const double weight = 0.1 + double(numbers.below(1000));
        const auto mine = as_numbers(p), yours = as_numbers(q);
        std::vector<double> room(std::size_t(LineTransport<1>::room(labels)) + 8);
        for (const double cut : {double(labels), 1.0, 0.3}) {
            const TruncatedEdges<1, LinearDistance> edges(
                labels, labels, Pack<1>(weight), Pack<1>(cut),
                TruncatedEdges<1, LinearDistance>::reach_of(cut, labels));
            const double price =
                edges.transport_cost(mine.data(), yours.data(), room.data()).part[0];
            const Wide least = cut > 1.0 ? Wide(weight) * steps : Wide(weight) * cut * differing;
            const Wide exact = std::ldexp(least, -52);
            CHECK(Wide(price) >= exact * (1 - doubt(labels)));
            CHECK(Wide(price) <= exact * (1 + Wide(labels + 1) * 0x1p-49L));
        }
    }
}

// Masses that were handed out, priced one by one.
template <class Distance> void bands() {
    using Edges = TruncatedEdges<1, Distance>;
    using Coupling = BandedCoupling<1, Edges, Cells<1>>;
    Numbers numbers(6);
    for (int round = 0; round < 300; ++round) {
        const Index labels = 7 + numbers.below(round % 10 ? 20 : 120);
        const double cut = Distance::of(1 + numbers.below(labels)) - (round % 2 ? 0.5 : 0.0);
        const double weight = 0.1 + double(numbers.below(5)),
                     eta = 0.01 * std::ldexp(1.0, round % 14);
        const Index reach = Edges::reach_of(cut, labels);
        const Edges edges(labels, labels, Pack<1>(weight), Pack<1>(cut), reach);
        const Run run{0, 0, 1, labels, labels, {}};
        Room room(Cells<1>::room_for(labels, labels, false) + message_room(labels, 1) +
                  Coupling::room(labels, reach));
        const Cells<1> cells(room.numbers(), run, false);
        const auto p = as_numbers(distribution(numbers, labels));
        const auto q = as_numbers(distribution(numbers, labels));
        for (Index x = 0; x < labels; ++x) {
            cells.row[x] = 3.0 * numbers.fraction(40), cells.col[x] = 3.0 * numbers.fraction(40);
            cells.p[x] = p[x].part[0], cells.q[x] = q[x].part[0];
        }
        cells.pad();
        const Flushed flushed;
        Coupling coupling(cells, edges, eta);
        coupling.soften(true);
        coupling.shrink();
        const double price = coupling.complete().part[0];
        Wide cost = 0;
        coupling.masses([&](Index x, Index y, const Pack<1> &mass) {
            cost += Wide(mass.part[0]) * Wide(edges.entry(x, y).part[0]);
        });
        CHECK(Wide(price) >= cost * (1 - doubt(labels * labels)));
        CHECK(Wide(price) <= cost * (1 + Wide(labels) * 0x1p-48L));
    }
}

} // namespace

void check_prices() {
    lines();
    bands<LinearDistance>();
    bands<QuadraticDistance>();
}

} // namespace checks
