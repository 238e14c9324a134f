// The steps of a core-guided proof, kept in memory and written without those that are not needed.
//
// Each constraint has a number. A learned clause has hints: the constraints that yield a conflict,
// one literal after another, if all its literals fail. So a checker needs no propagation.
#pragma once

#include "clauses.hpp"
#include "exact/log.hpp"

namespace softmap::cores {

// What a given constraint follows from, with the values in the file (docs/proofs.md).
enum class Given : std::int64_t { TABLE, SUM, LABELS, COUNT, ORDER, CUT };

class ProofSteps {
  public:
    explicit ProofSteps(std::size_t most) : most_(most) {}

    // Whether there are more steps than may be kept; none is added from then on.
    bool full() const { return full_; }

    // A constraint that does not follow from others; returns its number.
    Id given(Given what, std::initializer_list<std::int64_t> numbers, std::span<const Lit> lits) {
        return add(Kind::given, {std::int64_t(what), numbers}, lits, {});
    }
    // A clause that follows by hints: the number of a clause, or -1 - the number of a sum and then
    // the literal that it implies, -1 for a conflict.
    Id learned(std::span<const Lit> lits, std::span<const Id> hints) {
        return add(Kind::learned, {}, lits, hints);
    }
    // The costs of the literals of a clause are lowered by `weight`, and the bound rises by it.
    void core(std::int64_t weight, Id clause) {
        const Id hint[] = {clause};
        add(Kind::core, {weight}, {}, hint);
    }
    // As `core`, for literals of which at most one holds, and the costs of their negations. Hints
    // of each literal end with `apart`.
    Id group(std::int64_t weight, std::span<const Lit> lits, std::span<const Id> hints) {
        return add(Kind::group, {weight}, lits, hints);
    }
    static constexpr Id apart = std::numeric_limits<Id>::min();

    // Writes all steps that cores, groups, literals that hold and the last clause need.
    void write(exact::Log &out) const {
        const std::vector<char> used = needed();
        std::vector<Id> number(steps_.size(), -1); // in the file
        Id count = 0;
        for (std::size_t k = 0; k < steps_.size(); ++k) {
            if (!used[k])
                continue;
            write(out, steps_[k], number);
            if (steps_[k].kind != Kind::core)
                number[k] = count++;
        }
    }

  private:
    enum class Kind : std::uint8_t { given, learned, core, group };
    struct Numbers : std::vector<std::int64_t> {
        Numbers() = default;
        Numbers(std::int64_t first) : std::vector<std::int64_t>{first} {}
        Numbers(std::int64_t first, std::initializer_list<std::int64_t> rest)
            : std::vector<std::int64_t>{first} {
            insert(end(), rest);
        }
    };
    struct Step {
        Kind kind;
        std::size_t numbers, lits, hints, end; // where they start in `numbers_` and `data_`
    };

    Id add(Kind kind, const Numbers &numbers, std::span<const Lit> lits,
           std::span<const Id> hints) {
        full_ = full_ || data_.size() + 8 * steps_.size() > most_;
        if (full_)
            return 0;
        const std::size_t first = data_.size();
        steps_.push_back({kind, numbers_.size(), first, first + lits.size(),
                          first + lits.size() + hints.size()});
        numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
        data_.insert(data_.end(), lits.begin(), lits.end());
        data_.insert(data_.end(), hints.begin(), hints.end());
        return Id(steps_.size()) - 1;
    }

    // Calls f(hint) for each number of a constraint, and g(literal) for each implied literal.
    template <class Function, class Other>
    void each_hint(const Step &own, Function f, Other g) const {
        for (std::size_t k = own.hints; k < own.end; ++k) {
            f(data_[k]);
            if (data_[k] < 0 && data_[k] != apart)
                g(data_[++k]);
        }
    }

    // Literals that hold whatever is assumed may be needed by all later steps; counts and groups
    // define new literals, which are numbered in order.
    bool kept(const Step &own) const {
        if (own.kind == Kind::learned)
            return own.hints - own.lits < 2;
        return own.kind != Kind::given || numbers_[own.numbers] == std::int64_t(Given::COUNT);
    }
    std::vector<char> needed() const {
        std::vector<char> used(steps_.size(), 0);
        for (std::size_t k = steps_.size(); k-- > 0;)
            if (used[k] = used[k] || kept(steps_[k]); used[k])
                each_hint(
                    steps_[k],
                    [&](Id hint) {
                        if (hint != apart)
                            used[std::size_t(hint < 0 ? -1 - hint : hint)] = 1;
                    },
                    [](Lit) {});
        return used;
    }

    static std::int64_t written(Lit lit) { return lit & 1 ? -(lit / 2 + 1) : lit / 2 + 1; }
    void write(exact::Log &out, const Step &own, const std::vector<Id> &number) const {
        std::vector<std::int64_t> lits, hints;
        for (std::size_t k = own.lits; k < own.hints; ++k)
            lits.push_back(written(data_[k]));
        each_hint(
            own,
            [&](Id hint) {
                const std::size_t k = std::size_t(hint < 0 ? -1 - hint : hint);
                hints.push_back(hint == apart ? 0 : (hint < 0 ? -1 : 1) * (number[k] + 1));
            },
            [&](Lit lit) { hints.push_back(lit < 0 ? 0 : written(lit)); });
        const std::size_t at = std::size_t(&own - steps_.data());
        const std::size_t last = at + 1 < steps_.size() ? steps_[at + 1].numbers : numbers_.size();
        const std::int64_t *first = numbers_.data() + own.numbers;
        if (own.kind == Kind::core) {
            out.note(exact::Op::CORE, {first[0], hints[0] - 1});
            return;
        }
        out.op(own.kind == Kind::given     ? exact::Op::GIVEN
               : own.kind == Kind::learned ? exact::Op::LEARNED
                                           : exact::Op::GROUP);
        if (own.kind != Kind::learned)
            out.array(first, last - own.numbers);
        out.array(lits);
        if (own.kind != Kind::given)
            out.array(hints);
    }

    std::size_t most_; // entries of `data_`, of four bytes; a step counts as 8
    std::vector<Step> steps_;
    std::vector<std::int64_t> numbers_;
    std::vector<Id> data_;
    bool full_ = false;
};

} // namespace softmap::cores
