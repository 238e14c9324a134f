// Annealing over single labels, and the costs that it keeps.
#include "annealing.hpp"
#include "label_costs.hpp"

#include <numeric>

namespace softmap {

LabelCosts::LabelCosts(const exact::Input &in)
    : in_(in), x_(std::size_t(in.n()), 0), cost_(in.unary.size()) {
    hard_ = std::find(in.unary.begin(), in.unary.end(), infinity) != in.unary.end() ||
            std::find(in.tables.begin(), in.tables.end(), infinity) != in.tables.end();
    link();
    link_flips();
}

double LabelCosts::scale() const {
    double sum = 0.0;
    const auto add = [&](std::span<const double> costs, double times) {
        double low = infinity, high = -infinity;
        for (const double cost : costs)
            if (cost < infinity)
                low = std::min(low, cost), high = std::max(high, cost);
        sum += high > low ? times * (high - low) : 0.0;
    };
    for (Index i = 0; i < n(); ++i)
        add(in_.unary.subspan(offset_[i], count(i)), 1.0);
    each_factor([&](Index f, Index table, std::span<const std::int64_t> scope) {
        add(in_.tables.subspan(table, in_.table_size(int(f))), double(scope.size()));
    });
    return sum > 0.0 ? sum / double(n()) : 1.0;
}

void LabelCosts::set(std::span<const std::int64_t> labels, double penalty) {
    penalty_ = penalty;
    x_.assign(labels.begin(), labels.end());
    energy_ = 0.0, violated_ = 0;
    work_ += Index(cost_.size() + in_.scope.size());
    for (std::size_t k = 0; k < cost_.size(); ++k)
        cost_[k] = soft(in_.unary[k]);
    for (Index i = 0; i < n(); ++i)
        add_term(in_.unary[offset_[i] + x_[i]]);
    each_factor([&](Index, Index table, std::span<const std::int64_t> scope) {
        const Index at = table + state(scope);
        add_term(in_.tables[at]);
        Index step = 1;
        for (std::size_t k = scope.size(); k-- > 0; step *= count(scope[k])) {
            const Index i = scope[k], start = at - step * x_[i];
            for (Index x = 0; x < count(i); ++x)
                cost_[offset_[i] + x] += soft(in_.tables[start + x * step]);
        }
    });
}

void LabelCosts::change(Index i, Index next) {
    const Index now = x_[i], own = offset_[i];
    energy_ += cost_[own + next] - cost_[own + now];
    count_violated(in_.unary[own + next], in_.unary[own + now]);
    x_[i] = next;
    if (!flips_.empty()) {
        const double sign = next == 1 ? 1.0 : -1.0;
        for (Index k = arc_start_[i]; k < arc_start_[i + 1]; ++k) {
            double *cost = cost_.data() + 2 * flips_[k].to;
            cost[0] += sign * flips_[k].by[0];
            cost[1] += sign * flips_[k].by[1];
        }
        work_ += 2 * (arc_start_[i + 1] - arc_start_[i]);
        return;
    }
    for (Index k = arc_start_[i]; k < arc_start_[i + 1]; ++k) {
        const Arc &arc = arcs_[k];
        const double *table = in_.tables.data() + arc.table;
        const double *to = table + next * arc.own, *from = table + now * arc.own;
        shift(arc.to, to, from, arc.step);
        count_violated(to[x_[arc.to] * arc.step], from[x_[arc.to] * arc.step]);
    }
    for (Index k = factor_start_[i]; k < factor_start_[i + 1]; ++k)
        change_factor(factors_[k], i, next - now);
}

std::span<const std::int64_t> LabelCosts::scope(Index f) const {
    return in_.scope.subspan(in_.scope_start[f], in_.scope_start[f + 1] - in_.scope_start[f]);
}

void LabelCosts::link() {
    offset_.assign(n() + 1, 0);
    for (Index i = 0; i < n(); ++i)
        offset_[i + 1] = offset_[i] + in_.num_labels[i];
    arc_start_.assign(n() + 1, 0), factor_start_.assign(n() + 1, 0);
    each_factor([&](Index, Index, std::span<const std::int64_t> scope) {
        for (const Index i : scope)
            ++(scope.size() == 2 ? arc_start_ : factor_start_)[i + 1];
    });
    std::partial_sum(arc_start_.begin(), arc_start_.end(), arc_start_.begin());
    std::partial_sum(factor_start_.begin(), factor_start_.end(), factor_start_.begin());
    arcs_.resize(arc_start_.back()), factors_.resize(factor_start_.back());
    std::vector<Index> arc = arc_start_, factor = factor_start_;
    std::unordered_multimap<std::size_t, Index> known;
    each_factor([&](Index f, Index at, std::span<const std::int64_t> scope) {
        const Index table = shared(known, at, in_.table_size(int(f)));
        table_.push_back(table);
        if (scope.size() != 2) {
            for (const Index i : scope)
                factors_[factor[i]++] = f;
            return;
        }
        const Index i = scope[0], j = scope[1], columns = count(j);
        const bool same = symmetric(in_.tables.data() + table, count(i), columns);
        arcs_[arc[i]++] = {j, table, columns, 1};
        arcs_[arc[j]++] = {i, table, same ? columns : 1, same ? 1 : columns};
    });
}

void LabelCosts::link_flips() {
    const bool two = std::all_of(in_.num_labels.begin(), in_.num_labels.end(),
                                 [](std::int64_t count) { return count == 2; });
    if (!two || hard_ || !factors_.empty())
        return;
    for (const Arc &arc : arcs_) {
        const double *table = in_.tables.data() + arc.table, *one = table + arc.own;
        flips_.push_back({{one[0] - table[0], one[arc.step] - table[arc.step]}, arc.to});
    }
}

Index LabelCosts::shared(std::unordered_multimap<std::size_t, Index> &known, Index table,
                         Index size) const {
    const auto *costs = reinterpret_cast<const char *>(in_.tables.data() + table);
    const std::string_view bytes(costs, std::size_t(size) * sizeof(double));
    const std::size_t hash = std::hash<std::string_view>()(bytes);
    const auto [first, last] = known.equal_range(hash);
    for (auto at = first; at != last; ++at)
        if (at->second + size <= table &&
            std::memcmp(in_.tables.data() + at->second, costs, bytes.size()) == 0)
            return at->second;
    known.emplace(hash, table);
    return table;
}

bool LabelCosts::symmetric(const double *costs, Index rows, Index columns) {
    for (Index x = 0; rows == columns && x < rows; ++x)
        for (Index y = 0; y < x; ++y)
            if (costs[x * rows + y] != costs[y * rows + x])
                return false;
    return rows == columns;
}

void LabelCosts::add_term(double cost) {
    energy_ += soft(cost);
    violated_ += cost == infinity;
}

void LabelCosts::count_violated(double to, double from) {
    violated_ += Index(to == infinity) - Index(from == infinity);
}

Index LabelCosts::state(std::span<const std::int64_t> scope) const {
    Index at = 0;
    for (const Index i : scope)
        at = at * count(i) + x_[i];
    return at;
}

void LabelCosts::change_factor(Index f, Index i, Index by) {
    const auto members = scope(f);
    Index own = 0, step = 1;
    for (std::size_t k = members.size(); k-- > 0; step *= count(members[k]))
        own = members[k] == i ? step : own;
    const double *to = in_.tables.data() + table_[f] + state(members), *from = to - by * own;
    count_violated(*to, *from);
    step = 1;
    for (std::size_t k = members.size(); k-- > 0; step *= count(members[k]))
        if (const Index j = members[k]; j != i)
            shift(j, to - step * x_[j], from - step * x_[j], step);
}

void LabelCosts::shift(Index j, const double *to, const double *from, Index step) {
    double *cost = cost_.data() + offset_[j];
    const Index labels = count(j);
    work_ += labels;
    if (hard_)
        for (Index y = 0; y < labels; ++y)
            cost[y] += soft(to[y * step]) - soft(from[y * step]);
    else if (step == 1)
        for (Index y = 0; y < labels; ++y)
            cost[y] += to[y] - from[y];
    else
        for (Index y = 0; y < labels; ++y)
            cost[y] += to[y * step] - from[y * step];
}

Annealing::Annealing(const exact::Input &in, const std::uint64_t *words,
                     const AnnealingOptions &options)
    : in_(in), options_(options), costs_(in), penalty_(costs_.scale()),
      margin_(options.margin * penalty_) {
    std::copy_n(words, 4, seed_.begin());
}

void Annealing::offer(std::span<const std::int64_t> labels) {
    if (const double energy = exact::energy(in_, labels); energy < least_) {
        least_ = energy;
        best_.assign(labels.begin(), labels.end());
    }
}

void Annealing::run(Meter &meter) {
    while (costs_.n() > 0 && !meter.spent()) {
        if (sweep_ == 0 && at_ == 0)
            begin();
        sweep(meter);
        if (at_ == costs_.n())
            end_sweep();
    }
}

void Annealing::begin() {
    for (std::size_t k = 0; k < 4; ++k)
        words_[k] = mixed(seed_[k] + 4 * std::uint64_t(runs_) + k);
    const Index turn = runs_ == 0 ? 0 : (runs_ - 1) % (1 + options_.again);
    const Index level = runs_ == 0 ? 0 : (runs_ - 1) / (1 + options_.again);
    again_ = turn > 0 && !best_.empty();
    sweeps_ = runs_ == 0 ? 0 : options_.first << std::min<Index>(level, 40);
    start_ = hot_;
    if (again_) {
        sweeps_ = std::max(sweeps_ / options_.again, options_.first);
        start_ = std::max(hot_ * std::pow(options_.reheat, double(turn)), cold_);
        costs_.set(best_, penalty_);
        return;
    }
    std::vector<std::int64_t> labels(std::size_t(costs_.n()));
    for (Index i = 0; i < costs_.n(); ++i)
        labels[i] = below(words_.data(), costs_.count(i));
    costs_.set(labels, penalty_);
}

std::uint64_t Annealing::mixed(std::uint64_t word) {
    word += 0x9e3779b97f4a7c15;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
}

void Annealing::sweep(Meter &meter) {
    if (at_ == 0) {
        const double done = double(sweep_) / double(std::max<Index>(sweeps_ - 1, 1));
        temperature_ = sweep_ < sweeps_ ? start_ * std::pow(cold_ / start_, done) : 0.0;
        changed_ = false;
    }
    for (; at_ < costs_.n() && !meter.spent(); ++at_) {
        const Index now = costs_.label(at_), next = drawn_label(at_, now);
        read_ += costs_.count(at_);
        if (next != now) {
            costs_.change(at_, next);
            changed_ = true;
        }
        if (read_ + costs_.work() - counted_ >= often)
            count_work(meter);
    }
    if (at_ == costs_.n())
        count_work(meter);
}

void Annealing::count_work(Meter &meter) {
    const Index work = read_ + costs_.work();
    meter.use(work - counted_);
    counted_ = work;
}

Index Annealing::drawn_label(Index i, Index now) {
    const double *cost = costs_.of(i);
    const Index count = costs_.count(i);
    if (temperature_ == 0.0)
        return cheapest(cost, count, now);
    if (count == 2) {
        const double rise = cost[1 - now] - cost[now];
        const bool may =
            rise < most * temperature_ && rise < temperature_ * *drawn(noise_.exponential);
        return may ? 1 - now : now;
    }
    double least = infinity;
    Index next = now;
    for (Index first = 0; first < count && count > 1; first += wide) {
        const double *random = drawn(noise_.gumbel) - first;
        for (Index x = first; x < std::min(count, first + wide); ++x)
            if (const double value = cost[x] - temperature_ * random[x]; value < least)
                least = value, next = x;
    }
    return next;
}

Index Annealing::cheapest(const double *cost, Index count, Index now) const {
    double least = cost[now] - margin_;
    for (Index x = 0; x < count; ++x)
        if (cost[x] < least)
            least = cost[x], now = x;
    return now;
}

void Annealing::end_sweep() {
    at_ = 0;
    ++sweep_;
    keep();
    if (sweep_ <= sweeps_ || changed_)
        return;
    if (!again_)
        set_temperatures();
    if (!best_.empty())
        combine();
    if (costs_.hard())
        penalty_ *= costs_.violated() == 0 ? options_.relax : options_.stiffen;
    ++runs_;
    sweep_ = 0;
}

void Annealing::keep() {
    if (costs_.violated() == 0 && costs_.energy() + in_.constant < least_ - margin_)
        offer(costs_.labels());
}

void Annealing::set_temperatures() {
    std::vector<double> least, all;
    for (Index i = 0; i < costs_.n(); ++i) {
        double lowest = infinity;
        for (Index x = 0; x < costs_.count(i); ++x)
            if (const double rise = costs_.of(i)[x] - costs_.of(i)[costs_.label(i)];
                rise > margin_) {
                lowest = std::min(lowest, rise);
                all.push_back(rise);
            }
        if (lowest < infinity)
            least.push_back(lowest);
    }
    const auto quantile = [](std::vector<double> &rises, double share) {
        std::sort(rises.begin(), rises.end());
        return rises.empty() ? 1.0 : rises[std::size_t(share * double(rises.size() - 1))];
    };
    hot_ = quantile(least, options_.upper);
    cold_ =
        options_.cold * std::min(quantile(least, options_.lower), quantile(all, options_.lower));
    cold_ = std::clamp(cold_, hot_ / options_.ratio, hot_);
}

void Annealing::combine() {
    met_.assign(std::size_t(costs_.n()), 0);
    for (Index i = 0; i < costs_.n(); ++i)
        if (differs(i))
            combine_part(i);
    keep();
}

void Annealing::combine_part(Index root) {
    part_.assign(1, root), before_.clear();
    met_[root] = 1;
    for (std::size_t k = 0; k < part_.size(); ++k)
        costs_.neighbours(part_[k], [&](Index j) {
            if (differs(j)) {
                met_[j] = 1;
                part_.push_back(j);
            }
        });
    const double energy = costs_.energy();
    for (const Index i : part_) {
        before_.push_back(costs_.label(i));
        costs_.change(i, best_[i]);
    }
    if (costs_.energy() > energy)
        for (std::size_t k = 0; k < part_.size(); ++k)
            costs_.change(part_[k], before_[k]);
}

} // namespace softmap
