// What the judge asks, for one instruction set.
#include "kernels.hpp"
#include "proof/couplings.hpp"
#include "proof/minima.hpp"
#include "proof/nodes.hpp"

namespace softmap {

void add_proof(Kernels &table) {
    table.node_minima = node_minima;
    table.edge_minima = edge_minima;
    table.dual_bound = dual_bound;
    table.couple = couple;
    table.soft_nodes = soft_nodes;
}

} // namespace softmap
