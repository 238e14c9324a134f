// Divides the levels of a plan into bands, and lists which bands each band waits for.
//
// A band of a level is a run of rows, and the blocks whose first sender is in these rows. Rows are
// numbered along the order of the nodes in all levels, so that on a grid a band mostly depends on
// itself and on its neighbours: threads then need no barrier between levels (base/wave.hpp).
#pragma once

#include "base/schedule.hpp"
#include "base/team.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <vector>

namespace softmap {

// The blocks of one direction, sorted by level and band; `start` [levels · bands + 1] is the first
// of each, and `after` [levels · bands, 2] the set of bands that must have finished the earlier
// steps before the band computes its shares, and before it sends.
struct BandedBlocks {
    std::vector<Index> start;
    std::vector<std::int32_t> listed;
    std::vector<Bands> after;
};

class Banding {
  public:
    // `rows` and `row_start` are those of the plan, `nodes` the nodes by strip, `level` the level
    // of each node.
    Banding(const std::vector<Row> &rows, const std::vector<Index> &row_start,
            const std::vector<std::int32_t> &nodes, const Index *level, int threads)
        : level_(level), levels_(Index(row_start.size()) - 1), threads_(threads),
          bands_(bands_for(Index(rows.size()), levels_)), band_(nodes.size()) {
        split_portions(threads, levels_, Index(nodes.size()), [&](Part part) {
            const Index l = part.index, begin = row_start[l], count = row_start[l + 1] - begin;
            for (Index r = 0; r < count; ++r) {
                const Row &row = rows[begin + r];
                // the band b with count · b / bands <= r < count · (b + 1) / bands
                const Index band = ((r + 1) * bands_ - 1) / count;
                for (Index k = row.first; k < row.first + row.nodes; ++k)
                    band_[nodes[k]] = std::uint8_t(band);
            }
        });
    }

    Index bands() const { return bands_; }

    // Sorts the blocks of one direction. sender(b, k) and receiver(b, k) are the endpoints of the
    // edge in lane k of block b.
    //
    // A block belongs to the band of its first sender. If bands then depend on most other bands,
    // every level is instead cut into runs of blocks as they are stored, and each band waits for
    // all: scattered blocks would take longer to read.
    template <class Sender, class Receiver>
    BandedBlocks sorted(const std::vector<Block> &blocks, Sender sender, Receiver receiver) const {
        BandedBlocks out;
        const Index count = Index(blocks.size());
        out.after.assign(std::size_t(levels_ * bands_ * 2), 0);
        split(threads_, count, [&](Index first, Index last) {
            for (Index b = first; b < last; ++b) {
                const Index i = sender(b, 0), home = at(i);
                const Bands own = Bands(1) << band_[i];
                for (Index k = 0; k < std::max<Index>(blocks[b].count, 1); ++k) {
                    include(out.after[2 * home + 1], Bands(1) << band_[sender(b, k)]);
                    include(out.after[2 * at(receiver(b, k))], own);
                }
            }
        });
        // the bands that nodes wait for, weighted by messages
        std::atomic<Index> waits = 0;
        split(threads_, count, [&](Index first, Index last) {
            Index some = 0;
            for (Index b = first; b < last; ++b)
                some += std::popcount(out.after[2 * at(receiver(b, 0))]);
            waits += some;
        });
        const bool local = 2 * waits < bands_ * count;
        if (!local)
            std::fill(out.after.begin(), out.after.end(), ~Bands(0) >> (most_bands - bands_));
        list(out, count, [&](Index b) { return sender(b, 0); }, local);
        return out;
    }

  private:
    // Adds to a set that other threads may change as well.
    static void include(Bands &set, Bands more) {
        const std::atomic_ref<Bands> shared(set);
        if (more & ~shared.load(std::memory_order_relaxed))
            shared.fetch_or(more, std::memory_order_relaxed);
    }

    // A power of two, such that a band has one row or more on average.
    static Index bands_for(Index rows, Index levels) {
        Index bands = 1;
        while (bands < most_bands && 2 * bands * levels <= rows)
            bands *= 2;
        return bands;
    }

    // Sorts the blocks by level and, if `local`, by the band of their first sender.
    template <class Sender>
    void list(BandedBlocks &out, Index blocks, Sender sender, bool local) const {
        std::vector<Index> key(static_cast<std::size_t>(blocks)); // level and band of each block
        split(threads_, blocks, [&](Index first, Index last) {
            for (Index b = first; b < last; ++b)
                key[b] = local ? at(sender(b)) : level_[sender(b)] * bands_;
        });
        out.start.assign(std::size_t(levels_ * bands_ + 1), 0);
        for (Index b = 0; b < blocks; ++b)
            ++out.start[key[b] + 1];
        for (std::size_t k = 1; k < out.start.size(); ++k)
            out.start[k] += out.start[k - 1];
        std::vector<Index> next = out.start;
        out.listed.resize(std::size_t(blocks));
        for (Index b = 0; b < blocks; ++b)
            out.listed[next[key[b]]++] = std::int32_t(b);
        for (Index l = 0; !local && l < levels_; ++l) {
            const Index begin = out.start[l * bands_], count = out.start[(l + 1) * bands_] - begin;
            for (Index band = 1; band < bands_; ++band)
                out.start[l * bands_ + band] = begin + count * band / bands_;
        }
    }

    Index at(Index i) const { return level_[i] * bands_ + band_[i]; }

    const Index *level_;
    const Index levels_;
    const int threads_;
    const Index bands_;
    std::vector<std::uint8_t> band_; // [n] band of each node
};

} // namespace softmap
