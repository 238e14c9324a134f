// Small models of one family each, whose costs are binary fractions, with schedules of passes.
#pragma once

#include "base/graph.hpp"
#include "check.hpp"
#include "passes/chains.hpp"
#include "passes/planning.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace checks {

using softmap::Index;
enum Kind : Index { tables, potts, linear, quadratic, projection, kinds };

// A random graph; with projections, nodes of labels² joint states (first ends) and their members.
struct Model {
    Kind kind;
    Index n, m, labels;
    std::vector<Index> num_labels, node_offset, half_offset, start, zero{0}, one{1}, none{-1},
        kind_of, group_start, stride;
    std::vector<std::int32_t> node, half, maps;
    std::vector<double> unary, weight, truncation, table;
    softmap::Layout lay;

    // If `near` is not 0, an edge joins nodes whose numbers differ by at most that.
    Model(Kind kind, Index nodes, Index edges, Index labels, std::uint64_t seed, int digits,
          Index near = 0)
        : kind(kind), n(nodes), m(edges), labels(labels) {
        Numbers numbers(seed);
        const Index joints = kind == projection ? n / 3 : 0;
        for (Index i = 0; i < n; ++i)
            num_labels.push_back(i < joints ? labels * labels : labels);
        for (Index e = 0; e < m; ++e) {
            const Index i = joints ? numbers.below(joints) : numbers.below(n);
            Index j = i;
            while (j == i)
                j = joints ? joints + numbers.below(n - joints)
                    : near ? std::min(i + 1 + numbers.below(near), n - 1)
                           : numbers.below(n);
            node.push_back(std::int32_t(i)), node.push_back(std::int32_t(j));
            weight.push_back(kind == projection ? 1.0 : std::abs(numbers.fraction(digits)));
            truncation.push_back(2.0 + 1.5 * numbers.fraction(digits - 2));
        }
        node_offset = offsets(n, [&](Index i) { return num_labels[i]; });
        half_offset = offsets(2 * m, [&](Index h) { return num_labels[node[h]]; });
        for (Index k = 0; k < node_offset[n]; ++k)
            unary.push_back(numbers.fraction(digits));
        for (Index k = 0; kind == tables && k < m * labels * labels; ++k)
            table.push_back(numbers.fraction(digits));
        for (Index s = 0; kind == projection && s < labels * labels; ++s)
            maps.push_back(std::int32_t(s / labels));
        start.resize(std::size_t(n + 1)), half.resize(node.size());
        softmap::sort_halves(node.data(), 2 * m, n, start.data(), half.data());
        kind_of = {kind}, group_start = {0, m};
        stride = {kind == tables ? labels * labels : 0};
        const bool truncated = kind == linear || kind == quadratic;
        lay = {n,
               m,
               1,
               *std::max_element(num_labels.begin(), num_labels.end()),
               node.data(),
               {num_labels.data(), 0},
               {node_offset.data(), 0},
               half_offset.data(),
               unary.data(),
               start.data(),
               half.data(),
               group_start.data(),
               kind_of.data(),
               weight.data(),
               zero.data(),
               one.data(),
               truncation.data(),
               truncated ? zero.data() : none.data(),
               one.data(),
               nullptr,
               none.data(),
               stride.data(),
               table.data(),
               maps.data(),
               zero.data()};
    }
    Model(const Model &) = delete;

    // The cost of one pair, by Number(double) for the parameters.
    template <class Number> Number cost(Index e, Index x, Index y, Number none, auto number) const {
        const Index apart = x < y ? y - x : x - y;
        const auto cut = [&](Index distance) {
            return number(weight[e]) * std::min(number(double(distance)), number(truncation[e]));
        };
        switch (kind) {
        case tables:
            return number(weight[e]) * number(table[(e * labels + x) * labels + y]);
        case potts:
            return x == y ? Number(0) : number(weight[e]) * number(1.0);
        case linear:
            return cut(apart);
        case quadratic:
            return cut(apart * apart);
        default:
            return maps[x] == y ? Number(0) : none;
        }
    }

  private:
    template <class Size> static std::vector<Index> offsets(Index count, Size size) {
        std::vector<Index> out(1, 0);
        for (Index k = 0; k < count; ++k)
            out.push_back(out.back() + size(k));
        return out;
    }
};

// A schedule whose order is that of the nodes; `leading` for chains, not for stars.
struct Planned {
    std::vector<Index> rank, level, key;
    softmap::Plan plan;
    std::vector<double> unary, weight, truncation, table;
    Index cost_size = 0, message_size = 0, back_size = 0;
    softmap::Schedule schedule;

    Planned(const Model &model, bool leading) {
        using namespace softmap;
        const Layout &lay = model.lay;
        level.assign(std::size_t(lay.n), 0);
        for (Index i = 0; i < lay.n; ++i) {
            rank.push_back(i);
            for (Index p = lay.start[i]; p < lay.start[i + 1]; ++p) {
                const Index j = lay.node[lay.half[p] ^ 1];
                level[i] = std::max(level[i], j < i ? level[j] + 1 : 0);
            }
        }
        for (Index e = 0; e < lay.m; ++e)
            key.push_back(key_of(model, e));
        plan = Planner(lay, rank.data(), level.data(), key.data(), leading, 2).run();
        cost_size = plan.cost_size + 1 + lanes;
        back_size = plan.blocks[0].late_at;
        for (const Block &b : plan.blocks) {
            message_size = std::max(message_size, b.late_at + b.late * b.step + lanes);
            back_size = std::min(back_size, b.late_at);
        }
        unary.assign(std::size_t(cost_size), 0.0);
        by_strip(lay, plan.nodes.data(), plan.rows.data(), unary.data(), 0,
                 Index(plan.rows.size()));
        weight.assign(plan.edge.size() + lanes, 0.0);
        truncation = weight;
        table.assign(std::size_t(plan.table_size + lanes), 0.0);
        pack_lanes(lay, plan.blocks.data(), 0, Index(plan.blocks.size()), plan.edge.data(),
                   weight.data(), truncation.data(), table.data());
        const Index levels = Index(plan.row_start.size()) - 1;
        schedule = {levels,
                    Index(plan.blocks.size()),
                    Index(plan.rows.size()),
                    Index(plan.edge.size()),
                    cost_size,
                    lay.widest,
                    lay.widest,
                    plan.row_start.data(),
                    plan.rows.data(),
                    plan.nodes.data(),
                    plan.chains.data(),
                    unary.data(),
                    plan.pull_at.data(),
                    plan.pull_step.data(),
                    plan.blocks.data(),
                    plan.edge.data(),
                    plan.early_at.data(),
                    plan.early_step.data(),
                    plan.late_at.data(),
                    plan.late_step.data(),
                    weight.data(),
                    truncation.data(),
                    false,
                    false,
                    table.data(),
                    Index(plan.forward_start.size() - 1) / levels,
                    plan.forward_start.data(),
                    plan.backward_start.data(),
                    plan.forward.data(),
                    plan.backward.data(),
                    plan.later.data(),
                    plan.forward_after.data(),
                    plan.backward_after.data()};
    }
    Planned(const Planned &) = delete;

  private:
    static Index key_of(const Model &model, Index e) {
        using namespace softmap;
        if (model.kind == linear)
            return TruncatedEdges<1, LinearDistance>::reach_of(model.truncation[e], model.labels);
        if (model.kind == quadratic)
            return TruncatedEdges<1, QuadraticDistance>::reach_of(model.truncation[e],
                                                                  model.labels);
        return 0;
    }
};

} // namespace checks
