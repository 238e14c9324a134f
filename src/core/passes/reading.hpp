// Decodes a labelling from the messages of a hard forward half pass.
#pragma once

#include "base/schedule.hpp"
#include "base/team.hpp"
#include "families/all.hpp"

#include <algorithm>
#include <cmath>

namespace softmap {

inline constexpr Index undecided = -1;

// Assigns labels row by row. A node takes the label x that minimises its own cost C_i(x), plus the
// messages from neighbours without a label, plus the costs C_e of edges to neighbours with a label.
class Reader {
  public:
    // Labels whose costs differ by less than `margin_of` times the largest message entry count as
    // ties; the first of them is taken.
    Reader(const Layout &lay, const Schedule &plan, const double *msg, double margin_of,
           Index *labels)
        : lay_(lay), plan_(plan), msg_(msg), margin_of_(margin_of), labels_(labels),
          cost_(std::size_t(lay.widest * lanes)) {}

    void decide(const Row &row) {
        for (Index x = 0; x < row.labels; ++x)
            std::copy_n(plan_.unary + row.place + x * row.step, row.nodes, costs_of(x));
        std::fill_n(size_, lanes, 0.0);
        for (Index p = 0; p < row.degree; ++p)
            add_neighbours(row, p);
        Lanes low(infinity);
        for (Index x = 0; x < row.labels; ++x)
            low = least(Lanes::load(costs_of(x)), low);
        low.each(int(row.nodes), [&](int k, double least_cost) {
            const double enough = least_cost + margin_of_ * size_[k];
            Index best = 0;
            while (best + 1 < row.labels && !(costs_of(best)[k] <= enough))
                ++best;
            labels_[plan_.nodes[row.first + k]] = best;
        });
    }

  private:
    using Lanes = Pack<lanes>;

    // The costs of label x at the nodes of a row.
    double *costs_of(Index x) { return cost_.data() + x * lanes; }

    // Adds the terms of the p-th neighbours of all nodes of a row.
    void add_neighbours(const Row &row, Index p) {
        Index hear[lanes], count = 0;
        for (Index k = 0; k < row.nodes; ++k) {
            const Index i = plan_.nodes[row.first + k], h = lay_.half[lay_.start[i] + p];
            const Index far = labels_[lay_.node[h ^ 1]];
            if (far == undecided)
                hear[count++] = k;
            else
                add_edge(h, far, int(k));
        }
        if (count == row.nodes && row.way == straight)
            return add_messages(row, row.pulls + p);
        for (Index c = 0; c < count; ++c)
            add_message(row, p, hear[c]);
    }

    // Adds the costs of an edge whose other endpoint has the label `far`.
    void add_edge(Index h, Index far, int k) {
        const Index e = h >> 1, group = lay_.group_of(e);
        Families::visit(lay_.kind[group], [&](auto family) {
            const auto edge = family.template at<1>(lay_, group, &e, int(h & 1));
            for (Index x = 0; x < edge.receivers; ++x)
                costs_of(x)[k] += edge.entry(far, x).part[0];
        });
    }

    // Adds messages that are contiguous across lanes.
    void add_messages(const Row &row, Index pull) {
        const double *from = msg_ + plan_.pull_at[pull];
        Lanes size = Lanes::load(size_);
        for (Index x = 0; x < row.labels; ++x, from += plan_.pull_step[pull]) {
            const Lanes message = Lanes::load(from);
            (Lanes::load(costs_of(x)) + message).store(costs_of(x));
            size = greatest(size_of(message), size);
        }
        size.store(size_);
    }

    void add_message(const Row &row, Index p, Index k) {
        const bool follows = row.way == straight; // straight rows list the first node's messages
        const Index pull = row.pulls + (follows ? 0 : k * row.degree) + p;
        const double *from = msg_ + plan_.pull_at[pull] + (follows ? k : 0);
        for (Index x = 0; x < row.labels; ++x) {
            const double message = double(from[x * plan_.pull_step[pull]]);
            costs_of(x)[k] += message;
            size_[k] = std::max(size_[k], std::abs(message));
        }
    }

    const Layout &lay_;
    const Schedule &plan_;
    const double *msg_;
    const double margin_of_;
    Index *labels_;
    std::vector<double> cost_;
    double size_[lanes] = {}; // largest |entry| of the messages into each node of a row
};

// Labels of all nodes, level by level, from the last level to the first.
inline void read_labels(const Layout &lay, const Schedule &plan, const double *msg,
                        double margin_of, Index *labels, Member &me) {
    Reader reader(lay, plan, msg, margin_of, labels);
    me.phase([&](Part part) {
        std::fill(labels + part.first(0, lay.n), labels + part.last(0, lay.n), undecided);
    });
    for (Index level = plan.levels - 1; level >= 0; --level) {
        const Index row = plan.row_start[level], end = plan.row_start[level + 1];
        me.each(row, end, [&](Index r) { reader.decide(plan.rows[r]); });
    }
}

} // namespace softmap
