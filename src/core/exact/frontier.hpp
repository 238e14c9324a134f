// What the workers of a search share: the open nodes and the best labelling.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <queue>

#include "types.hpp"

namespace softmap::exact {

enum class Kind : int { EQUAL, DIFFERENT, AT_MOST, ABOVE };

struct Decision {
    int x, a;
    Kind kind;
    Decision negated() const {
        constexpr Kind other[] = {Kind::DIFFERENT, Kind::EQUAL, Kind::ABOVE, Kind::AT_MOST};
        return {x, a, other[static_cast<int>(kind)]};
    }
};

// An open node: the decisions `chain` leads to, and a lower bound on its labellings.
struct Open {
    Cost bound;
    int depth, chain, number; // `number` is that in the log
    bool operator<(const Open &o) const {
        return bound != o.bound ? bound > o.bound : depth < o.depth;
    }
};

// A node to open: the first `length` decisions of a path, then `last` if `more`.
struct Fresh {
    std::size_t length;
    Cost bound;
    bool more;
    Decision last;
};

// Labellings are searched for only if they improve the best one by more than the larger of
// `tolerance` and `relative` times the absolute value of the best energy, which is its cost +
// `offset`, in units.
struct Gap {
    Cost tolerance = 0;
    double relative = 0.0, offset = 0.0;
};

// The best labelling found.
struct Known {
    std::vector<int> labels; // empty if no labelling is known
    Cost cost = HALF;
    int version = 0; // number of improvements
};

// Every method may be called by several threads. A node is open, or taken by one worker until that
// worker calls `finish`; so the smallest bound of open and taken nodes is a lower bound of the
// search.
class Frontier {
  public:
    explicit Frontier(const Gap &gap) : gap_(gap) {}

    Cost cut() const { return cut_.load(std::memory_order_relaxed); }
    std::int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
    // Number of idle workers for which there is no open node.
    int wanted() const { return wanted_.load(std::memory_order_relaxed); }
    const std::atomic<bool> &halted() const { return halted_; }

    // Keeps a labelling if it costs less than the cut. Returns whether it does.
    bool offer(std::vector<int> labels, Cost cost) {
        const std::lock_guard lock(mutex_);
        if (cost >= cut())
            return false;
        keep(std::move(labels), cost);
        return true;
    }
    // Keeps a labelling, whatever the cut.
    void start_from(std::vector<int> labels, Cost cost) {
        const std::lock_guard lock(mutex_);
        keep(std::move(labels), cost);
    }
    void start_below(Cost cost) { cut_ = cost; }
    // Updates a worker's copy of the best labelling.
    void follow(Known &known) const {
        const std::lock_guard lock(mutex_);
        if (known.version != known_.version)
            known = known_;
    }

    enum class Taken { NODE, NONE_NOW, NONE_LEFT };
    // Takes the open node of the lowest bound and writes its decisions to `path`. If other workers
    // may still open nodes, waits up to `patience`.
    Taken take(Open &node, std::vector<Decision> &path, std::chrono::milliseconds patience) {
        std::unique_lock lock(mutex_);
        if (!promising() && busy_ > 0 && !halted_) {
            want(1);
            changed_.wait_for(lock, patience);
            want(-1);
        }
        if (halted_ || (!promising() && busy_ == 0))
            return Taken::NONE_LEFT;
        if (!promising())
            return Taken::NONE_NOW;
        node = open_.top();
        open_.pop();
        path = path_to(node);
        ++busy_;
        measure();
        return Taken::NODE;
    }
    // Opens nodes, whose lengths must not decrease. Those with a common prefix share its links.
    void open(const std::vector<Decision> &path, const std::vector<Fresh> &nodes) {
        const std::lock_guard lock(mutex_);
        add(path, nodes);
    }
    // As `open`, for all nodes that are left of a node that was taken.
    void finish(const std::vector<Decision> &path, const std::vector<Fresh> &nodes) {
        const std::lock_guard lock(mutex_);
        add(path, nodes);
        if (--busy_ == 0)
            changed_.notify_all();
    }
    // Adds the root as an open node.
    void plant(Cost bound) {
        const std::lock_guard lock(mutex_);
        open_.push({bound, 0, -1, 0});
    }

    // Makes all workers stop after their current nodes.
    void halt() {
        const std::lock_guard lock(mutex_);
        halted_ = true;
        changed_.notify_all();
    }
    void resume() { halted_ = false; }
    // Stops the search for good: a worker failed, and what it left of a taken node is unknown.
    void fail(std::exception_ptr error) {
        const std::lock_guard lock(mutex_);
        failure_ = error;
        halted_ = true;
        changed_.notify_all();
    }
    void rethrow() const {
        if (failure_ != nullptr)
            std::rethrow_exception(failure_);
    }

    // --- between calls, when no worker runs ---

    const Known &known() const { return known_; }
    // The smallest bound of the open nodes, at most the cut.
    Cost lower() const { return open_.empty() ? cut() : std::min(cut(), open_.top().bound); }

  private:
    struct Link {
        int parent;
        Decision decision;
    };
    const Gap gap_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<Cost> cut_ = HALF;
    std::atomic<std::int64_t> bytes_ = 0;
    std::atomic<int> wanted_ = 0;
    std::atomic<bool> halted_ = false;
    Known known_;
    std::priority_queue<Open> open_;
    std::vector<Link> links_; // decisions of open nodes, as trees towards the root
    std::exception_ptr failure_;
    int opened_ = 0; // number of open nodes so far, including those pruned at once
    int busy_ = 0, waiting_ = 0;

    bool promising() const { return !open_.empty() && open_.top().bound < cut(); }
    // The decisions that lead to a node just removed. Forgets all links with the last open node.
    std::vector<Decision> path_to(const Open &node) {
        std::vector<Decision> path;
        for (int k = node.chain; k >= 0; k = links_[k].parent)
            path.push_back(links_[k].decision);
        if (open_.empty())
            links_.clear();
        std::reverse(path.begin(), path.end());
        return path;
    }
    void keep(std::vector<int> labels, Cost cost) {
        known_.labels = std::move(labels);
        known_.cost = cost;
        ++known_.version;
        const double allowed = gap_.relative * std::fabs(static_cast<double>(cost) + gap_.offset);
        cut_ = cost - std::max(gap_.tolerance, static_cast<Cost>(std::min(allowed, 0x1p45)));
    }
    void want(int change) {
        waiting_ += change;
        measure();
    }
    void measure() {
        const auto count = static_cast<std::int64_t>(open_.size());
        bytes_ = static_cast<std::int64_t>(links_.size() * sizeof(Link)) +
                 count * static_cast<std::int64_t>(sizeof(Open));
        wanted_ = waiting_ - static_cast<int>(std::min<std::int64_t>(count, waiting_));
    }
    void add(const std::vector<Decision> &path, const std::vector<Fresh> &nodes) {
        int chain = -1;
        std::size_t length = 0; // number of decisions of `chain`
        for (const auto &fresh : nodes) {
            const int number = ++opened_;
            if (fresh.bound >= cut())
                continue;
            for (; length < fresh.length; ++length)
                chain = link(chain, path[length]);
            const int last = fresh.more ? link(chain, fresh.last) : chain;
            open_.push({fresh.bound, static_cast<int>(fresh.length), last, number});
            if (waiting_ > 0)
                changed_.notify_one();
        }
        measure();
    }
    int link(int parent, const Decision &decision) {
        links_.push_back({parent, decision});
        return static_cast<int>(links_.size()) - 1;
    }
};

} // namespace softmap::exact
