// Costs and masses of the couplings of one run of edges, as cells of `lanes` numbers.
#pragma once

#include "tiles.hpp"

namespace softmap {

// What is asked about, and where the answers go; a null pointer says: not wanted.
struct Couplings {
    const double *kappa; // by half-edge
    const double *nodes; // by node
    double eta;
    double *cost;         // [edges]
    double *entropy;      // [edges] before anything is moved
    double *slack;        // [edges] ℓ₁, of both ends
    double *plan;         // row-major tables one after the other
    const Index *plan_at; // where the tables begin
};

// Couplings of the lanes of one view. Lanes are edges (W = lanes), or labels of the second end of a
// single edge (W = 1): a cell is `lanes` numbers in either case, and a table has `cells` of them in
// each row, +inf standing in the cost of labels that are not there.
template <int W> class Cells {
  public:
    using Cell = Pack<lanes>;

    // Room for couplings, to be filled; `tables`: whether costs and plans need room.
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

    // κ and marginals from arrays in the order of the model.
    Cells(double *room, const Layout<double> &lay, const Run &run, const Couplings &ask,
          bool tables)
        : Cells(room, run, tables) {
        load(Side<W>(lay, run, 0), lay, ask, row, p);
        load(Side<W>(lay, run, 1), lay, ask, col, q);
        pad();
    }

    // What stands for labels that are not there.
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
    // Sums and minima over labels, in every lane.
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
    const Index high;                            // cells of a column
    double *row, *col, *p, *q, *rest_p, *rest_q; // κ with +inf at forbidden labels; marginals
    double *spare;

  private:
    static Index width_of(Index cols) { return W > 1 ? cols : (cols + lanes - 1) / lanes; }

    static void load(const Side<W> &side, const Layout<double> &lay, const Couplings &ask,
                     double *kappa, double *nodes) {
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
