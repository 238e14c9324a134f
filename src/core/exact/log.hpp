// The proof log: the steps of the search as records that a checker repeats (docs/proofs.md).
#pragma once

#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "types.hpp"

namespace softmap::exact {

// Kinds of records, numbered as in the file.
enum class Op : std::uint8_t {
    LOAD = 1,   // unit and limits, which factors are split, λ
    DROP,       // labels whose costs reach the cut
    BAN,        // as DROP, but label numbers do not change
    DOMINATED,  // labels dominated by another label
    PERSISTENT, // persistent labels
    SPLIT,      // a factor that is a sum over pairs
    SUBSTITUTE, // a variable that is a function of another one
    ELIMINATE,  // a variable eliminated by minimisation
    FIX,        // a variable with one label left
    NORMALISE,  // minima moved to the constant
    SHIFT,      // costs moved between factors and variables
    COMPONENT,  // a search over some variables begins
    END,        // the search ends
    CUT,        // the upper bound at which nodes are pruned
    DIVE,       // a dive from an open node begins
    BRANCH,     // a decision
    CLOSE,      // a node is pruned: its bound reaches the cut
    LEAVE,      // the unexplored nodes of the dive become open nodes
    MOVE,       // costs moved within the search
    REMOVE,     // labels removed within the search
    COMBINE,    // factors replaced by one within the search
    ABANDON,    // the search is discarded; other records solve the component
};

// Writes records to a file. An array is a byte, min(count, 63) << 2 | log2 of the width, then the
// count if it is 63 or more, then little-endian signed integers of that width.
class Log {
  public:
    explicit Log(const std::string &path) : file_(std::fopen(path.c_str(), "wb")) {
        if (file_ == nullptr)
            throw std::runtime_error("the proof cannot be written: " + path);
        buffer_.reserve(2 * CHUNK);
    }
    Log(const Log &) = delete;
    Log &operator=(const Log &) = delete;
    ~Log() { std::fclose(file_); }

    void op(Op code) { buffer_.push_back(static_cast<std::uint8_t>(code)); }
    template <class T> void array(const T *data, std::size_t count) {
        std::int64_t low = 0, high = 0;
        for (std::size_t k = 0; k < count; ++k) {
            low = std::min<std::int64_t>(low, data[k]);
            high = std::max<std::int64_t>(high, data[k]);
        }
        const auto fits = [&](int bits) {
            return -(low + 1) >> (bits - 1) == 0 && high >> (bits - 1) == 0;
        };
        const int width = fits(8) ? 0 : fits(16) ? 1 : fits(32) ? 2 : 3;
        buffer_.push_back(static_cast<std::uint8_t>(std::min<std::size_t>(count, 63) << 2 | width));
        if (count >= 63)
            put<std::int64_t>(&count, 1);
        if (width == 0)
            put<std::int8_t>(data, count);
        else if (width == 1)
            put<std::int16_t>(data, count);
        else if (width == 2)
            put<std::int32_t>(data, count);
        else
            put<std::int64_t>(data, count);
        if (buffer_.size() >= CHUNK)
            flush();
    }
    template <class T> void array(const std::vector<T> &data) { array(data.data(), data.size()); }
    void array(std::initializer_list<std::int64_t> data) { array(data.begin(), data.size()); }
    // Writes a record of one array.
    void note(Op code, std::initializer_list<std::int64_t> data) {
        op(code);
        array(data);
    }

    // Flushes the file. Returns its size, or 0 if writing failed.
    std::int64_t finish() {
        flush();
        failed_ = failed_ || std::fflush(file_) != 0;
        return failed_ ? 0 : written_;
    }

  private:
    static constexpr std::size_t CHUNK = 1 << 16; // bytes between two writes
    std::FILE *file_;
    std::vector<std::uint8_t> buffer_;
    std::int64_t written_ = 0;
    bool failed_ = false;

    void flush() {
        failed_ =
            failed_ || std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size();
        written_ += static_cast<std::int64_t>(buffer_.size());
        buffer_.clear();
    }
    template <class Narrow, class T> void put(const T *data, std::size_t count) {
        static_assert(std::endian::native == std::endian::little);
        const auto begin = buffer_.size();
        buffer_.resize(begin + count * sizeof(Narrow));
        std::uint8_t *out = buffer_.data() + begin;
        for (std::size_t k = 0; k < count; ++k) {
            const auto value = static_cast<Narrow>(data[k]);
            std::memcpy(out + k * sizeof(Narrow), &value, sizeof(Narrow));
        }
    }
};

// The records of one search. Moves between two removals are added up and written together, and so
// are removals between two moves.
class TreeLog {
  public:
    explicit TreeLog(Log &out) : out_(out) {}

    // Adds a factor; its words are numbered after those of the last factor.
    int factor(std::int64_t words) {
        first_.push_back(words_);
        words_ += words;
        net_.resize(std::max<std::size_t>(net_.size(), words_), 0);
        noted_.resize(net_.size(), 0);
        return static_cast<int>(first_.size()) - 1;
    }
    std::int64_t first_word(int factor) const { return first_[factor]; }
    std::size_t factors() const { return first_.size(); }
    void forget_factors(std::size_t count) {
        if (count < first_.size()) {
            words_ = first_[count];
            first_.resize(count);
        }
    }

    // Records that `amount` moves from a factor to a unary cost; `word` is the label in the factor.
    void move(std::int64_t word, Cost amount) {
        write_removals();
        if (!noted_[word]) {
            noted_[word] = 1;
            touched_.push_back(word);
        }
        net_[word] += amount;
    }
    // Records that `amount` moves from all labels of a variable to the bound.
    void lower(int x, Cost amount) {
        write_removals();
        if (x >= static_cast<int>(lowered_.size()))
            lowered_.resize(x + 1, 0);
        if (lowered_[x] == 0) // amounts are positive
            touched_variables_.push_back(x);
        lowered_[x] += amount;
    }
    // Records the removal of label a: its unary cost reaches the cut, alone (word = -1) or with its
    // minimum in the factor of `word`.
    void remove(int x, int a, std::int64_t word) {
        write_moves();
        mixed_ = mixed_ || (last_removed_ >= 0 && last_removed_ != x);
        if (word >= 0 && mixed_) // the reason may depend on earlier removals
            write_removals();
        last_removed_ = x;
        if (word >= 0)
            reasons_.push_back(word);
        else
            plain_.insert(plain_.end(), {x, a});
    }
    // Records that factors (and `more` unless it is -1) are replaced by one over y and z, or by
    // a cost of y if z is -1. Variable x, unless it is -1, is eliminated.
    void combine(int x, std::initializer_list<std::int64_t> factors, std::int64_t more, int y,
                 int z) {
        write();
        out_.op(Op::COMBINE);
        out_.array({x});
        members_.assign(factors);
        if (more >= 0)
            members_.push_back(more);
        out_.array(members_);
        z >= 0 ? out_.array({y, z}) : out_.array({y});
    }
    void note(Op code, std::initializer_list<std::int64_t> data) {
        write();
        out_.note(code, data);
    }
    void write() {
        write_moves();
        write_removals();
    }

  private:
    Log &out_;
    std::vector<std::int64_t> first_;
    std::int64_t words_ = 0;
    std::vector<Cost> net_, lowered_, amounts_;
    std::vector<char> noted_; // words with recorded moves
    std::vector<std::int64_t> members_, touched_, touched_variables_, reasons_, plain_;
    int last_removed_ = -1;
    bool mixed_ = false; // whether removals of more than one variable are to be written

    void put(std::vector<std::int64_t> &touched, std::vector<Cost> &net) {
        amounts_.clear();
        std::erase_if(touched, [&](std::int64_t k) { return net[k] == 0; });
        for (const auto k : touched) {
            amounts_.push_back(net[k]);
            net[k] = 0;
        }
        out_.array(touched);
        out_.array(amounts_);
        touched.clear();
    }
    void write_moves() {
        if (touched_.empty() && touched_variables_.empty())
            return;
        out_.op(Op::MOVE);
        for (const auto k : touched_)
            noted_[k] = 0;
        put(touched_, net_);
        put(touched_variables_, lowered_);
    }
    void write_removals() {
        if (last_removed_ < 0)
            return;
        out_.op(Op::REMOVE);
        out_.array(plain_);
        out_.array(reasons_);
        plain_.clear();
        reasons_.clear();
        last_removed_ = -1;
        mixed_ = false;
    }
};

} // namespace softmap::exact
