// By how much branching on each variable has raised the bound.
#pragma once

#include <vector>

#include "types.hpp"

namespace softmap::exact {

// Mean rises of the bound after the two branches of each variable (pseudo-costs). A branch that is
// closed counts as a rise to the cut.
class Rises {
  public:
    void resize(int n) {
        for (int x = static_cast<int>(of_.size()); x < n; ++x)
            unknown_.push_back(x);
        of_.resize(n);
        tried_.resize(n);
    }
    bool known(int x) const { return of_[x].count[0] > 0 && of_[x].count[1] > 0; }
    // The variables of which one branch or both have not been tried.
    const std::vector<int> &unknown() {
        std::erase_if(unknown_, [&](int x) { return known(x); });
        return unknown_;
    }

    void note(int x, bool right, Cost rise) {
        tried_[x] = 1;
        for (Sums *sums : {&of_[x], &all_}) {
            sums->total[right] += static_cast<double>(rise);
            sums->count[right] += 1;
            sums->part[right] = 1.0 / (sums->count[right] + 1);
        }
    }
    // Calls visit(x, sum) for all variables with free(x), with the sum of the mean rises of both
    // branches; the mean of all variables counts once in each.
    template <class Free, class Visit> void each_expected(Free free, Visit visit) const {
        double usual[2];
        for (int k = 0; k < 2; ++k)
            usual[k] = all_.count[k] > 0 ? all_.total[k] / all_.count[k] : 1.0;
        const double any = usual[0] + usual[1];
        for (std::size_t x = 0; x < of_.size(); ++x) {
            if (!free(static_cast<int>(x)))
                continue;
            double sum = any;
            if (tried_[x])
                sum = (of_[x].total[0] + usual[0]) * of_[x].part[0] +
                      (of_[x].total[1] + usual[1]) * of_[x].part[1];
            visit(static_cast<int>(x), sum);
        }
    }

  private:
    struct Sums {
        double total[2] = {0, 0}, count[2] = {0, 0}; // of the left and the right branch
        double part[2] = {1, 1};                     // 1 / (count + 1)
    };
    std::vector<Sums> of_;
    std::vector<int> unknown_;
    std::vector<char> tried_; // whether a variable has been branched on
    Sums all_;
};

} // namespace softmap::exact
