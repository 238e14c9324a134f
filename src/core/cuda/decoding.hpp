// Belief propagation and Douglas-Rachford splitting (codes/code.hpp) for many shots of a code: one
// thread block per shot.
//
// Checks of one level have no bit in common, and a check comes after all checks before it that
// share a bit with it. So belief propagation level by level computes what it computes check by
// check. Nothing here is trusted: the host checks words and proofs.
#pragma once

#include "codes/cones.hpp"

namespace softmap {
namespace device {

// Arrays of the code. An edge is a pair of a check and one of its bits.
struct CodeArrays {
    const int *start;  // [checks + 1] first edge of each check
    const int *member; // [edges] the bits of check 0, of check 1, ...
    const int *first;  // [bits + 1] first entry of each bit in `edge`
    const int *edge;   // [edges] the edges of bit 0, of bit 1, ..., each in ascending order
    const int *order;  // [checks] checks by level
    const int *level;  // [levels + 1] first entry of each level in `order`
    int bits, checks, levels;
};

// Arrays of one shot; `odd` [checks], `cost`, `word` and `total` [bits], `z` and `b` [edges].
struct ShotArrays {
    const unsigned char *odd;
    const double *cost;
    unsigned char *word;
    double *total, *z, *b;

    double turned(int i) const { return word[i] ? -cost[i] : cost[i]; }
};

// Calls f(k) for k = first .. last - 1, distributed over the threads of a block.
template <class F> inline void each_in_block(int first, int last, F f) {
    for (int k = first + thread_in_block(); k < last; k += block_size())
        f(k);
}

inline void send_from_check(const CodeArrays &code, const ShotArrays &own, int c, double most) {
    const int begin = code.start[c], end = code.start[c + 1];
    for (int e = begin; e < end; ++e)
        own.z[e] = own.total[code.member[e]] - own.b[e];
    parity_messages(own.z + begin, end - begin, own.odd[c], own.b + begin);
    for (int e = begin; e < end; ++e) {
        own.b[e] = std::min(std::max(multiply_nearest(0.85, own.b[e]), -most), most);
        own.total[code.member[e]] = own.z[e] + own.b[e];
    }
}

// Returns the number of rounds until the hard decision became a codeword, or -1.
inline int propagate(const CodeArrays &code, const ShotArrays &own, double most, int rounds) {
    each_in_block(0, code.bits, [&](int i) { own.total[i] = own.cost[i]; });
    each_in_block(0, code.start[code.checks], [&](int e) { own.b[e] = 0.0; });
    for (int round = 0;; ++round) {
        wait_for_block();
        each_in_block(0, code.bits, [&](int i) { own.word[i] = own.total[i] < 0.0; });
        wait_for_block();
        bool wrong = false;
        each_in_block(0, code.checks, [&](int c) {
            unsigned char parity = own.odd[c];
            for (int e = code.start[c]; e < code.start[c + 1]; ++e)
                parity ^= own.word[code.member[e]];
            wrong = wrong || parity;
        });
        if (!any_in_block(wrong))
            return round;
        if (round == rounds)
            return -1;
        for (int l = 0; l < code.levels; ++l) {
            each_in_block(code.level[l], code.level[l + 1],
                          [&](int k) { send_from_check(code, own, code.order[k], most); });
            wait_for_block();
        }
    }
}

// Sums z and b by bit and writes to `total` by how much z exceeds the cost of each bit, per check.
// Returns this thread's part of Σ_i max(0, Σ_c b_ci - cost of i).
inline double add_up_bits(const CodeArrays &code, const ShotArrays &own, double margin) {
    double violation = 0.0;
    each_in_block(0, code.bits, [&](int i) {
        const int begin = code.first[i], end = code.first[i + 1];
        double sum = 0.0, in_cones = 0.0;
        for (int k = begin; k < end; ++k) {
            sum += own.z[code.edge[k]];
            in_cones += own.b[code.edge[k]];
        }
        const double cost = own.turned(i);
        violation += std::max(0.0, in_cones - cost);
        own.total[i] = std::max(0.0, sum - cost + margin) / double(std::max(end - begin, 1));
    });
    return violation;
}

inline void step_of_check(const CodeArrays &code, const ShotArrays &own, int c) {
    const int begin = code.start[c], end = code.start[c + 1];
    for (int e = begin; e < end; ++e)
        own.b[e] = own.z[e] - 2.0 * own.total[code.member[e]];
    into_parity_cone(own.b + begin, end - begin);
    for (int e = begin; e < end; ++e)
        own.z[e] += 1.7 * (own.b[e] - own.z[e] + own.total[code.member[e]]);
}

// Returns the number of steps until `b` seems to prove the word, or -1 if the violation stagnates.
// `shared` is one number that all threads of the block see.
inline int split(const CodeArrays &code, const ShotArrays &own, double margin, int steps,
                 double *shared) {
    each_in_block(0, code.bits, [&](int i) {
        for (int k = code.first[i]; k < code.first[i + 1]; ++k)
            own.z[code.edge[k]] = own.turned(i) / double(code.first[i + 1] - code.first[i]);
    });
    double before = infinity;
    for (int step = 0;; ++step) {
        wait_for_block();
        const double violation = add_up_bits(code, own, margin);
        if (!any_in_block(violation > 0.0) && step > 0)
            return step;
        if (step == steps)
            return -1;
        if (step > 0 && step % 16 == 0) {
            const double sum = block_sum<RoundNearest>(violation);
            if (thread_in_block() == 0)
                *shared = sum;
            wait_for_block();
            if (*shared > 0.7 * before)
                return -1;
            before = *shared;
        }
        each_in_block(0, code.checks, [&](int c) { step_of_check(code, own, c); });
    }
}

// Decodes shots. `stride` is the number of bits, or 0 if all shots have the same costs; `scale` has
// the mean |cost| of a bit, for each row of costs. found[shot] = iterations if the word and `b`
// seem to be a proof, else 0.
SOFTMAP_MODEL_KERNEL decode_shots(CodeArrays code, const double *costs, int stride,
                                  const double *scale, const unsigned char *odd, int rounds,
                                  int steps, double *total, double *z, double *b,
                                  unsigned char *word, double *shared, int *found) {
    const long long shot = block_number(), edges = code.start[code.checks];
    const double mean = scale[stride ? shot : 0];
    const ShotArrays own{odd + shot * code.checks, costs + shot * stride, word + shot * code.bits,
                         total + shot * code.bits, z + shot * edges,      b + shot * edges};
    const int done = propagate(code, own, 1e3 * mean * code.bits, rounds);
    const int proved = done < 0 ? -1 : split(code, own, 1e-4 * mean, steps, shared + shot);
    if (thread_in_block() == 0)
        found[shot] = proved < 0 ? 0 : done + proved;
}

} // namespace device
} // namespace softmap
