// Labels read off the messages that a hard half pass has sent forward.
#pragma once

#include "one_edge.hpp"
#include "schedule.hpp"

#include <algorithm>
#include <cmath>

namespace softmap {

// Decides the nodes level by level, the last one first. A node takes the label of the least cost:
// its own, what earlier neighbours have sent, and its edges to later ones, which are decided.
template <class S> class Reader {
  public:
    // `cost` has room for costs by strip; `margin_of` is the part of a message's size under which
    // labels count as equally good: the first of them is taken.
    Reader(const Layout<double> &lay, const Schedule<S> &plan, const S *msg, double margin_of,
           double *cost, Index *labels)
        : lay_(lay), plan_(plan), msg_(msg), margin_of_(margin_of), cost_(cost), labels_(labels),
          size_(std::size_t(lay.n)), entry_(std::size_t(lay.widest)) {}

    void run() {
        std::copy_n(plan_.unary, plan_.num_costs, cost_);
        for (Index level = plan_.levels - 1; level >= 0; --level) {
            each_edge(level, [&](const Block &b, Index lane, Index e) { hear(b, lane, e); });
            for (Index r = plan_.row_start[level]; r < plan_.row_start[level + 1]; ++r)
                for (Index k = 0; k < plan_.rows[r].nodes; ++k)
                    decide(plan_.rows[r], k);
            each_edge(level, [&](const Block &b, Index, Index e) { tell(b, e); });
        }
    }

  private:
    // work(block, lane, edge) for the edges whose late end is in the level.
    template <class Work> void each_edge(Index level, Work work) {
        for (Index k = plan_.backward_start[level]; k < plan_.backward_start[level + 1]; ++k) {
            const Block &b = plan_.blocks[plan_.backward[k]];
            for (Index lane = 0; lane < std::max<Index>(b.count, 1); ++lane)
                work(b, lane, plan_.edge[b.lane + lane]);
        }
    }

    // Add the message into the late end of an edge.
    void hear(const Block &b, Index lane, Index e) {
        const Index i = lay_.node[2 * e + 1 - b.orientation];
        double *own = cost_ + plan_.node_at[i];
        for (Index x = 0; x < b.late; ++x) {
            const double message = double(msg_[b.late_at + lane + x * b.step]);
            own[x * plan_.node_step[i]] += message;
            size_[i] = std::max(size_[i], std::abs(message));
        }
    }

    void decide(const Row &row, Index k) {
        const Index i = plan_.nodes[row.first + k];
        const auto cost = [&](Index x) { return cost_[row.place + x * row.step + k]; };
        double least = infinity;
        for (Index x = 0; x < row.labels; ++x)
            least = std::min(least, cost(x));
        Index best = 0;
        while (best + 1 < row.labels && !(cost(best) <= least + margin_of_ * size_[i]))
            ++best;
        labels_[i] = best;
    }

    // Add what an edge costs with its late end decided to the costs of its early end.
    void tell(const Block &b, Index e) {
        const Index h = 2 * e + b.orientation, i = lay_.node[h];
        conditional_costs(lay_, h, labels_[lay_.node[h ^ 1]], entry_.data());
        double *own = cost_ + plan_.node_at[i];
        for (Index x = 0; x < b.early; ++x)
            own[x * plan_.node_step[i]] += entry_[x];
    }

    const Layout<double> &lay_;
    const Schedule<S> &plan_;
    const S *msg_;
    const double margin_of_;
    double *cost_;
    Index *labels_;
    std::vector<double> size_, entry_;
};

} // namespace softmap
