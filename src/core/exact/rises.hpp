// By how much branching on each variable has raised the bound.
#pragma once

#include <vector>

#include "types.hpp"

namespace softmap::exact {

// Mean rises of the bound after the two branches of each variable (pseudo-costs). A branch that is
// closed counts as a rise to the cut.
class Rises {
  public:
    void resize(int n) { of_.resize(n); }
    bool known(int x) const { return of_[x].count[0] > 0 && of_[x].count[1] > 0; }

    void note(int x, bool right, Cost rise) {
        for (Sums *sums : {&of_[x], &all_}) {
            sums->total[right] += static_cast<double>(rise);
            sums->count[right] += 1;
        }
    }
    // Sum of the mean rises of both branches of x; the mean of all variables counts once in each.
    double expected(int x) const {
        double sum = 0;
        for (int k = 0; k < 2; ++k) {
            const double usual = all_.count[k] > 0 ? all_.total[k] / all_.count[k] : 1.0;
            sum += (of_[x].total[k] + usual) / (of_[x].count[k] + 1);
        }
        return sum;
    }

  private:
    struct Sums {
        double total[2] = {0, 0}, count[2] = {0, 0}; // of the left and the right branch
    };
    std::vector<Sums> of_;
    Sums all_;
};

} // namespace softmap::exact
