// Presolve: the integer model of an input, and the rules that remove its variables and labels.
#pragma once

#include "plan.hpp"
#include "work.hpp"

namespace softmap::exact {

// The integer model of the input, made by `threads` threads. λ, if given, moves integer costs
// between factors and variables. Factors of three or more variables with up to `most_split` entries
// are split into sums over pairs. Throws OutOfTime if the deadline passes.
Work build_work(const Input &in, const Scale &scale, std::size_t most_split, int threads, Log *log,
                const Deadline *deadline = nullptr);

// Applies all rules, as long as they eliminate variables.
void presolve(Work &w, const Effort &effort, Control &control);

// --- the rules ---

// Removes labels that are forbidden or have no support in some factor, to a fixpoint. Starts with
// the variables in `queue`.
void arc_consistency(Work &w, std::vector<int> queue, Control &control);
// Replaces factors of three or more variables and at most `most` entries by sums over pairs.
void split_factors(Work &w, std::size_t most);
// Substitutes variables that a factor makes functions of another; returns whether there were any.
bool substitute_all(Work &w);
// Eliminates variables of one label, variables of degree 0 or 1, and variables whose result has at
// most `cap` entries over at most `arity` variables.
void eliminate_small(Work &w, Control &control, std::size_t arity, std::int64_t cap);
// Removes labels that another label of the variable dominates; returns whether there were any.
bool remove_dominated(Work &w, Control &control, std::int64_t budget);
// Fixes variables of models with two labels by roof duality; returns whether there were any.
bool fix_persistent(Work &w, Control &control, std::int64_t budget);

// --- what they use ---

// Removes all labels of v but those in `kept`.
void keep_labels(Work &w, int v, const std::vector<int> &kept);
// Writes the variables that share a factor with v to `out`.
void neighbours(Work &w, int v, std::vector<int> &out);
// Fixes a variable of one label in all its factors.
void condition(Work &w, int v);
// Eliminates v. Returns false if time ran out.
bool eliminate(Work &w, int v, Control &control);
// Labels the eliminated variables, in reverse order of elimination.
void undo_eliminations(const Work &w, std::vector<std::int64_t> &labels);

} // namespace softmap::exact
