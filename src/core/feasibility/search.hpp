// Finds labels that obey all hard constraints, or proves that there are none.
//
// A search that learns a clause from each conflict (the first unique implication point), restarts
// after numbers of conflicts that follow Luby's sequence, decides the variable with the most recent
// conflicts per label that is left, and gives it the label that it had last.
#pragma once

#include "base/deadline.hpp"
#include "propagate.hpp"

#include <cmath>

namespace softmap::feasibility {

enum class Answer : int { none = 0, found = 1, unknown = 2 };

class ConstraintSearch {
  public:
    // Labels of larger preference are tried first.
    ConstraintSearch(const Constraints &net, const double *preference)
        : net_(net), state_(net), clauses_(net.offset.back()), propagation_(net, state_, clauses_),
          preference_(preference, preference + net.offset.back()), weight_(net.size.size(), 0.0),
          phase_(net.size.size(), -1), seen_(std::size_t(net.offset.back()), 0) {
        for (Index i = 0; i < net.n(); ++i) {
            const std::size_t k = std::size_t(i);
            weight_[k] = 1e-3 * double(net.halves_of[k].size() + net.tables_of[k].size() +
                                       net.sums_of[k].size() + net.different_of[k].size());
            open_.push_back(i);
        }
    }

    // Continues until there is an answer, the deadline has passed, or after so many conflicts.
    Answer run(Index conflicts, const Deadline *deadline) {
        if (!begun_ && !begin())
            answer_ = Answer::none;
        Meter meter(deadline);
        const Index end = conflicts_ + std::min(conflicts, std::numeric_limits<Index>::max() / 2);
        while (answer_ == Answer::unknown && !meter.late() && conflicts_ < end)
            step(meter);
        return answer_;
    }

    // The labels found; after `found` only.
    void read(Index *labels) const {
        for (Index i = 0; i < net_.n(); ++i)
            labels[i] = state_.chosen(i) - net_.offset[i];
    }

    Index conflicts() const { return conflicts_; }
    Index decisions() const { return decisions_; }

    // The constraints that the proof uses, in ascending order; after `none`, unless the records
    // became too long. Empty then.
    std::vector<Id> core() const {
        std::vector<Id> out;
        if (too_long_)
            return out;
        std::vector<char> used(std::size_t(net_.constraints()), 0), read(starts_.size(), 0);
        std::vector<char> traced(seen_.size(), 0);
        std::vector<Id> front = last_;
        while (!front.empty()) {
            const Id code = front.back();
            front.pop_back();
            trace(code, used, read, traced, front);
        }
        for (Id c = 0; c < net_.constraints(); ++c)
            if (used[std::size_t(c)])
                out.push_back(c);
        return out;
    }

  private:
    // What a learned clause was derived from: constraints, clauses and literals of the root.
    static Id code_of_constraint(Id k) { return 3 * k; }
    static Id code_of_record(Id k) { return 3 * k + 1; }
    static Id code_of_root(Lit lit) { return 3 * lit + 2; }

    // Allowed labels, and what follows from them.
    bool begin() {
        begun_ = true;
        for (Index i = 0; i < net_.n(); ++i)
            if (net_.size[i] == 1)
                state_.derive(taken(net_.offset[i]), {Why::last, 0});
        for (Index place = 0; place < net_.offset.back(); ++place) {
            if (net_.allowed[std::size_t(place)])
                continue;
            if (state_.fails(not_taken(place))) { // the last label of its variable
                last_.assign(1, code_of_constraint(net_.owner[std::size_t(place)]));
                return false;
            }
            state_.derive(not_taken(place), {});
        }
        propagation_.wake_all();
        return propagate();
    }

    void step(Meter &meter) {
        if (!propagate()) {
            answer_ = Answer::none;
            return;
        }
        meter.tick(decision_work);
        if (patience_ <= 0) {
            restart();
            patience_ = unit * luby(++restarts_);
            if (clauses_.count() > limit_) {
                clauses_.reduce(state_);
                limit_ += limit_ / 10;
            }
            return;
        }
        const Index i = choose();
        if (i < 0) {
            answer_ = Answer::found;
            return;
        }
        ++decisions_;
        state_.open_level();
        state_.derive(taken(net_.offset[i] + value(i)), {});
    }

    // Propagates, and learns from conflicts until there are none. Returns false if the root fails.
    bool propagate() {
        while (!propagation_.run()) {
            ++conflicts_;
            --patience_;
            note(propagation_.culprit());
            if (!learn(propagation_.conflict()))
                return false;
        }
        return true;
    }

    void restart() {
        if (state_.levels() > 0)
            back_to(0);
        std::erase_if(open_, [&](Index i) { return state_.chosen(i) >= 0; });
    }

    void back_to(Id level) {
        state_.back_to(level, [&](Index place) {
            const Index i = net_.owner[std::size_t(place)];
            phase_[std::size_t(i)] = place - net_.offset[i];
        });
        propagation_.rewind();
    }

    // The undecided variable with the highest weight per label that is left; -1 if there is none.
    Index choose() const {
        Index best = -1;
        double most = -1.0;
        for (const Index i : open_)
            if (state_.chosen(i) < 0) {
                const double score = weight_[std::size_t(i)] / double(state_.left(i));
                if (score > most)
                    best = i, most = score;
            }
        return best;
    }

    Index value(Index i) const {
        const Index known = phase_[std::size_t(i)], begin = net_.offset[i];
        if (known >= 0 && state_.left_over(begin + known))
            return known;
        Index best = -1;
        state_.labels(i, [&](Index x) {
            if (best < 0 ||
                preference_[std::size_t(begin + x)] > preference_[std::size_t(begin + best)])
                best = x;
        });
        return best;
    }

    // Learns the clause of a conflict, undoes the levels that it makes wrong, and derives its first
    // literal. Returns false if the conflict is one of the root.
    bool learn(const std::vector<Lit> &conflict) {
        Id level = 0;
        for (const Lit lit : conflict)
            level = std::max(level, state_.level(lit));
        if (level == 0) {
            for (const Lit lit : conflict)
                pending_.push_back(code_of_root(lit));
            last_ = pending_;
            return false;
        }
        std::vector<Lit> clause(1);
        Index ahead = 0; // literals of this level that are still to be replaced by their reasons
        reasons_ = conflict;
        Id at = state_.size();
        Lit lit;
        for (;;) {
            for (const Lit why : reasons_)
                ahead += meet(why, level, clause);
            do
                lit = state_.at(--at);
            while (!seen_[std::size_t(place_of(lit))] || state_.level(lit) < level);
            if (--ahead == 0)
                break;
            const Reason reason = state_.reason(lit);
            note(reason);
            reasons_.clear();
            propagation_.explain(lit, reason, state_.position(lit), reasons_);
        }
        clause[0] = negated(lit);
        finish(std::move(clause));
        return true;
    }

    // Marks a literal of a conflict: one of an earlier level belongs to the clause. Returns whether
    // it is one of this level.
    bool meet(Lit why, Id level, std::vector<Lit> &clause) {
        const std::size_t place = std::size_t(place_of(why));
        if (seen_[place])
            return false;
        if (state_.level(why) == 0) {
            pending_.push_back(code_of_root(why));
            return false;
        }
        seen_[place] = 1;
        marked_.push_back(Id(place));
        bump(net_.owner[place]);
        if (state_.level(why) == level)
            return true;
        clause.push_back(negated(why));
        return false;
    }

    void finish(std::vector<Lit> clause) {
        shorten(clause);
        for (const Id place : marked_)
            seen_[std::size_t(place)] = 0;
        marked_.clear();
        Id back = 0;
        for (std::size_t k = 1; k < clause.size(); ++k)
            if (state_.level(clause[k]) > back) {
                back = state_.level(clause[k]);
                std::swap(clause[1], clause[k]);
            }
        const Id levels = count_levels(clause);
        back_to(back);
        const Id record = keep_record();
        const Lit first = clause[0];
        if (clause.size() == 1) {
            units_.resize(seen_.size(), -1);
            units_[std::size_t(place_of(first))] = record;
            state_.derive(first, {Why::given, 0});
        } else {
            const Id added = clauses_.add(std::move(clause), levels, record);
            state_.derive(first, {Why::clause, added});
        }
        bump_ /= 0.95;
        clauses_.decay();
    }

    // Leaves out literals that the others imply.
    void shorten(std::vector<Lit> &clause) {
        std::size_t kept = 1;
        for (std::size_t k = 1; k < clause.size(); ++k) {
            const Lit lit = negated(clause[k]);
            const Reason reason = state_.reason(lit);
            bool implied = reason.why != Why::given && reason.why != Why::table;
            if (implied) {
                reasons_.clear();
                propagation_.explain(lit, reason, state_.position(lit), reasons_);
                for (const Lit why : reasons_)
                    implied =
                        implied && (seen_[std::size_t(place_of(why))] || state_.level(why) == 0);
            }
            if (implied) {
                note(reason);
                for (const Lit why : reasons_)
                    if (state_.level(why) == 0)
                        pending_.push_back(code_of_root(why));
            } else {
                clause[kept++] = clause[k];
            }
        }
        clause.resize(kept);
    }

    Id count_levels(const std::vector<Lit> &clause) {
        Id out = 0;
        level_seen_.resize(std::size_t(state_.levels()) + 1, 0);
        ++level_stamp_;
        for (const Lit lit : clause) {
            Index &mark = level_seen_[std::size_t(state_.level(lit))];
            out += mark != level_stamp_;
            mark = level_stamp_;
        }
        return out;
    }

    void bump(Id i) {
        if ((weight_[std::size_t(i)] += bump_) > 1e100) {
            for (double &weight : weight_)
                weight *= 1e-100;
            bump_ *= 1e-100;
        }
    }

    // --- the record of what each clause was derived from
    // ------------------------------------------

    void note(Reason reason) {
        if (reason.why == Why::clause) {
            clauses_.bump(reason.of);
            pending_.push_back(code_of_record(clauses_.record(reason.of)));
        } else if (const Id constraint = propagation_.constraint(reason); constraint >= 0) {
            pending_.push_back(code_of_constraint(constraint));
        }
    }

    Id keep_record() {
        if (records_.size() + pending_.size() > most_records)
            too_long_ = true;
        if (too_long_) {
            pending_.clear();
            return 0;
        }
        std::sort(pending_.begin(), pending_.end());
        pending_.erase(std::unique(pending_.begin(), pending_.end()), pending_.end());
        starts_.push_back(records_.size());
        records_.insert(records_.end(), pending_.begin(), pending_.end());
        pending_.clear();
        return Id(starts_.size()) - 1;
    }

    void trace(Id code, std::vector<char> &used, std::vector<char> &read, std::vector<char> &traced,
               std::vector<Id> &front) const {
        const Id k = code / 3;
        if (code % 3 == 0) {
            used[std::size_t(k)] = 1;
        } else if (code % 3 == 1) {
            if (read[std::size_t(k)]++)
                return;
            const std::size_t begin = starts_[std::size_t(k)];
            const std::size_t end =
                std::size_t(k) + 1 < starts_.size() ? starts_[std::size_t(k) + 1] : records_.size();
            front.insert(front.end(), records_.begin() + std::ptrdiff_t(begin),
                         records_.begin() + std::ptrdiff_t(end));
        } else {
            trace_root(k, traced, front);
        }
    }

    void trace_root(Lit lit, std::vector<char> &traced, std::vector<Id> &front) const {
        const std::size_t place = std::size_t(place_of(lit));
        if (traced[place])
            return;
        traced[place] = 1;
        const Reason reason = state_.reason(lit);
        if (reason.why == Why::given) {
            const bool learned = place < units_.size() && units_[place] >= 0;
            front.push_back(learned ? code_of_record(units_[place])
                                    : code_of_constraint(net_.owner[place]));
            return;
        }
        if (reason.why == Why::clause)
            front.push_back(code_of_record(clauses_.record(reason.of)));
        else if (const Id constraint = propagation_.constraint(reason); constraint >= 0)
            front.push_back(code_of_constraint(constraint));
        std::vector<Lit> out;
        propagation_.explain(lit, reason, state_.position(lit), out);
        for (const Lit why : out)
            front.push_back(code_of_root(why));
    }

    // Luby's sequence 1 1 2 1 1 2 4 …
    static Index luby(Index k) {
        for (;;) {
            const Index power = Index(std::bit_width(std::uint64_t(k)));
            if (k == (Index(1) << power) - 1)
                return Index(1) << (power - 1);
            k -= (Index(1) << (power - 1)) - 1;
        }
    }

    static constexpr Index unit = 64; // conflicts per unit of Luby's sequence
    static constexpr Index decision_work =
        1024; // what a decision counts for between clock readings
    static constexpr std::size_t most_records = 40'000'000; // entries; 160 MB

    const Constraints &net_;
    State state_;
    Clauses clauses_;
    Propagation propagation_;
    std::vector<double> preference_, weight_;
    std::vector<Index> phase_, open_, level_seen_;
    std::vector<char> seen_;
    std::vector<Lit> reasons_;
    std::vector<Id> marked_, pending_, last_, records_, units_;
    std::vector<std::size_t> starts_;
    double bump_ = 1.0;
    bool begun_ = false, too_long_ = false;
    std::size_t limit_ = 4000;
    Index conflicts_ = 0, decisions_ = 0, restarts_ = 1, patience_ = unit, level_stamp_ = 0;
    Answer answer_ = Answer::unknown;
};

} // namespace softmap::feasibility
