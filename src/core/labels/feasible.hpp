// Finds a labelling that satisfies all hard constraints, or proves that there is none.
#pragma once

#include "arcs.hpp"
#include "base/budget.hpp"
#include "label_graph.hpp"

namespace softmap {

enum class Feasibility : int { none = 0, found = 1, unknown = 2 };

// Depth-first search that enforces arc consistency after every decision (MAC), with restarts.
//
// A decision assigns a variable its allowed label of highest preference; if that fails, the label
// is forbidden. Until the first restart, the variable with the highest preference for a label comes
// first; afterwards the one with few labels left and many failures (dom/wdeg). The number of
// failures before a restart grows geometrically, so that the search is complete. Labels refuted at
// the root stay forbidden.
class FeasibleSearch {
  public:
    FeasibleSearch(const LabelGraph &graph, bool *allowed, const double *preference)
        : graph_(graph), arcs_(graph.lay, allowed), preference_(preference),
          weight_(graph.lay.n, 1.0), sure_(graph.variables) {
        for (Index i = 0; i < graph.variables; ++i)
            sure_[i] = *std::max_element(preference + graph.lay.node_offset[i],
                                         preference + graph.lay.node_offset[i + 1]);
    }

    Feasibility run(Budget &budget, Index *labels) {
        for (Index i = 0; i < graph_.lay.n; ++i)
            if (arcs_.left(i) == 0)
                return Feasibility::none;
        if (arcs_.everywhere() >= 0)
            return Feasibility::none;
        root_ = arcs_.mark();
        for (double patience = 64.0;; patience *= 1.5) {
            const Feasibility answer = dive(Index(patience), budget);
            if (answer == Feasibility::found)
                read(labels);
            if (answer != Feasibility::unknown || budget.spent())
                return answer;
            arcs_.undo(root_);
            path_.clear();
            first_ = false;
        }
    }

    Index failures() const { return failures_; }
    Index decisions() const { return decisions_; }

  private:
    struct Decision {
        Index mark, node, label;
    };

    Feasibility dive(Index patience, Budget &budget) {
        for (;;) {
            const Index i = choose();
            if (i < 0)
                return Feasibility::found;
            Index empty = decide(i);
            while (empty >= 0) {
                blame();
                if (path_.empty())
                    return Feasibility::none;
                empty = refute();
                if (--patience < 0 && empty < 0)
                    return Feasibility::unknown;
            }
            budget.use(graph_.variables + arcs_.calls() - calls_);
            calls_ = arcs_.calls();
            if (budget.spent())
                return Feasibility::unknown;
        }
    }

    Index decide(Index i) {
        const Index begin = graph_.lay.node_offset[i];
        Index best = -1;
        for (Index x = 0; x < graph_.lay.num_labels[i]; ++x)
            if (arcs_.allowed()[begin + x] &&
                (best < 0 || preference_[begin + x] > preference_[begin + best]))
                best = x;
        path_.push_back({arcs_.mark(), i, best});
        ++decisions_;
        arcs_.keep_only(i, best);
        return arcs_.from(i);
    }

    // Undoes the last decision and forbids its label. Returns a node without states, or -1.
    Index refute() {
        const Decision last = path_.back();
        path_.pop_back();
        arcs_.undo(last.mark);
        arcs_.forbid(graph_.lay.node_offset[last.node] + last.label);
        const Index empty = arcs_.left(last.node) == 0 ? last.node : arcs_.from(last.node);
        if (path_.empty())
            root_ = arcs_.mark();
        return empty;
    }

    // The next variable to assign, or -1 if all have one label left.
    Index choose() const {
        Index best = -1;
        for (Index i = 0; i < graph_.variables; ++i)
            if (arcs_.left(i) > 1 && (best < 0 || before(i, best)))
                best = i;
        return best;
    }

    bool before(Index i, Index j) const {
        if (first_)
            return sure_[i] > sure_[j];
        const double a = double(arcs_.left(i)) * weight_[j], b = double(arcs_.left(j)) * weight_[i];
        return a < b || (a == b && sure_[i] > sure_[j]);
    }

    // Increases the failure weights of the variables on the edge or factor that failed.
    void blame() {
        ++failures_;
        const Index h = arcs_.culprit();
        for (const Index i : {Index(graph_.lay.node[h]), Index(graph_.lay.node[h ^ 1])})
            if (i < graph_.variables)
                weight_[i] += 1.0;
            else
                graph_.members(i, [&](Index member, Index) { weight_[member] += 1.0; });
    }

    void read(Index *labels) const {
        for (Index i = 0; i < graph_.variables; ++i)
            for (Index x = 0; x < graph_.lay.num_labels[i]; ++x)
                if (arcs_.allowed()[graph_.lay.node_offset[i] + x])
                    labels[i] = x;
        graph_.complete(labels);
    }

    const LabelGraph &graph_;
    Arcs arcs_;
    const double *preference_;
    bool first_ = true;
    Index root_ = 0, failures_ = 0, decisions_ = 0, calls_ = 0;
    std::vector<double> weight_, sure_;
    std::vector<Decision> path_;
};

} // namespace softmap
