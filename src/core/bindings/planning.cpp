// Binding of the planner: the arrays of a schedule that do not depend on costs.
#include "passes/planning.hpp"
#include "bind.hpp"

namespace softmap {
namespace {

nb::dict plan(const HeldLayout<double> &lay, In<Index> rank, In<Index> level, In<Index> key,
              bool leading) {
    const Layout<double> &v = lay.view;
    require_size(rank, v.n, "rank");
    require_size(level, v.n, "level");
    require_size(key, v.m, "key");
    for (Index i = 0; i < v.n; ++i)
        require(0 <= level.data()[i], "node ", i, " has the level ", level.data()[i]);
    for (Index e = 0; e < v.m; ++e)
        require(level.data()[v.node[2 * e]] != level.data()[v.node[2 * e + 1]],
                "both ends of edge ", e, " are in one level");
    Plan made;
    {
        nb::gil_scoped_release unlocked;
        made = Planner(v, rank.data(), level.data(), key.data(), leading).run();
    }
    nb::dict out;
    const auto put = [&]<class T>(const char *name, std::vector<T> &array) {
        out[name] = handed_over<T>(std::move(array));
    };
    out["rows"] = handed_over<Index>(std::move(made.rows), sizeof(Row) / sizeof(Index));
    out["blocks"] = handed_over<Index>(std::move(made.blocks), sizeof(Block) / sizeof(Index));
    put("row_start", made.row_start), put("nodes", made.nodes);
    put("node_at", made.node_at), put("node_step", made.node_step);
    put("share", made.share), put("edge", made.edge);
    put("pull_start", made.pull_start), put("pull_at", made.pull_at);
    put("pull_step", made.pull_step);
    put("early_at", made.early_at), put("early_step", made.early_step);
    put("late_at", made.late_at), put("late_step", made.late_step);
    put("forward_start", made.forward_start), put("forward", made.forward);
    put("later", made.later);
    put("forward_after", made.forward_after), put("backward_after", made.backward_after);
    put("forward_ends", made.forward_ends);
    put("backward_start", made.backward_start), put("backward", made.backward);
    put("backward_ends", made.backward_ends);
    out["cost_size"] = made.cost_size;
    out["table_size"] = made.table_size;
    return out;
}

} // namespace

void bind_planning(nb::module_ &m) {
    m.def("plan", &plan, arg("layout"), arg("rank"), arg("level"), arg("key"), nb::arg("leading"),
          "Return the arrays of a schedule that do not depend on costs, by name.");
}

} // namespace softmap
