// The proof log: the steps of presolve and search, as records that a checker repeats
// (docs/proofs.md).
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "types.hpp"

namespace softmap::exact {

// Kinds of records, with their values in the file.
enum class Op : std::uint8_t {
    LOAD = 1,   // unit and limit of the integer costs
    REMOVE,     // removes labels that are forbidden, or for which another label costs no more
    PERSISTENT, // fixes variables to labels that some optimum has
    SPLIT,      // splits a factor that is a sum over pairs
    SUBSTITUTE, // replaces a variable that is a function of another one
    ELIMINATE,  // minimises over a variable
    SHIFT,      // moves costs between factors and variables
    COMPONENT,  // starts the search over a component
    END,        // ends the search over a component
    CUT,        // sets the cost at which nodes are pruned
    DIVE,       // resumes an open node
    BRANCH,     // makes a decision
    CLOSE,      // prunes the node: its bound reaches the cut, or a variable has no label
    LEAVE,      // ends the dive: its unexplored nodes become open nodes
    STEP,       // moves costs, then removes labels, within the search
    COMBINE,    // replaces factors by one factor within the search
    GIVEN = 26, // a clause or sum of a core-guided search that follows from the model
    LEARNED,    // a clause that follows from earlier ones
    CORE,       // raises the bound by a clause
    GROUP,      // raises the bound by literals of which at most one holds
};

// Writes records to a file. An array is one byte, count << 2 | log2 of the width in bytes, and then
// little-endian signed integers of that width. If the count is 63 or more, the byte has 63 and the
// count follows in eight bytes.
class Log {
  public:
    // A file that cannot be opened or written leaves the search as it is; `finish` then returns 0.
    explicit Log(const std::string &path);
    // Starts a log with the first `size` bytes of another one, which is not changed.
    Log(const std::string &path, Log &other, std::int64_t size);
    Log(const Log &) = delete;
    Log &operator=(const Log &) = delete;
    ~Log() {
        if (file_ != nullptr)
            std::fclose(file_);
    }

    void op(Op code) { buffer_.push_back(static_cast<std::uint8_t>(code)); }
    template <class T> void array(const T *data, std::size_t count); // of int and int64
    template <class T> void array(const std::vector<T> &data) { array(data.data(), data.size()); }
    void array(std::initializer_list<std::int64_t> data) { array(data.begin(), data.size()); }
    // The number of bytes so far.
    std::int64_t size() const { return written_ + static_cast<std::int64_t>(buffer_.size()); }
    // Writes a record of one array.
    void note(Op code, std::initializer_list<std::int64_t> data) {
        op(code);
        array(data);
    }

    // Writes buffered records to the file. Returns the size of the file in bytes, or 0 after an
    // error.
    std::int64_t finish();

  private:
    static constexpr std::size_t CHUNK = 1 << 16; // bytes between two writes
    std::string path_;
    std::FILE *file_;
    std::vector<std::uint8_t> buffer_;
    std::int64_t written_ = 0;
    bool failed_;

    void flush();
    template <class Narrow, class T> void put(const T *data, std::size_t count);
};

// The records of one search. Moves of costs between two removals of labels are summed; these moves
// and the removals after them are one record.
class TreeLog {
  public:
    explicit TreeLog(Log &out) : out_(out), begin_(out.size()) {}

    // The size of the log before the search.
    std::int64_t begin() const { return begin_; }

    // Adds a factor and returns its number. Its words are numbered after those of the factor before
    // it.
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

    // Moves `amount` from a factor to the unary cost of a label; `word` is the number of that label
    // in that factor.
    void move(std::int64_t word, Cost amount) {
        begin_moves();
        if (!noted_[word]) {
            noted_[word] = 1;
            touched_.push_back(word);
        }
        net_[word] += amount;
    }
    // Moves `amount` from all labels of a variable to the bound.
    void lower(int x, Cost amount) {
        begin_moves();
        if (x >= static_cast<int>(lowered_.size()))
            lowered_.resize(x + 1, 0);
        if (lowered_[x] == 0) // amounts are positive, so 0 means that x is new here
            touched_variables_.push_back(x);
        lowered_[x] += amount;
    }
    // Removes a label, because its unary cost plus its smallest cost in the factor of a word
    // reaches the cut, or, if `reason` is -1 - number of the label, its unary cost alone.
    void remove(std::int64_t reason) { removed_.push_back(reason); }
    // Replaces `factors`, and `more` unless it is -1, by one factor over y and z. The unary costs
    // of x become a part of it, unless x is -1.
    void combine(int x, std::initializer_list<std::int64_t> factors, std::int64_t more, int y,
                 int z) {
        write();
        members_.assign(factors);
        if (more >= 0)
            members_.push_back(more);
        out_.op(Op::COMBINE);
        out_.array(&x, x >= 0 ? 1 : 0);
        out_.array(members_);
        out_.array({y, z});
    }
    void op(Op code) {
        write();
        out_.op(code);
    }
    void note(Op code, std::initializer_list<std::int64_t> data) {
        write();
        out_.note(code, data);
    }
    void write() {
        if (touched_.empty() && touched_variables_.empty() && removed_.empty())
            return;
        out_.op(Op::STEP);
        for (const auto k : touched_)
            noted_[k] = 0;
        put(touched_, net_);
        put(touched_variables_, lowered_);
        out_.array(removed_);
        removed_.clear();
    }

  private:
    Log &out_;
    std::int64_t begin_;
    std::vector<std::int64_t> first_;
    std::int64_t words_ = 0;
    std::vector<Cost> net_, lowered_, amounts_;
    std::vector<char> noted_; // for each word, whether it is in `touched_`
    std::vector<std::int64_t> members_, touched_, touched_variables_, removed_;

    void begin_moves() {
        if (!removed_.empty())
            write();
    }
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
};

} // namespace softmap::exact
