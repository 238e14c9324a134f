// Labels, energies and plans of models large enough for several threads: the same for any number.
#include "labels/energy.hpp"
#include "labels/forests.hpp"
#include "labels/modes.hpp"
#include "models.hpp"

#include <cstring>

using namespace softmap;

namespace checks {
namespace {

struct Found {
    std::vector<Index> polished, moved;
    double before, after;

    bool operator==(const Found &) const = default;
};

Found found(const Model &model, int threads) {
    std::vector<Index> labels;
    Numbers numbers(5);
    for (Index i = 0; i < model.n; ++i)
        labels.push_back(numbers.below(model.labels));
    const double before = energy(model.lay, labels.data(), 0.5, threads);
    IndependentModes(model.lay, labels.data()).run(50, nullptr, threads);
    std::vector<Index> polished = labels;
    std::uint64_t words[4] = {1, 2, 3, 4};
    Forests(model.lay, labels.data(), words, threads).run(3, 0.0, nullptr);
    return {polished, labels, before, energy(model.lay, labels.data(), 0.5, threads)};
}

template <class T> bool same(const std::vector<T> &one, const std::vector<T> &other) {
    return one.size() == other.size() &&
           std::memcmp(one.data(), other.data(), one.size() * sizeof(T)) == 0;
}

Plan planned(const Model &model, int threads) {
    std::vector<Index> rank, level(std::size_t(model.n)), key(std::size_t(model.m), 0);
    for (Index i = 0; i < model.n; ++i) {
        rank.push_back(i);
        for (Index p = model.start[i]; p < model.start[i + 1]; ++p)
            if (const Index j = model.node[model.half[p] ^ 1]; j < i)
                level[i] = std::max(level[i], level[j] + 1);
    }
    return Planner(model.lay, rank.data(), level.data(), key.data(), true, threads).run();
}

} // namespace

void check_moves() {
    Kernels table{};
    table.send_one = send_one;
    const Kernels *const before = std::exchange(kernels, &table);
    for (const Index near : {Index(0), Index(300)}) {
        const Model model(potts, 20000, 35000, 3, 7, 8, near);
        const Found one = found(model, 1);
        const Plan plan = planned(model, 1);
        CHECK(one.after < one.before);
        for (const int threads : {2, 5}) {
            CHECK(found(model, threads) == one);
            const Plan other = planned(model, threads);
            CHECK(same(other.nodes, plan.nodes) && same(other.edge, plan.edge));
            CHECK(same(other.pull_at, plan.pull_at) && same(other.early_at, plan.early_at));
            CHECK(same(other.forward, plan.forward) && same(other.backward, plan.backward));
            CHECK(same(other.forward_after, plan.forward_after));
        }
    }
    kernels = before;
}

} // namespace checks
