// Large-neighbourhood search over ranges of a large model's variables, on several threads.
//
// The variables of a range without neighbours outside change while all others are fixed, so that
// the ranges are searched independently. Every second call uses ranges that are shifted by half of
// their length, so that every variable changes in one of the two if the border of a range is short.
#pragma once

#include "base/ranges.hpp"
#include "improve.hpp"

#include <atomic>
#include <bit>
#include <memory>
#include <numeric>

namespace softmap {

class RangeSearch {
  public:
    RangeSearch(const LabelGraph &graph, const Index *labels, std::uint64_t *words,
                const SearchOptions &options);

    // Improves labels in place; each call continues the search. Returns the work done. Without a
    // deadline, the result does not depend on the number of threads.
    Index improve(Index *labels, Index work, const Deadline *deadline, int threads);

    Index cycles() const { return sum(&Search::cycles); }
    Index falls() const { return sum(&Search::falls); } // improvements of the best labels

  private:
    // Ranges that cover all variables, with a search in each.
    class Layer {
      public:
        Layer(RangeSearch &whole, Index length, Index shift, std::uint64_t *words)
            : arrays_(std::make_unique<SearchArrays>(whole.graph_, whole.labels_.data())),
              known_(whole.labels_) {
            const Index end = whole.graph_.variables;
            const bool one = length >= end;
            for (Index begin = -shift; begin < end || ranges_.empty(); begin += length) {
                const NodeRange range{std::max<Index>(begin, 0), std::min(begin + length, end)};
                std::uint64_t own[4];
                if (!one)
                    spread_seed(next_word(words), own);
                ranges_.push_back(range);
                searches_.push_back(
                    std::make_unique<Search>(whole.graph_, range, whole.labels_.data(),
                                             one ? words : own, whole.options_, *arrays_));
            }
        }

        Index improve(RangeSearch &whole, Index work, const Deadline *deadline, int threads) {
            const Index count = Index(ranges_.size()), all = std::max<Index>(known_.size(), 1);
            const Index turns = (count + threads - 1) / threads; // ranges of each thread
            const double turn = deadline == nullptr ? infinity : deadline->left() / double(turns);
            std::vector<Index> used(std::size_t(count), 0);
            split_one_by_one(threads, count, [&](Index k) {
                const Index p = (first_ + k) % count;
                const Index own = count == 1 ? work : share(work, ranges_[p].size(), all);
                if (deadline == nullptr || count == 1) {
                    used[p] = improve(whole, p, Meter(deadline, own));
                } else if (k == 0 || !deadline->passed()) {
                    const Deadline end = deadline->within(turn);
                    used[p] = improve(whole, p, Meter(&end, own));
                }
            });
            first_ = (first_ + 1) % count;
            return std::accumulate(used.begin(), used.end(), Index(0));
        }

        template <class Count> Index sum(Count count) const {
            Index out = 0;
            for (const auto &search : searches_)
                out += ((*search).*count)();
            return out;
        }

      private:
        static Index share(Index work, Index part, Index all) {
            return Index(double(work) * double(part) / double(all));
        }

        Index improve(RangeSearch &whole, Index p, Meter meter) {
            const Index begin = ranges_[p].begin;
            const Index end =
                p + 1 == Index(ranges_.size()) ? Index(known_.size()) : ranges_[p].end;
            const Index *now = whole.labels_.data();
            if (!std::equal(now + begin, now + end, known_.data() + begin))
                searches_[p]->restart();
            searches_[p]->run(meter);
            std::copy(now + begin, now + end, known_.data() + begin);
            return meter.used();
        }

        std::unique_ptr<SearchArrays> arrays_;
        std::vector<Index> known_; // the labels after the last call
        std::vector<NodeRange> ranges_;
        std::vector<std::unique_ptr<Search>> searches_;
        Index first_ = 0; // the range that the next call begins with
    };

    template <class Count> Index sum(Count count) const {
        Index out = 0;
        for (const Layer &layer : layers_)
            out += layer.sum(count);
        return out;
    }

    // The number of variables of a range; all of them in small models, in models with auxiliary
    // nodes, and if too many variables would be at the border of a range, as in random graphs.
    static Index range_length(const LabelGraph &graph);

    const LabelGraph &graph_;
    const SearchOptions options_;
    std::vector<Index> labels_;
    std::vector<Layer> layers_;
    Index turn_ = 0;
};

} // namespace softmap
