// Binding of the planner: the arrays of a schedule that do not depend on costs.
#include "passes/planning.hpp"
#include "bind.hpp"

#include <atomic>

namespace softmap {
namespace {

// Checks that no edge joins two nodes of a level, and that levels count from 0.
void require_levels(const Layout &v, const Index *level, int threads) {
    std::atomic<bool> wrong = false;
    split(threads, v.m, [&](Index first, Index last) {
        bool own = false;
        for (Index e = first; e < last; ++e)
            own = own || level[v.node[2 * e]] == level[v.node[2 * e + 1]];
        wrong = wrong || own;
    });
    for (Index i = 0; i < v.n; ++i)
        require(0 <= level[i], "node ", i, " has the level ", level[i]);
    for (Index e = 0; wrong && e < v.m; ++e)
        require(level[v.node[2 * e]] != level[v.node[2 * e + 1]], "both ends of edge ", e,
                " are in one level");
}

nb::dict plan(const HeldLayout &lay, In<Index> rank, In<Index> level, In<Index> key, bool leading,
              int threads, const Deadline *deadline) {
    const Layout &v = lay.view;
    require_size(rank, v.n, "rank");
    require_size(level, v.n, "level");
    require_size(key, v.m, "key");
    require_levels(v, level.data(), threads);
    Plan made;
    {
        nb::gil_scoped_release unlocked;
        made = Planner(v, rank.data(), level.data(), key.data(), leading, threads, deadline).run();
    }
    nb::dict out;
    const auto put = [&]<class T>(const char *name, std::vector<T> &array) {
        out[name] = handed_over<T>(std::move(array));
    };
    out["rows"] = handed_over<std::uint8_t>(std::move(made.rows), sizeof(Row));
    out["blocks"] = handed_over<std::uint8_t>(std::move(made.blocks), sizeof(Block));
    put("row_start", made.row_start), put("nodes", made.nodes);
    put("chains", made.chains), put("edge", made.edge);
    put("pull_at", made.pull_at);
    put("pull_step", made.pull_step);
    put("early_at", made.early_at), put("early_step", made.early_step);
    put("late_at", made.late_at), put("late_step", made.late_step);
    put("forward_start", made.forward_start), put("forward", made.forward);
    put("later", made.later);
    put("forward_after", made.forward_after), put("backward_after", made.backward_after);
    put("backward_start", made.backward_start), put("backward", made.backward);
    out["cost_size"] = made.cost_size;
    out["table_size"] = made.table_size;
    return out;
}

} // namespace

void bind_planning(nb::module_ &m) {
    m.def(
        "plan", &plan, arg("layout"), arg("rank"), arg("level"), arg("key"), nb::arg("leading"),
        arg("threads") = 1, deadline_arg(),
        "Return the arrays of a schedule that do not depend on costs, by name. Raises OutOfTime.");
}

} // namespace softmap
