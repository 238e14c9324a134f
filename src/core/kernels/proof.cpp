// Dual bounds, couplings and their costs, and soft marginals, for one instruction set.
#include "kernels.hpp"
#include "proof/couplings.hpp"
#include "proof/minima.hpp"
#include "proof/nodes.hpp"
#include "proof/pricing.hpp"

namespace softmap {

void add_proof(Kernels &table) {
    table.node_minima = node_minima;
    table.edge_minima = edge_minima;
    table.dual_bound = dual_bound;
    table.couple = couple;
    table.soft_nodes = soft_nodes;
    table.price_portions = price_portions;
    table.soft_rows = soft_rows<double>;
    table.soft_rows_in_single = soft_rows<float>;
}

} // namespace softmap
