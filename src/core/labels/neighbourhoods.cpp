// Large-neighbourhood search.
#include "neighbourhoods.hpp"
#include "bags.hpp"
#include "growth.hpp"
#include "improve.hpp"
#include "modes.hpp"
#include "ranges.hpp"

namespace softmap {

Bags::Bags(const LabelGraph &graph, Index max_total, std::int32_t *place)
    : graph_(graph), max_total_(max_total), place_(place) {
    stage_.reserve(longest + 2); // so that references into it stay valid
}

void Bags::clear() {
    for (const Index i : nodes_)
        place_[i] = outside;
    nodes_.clear();
    total_ = 0;
}

bool Bags::admit(Index i) {
    if (graph_.lay.num_labels[i] < 2)
        return false; // a variable with one label has nothing to decide
    gather(i);
    const Index own = product(graph_.lay.num_labels[i], near_);
    if (own > max_entries_ || !stage(own))
        return false;
    for (Index k = 0; k < staged_; ++k) {
        const Index p = stage_[k].place;
        total_ += stage_[k].entries - entries_[p];
        entries_[p] = stage_[k].entries;
        others_[p].swap(stage_[k].others);
    }
    append(i, own);
    return true;
}

void Bags::gather(Index i) {
    near_.clear();
    graph_.neighbours(i, [&](Index j) {
        if (place_[j] != outside)
            near_.push_back(place_[j]);
    });
    std::sort(near_.begin(), near_.end(), std::greater<>());
    near_.erase(std::unique(near_.begin(), near_.end()), near_.end());
}

Index Bags::product(Index labels, const std::vector<std::int32_t> &places) const {
    for (const std::int32_t p : places) {
        labels *= this->labels(p);
        if (labels > max_entries_)
            break;
    }
    return labels;
}

bool Bags::stage(Index own) {
    staged_ = 0;
    Index total = total_ + own;
    const std::vector<std::int32_t> *tied = &near_;
    while (!tied->empty()) {
        const Index p = tied->front();
        if (staged_ == Index(stage_.size()))
            stage_.emplace_back();
        Change &change = stage_[staged_];
        change.others.clear();
        std::set_union(tied->begin() + 1, tied->end(), others_[p].begin(), others_[p].end(),
                       std::back_inserter(change.others), std::greater<>());
        if (change.others.size() == others_[p].size())
            break;
        change.place = p;
        change.entries = product(labels(p), change.others);
        total += change.entries - entries_[p];
        if (change.entries > max_entries_ || total > max_total_ || ++staged_ > longest)
            return false;
        tied = &stage_[staged_ - 1].others;
    }
    return total <= max_total_;
}

void Bags::append(Index i, Index own) {
    const Index p = size();
    place_[i] = std::int32_t(p);
    nodes_.push_back(i);
    if (Index(others_.size()) == p) {
        others_.emplace_back();
        entries_.push_back(0);
    }
    others_[p].swap(near_);
    entries_[p] = own;
    total_ += own;
}

void Growth::begin(Bags &bags, std::uint64_t *words, bool swept) {
    bags.clear();
    queue_.clear();
    ++stamp_;
    swept_ = swept;
    first_ = below(words, Index(roots_.size()));
    next_root_ = next_ = 0;
}

bool Growth::resume(Bags &bags, std::uint64_t *words, Meter &meter) {
    do {
        while (next_ < queue_.size()) {
            if (meter.tick(each))
                return false;
            if (swept_)
                visit_next(bags);
            else
                visit_any(bags, words);
        }
    } while (find_root());
    return true;
}

void Growth::visit_next(Bags &bags) {
    const Index i = queue_[next_++];
    bags.admit(i);
    meet(i);
}

void Growth::visit_any(Bags &bags, std::uint64_t *words) {
    std::swap(queue_[below(words, Index(queue_.size()))], queue_.back());
    const Index i = queue_.back();
    queue_.pop_back();
    if (bags.admit(i))
        meet(i);
}

bool Growth::find_root() {
    for (const Index count = Index(roots_.size()); next_root_ < count;) {
        const Index root = roots_[(first_ + next_root_++) % count];
        if (met_[root] == stamp_)
            continue;
        met_[root] = stamp_;
        queue_.assign(1, root);
        next_ = 0;
        return true;
    }
    return false;
}

void Growth::meet(Index i) {
    graph_.neighbours(i, [&](Index j) {
        if (met_[j] == stamp_ || met_[j] == never)
            return;
        met_[j] = stamp_;
        queue_.push_back(j);
    });
}

void BagSolver::begin(Index *labels, const Lures &lures) {
    labels_ = labels;
    lures_ = lures;
    link_children();
    start_.resize(bags_.size());
    at_ = bags_.size();
    used_ = 0;
}

bool BagSolver::solve(Meter &meter) {
    while (at_ > 0) {
        if (meter.late())
            return false;
        const Index p = --at_;
        meter.use(bags_.entries(p));
        start_[p] = used_;
        used_ += bags_.entries(p) / bags_.labels(p);
        if (Index(choice_.size()) < used_)
            choice_.resize(std::max(used_, 2 * Index(choice_.size())));
        eliminate(p);
    }
    for (Index p = 0; p < bags_.size(); ++p)
        substitute(p);
    return true;
}

void BagSolver::link_children() {
    const Index size = bags_.size();
    messages_.resize(std::max(Index(messages_.size()), size));
    first_child_.assign(size, -1);
    next_.assign(size, -1);
    for (Index p = 0; p < size; ++p)
        if (!bags_.others(p).empty()) {
            const Index parent = bags_.others(p).front();
            next_[p] = first_child_[parent];
            first_child_[parent] = p;
        }
}

void BagSolver::eliminate(Index p) {
    axes_.clear();
    axes_.push(bags_.labels(p));
    for (const Index q : bags_.others(p))
        axes_.push(bags_.labels(q));
    table_.assign(bags_.entries(p), 0.0);
    for (Index c = first_child_[p]; c >= 0; c = next_[c])
        add_message(p, c);
    add_costs(p);
    const Index slice = bags_.entries(p) / bags_.labels(p);
    messages_[p] = take(slice);
    minimise_out(table_.data(), bags_.labels(p), slice, labels_[bags_.node(p)],
                 messages_[p].data.get(), choice_.data() + start_[p]);
    if (bags_.others(p).empty())
        give(messages_[p]);
}

void BagSolver::add_message(Index p, Index c) {
    const auto &inner = bags_.others(c), &outer = bags_.others(p);
    clear_steps();
    Index step = 1;
    int k = int(outer.size());
    for (Index t = Index(inner.size()) - 1; t > 0; --t) {
        while (outer[k - 1] != inner[t])
            --k;
        axes_.step(k) = step;
        step *= bags_.labels(inner[t]);
    }
    axes_.step(0) = step;
    add_term(table_.data(), axes_, messages_[c].data.get());
    give(messages_[c]);
}

void BagSolver::clear_steps() {
    for (int k = 0; k < axes_.count(); ++k)
        axes_.step(k) = 0;
}

int BagSolver::axis(Index p, Index q) const {
    const auto &others = bags_.others(p);
    return q == p ? 0
                  : 1 + int(std::lower_bound(others.begin(), others.end(), q, std::greater<>()) -
                            others.begin());
}

void BagSolver::add_costs(Index p) {
    const Index i = bags_.node(p), labels = bags_.labels(p);
    const double *unary = graph_.lay.unary + graph_.lay.node_offset[i];
    own_.resize(labels);
    for (Index x = 0; x < labels; ++x) {
        own_[x] = soft(unary[x]);
        if (lures_.guide != nullptr)
            own_[x] += lures_.weight * lures_.guide[graph_.lay.node_offset[i] + x];
        if (lures_.heat > 0.0)
            own_[x] -= lures_.heat * uniform(words_);
    }
    graph_.halves(i, [&](Index h) { add_edge(p, h); });
    clear_steps();
    axes_.step(0) = 1;
    add_term(table_.data(), axes_, own_.data());
}

void BagSolver::add_edge(Index p, Index h) {
    const Index j = graph_.lay.node[h ^ 1];
    if (graph_.joint(h)) {
        add_factor(p, h, j);
    } else if (!bags_.contains(j)) {
        conditional_costs(graph_.lay, h, labels_[j], terms_.data());
        for (Index x = 0; x < bags_.labels(p); ++x)
            own_[x] += soft(terms_[x]);
    } else if (bags_.place(j) < p) {
        add_pair(p, h, bags_.place(j));
    }
}

void BagSolver::add_pair(Index p, Index h, Index q) {
    const Index labels = bags_.labels(p), far = bags_.labels(q);
    pair_.resize(labels * far);
    visit_edge(graph_.lay, h, [&](const auto &edge) {
        for (Index y = 0; y < far; ++y)
            for (Index x = 0; x < labels; ++x)
                pair_[y * labels + x] = soft(edge.entry(y, x).part[0]);
    });
    clear_steps();
    axes_.step(0) = 1;
    axes_.step(axis(p, q)) = labels;
    add_term(table_.data(), axes_, pair_.data());
}

void BagSolver::add_factor(Index p, Index h, Index a) {
    clear_steps();
    Index newest = -1, at = graph_.lay.node_offset[a], others = 0;
    graph_.members(a, [&](Index member, Index g) {
        if (!bags_.contains(member)) {
            at += graph_.stride[g] * labels_[member];
            return;
        }
        const Index q = bags_.place(member);
        newest = std::max(newest, q);
        others += q != p;
    });
    if (newest != p)
        return;
    if (others == 0) {
        for (Index x = 0; x < bags_.labels(p); ++x)
            own_[x] += soft(graph_.lay.unary[at + x * graph_.stride[h]]);
        return;
    }
    graph_.members(a, [&](Index member, Index g) {
        if (bags_.contains(member))
            axes_.step(axis(p, bags_.place(member))) = graph_.stride[g];
    });
    const double *costs = graph_.lay.unary + at;
    if (lures_.penalty < infinity) {
        const Index end = graph_.lay.node_offset[a + 1];
        softened_.resize(end - at);
        for (Index k = at; k < end; ++k)
            softened_[k - at] = soft(graph_.lay.unary[k]);
        costs = softened_.data();
    }
    add_term(table_.data(), axes_, costs);
}

void BagSolver::substitute(Index p) {
    Index at = 0;
    for (const Index q : bags_.others(p))
        at = at * bags_.labels(q) + labels_[bags_.node(q)];
    labels_[bags_.node(p)] = choice_[start_[p] + at];
}

BagSolver::Buffer BagSolver::take(Index size) {
    for (std::size_t k = free_.size(); k-- > 0;)
        if (free_[k].size >= size && free_[k].size <= 4 * size) {
            std::swap(free_[k], free_.back());
            Buffer out = std::move(free_.back());
            free_.pop_back();
            return out;
        }
    return {std::make_unique_for_overwrite<double[]>(size), size};
}

void BagSolver::give(Buffer &buffer) {
    if (free_.size() < 32)
        free_.push_back(std::move(buffer));
    buffer = {};
}

SearchArrays::SearchArrays(const LabelGraph &graph, const Index *labels)
    : place(std::size_t(graph.variables), Bags::outside), met(place.size(), 0),
      part(std::size_t(graph.lay.n), 0), current(labels, labels + graph.lay.n), other(current) {}

Search::Search(const LabelGraph &graph, NodeRange range, Index *labels, const std::uint64_t *words,
               const SearchOptions &options, SearchArrays &arrays)
    : graph_(graph), range_(range), labels_(labels), options_(options),
      bags_(graph, options.max_total, arrays.place.data()),
      growth_(
          graph, range,
          [&](Index i) {
              return (options.open == nullptr || options.open[i]) && within(graph, range, i);
          },
          arrays.met.data()),
      solver_(graph, bags_, words_), merge_(graph, range, arrays.part.data()),
      current_(arrays.current.data()), other_(arrays.other.data()) {
    std::copy_n(words, 4, words_);
    for (Index entries = options.max_entries; entries >= narrow; entries /= 4)
        widths_.push_back(entries);
    if (widths_.empty())
        widths_.push_back(options.max_entries);
}

void Search::run(Meter &meter) {
    while (!meter.spent() && (growing_ || solving_ || begin_round())) {
        if (growing_ && !grow(meter))
            return;
        const Index before = meter.used();
        solving_ = !solver_.solve(meter);
        work_ += meter.used() - before;
        if (!solving_)
            end_round();
    }
}

bool Search::within(const LabelGraph &graph, NodeRange range, Index i) {
    bool inside = true;
    if (range.size() < graph.variables)
        graph.neighbours(i, [&](Index j) { inside &= range.has(j); });
    return inside;
}

void Search::set_arms() {
    std::vector<double> steps;
    LocalCosts local(graph_.lay.widest);
    for (const Index i : growth_.roots()) {
        local.find(graph_, i, labels_);
        double least = infinity;
        for (Index x = 0; x < graph_.lay.num_labels[i]; ++x)
            if (local.cost[x] > local.cost[labels_[i]])
                least = std::min(least, local.cost[x] - local.cost[labels_[i]]);
        if (least < infinity)
            steps.push_back(least);
    }
    if (steps.empty())
        return;
    std::sort(steps.begin(), steps.end());
    for (const auto &[share, factor] : heats) {
        const double step = steps[std::size_t(share * double(steps.size() - 1))];
        for (const Index entries : widths_)
            arms_.push_back({entries, options_.heat * factor * step, 0.0, 0.0});
    }
}

bool Search::begin_round() {
    if (growth_.empty())
        return false;
    if (restart_) {
        copy(labels_, current_);
        copy(labels_, other_);
        restart_ = false;
    }
    if (descended_ < descents * Index(widths_.size())) {
        begin(widths_[widths_.size() - 1 - descended_ / descents], {});
        return true;
    }
    if (arms_.empty() && options_.heat > 0.0)
        set_arms();
    if (arms_.empty())
        return false;
    if (round_ == 0) {
        arm_ = draw();
        work_ = 0;
        guided_ = options_.guide != nullptr && (next_word(words_) & 1);
    }
    ++round_;
    const double left = 1.0 - double(round_) / double(options_.rounds);
    Lures lures;
    lures.heat = arms_[arm_].heat * left;
    lures.guide = guided_ && round_ < options_.rounds ? options_.guide : nullptr;
    lures.weight = left;
    begin(arms_[arm_].max_entries, lures);
    return true;
}

void Search::begin(Index max_entries, const Lures &lures) {
    lures_ = lures;
    lures_.penalty = options_.penalty;
    bags_.limit(max_entries);
    const bool swept = next_word(words_) & 7;
    growth_.begin(bags_, words_, swept);
    growing_ = true;
}

bool Search::grow(Meter &meter) {
    if (!growth_.resume(bags_, words_, meter))
        return false;
    growing_ = false;
    meter.use(range_.size());
    work_ += range_.size();
    solver_.begin(other_, lures_);
    return true;
}

void Search::end_round() {
    if (round_ == 0) {
        ++descended_;
        take();
        return;
    }
    if (round_ < options_.rounds)
        return;
    round_ = 0;
    ++cycles_;
    const bool walk = ++idle_ > patience, fell = take(walk);
    idle_ = walk || fell ? 0 : idle_;
    arms_[arm_].work += double(work_);
    arms_[arm_].wins += fell;
}

bool Search::take(bool walk) {
    if (walk)
        copy(other_, current_);
    else if (!merge_(current_, other_))
        return false;
    const bool fell = merge_(labels_, other_);
    falls_ += fell;
    copy(current_, other_);
    return fell;
}

void Search::copy(const Index *from, Index *to) const {
    const Index end = range_.size() == graph_.variables ? graph_.lay.n : range_.end;
    std::copy(from + range_.begin, from + end, to + range_.begin);
}

std::size_t Search::draw() {
    double sum = 0.0;
    for (const Arm &arm : arms_)
        sum += score(arm);
    double left = uniform(words_) * sum;
    for (std::size_t k = 0; k < arms_.size(); ++k)
        if ((left -= score(arms_[k])) < 0.0)
            return k;
    return arms_.size() - 1;
}

double Search::score(const Arm &arm) const {
    const double unit = double(range_.size()) * double(arm.max_entries);
    return (1.0 + arm.wins) / (unit + arm.work);
}

RangeSearch::RangeSearch(const LabelGraph &graph, const Index *labels, std::uint64_t *words,
                         const SearchOptions &options)
    : graph_(graph), options_(options), labels_(labels, labels + graph.lay.n) {
    const Index length = range_length(graph);
    layers_.emplace_back(*this, length, Index(0), words);
    if (length < graph.variables)
        layers_.emplace_back(*this, length, length / 2, words);
}

Index RangeSearch::improve(Index *labels, Index work, const Deadline *deadline, int threads) {
    std::copy_n(labels, labels_.size(), labels_.data());
    Layer &layer = layers_[turn_++ % layers_.size()];
    const Index used = layer.improve(*this, work, deadline, threads);
    std::copy_n(labels_.data(), labels_.size(), labels);
    return used;
}

Index RangeSearch::range_length(const LabelGraph &graph) {
    const Index n = graph.variables, count = count_ranges(n);
    if (count == 1 || n < graph.lay.n)
        return n;
    const Index length = (n + count - 1) / count;
    Index border = 0;
    for (Index i = 0; i < n; ++i) {
        const Index begin = i / length * length;
        border += !Search::within(graph, {begin, std::min(begin + length, n)}, i);
    }
    return double(border) <= most_joining * double(n) ? length : n;
}

double LabelGraph::pair(Index h, Index x, Index y) const {
    double out = 0.0;
    visit_edge(lay, h, [&](const auto &edge) { out = edge.entry(y, x).part[0]; });
    return out;
}

void LabelGraph::complete(Index *labels) const {
    for (Index a = variables; a < lay.n; ++a)
        labels[a] = state(a, [&](Index member) { return labels[member]; });
}

void CostChange::add(double term, int sign) {
    const bool hard = term == infinity;
    finite += hard ? 0.0 : sign * term;
    broken += hard ? sign : 0;
}

bool Merge::operator()(Index *labels, Index *other) {
    bool fell = false;
    ++stamp_;
    for (Index i = range_.begin; i < range_.end; ++i) {
        if (labels[i] == other[i] || part_[i] == stamp_)
            continue;
        collect(i, labels, other);
        const CostChange change = difference(labels, other);
        const bool take = change.falls() || (change.broken == 0 && change.finite == 0.0);
        fell |= change.falls();
        for (const Index j : nodes_)
            (take ? labels[j] : other[j]) = take ? other[j] : labels[j];
    }
    graph_.complete(labels);
    graph_.complete(other);
    return fell;
}

void Merge::collect(Index first, const Index *labels, const Index *other) {
    nodes_.assign(1, first);
    part_[first] = stamp_;
    for (std::size_t k = 0; k < nodes_.size(); ++k)
        graph_.neighbours(nodes_[k], [&](Index j) {
            if (labels[j] == other[j] || part_[j] == stamp_)
                return;
            part_[j] = stamp_;
            nodes_.push_back(j);
        });
}

CostChange Merge::difference(const Index *labels, const Index *other) {
    CostChange out;
    ++counted_;
    for (const Index i : nodes_) {
        out.add(graph_.unary(i, other[i]), 1);
        out.add(graph_.unary(i, labels[i]), -1);
        graph_.halves(i, [&](Index h) { add_edge(h, labels, other, out); });
    }
    return out;
}

void Merge::add_edge(Index h, const Index *labels, const Index *other, CostChange &out) {
    const Index i = graph_.lay.node[h], j = graph_.lay.node[h ^ 1];
    if (graph_.joint(h)) {
        if (part_[j] == counted_)
            return; // a factor with several members in the component counts once
        part_[j] = counted_;
        out.add(graph_.unary(j, graph_.state(j, [&](Index k) { return other[k]; })), 1);
        out.add(graph_.unary(j, graph_.state(j, [&](Index k) { return labels[k]; })), -1);
    } else if (labels[j] == other[j] || h & 1) { // an edge within the component counts once
        out.add(graph_.pair(h, other[i], other[j]), 1);
        out.add(graph_.pair(h, labels[i], labels[j]), -1);
    }
}

} // namespace softmap
