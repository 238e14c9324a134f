// Every number of small runs, as digests: the same for any number of threads, and on every
// instruction set with a fused multiply-add those stored in digests.hpp.
#include "digests.hpp"
#include "models.hpp"
#include "passes/stars.hpp"
#include "proof/couplings.hpp"
#include "proof/minima.hpp"
#include "proof/nodes.hpp"

using namespace softmap;

namespace checks {
namespace {

// FNV-1a over the bits of numbers.
class Digest {
  public:
    void add(double number) {
        auto bits = std::bit_cast<std::uint64_t>(number);
        for (int k = 0; k < 8; ++k, bits >>= 8)
            value_ = (value_ ^ (bits & 255)) * 1099511628211u;
    }
    void add(const std::vector<double> &numbers) {
        for (const double one : numbers)
            add(one);
    }
    std::uint64_t value() const { return value_; }

  private:
    std::uint64_t value_ = 14695981039346656037u;
};

using Numbers64 = std::vector<double>;
Numbers64 zeros(Index count) { return Numbers64(std::size_t(count), 0.0); }

// Chain passes with momentum, λ of them, their bound, node marginals and couplings.
void chains(const Model &model, double eta, int threads, Digest &digest) {
    const Layout &lay = model.lay;
    const Planned planned(model, true);
    const Schedule &plan = planned.schedule;
    std::vector<float> drift(std::size_t(planned.back_size + lanes), 0.0f);
    Numbers64 msg = zeros(planned.message_size), theta = zeros(planned.cost_size),
              shift = zeros(plan.num_blocks), dot = zeros(plan.num_blocks),
              sums = zeros(partial_sums);
    Clock clock{1.0, 0.0, 0.0};
    const ChainArrays run{msg.data(),   drift.data(), planned.back_size, theta.data(),
                          shift.data(), dot.data(),   sums.data(),       &clock};
    together(threads, [&](Member &me) { passes(lay, plan, 14, run, eta, eta < infinity, me); });
    Numbers64 lam = zeros(lay.half_at(2 * lay.m)), nodes = zeros(lay.node_offset[lay.n]);
    unpack(lay, plan, msg.data(), lam.data(), 0, plan.num_blocks);
    digest.add(lam);
    digest.add(clock.t);
    digest.add(dual_bound(lay, lam.data(), 0.0, threads));
    if (eta == infinity)
        return;
    shares(plan, msg.data(), theta.data(), 0, plan.num_rows);
    Numbers64 entropy = zeros(lay.n), minimum = zeros(lay.n), by_model = nodes, alike = nodes;
    by_node(lay, plan, theta.data(), by_model.data(), 0, plan.num_rows);
    soft_nodes(lay, by_model.data(), eta, nodes.data(), entropy.data(), minimum.data(), 0, lay.n);
    digest.add(nodes), digest.add(entropy), digest.add(minimum);
    soft_rows(lay, plan, theta.data(), eta, 1.0, alike.data(), nullptr, nullptr, 0, plan.num_rows);
    CHECK(alike == nodes);
    Numbers64 kappa = zeros(lay.half_at(2 * lay.m));
    couplings(lay, plan, msg.data(), by_model.data(), kappa.data(), 0, plan.num_blocks);
    Numbers64 cost = zeros(lay.m), spread = zeros(lay.m), slack = zeros(lay.m);
    const Couplings ask{kappa.data(),  nodes.data(), eta,     cost.data(),
                        spread.data(), slack.data(), nullptr, nullptr};
    couple(lay, EdgeList{nullptr, lay.m}, ask, 0, lay.m);
    digest.add(cost), digest.add(spread), digest.add(slack);
}

// Gradient sweeps with momentum (Nesterov's method).
void gradients(const Model &model, double eta, int threads, Digest &digest) {
    const Planned planned(model, false);
    const Schedule &plan = planned.schedule;
    const Index size = planned.message_size;
    std::vector<float> drift(std::size_t(size), 0.0f);
    Numbers64 msg = zeros(size), origin = zeros(size), bar = zeros(planned.cost_size),
              theta = zeros(planned.cost_size), shift = zeros(plan.num_blocks),
              dot = zeros(model.n), unused = zeros(plan.num_blocks), sums = zeros(partial_sums);
    Clock clock{1.0, 0.0, 0.0};
    const StarArrays run{msg.data(),    origin.data(), drift.data(), size,
                         bar.data(),    theta.data(),  shift.data(), dot.data(),
                         unused.data(), sums.data(),   &clock};
    together(threads,
             [&](Member &me) { sweeps<GradientRule>(model.lay, plan, 6, run, eta, true, me); });
    Numbers64 lam = zeros(model.lay.half_at(2 * model.m));
    unpack(model.lay, plan, msg.data(), lam.data(), 0, plan.num_blocks);
    digest.add(lam);
    digest.add(clock.product);
}

std::uint64_t digest_of(Kind kind, int threads) {
    Digest digest;
    for (const Index labels : {2, 3, 7}) {
        const Model model(kind, 90, 260, labels, 7, 10);
        for (const double eta : {2.0, 30.0, 3000.0, infinity})
            chains(model, eta, threads, digest);
        if (kind != projection)
            gradients(model, 20.0, threads, digest);
    }
    return digest.value();
}

} // namespace

void check_bits(bool print) {
    for (int kind = 0; kind < kinds; ++kind) {
        const std::uint64_t one = digest_of(Kind(kind), 1);
        if (print) {
            std::printf("    0x%016llx, // %s\n", (unsigned long long)one, Families::names[kind]);
            continue;
        }
        for (const int threads : {2, 3, 4})
            CHECK(digest_of(Kind(kind), threads) == one);
        if (fuses)
            CHECK(one == digests[kind]);
    }
    if (!print && !fuses)
        std::puts("no fused multiply-add on this level: its bits are not compared with those of "
                  "others");
}

} // namespace checks
