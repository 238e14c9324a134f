// Large moves: an exact search over some variables, with the labels of all others fixed.
//
// The search propagates costs and hard constraints over the free variables. Moves are then possible
// where dynamic programming over narrow parts is too small: many labels, dense graphs, constraints.
#pragma once

#include "base/random.hpp"
#include "cluster_tree.hpp"
#include "odometer.hpp"
#include "solver.hpp"

namespace softmap::exact {

struct MoveOptions {
    double first = 6.0;  // number of free variables of the first moves
    double growth = 1.3; // factor by which it grows; undone by four searches that a limit ended
    // Moves without success before it grows; three times as many before labels are disturbed, and
    // twenty times without a new best before the best labels are taken up again (decision 79).
    int patience = 20;
    std::int64_t backtracks = 300; // limit of one move
    double dp_entries = 1e6;       // limit on the table entries of dynamic programming in a move
    double by_tree = 0.5;          // fraction of the moves over neighbouring clusters of a tree
    int tree_bits = 256;           // log2 of the joint states of all clusters, at most
    double costly = 0.7;           // fraction of the moves around a variable drawn by its cost
};

class Moves {
  public:
    // The arrays of `in` must outlive the object.
    Moves(const Input &in, std::uint64_t *words, const MoveOptions &options = {})
        : in_(in), words_(words), options_(options), free_(options.first),
          offset_(std::size_t(in.n()) + 1, 0), factor_start_(std::size_t(in.n()) + 1, 0),
          place_(std::size_t(in.n()), -1), cost_(std::size_t(in.n()), 0.0) {
        if (double(in.scope.size()) > double(options.tree_bits) * in.n())
            planting_ = INFINITY; // the treewidth is at least half of the mean degree
        for (int i = 0; i < in.n(); ++i)
            offset_[i + 1] = offset_[i] + in.num_labels[i];
        table_.push_back(0);
        for (int f = 0; f < in.num_factors(); ++f)
            table_.push_back(table_.back() + in.table_size(f));
        for (const std::int64_t i : in.scope)
            ++factor_start_[std::size_t(i) + 1];
        for (int i = 0; i < in.n(); ++i)
            factor_start_[i + 1] += factor_start_[i];
        factors_.resize(in.scope.size());
        std::vector<std::int64_t> at(factor_start_.begin(), factor_start_.end() - 1);
        for (int f = 0; f < in.num_factors(); ++f)
            for (auto k = in.scope_start[f]; k < in.scope_start[f + 1]; ++k)
                factors_[std::size_t(at[in.scope[k]]++)] = f;
    }

    // Makes up to `count` moves until a deadline; returns the number of new best labels.
    //
    // After many moves without success, a move with random costs disturbs the labels. The search
    // goes on from there, and returns to the best labels if it finds no better ones.
    std::int64_t improve(std::span<std::int64_t> x, std::int64_t count, const Deadline *deadline) {
        std::int64_t better = 0;
        if (!std::equal(x.begin(), x.end(), best_.begin(), best_.end())) {
            best_.assign(x.begin(), x.end());
            now_ = best_;
            above_ = 0.0;
        }
        plant(deadline);
        for (; count > 0 && !(deadline != nullptr && deadline->passed()); --count) {
            choose(now_);
            const bool disturbed = quiet_ > 3 * options_.patience;
            const double change = move(now_, disturbed ? heat() : 0.0, deadline);
            above_ += change;
            quiet_ = disturbed || change < 0.0 ? 0 : quiet_ + 1;
            if (above_ < 0.0) {
                ++better;
                best_ = now_;
                above_ = 0.0;
                since_ = 0;
            } else if (++since_ > 20 * options_.patience) {
                now_ = best_;
                above_ = 0.0;
                since_ = quiet_ = 0;
            }
        }
        std::copy(best_.begin(), best_.end(), x.begin());
        return better;
    }

    double free() const { return free_; }

  private:
    // Makes the tree of clusters. An attempt that a deadline has ended is repeated once there is
    // twice the time.
    void plant(const Deadline *deadline) {
        const double left = deadline == nullptr ? INFINITY : deadline->left();
        if (!tree_.members.empty() || left <= 2.0 * planting_)
            return;
        planting_ = left;
        Control control;
        control.deadline = deadline;
        const Graph g = graph_of(in_.num_labels, in_.scope_start, in_.scope);
        const double most = std::ldexp(1.0, options_.tree_bits);
        const auto found = greedy_order(g, Rule::FILL, 0, most, control);
        if (found.finite)
            tree_ = cluster_tree(g, found.order);
        else if (!control.stopped)
            planting_ = INFINITY; // too wide
        met_.assign(tree_.members.size(), 0);
    }

    // Draws a variable, and chooses a set around it.
    void choose(std::span<const std::int64_t> x) {
        chosen_.clear();
        const auto most = std::min<std::size_t>(std::size_t(free_ + 0.5), place_.size());
        const std::int64_t first = draw(x);
        if (!tree_.members.empty() && unit() < options_.by_tree)
            choose_clusters(tree_.home[first], most);
        else
            choose_connected(first, most);
    }

    // Takes the variables of a cluster, then those of the clusters around it, each in random order.
    void choose_clusters(int first, std::size_t most) {
        queue_.assign(1, first);
        met_[first] = 1;
        for (std::size_t k = 0; k < queue_.size() && chosen_.size() < most; ++k) {
            auto &own = tree_.members[queue_[k]];
            shuffle(std::span(own));
            for (std::size_t j = 0; j < own.size() && chosen_.size() < most; ++j)
                if (place_[own[j]] < 0)
                    take(own[j]);
            const std::size_t known = queue_.size();
            for (const int c : tree_.near[queue_[k]])
                if (!std::exchange(met_[c], 1))
                    queue_.push_back(c);
            shuffle(std::span(queue_).subspan(known));
        }
        for (const int c : queue_)
            met_[c] = 0;
    }

    void shuffle(std::span<int> list) {
        for (std::size_t left = list.size(); left > 1; --left)
            std::swap(list[std::size_t(below(words_, Index(left)))], list[left - 1]);
    }

    // Grows a connected set around a variable.
    void choose_connected(std::int64_t first, std::size_t most) {
        add(first);
        while (chosen_.size() < most && !front_.empty()) {
            std::swap(front_[std::size_t(below(words_, Index(front_.size())))], front_.back());
            const std::int64_t i = front_.back();
            front_.pop_back();
            if (place_[i] < 0)
                add(i);
        }
        front_.clear();
    }

    void take(std::int64_t i) {
        place_[i] = std::int64_t(chosen_.size());
        chosen_.push_back(i);
    }

    void add(std::int64_t i) {
        take(i);
        for (auto k = factor_start_[i]; k < factor_start_[i + 1]; ++k) {
            const std::int64_t f = factors_[k];
            for (auto s = in_.scope_start[f]; s < in_.scope_start[f + 1]; ++s)
                if (place_[in_.scope[s]] < 0)
                    front_.push_back(in_.scope[s]);
        }
    }

    // A variable, mostly one whose factors cost much more than the cheapest entry of their tables.
    std::int64_t draw(std::span<const std::int64_t> x) {
        const auto any = [&] { return std::int64_t(below(words_, Index(in_.n()))); };
        if (unit() >= options_.costly)
            return any();
        for (int i = 0; i < in_.n(); ++i)
            cost_[i] = in_.unary[offset_[i] + x[i]];
        for (int f = 0; f < in_.num_factors(); ++f) {
            const double cost = in_.tables[entry(f, x)];
            for (auto k = in_.scope_start[f]; k < in_.scope_start[f + 1]; ++k)
                cost_[in_.scope[k]] += cost;
        }
        double least = *std::min_element(cost_.begin(), cost_.end()), total = 0.0;
        for (const double cost : cost_)
            total += cost - least;
        if (!(total > 0.0 && std::isfinite(total)))
            return any();
        double left = unit() * total;
        for (int i = 0; i < in_.n(); ++i)
            if ((left -= cost_[i] - least) < 0.0)
                return i;
        return in_.n() - 1;
    }

    // A random cost: the mean cost of a variable, times a power of two.
    double heat() {
        double mean = 0.0;
        const double least = *std::min_element(cost_.begin(), cost_.end());
        for (const double cost : cost_)
            mean += (cost - least) / double(cost_.size());
        return std::ldexp(mean, int(below(words_, 6)) - 4);
    }

    double unit() { return double(next_word(words_) >> 11) * 0x1p-53; }

    std::int64_t entry(std::int64_t f, std::span<const std::int64_t> x) const {
        std::int64_t index = 0;
        for (auto k = in_.scope_start[f]; k < in_.scope_start[f + 1]; ++k)
            index = index * in_.num_labels[in_.scope[k]] + x[in_.scope[k]];
        return table_[f] + index;
    }

    // Searches over the chosen variables; returns the change of the cost. With heat, random costs
    // are added, and the labels that are best then are taken.
    double move(std::span<std::int64_t> x, double heat, const Deadline *deadline) {
        condition(x);
        Input in{counts_, unary_, starts_, scopes_, tables_, 0.0, {}, current_};
        const double before = energy(in, current_);
        plain_ = unary_;
        if (heat > 0.0)
            for (double &cost : unary_)
                cost += heat * unit();
        const double start = energy(in, current_);
        Options options;
        options.ascent = false;
        options.effort.max_entries = options.effort.max_stored = options_.dp_entries;
        Control control;
        control.deadline = deadline;
        control.max_backtracks = options_.backtracks;
        const Result found = Solver(in, options, control).solve();
        for (const std::int64_t i : chosen_)
            place_[i] = -1;
        if (found.complete || !(deadline != nullptr && deadline->passed())) // not if time ended it
            adapt(found.complete);
        if (found.labels.empty() || !(energy(in, found.labels) < start))
            return 0.0;
        unary_.swap(plain_);
        in.unary = unary_;
        const double change = energy(in, found.labels) - before;
        if (!(change < 0.0 || (heat > 0.0 && std::isfinite(change))))
            return 0.0;
        idle_ = 0;
        for (std::size_t k = 0; k < chosen_.size(); ++k)
            x[chosen_[k]] = found.labels[k];
        return change;
    }

    // Fewer variables if a limit ended the search, more after many moves without success.
    void adapt(bool complete) {
        ++idle_;
        if (!complete) {
            free_ = std::max(2.0, free_ * std::pow(options_.growth, -0.25));
        } else if (idle_ >= options_.patience) {
            free_ = std::min(free_ * options_.growth, double(in_.n()));
            idle_ = 0;
        }
    }

    // The model of the chosen variables, all others at their labels.
    void condition(std::span<const std::int64_t> x) {
        counts_.clear(), unary_.clear(), scopes_.clear(), tables_.clear(), current_.clear();
        starts_.assign(1, 0), own_.assign(1, 0), seen_.resize(std::size_t(in_.num_factors()), 0);
        ++stamp_;
        for (const std::int64_t i : chosen_) {
            counts_.push_back(in_.num_labels[i]);
            current_.push_back(x[i]);
            own_.push_back(own_.back() + in_.num_labels[i]);
            for (auto p = offset_[i]; p < offset_[i + 1]; ++p)
                unary_.push_back(in_.unary[p]);
        }
        for (const std::int64_t i : chosen_)
            for (auto k = factor_start_[i]; k < factor_start_[i + 1]; ++k)
                if (const std::int64_t f = factors_[k]; seen_[f] != stamp_) {
                    seen_[f] = stamp_;
                    restrict_factor(f, x);
                }
    }

    // Adds the part of a factor's table in which fixed variables have their labels.
    void restrict_factor(std::int64_t f, std::span<const std::int64_t> x) {
        std::int64_t base = table_[f], stride = 1;
        inner_.clear(), strides_.clear();
        for (auto k = in_.scope_start[f + 1]; k-- > in_.scope_start[f];) {
            const std::int64_t i = in_.scope[k];
            if (place_[i] < 0) {
                base += stride * x[i];
            } else {
                inner_.push_back(place_[i]);
                strides_.push_back(stride);
            }
            stride *= in_.num_labels[i];
        }
        std::reverse(inner_.begin(), inner_.end());
        std::reverse(strides_.begin(), strides_.end());
        if (inner_.size() == 1) {
            for (std::int64_t y = 0; y < counts_[inner_[0]]; ++y)
                unary_[own_[inner_[0]] + y] += in_.tables[base + y * strides_[0]];
            return;
        }
        scopes_.insert(scopes_.end(), inner_.begin(), inner_.end());
        starts_.push_back(std::int64_t(scopes_.size()));
        std::int64_t entries = 1;
        sizes_.clear();
        for (const std::int64_t k : inner_) {
            sizes_.push_back(int(counts_[k]));
            entries *= counts_[k];
        }
        for (Odometer from(sizes_, strides_); entries > 0; --entries, from.step())
            tables_.push_back(in_.tables[base + from.at]);
    }

    const Input in_;
    std::uint64_t *words_;
    const MoveOptions options_;
    double free_;
    int idle_ = 0, quiet_ = 0, since_ = 0;
    double above_ = 0.0; // cost of now_ less that of best_
    std::vector<std::int64_t> offset_, factor_start_, factors_, place_, table_, chosen_, front_;
    std::vector<std::int64_t> counts_, starts_, scopes_, current_, own_, inner_, strides_, seen_;
    std::int64_t stamp_ = 0;
    ClusterTree tree_;
    double planting_ = 0.0;  // seconds of an attempt to make the tree
    std::vector<int> queue_; // clusters
    std::vector<int> sizes_; // scratch
    std::vector<char> met_;  // whether a cluster is in the queue
    std::vector<std::int64_t> best_, now_;
    std::vector<double> unary_, plain_, tables_, cost_;
};

} // namespace softmap::exact
