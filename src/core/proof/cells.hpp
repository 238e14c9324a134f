// Costs and masses of the couplings of one run of edges, in cells of `lanes` doubles.
#pragma once

#include "tiles.hpp"

namespace softmap {

// The input of the coupling kernels and the arrays of their results. entropy, slack and plan may be
// null: then they are not computed.
struct Couplings {
    const double *kappa; // κ by half-edge
    const double *nodes; // node marginals by node state
    double eta;
    double *cost;    // [edges] cost of the coupling
    double *entropy; // [edges] entropy of the soft marginals, before `Proj`
    double *slack;   // [edges] ℓ₁ distance of their row and column sums from the node marginals
    double *plan;    // the couplings, row-major tables one after the other
    const Index *plan_at; // [edges] first entry of each table
};

// Couplings of the lanes of one view. Lanes are edges (W = lanes) or labels of the second endpoint
// of a single edge (W = 1). In both cases a cell is `lanes` doubles, and a table has `cells` cells
// per row; the cost of padding labels is +inf.
template <int W> class Cells {
  public:
    using Cell = Pack<lanes>;

    // Divides `room` into arrays without filling them; `tables` says whether costs and plans are
    // stored.
    Cells(double *room, const Run &run, bool tables)
        : rows(run.rows), cols(run.cols), cells(width_of(cols)),
          cost(reinterpret_cast<Cell *>(room)), plan(cost + (tables ? rows * cells : 0)),
          ahead(plan + (tables ? rows * cells : 0)), high((rows * W + lanes - 1) / lanes) {
        double *at = reinterpret_cast<double *>(ahead + cells);
        for (double **array : {&row, &p, &rest_p})
            *array = at, at += high * lanes;
        for (double **array : {&col, &q, &rest_q})
            *array = at, at += cells * lanes;
        spare = at;
    }

    // Loads κ and the marginals from arrays in model order.
    void load(const Layout &lay, const Run &run, const Couplings &ask) const {
        load(Side<W>(lay, run, 0), lay, ask, row, p);
        load(Side<W>(lay, run, 1), lay, ask, col, q);
        pad();
    }

    // Sets κ = +inf and mass 0 at padding labels.
    void pad() const {
        pad(rows, high, row, p);
        pad(cols, cells, col, q);
    }

    static Index room_for(Index rows, Index cols, bool tables) {
        const Index cells = width_of(cols);
        return lanes * ((tables ? 2 * rows * cells : 0) + cells) + 3 * W * (rows + cols) +
               6 * lanes + transport_room(rows, cols, W);
    }

    Cell in_row(const double *array, Index x) const {
        return W > 1 ? Cell::load(array + lanes * x) : Cell(array[x]);
    }
    Cell in_col(const double *array, Index c) const { return Cell::load(array + lanes * c); }
    void put_row(double *array, Index x, const Cell &value) const {
        if constexpr (W > 1)
            value.store(array + lanes * x);
        else
            value.each(1, [&](int, double one) { array[x] = one; });
    }
    // The sum or minimum over the lanes of a cell if lanes are labels (W = 1), in every lane; the
    // cell itself if lanes are edges.
    static Cell summed(const Cell &a) { return W > 1 ? a : Cell(total(a)); }
    static Cell lowered(const Cell &a) { return W > 1 ? a : Cell(-largest(0.0 - a)); }

    const Pack<W> *packs(const double *array) const {
        return reinterpret_cast<const Pack<W> *>(array);
    }
    double &entry(Cell *table, Index x, Index y, int lane) const {
        const auto numbers = reinterpret_cast<double *>(table + x * cells);
        return W > 1 ? numbers[lanes * y + lane] : numbers[y];
    }

    const Index rows, cols, cells;
    Cell *const cost, *const plan, *const ahead;
    const Index high;                            // cells of an array over the labels of the rows
    double *row, *col, *p, *q, *rest_p, *rest_q; // κ with +inf at forbidden labels; marginals
    double *spare;

  private:
    static Index width_of(Index cols) { return W > 1 ? cols : (cols + lanes - 1) / lanes; }

    static void load(const Side<W> &side, const Layout &lay, const Couplings &ask, double *kappa,
                     double *nodes) {
        side.free(lay, ask.kappa, kappa);
        side.take(ask.nodes, nodes);
    }
    static void pad(Index labels, Index width, double *kappa, double *nodes) {
        for (Index k = W * labels; k < lanes * width; ++k) {
            kappa[k] = infinity;
            nodes[k] = 0.0;
        }
    }
};

} // namespace softmap
