// The labels that are left, and why each of the others is gone.
#pragma once

#include "constraints.hpp"

namespace softmap::feasibility {

// A literal says of a place (a label of a variable) that it is taken (even) or not taken (odd).
using Lit = std::int32_t;
inline Lit taken(Index place) { return Lit(2 * place); }
inline Lit not_taken(Index place) { return Lit(2 * place + 1); }
inline Lit negated(Lit lit) { return lit ^ 1; }
inline Index place_of(Lit lit) { return lit >> 1; }
inline bool positive(Lit lit) { return (lit & 1) == 0; }

// Why a literal holds.
enum class Why : std::uint8_t {
    given,  // a decision, or the allowed labels of the variable
    last,   // all other labels of the variable are gone
    other,  // another label of the variable is taken
    edge,   // no label of a neighbour supports it
    table,  // no joint state of a table supports it
    sum,    // no allowed sum supports it
    list,   // a list of literals, stored when it was derived
    clause, // all other literals of a clause are false
};

struct Reason {
    Why why = Why::given;
    Id of = 0; // a place, half-edge, table, sum, list or clause, depending on `why`
};

// The trail of literals that hold, in the order in which they were derived.
class State {
  public:
    explicit State(const Constraints &net)
        : net_(net), value_(net.owner.size(), 0), position_(net.owner.size(), 0),
          level_(net.owner.size(), 0), reason_(net.owner.size()),
          domain_(std::size_t(net.word.back()), 0), left_(net.size.begin(), net.size.end()),
          chosen_(net.size.size(), -1) {
        for (Index i = 0; i < net.n(); ++i)
            for (Index x = 0; x < net.size[i]; ++x)
                domain_[std::size_t(net.word[i] + x / 64)] |= Word(1) << (x % 64);
    }

    const Constraints &net() const { return net_; }
    bool holds(Lit lit) const { return value_[place_of(lit)] == (positive(lit) ? 1 : -1); }
    bool fails(Lit lit) const { return value_[place_of(lit)] == (positive(lit) ? -1 : 1); }
    bool left_over(Index place) const { return value_[place] >= 0; } // the label is not gone
    Index left(Index i) const { return left_[i]; }
    Index chosen(Index i) const { return chosen_[i]; } // place of the only label, or -1
    const Word *domain(Index i) const { return domain_.data() + net_.word[i]; }
    Id position(Lit lit) const { return position_[place_of(lit)]; }
    Id level(Lit lit) const { return level_[place_of(lit)]; }
    Reason reason(Lit lit) const { return reason_[place_of(lit)]; }
    Id size() const { return Id(trail_.size()); }
    Lit at(Id k) const { return trail_[std::size_t(k)]; }
    Id levels() const { return Id(starts_.size()); }

    // Calls f(x) for each label of variable i that is left.
    template <class Function> void labels(Index i, Function f) const {
        for (Index w = net_.word[i]; w < net_.word[i + 1]; ++w)
            for (Word bits = domain_[w]; bits; bits &= bits - 1)
                f(64 * (w - net_.word[i]) + std::countr_zero(bits));
    }

    // Whether a label was left before the trail had `before` literals.
    bool was_left(Index place, Id before) const {
        return value_[place] >= 0 || position_[place] >= before;
    }
    // The place that a variable was known to have before the trail had `before` literals, or -1.
    Index was_chosen(Index i, Id before) const {
        return chosen_[i] >= 0 && position_[chosen_[i]] < before ? chosen_[i] : -1;
    }

    // Derives a literal that does not fail, with what follows for the labels of its variable.
    void derive(Lit lit, Reason reason) {
        if (holds(lit))
            return;
        const Index place = place_of(lit), i = net_.owner[place];
        if (positive(lit)) {
            take(place, reason);
            labels(i, [&](Index x) {
                if (net_.offset[i] + x != place)
                    drop(net_.offset[i] + x, {Why::other, Id(place)});
            });
        } else {
            drop(place, reason);
            if (left_[i] == 1)
                labels(i, [&](Index x) { take(net_.offset[i] + x, {Why::last, 0}); });
        }
    }

    void open_level() { starts_.push_back({size(), lists_.size()}); }

    // Undoes all levels above `level`; calls f(place) for each label that was taken.
    template <class Function> void back_to(Id level, Function f) {
        const auto [first, lists] = starts_[std::size_t(level)];
        while (size() > first) {
            const Lit lit = trail_.back();
            const Index place = place_of(lit), i = net_.owner[place];
            trail_.pop_back();
            value_[place] = 0;
            if (positive(lit)) {
                chosen_[i] = -1;
                f(place);
            } else {
                const Index x = place - net_.offset[i];
                domain_[std::size_t(net_.word[i] + x / 64)] |= Word(1) << (x % 64);
                ++left_[i];
            }
        }
        lists_.resize(lists);
        starts_.resize(std::size_t(level));
    }

    // Stores literals that imply something, until the level is undone. `constraint` comes first.
    Id store(Id constraint, const std::vector<Lit> &lits) {
        const Id at = Id(lists_.size());
        lists_.push_back(constraint);
        lists_.push_back(Lit(lits.size()));
        lists_.insert(lists_.end(), lits.begin(), lits.end());
        return at;
    }
    Id list_constraint(Id list) const { return lists_[std::size_t(list)]; }
    std::span<const Lit> list(Id list) const {
        return {lists_.data() + list + 2, std::size_t(lists_[std::size_t(list) + 1])};
    }

  private:
    void put(Lit lit, Reason reason) {
        const Index place = place_of(lit);
        value_[place] = positive(lit) ? 1 : -1;
        position_[place] = size();
        level_[place] = levels();
        reason_[place] = reason;
        trail_.push_back(lit);
    }
    void take(Index place, Reason reason) {
        chosen_[net_.owner[place]] = place;
        put(taken(place), reason);
    }
    void drop(Index place, Reason reason) {
        const Index i = net_.owner[place], x = place - net_.offset[i];
        domain_[std::size_t(net_.word[i] + x / 64)] &= ~(Word(1) << (x % 64));
        --left_[i];
        put(not_taken(place), reason);
    }

    const Constraints &net_;
    std::vector<std::int8_t> value_;
    std::vector<Id> position_, level_;
    std::vector<Reason> reason_;
    std::vector<Word> domain_;
    std::vector<Index> left_, chosen_;
    std::vector<Lit> trail_;
    struct Start {
        Id trail;
        std::size_t lists;
    };
    std::vector<Start> starts_;
    std::vector<Lit> lists_;
};

} // namespace softmap::feasibility
