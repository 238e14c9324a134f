// Derives what the constraints say about the labels that are left.
#pragma once

#include "clauses.hpp"
#include "matching.hpp"
#include "support.hpp"

namespace softmap::feasibility {

// Clauses come first, then pairs, then tables and sums, and matchings last, by what they cost.
class Propagation {
  public:
    Propagation(const Constraints &net, State &state, Clauses &clauses)
        : net_(net), state_(state), clauses_(clauses), waiting_(net.size.size(), 0),
          due_{Due(net.tables.size()), Due(net.sums.size()), Due(net.different.size())} {
        for (const TableConstraint &table : net.tables) {
            Index places = 0;
            for (const Index d : table.size)
                places += d;
            witness_.emplace_back(std::size_t(places), Index(-1));
        }
        for (const Different &different : net.different)
            matchings_.emplace_back(different);
    }

    // The literals that cannot hold together, after `run` returned false; `culprit` is the reason.
    const std::vector<Lit> &conflict() const { return conflict_; }
    Reason culprit() const { return culprit_; }

    // Derives a literal; returns false if it fails already.
    bool require(Lit lit, Reason reason) {
        if (!state_.fails(lit)) {
            state_.derive(lit, reason);
            return true;
        }
        conflict_.assign(1, negated(lit));
        culprit_ = reason;
        explain(lit, reason, state_.size(), conflict_);
        return false;
    }

    // Propagates to the fixed point; returns false at a conflict.
    bool run() {
        for (;;) {
            if (head_ < state_.size()) {
                if (!advance())
                    return fail();
            } else if (!changed_.empty()) {
                if (!revise_neighbours())
                    return fail();
            } else if (Index k = due_[0].pop(); k >= 0) {
                if (!revise_table(k))
                    return fail();
            } else if (k = due_[1].pop(); k >= 0) {
                if (!revise_sum(k))
                    return fail();
            } else if (k = due_[2].pop(); k >= 0) {
                if (!revise_different(k))
                    return fail();
            } else {
                return true;
            }
        }
    }

    // Everything waits for a check; at the start of a search.
    void wake_all() {
        for (Index i = 0; i < net_.n(); ++i)
            wake(i);
    }

    // Forgets what is waiting, after levels were undone.
    void rewind() {
        head_ = std::min(head_, state_.size());
        for (const Index i : changed_)
            waiting_[i] = 0;
        changed_.clear();
        for (Due &due : due_)
            due.clear();
    }

    // Adds the literals that implied a literal, all of them earlier than `before`.
    void explain(Lit lit, Reason reason, Id before, std::vector<Lit> &out) const {
        const Index place = place_of(lit), own = net_.owner[place];
        switch (reason.why) {
        case Why::given:
            break;
        case Why::last:
            for (Index q = net_.offset[own]; q < net_.offset[own + 1]; ++q)
                if (q != place)
                    out.push_back(not_taken(q));
            break;
        case Why::other:
            out.push_back(taken(reason.of));
            break;
        case Why::edge:
            explain_edge(net_.halves[std::size_t(reason.of)], place, before, out);
            break;
        case Why::table:
            explain_table(state_, net_.tables[std::size_t(reason.of)], place, before, out);
            break;
        case Why::sum:
            explain_sum(state_, net_.sums[std::size_t(reason.of)], place, before, out);
            break;
        case Why::list:
            for (const Lit other : state_.list(reason.of))
                out.push_back(other);
            break;
        case Why::clause:
            for (const Lit other : clauses_.literals(reason.of))
                if (other != lit)
                    out.push_back(negated(other));
            break;
        }
    }

    // The constraint behind a reason; -1 if it is a clause, or the labels of a variable.
    Id constraint(Reason reason) const {
        switch (reason.why) {
        case Why::edge:
            return net_.halves[std::size_t(reason.of)].constraint;
        case Why::table:
            return net_.tables[std::size_t(reason.of)].constraint;
        case Why::sum:
            return net_.sums[std::size_t(reason.of)].constraint;
        case Why::list:
            return state_.list_constraint(reason.of);
        default:
            return -1;
        }
    }

  private:
    // A queue of constraints, each at most once.
    class Due {
      public:
        explicit Due(std::size_t count) : in_(count, 0) {}
        void add(Id k) {
            if (!in_[std::size_t(k)]) {
                in_[std::size_t(k)] = 1;
                list_.push_back(k);
            }
        }
        Index pop() {
            if (list_.empty())
                return -1;
            const Id k = list_.back();
            list_.pop_back();
            in_[std::size_t(k)] = 0;
            return k;
        }
        void clear() {
            for (const Id k : list_)
                in_[std::size_t(k)] = 0;
            list_.clear();
        }

      private:
        std::vector<char> in_;
        std::vector<Id> list_;
    };

    bool fail() {
        rewind();
        return false;
    }

    void wake(Index i) {
        if (!waiting_[i]) {
            waiting_[i] = 1;
            changed_.push_back(i);
        }
        for (const Id k : net_.tables_of[std::size_t(i)])
            due_[0].add(k);
        for (const Id k : net_.sums_of[std::size_t(i)])
            due_[1].add(k);
        for (const Id k : net_.different_of[std::size_t(i)])
            due_[2].add(k);
    }

    // The next literal of the trail: its clauses, and the constraints of its variable.
    bool advance() {
        const Lit lit = state_.at(head_++);
        if (!positive(lit))
            wake(net_.owner[place_of(lit)]);
        return clauses_.visit(lit, state_, [&](Lit implied, Id clause) {
            return require(implied, {Why::clause, clause});
        });
    }

    bool revise_neighbours() {
        const Index i = changed_.back();
        changed_.pop_back();
        waiting_[i] = 0;
        const Word *domain = state_.domain(i);
        for (const Id h : net_.halves_of[std::size_t(i)]) {
            const Half &half = net_.halves[std::size_t(h)];
            const Supports &table = net_.support[std::size_t(half.table)];
            if (state_.left(i) > table.zeros || state_.left(half.to) == 0)
                continue; // every label still has support
            bool sound = true;
            state_.labels(half.to, [&](Index y) {
                const Word *row = table.row(y);
                for (Index w = 0; w < table.words; ++w)
                    if (row[w] & domain[w])
                        return;
                sound = sound && require(not_taken(net_.offset[half.to] + y), {Why::edge, h});
            });
            if (!sound)
                return false;
        }
        return true;
    }

    // No label of `from` that is left supports a label of `to`: because `from` has another label,
    // or because all labels that would support it are gone.
    void explain_edge(const Half &half, Index place, Id before, std::vector<Lit> &out) const {
        if (const Index known = state_.was_chosen(half.from, before); known >= 0) {
            out.push_back(taken(known));
            return;
        }
        const Word *row = net_.support[std::size_t(half.table)].row(place - net_.offset[half.to]);
        for (Index x = 0; x < net_.size[half.from]; ++x)
            if (row[x / 64] >> (x % 64) & 1)
                out.push_back(not_taken(net_.offset[half.from] + x));
    }

    bool revise_table(Index t) {
        const TableConstraint &table = net_.tables[std::size_t(t)];
        const Moment moment{state_};
        Index steps = most_states;
        Index begin = 0;
        std::vector<Index> &witness = witness_[std::size_t(t)];
        for (std::size_t k = 0; k < table.scope.size(); begin += table.size[k++]) {
            bool sound = true;
            state_.labels(table.scope[k], [&](Index x) {
                Index &known = witness[std::size_t(begin + x)];
                if (!sound || steps <= 0 || (known >= 0 && stands(table, known)))
                    return;
                const Index found = seek_(table, k, x, moment, steps);
                if (found >= 0) {
                    remember(table, witness, found);
                } else if (found == -1) {
                    sound =
                        require(not_taken(net_.offset[table.scope[k]] + x), {Why::table, Id(t)});
                } else {
                    steps = 0; // too large: wait until fewer labels are left
                }
            });
            if (!sound)
                return false;
        }
        return true;
    }

    bool stands(const TableConstraint &table, Index joint) const {
        for (std::size_t k = 0; k < table.scope.size(); ++k)
            if (!state_.left_over(net_.offset[table.scope[k]] +
                                  joint / table.stride[k] % table.size[k]))
                return false;
        return true;
    }

    static void remember(const TableConstraint &table, std::vector<Index> &witness, Index joint) {
        Index begin = 0;
        for (std::size_t k = 0; k < table.scope.size(); begin += table.size[k++])
            witness[std::size_t(begin + joint / table.stride[k] % table.size[k])] = joint;
    }

    bool revise_sum(Index s) {
        const SumConstraint &sum = net_.sums[std::size_t(s)];
        std::int64_t least = 0, most = 0;
        reached_.clear();
        for (std::size_t k = 0; k < sum.scope.size(); ++k) {
            std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = -low;
            state_.labels(sum.scope[k], [&](Index x) {
                low = std::min(low, sum.weight[k][std::size_t(x)]);
                high = std::max(high, sum.weight[k][std::size_t(x)]);
            });
            reached_.push_back({low, high});
            least += low, most += high;
        }
        for (std::size_t k = 0; k < sum.scope.size(); ++k) {
            const std::int64_t below = least - reached_[k].first, above = most - reached_[k].second;
            bool sound = true;
            state_.labels(sum.scope[k], [&](Index x) {
                const std::int64_t w = sum.weight[k][std::size_t(x)];
                if (sound && !sum.any(below + w, above + w))
                    sound = require(not_taken(net_.offset[sum.scope[k]] + x), {Why::sum, Id(s)});
            });
            if (!sound)
                return false;
        }
        return true;
    }

    bool revise_different(Index k) {
        const Different &different = net_.different[std::size_t(k)];
        Matching &matching = matchings_[std::size_t(k)];
        std::vector<Lit> why;
        if (!matching.match(state_, why)) {
            conflict_ = why;
            culprit_ = {Why::list, state_.store(different.constraint, why)};
            return false;
        }
        gone_.clear();
        matching.exclude(state_, [&](Index place, const std::vector<Lit> &reasons) {
            if (gone_.empty() || reasons != last_) {
                last_ = reasons;
                stored_ = state_.store(different.constraint, reasons);
            }
            gone_.push_back({place, stored_});
        });
        for (const auto &[place, list] : gone_)
            if (!require(not_taken(place), {Why::list, list}))
                return false;
        return true;
    }

    const Constraints &net_;
    State &state_;
    Clauses &clauses_;
    Id head_ = 0, stored_ = 0;
    Reason culprit_;
    std::vector<Lit> conflict_, last_;
    std::vector<char> waiting_;
    std::vector<Index> changed_;
    Due due_[3];
    std::vector<std::vector<Index>> witness_;
    std::vector<Matching> matchings_;
    std::vector<std::pair<std::int64_t, std::int64_t>> reached_;
    std::vector<std::pair<Index, Id>> gone_;
    TableSeek seek_;
};

} // namespace softmap::feasibility
