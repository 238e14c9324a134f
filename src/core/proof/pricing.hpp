// Costs of the couplings of all edges, with κ computed from chain messages in pass order, in place.
#pragma once

#include "base/sums.hpp"
#include "couplings.hpp"
#include "passes/sending.hpp"

namespace softmap {

// Cost, entropy and slack of couplings, summed over edges with one rounding (`careful_sum`).
struct Prices {
    double cost, entropy, slack;
};

// Entropy and slack are 0 unless `whole`.
inline Prices added(const double *cost, const double *entropy, const double *slack, Index count,
                    bool whole) {
    if (!whole)
        return {careful_sum(cost, count), 0.0, 0.0};
    return {careful_sum(cost, count), careful_sum(entropy, count), careful_sum(slack, count)};
}

// The data from which couplings are computed: messages `msg`, shares `theta` (by strip), and node
// marginals (in model order) in double precision (`nodes`) or in single precision (`rounded`); the
// other one is null.
struct ChainPoint {
    const Layout &lay;
    const Schedule &plan;
    const double *msg;
    const double *theta, *nodes;
    const float *rounded;
    double eta;
    bool whole; // whether entropy and slack are computed, too
};

// Computes the costs of the couplings of a schedule's blocks, block by block.
class Pricing {
  public:
    static constexpr Index portion = 32; // blocks per partial sum, for any number of threads

    explicit Pricing(const ChainPoint &point) : at_(point), room_(lanes), size_(lanes) {}

    Prices operator()(Index first, Index last) {
        double cost[portion], entropy[portion], slack[portion];
        for (Index k = first; k < last; ++k) {
            const Prices found = block(at_.plan.blocks[k]);
            cost[k - first] = found.cost;
            entropy[k - first] = found.entropy;
            slack[k - first] = found.slack;
        }
        return added(cost, entropy, slack, last - first, at_.whole);
    }

  private:
    // Rows are the labels of the edge's first endpoint, as in `couple`: the result depends on which
    // side is scaled first.
    Prices block(const Block &b) {
        return Families::visit(b.kind, [&](auto family) {
            const Run run = run_of(b);
            if (!b.count)
                return price<1>(family.template at<1>(at_.lay, b.group, run.edge, 1), run, b);
            // The packed tables of tiles are products weight · table rounded down, for the bound.
            // The couplings returned to the user are computed with products rounded to nearest, so
            // their cost is computed from these.
            if (family.packed_size(b.early, b.late) && at_.lay.weight_at[b.group] >= 0)
                return price<lanes>(family.template at<lanes>(at_.lay, b.group, run.edge, 1), run,
                                    b);
            return price<lanes>(family.tile(at_.lay, at_.plan, b, b.orientation == 0), run, b);
        });
    }

    Run run_of(const Block &b) const {
        const bool forward = b.orientation == 0; // the first endpoint is the early one
        Run run{b.group,
                0,
                std::max<Index>(b.count, 1),
                forward ? b.early : b.late,
                forward ? b.late : b.early,
                {}};
        for (Index k = 0; k < lanes; ++k)
            run.edge[k] = at_.plan.edge[b.lane + std::min(k, run.count - 1)];
        return run;
    }

    template <int W, class Edges> Prices price(const Edges &edges, const Run &run, const Block &b) {
        double cost[lanes], entropy[lanes] = {}, slack[lanes] = {};
        const Couplings ask{nullptr,
                            at_.nodes,
                            at_.eta,
                            cost,
                            at_.whole ? entropy : nullptr,
                            at_.whole ? slack : nullptr,
                            nullptr,
                            nullptr};
        reserve(room_of<W>(edges, run, at_.eta));
        // the cost of a plan in closed form depends on the node marginals alone
        const bool kappa = at_.whole || way_of(edges, run, at_.eta) != Way::closed;
        couple_run<W>(room_.numbers(), edges, run, ask, solve_,
                      [&](const Cells<W> &cells) { load(cells, run, b, kappa); });
        return added(cost, entropy, slack, run.count, at_.whole);
    }

    // Reads the marginals and, if `kappa`, κ.
    template <int W>
    [[gnu::noinline]] void load(const Cells<W> &t, const Run &run, const Block &b,
                                bool kappa) const {
        const bool forward = b.orientation == 0; // the first endpoint is the early one
        if (kappa) {
            stage<W>(Direction(at_.plan, b, forward), b, at_.theta, at_.msg,
                     reinterpret_cast<Pack<W> *>(t.row));
            stage<W>(Direction(at_.plan, b, !forward), b, at_.theta, at_.msg,
                     reinterpret_cast<Pack<W> *>(t.col));
        }
        const Side<W> rows(at_.lay, run, 0), cols(at_.lay, run, 1);
        if (at_.nodes)
            rows.take(at_.nodes, t.p), cols.take(at_.nodes, t.q);
        else
            rows.take(at_.rounded, t.p), cols.take(at_.rounded, t.q);
        t.pad();
    }

    void reserve(Index numbers) {
        if (numbers > size_) {
            room_ = Room(numbers);
            size_ = numbers;
        }
    }

    const ChainPoint at_;
    Room room_;
    Index size_;
    Transport solve_;
};

// out[k] = cost, entropy and slack of portion k of the blocks, for portions first..last-1.
inline void price_portions(const ChainPoint &point, Prices *out, Index first, Index last) {
    constexpr Index size = Pricing::portion;
    Pricing pricing(point);
    for (Index k = first; k < last; ++k)
        out[k] = pricing(k * size, std::min((k + 1) * size, point.plan.num_blocks));
}

} // namespace softmap
