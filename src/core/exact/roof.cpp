// Persistency in models of two labels: partial labellings that some optimum has, by roof duality.
//
// Every variable x has a mirror x̄ = 1 - x. The model, written as a sum of c·x and c·x·ȳ with c > 0
// over variables and mirrors, is a minimum-cut problem. The nodes that the source reaches in the
// residual graph are on the source side of every minimum cut. They give a partial labelling that
// some optimum has (Hammer, Hansen and Simeone 1984).
#include "presolve.hpp"

#include "cuts/flow.hpp"

#include <optional>

namespace softmap::exact {

namespace {

// Limits a flow to `budget` visited arcs and the time of the search.
struct FlowLimit {
    std::int64_t budget;
    Control &control;

    void use(std::int64_t arcs) {
        budget -= arcs;
        control.spend(arcs);
    }
    bool spent() const { return budget < 0 || control.stopped; }
};

// Whether all remaining variables have at most two labels, and all factors two variables and no
// forbidden entries.
bool roofed(const Work &w) {
    for (int v = 0; v < w.n(); ++v)
        if (!w.gone[v] && (w.d(v) > 2 || forbidden(w.unary[v][0]) || forbidden(w.unary[v].back())))
            return false;
    for (const auto &f : w.factors)
        if (f != nullptr && (f->scope.size() != 2 || f->table.size() != 4 ||
                             std::any_of(f->table.begin(), f->table.end(), forbidden)))
            return false;
    return true;
}

// The flow graph of the model, with integer capacities: persistency has to be exact. Variable v is
// node 2v, its mirror 2v + 1. The source side of a cut has the value 1, the sink side the value 0.
class Roof {
  public:
    explicit Roof(const Work &w) {
        std::vector<std::int32_t> node;
        std::vector<Cost> capacity, linear(w.n(), 0);
        for (int v = 0; v < w.n(); ++v)
            if (!w.gone[v] && w.d(v) == 2)
                linear[v] += w.unary[v][1] - w.unary[v][0];
        for (const auto &f : w.factors) {
            if (f == nullptr)
                continue;
            const int x = f->scope[0], y = f->scope[1];
            const auto &t = f->table;
            const Cost both = t[0] + t[3] - t[1] - t[2];
            linear[x] += t[2] - t[0] + std::min<Cost>(both, 0);
            linear[y] += t[1] - t[0];
            if (both == 0)
                continue;
            const int head = both < 0 ? 2 * y : 2 * y + 1;
            node.insert(node.end(), {2 * x, head, head ^ 1, 2 * x + 1}); // an arc and its mirror
            capacity.push_back(std::abs(both));
        }
        std::vector<Index> start(2 * w.n() + 1);
        std::vector<std::int32_t> half(node.size());
        sort_halves(node.data(), Index(node.size()), 2 * w.n(), start.data(), half.data());
        cut_.emplace(Incidence{2 * w.n(), node.data(), start.data(), half.data()});
        for (std::size_t k = 0; k < capacity.size(); ++k)
            for (const Index h : {4 * k, 4 * k + 2})
                cut_->set_capacity(h, capacity[k]);
        for (int v = 0; v < w.n(); ++v) {
            cut_->add_cost(2 * v, -linear[v]);
            cut_->add_cost(2 * v + 1, linear[v]);
        }
    }
    // Returns false if `budget` arcs were visited, or time ran out, before the flow was maximal.
    bool run(std::int64_t budget, Control &control) {
        FlowLimit limit{budget, control};
        cut_->start();
        return cut_->run(limit);
    }
    // After `run`: the label of variable v in some optimum; -1 if it is not known.
    int label(int v) const {
        const bool one = cut_->from_source(2 * v), zero = cut_->from_source(2 * v + 1);
        return one == zero ? -1 : int(one);
    }
    // Residual capacities of the k-th factor that is not modular, in half units: of its arc and the
    // mirror image, and of their reverses.
    std::array<Cost, 2> left(std::size_t k) const {
        return {cut_->residual(4 * k) + cut_->residual(4 * k + 2),
                cut_->residual(4 * k + 1) + cut_->residual(4 * k + 3)};
    }

  private:
    std::optional<MinimumCut<Cost>> cut_;
};

// Logs the fixed labels and, in half units, costs to move from all their factors to variables.
// After these moves, fixing the labels raises no single factor or unary cost: twice a factor, less
// the moved costs, equals the residual capacities of its arcs.
void write_persistent(const Work &w, const Roof &roof) {
    std::vector<std::int64_t> labels, amounts;
    for (int v = 0; v < w.n(); ++v)
        if (!w.gone[v] && w.d(v) == 2 && roof.label(v) >= 0)
            labels.insert(labels.end(), {v, roof.label(v)});
    if (labels.empty())
        return;
    std::size_t arcs = 0;
    for (std::size_t f = 0; f < w.factors.size(); ++f) {
        if (w.factors[f] == nullptr)
            continue;
        const auto &t = w.factors[f]->table;
        const Cost both = t[0] + t[3] - t[1] - t[2];
        std::array<Cost, 4> rest{2 * t[0], 2 * t[1], 2 * t[2], 2 * t[3]};
        if (both != 0) {
            const auto [there, back] = roof.left(arcs++);
            rest[both < 0 ? 2 : 3] -= there;
            rest[both < 0 ? 1 : 0] -= back;
        }
        if (roof.label(w.factors[f]->scope[0]) < 0 && roof.label(w.factors[f]->scope[1]) < 0)
            continue;
        amounts.insert(amounts.end(), {rest[0], rest[2], 0, rest[1] - rest[0]});
    }
    w.log->op(Op::PERSISTENT);
    w.log->array(labels);
    w.log->array(amounts);
}

} // namespace

// Fixes variables to labels that some optimum has. Gives up after visiting `budget` arcs.
bool fix_persistent(Work &w, Control &control, std::int64_t budget) {
    if (!roofed(w))
        return false;
    Roof roof(w);
    if (!roof.run(budget, control))
        return false;
    if (w.log != nullptr)
        write_persistent(w, roof);
    bool any = false;
    for (int v = 0; v < w.n(); ++v) {
        const int label = roof.label(v);
        if (w.gone[v] || w.d(v) < 2 || label < 0)
            continue;
        if (!w.incumbent.empty())
            w.incumbent[v] = w.label[v][label];
        keep_labels(w, v, {label});
        any = true;
    }
    return any;
}

} // namespace softmap::exact
