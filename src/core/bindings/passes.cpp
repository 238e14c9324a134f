// Bindings of schedules and of passes over chains.
#include "bind.hpp"
#include "kernels/kernels.hpp"
#include "passes/chains.hpp"
#include "proof/pricing.hpp"

#include <nanobind/stl/tuple.h>

namespace softmap {
namespace {

void fill_schedule(HeldSchedule *self, nb::dict arrays) {
    HeldSchedule made; // not *self, which is never destroyed if an array is refused
    Schedule &v = made.view;
    const auto take = [&]<class T>(const char *name, const T *&place) {
        return made.take(arrays, name, place);
    };
    const std::uint8_t *rows, *blocks;
    v.levels = take("row_start", v.row_start) - 1;
    v.num_rows = take("rows", rows) / Index(sizeof(Row));
    v.rows = reinterpret_cast<const Row *>(rows);
    const Index nodes = take("nodes", v.nodes);
    require(take("chains", v.chains) == nodes + lanes, "chains needs one entry per node and lane");
    v.num_costs = take("unary", v.unary);
    take("pull_at", v.pull_at);
    take("pull_step", v.pull_step);
    v.num_blocks = take("blocks", blocks) / Index(sizeof(Block));
    v.blocks = reinterpret_cast<const Block *>(blocks);
    v.num_lanes = take("edge", v.edge);
    const Index weights = take("weight", v.weight), cuts = take("truncation", v.truncation);
    v.one_weight = weights == lanes, v.one_truncation = cuts == lanes;
    require(weights == v.num_lanes || v.one_weight, "weight needs one entry per lane, or one tile");
    require(cuts == v.num_lanes || v.one_truncation || cuts == 0,
            "truncation needs one entry per lane, one tile, or none");
    require(take("early_at", v.early_at) == take("early_step", v.early_step) &&
                take("late_at", v.late_at) == take("late_step", v.late_step),
            "early_at and early_step, or late_at and late_step, differ in size");
    take("table", v.table);
    const Index starts = take("forward_start", v.forward_start) - 1;
    v.bands = v.levels ? starts / v.levels : 1;
    require(1 <= v.bands && v.bands <= most_bands && starts == v.levels * v.bands,
            "forward_start needs one entry per level and band");
    require(take("backward_start", v.backward_start) == starts + 1,
            "backward_start needs one entry per level and band");
    require(take("forward", v.forward) == v.num_blocks, "forward needs one entry per block");
    require(take("backward", v.backward) == v.num_blocks, "backward needs one entry per block");
    require(take("later", v.later) == v.num_blocks, "later needs one entry per block");
    require(take("forward_after", v.forward_after) == 2 * starts &&
                take("backward_after", v.backward_after) == 2 * starts,
            "forward_after and backward_after need two entries per level and band");
    v.widest_tile = v.widest_single = 1;
    for (Index b = 0; b < v.num_blocks; ++b) {
        const Block &block = v.blocks[b];
        require(block.kind < Families::size, "unknown kind of potential in block ", b);
        Index &widest = block.count ? v.widest_tile : v.widest_single;
        widest = std::max({widest, Index(block.early), Index(block.late)});
    }
    new (self) HeldSchedule(std::move(made));
}

// The arrays of a run of passes, checked and kept alive.
class HeldArrays {
  public:
    HeldArrays(Out<double> msg, Out<float> drift, Out<double> theta, Out<double> shift,
               Out<double> dot, Out<double> clock)
        : blocks_(Index(shift.size())) {
        require_size(dot, blocks_, "dot");
        require_size(clock, 3, "clock");
        require(msg.size() >= drift.size(),
                "there are fewer messages in msg than entries in drift");
        view = {held_.keep(msg),
                held_.keep(drift),
                Index(drift.size()),
                held_.keep(theta),
                held_.keep(shift),
                held_.keep(dot),
                sums_,
                reinterpret_cast<Clock *>(held_.keep(clock))};
        costs_ = Index(theta.size());
    }
    HeldArrays(const HeldArrays &) = delete;

    void require_fit(const HeldSchedule &plan) const {
        require(plan.view.num_blocks == blocks_ && plan.view.num_costs <= costs_,
                "the arrays do not fit the schedule");
    }

    ChainArrays view;

  private:
    Held<int> held_;
    double sums_[partial_sums];
    Index blocks_, costs_;
};

// When passes add node marginals to an average: after `done` passes so far and `samples` samples,
// whenever the number of passes is a multiple of `every`. Nesterov's t is then capped at `longest`.
// `recent` is the number of samples that the last one counts for, about. There is no average if
// `mean` is empty.
struct Averaging {
    Averaging(Out<double> mean, Index done, Index every, double longest, Index samples,
              double recent)
        : Averaging(Index(mean.size()), done, every, longest, samples, recent) {
        wide = held.keep(mean);
    }
    Averaging(Out<float> mean, Index done, Index every, double longest, Index samples,
              double recent)
        : Averaging(Index(mean.size()), done, every, longest, samples, recent) {
        narrow = held.keep(mean);
    }

    double *wide = nullptr;
    float *narrow = nullptr;
    Index size, done, every;
    double longest;
    Index samples;
    double recent;

  private:
    Averaging(Index size, Index done, Index every, double longest, Index samples, double recent)
        : size(size), done(done), every(every), longest(longest), samples(samples), recent(recent) {
        require(done >= 0 && every >= 1 && samples >= 0,
                "done and samples must be at least 0, every at least 1");
    }
    Held<int> held;
};

struct ChainCalls {
    using Lay = const HeldLayout &;
    using Plan = const HeldSchedule &;
    using Arrays = const HeldArrays &;

    static void pack_all(Lay lay, In<std::uint8_t> blocks, In<std::int32_t> edge,
                         Out<double> weight, Out<double> truncation, Out<double> table,
                         int threads) {
        const auto by_lane = [&](Out<double> values) -> double * {
            if (values.size() == edge.size())
                return values.data();
            require(values.size() == lanes || values.size() == 0,
                    "weight and truncation need one entry per lane, or one tile");
            return nullptr; // one tile, which is filled already
        };
        double *weights = by_lane(weight), *cuts = by_lane(truncation);
        const auto *from = reinterpret_cast<const Block *>(blocks.data());
        split(threads, Index(blocks.size() / sizeof(Block)), [&](Index first, Index last) {
            pack_lanes(lay.view, from, first, last, edge.data(), weights, cuts, table.data());
        });
    }
    static void to_messages(Lay lay, Plan plan, In<double> lam, Out<double> msg, int threads) {
        require_size(lam, lay.view.half_at(2 * lay.view.m), "lam");
        split(threads, plan.view.num_blocks, [&](Index first, Index last) {
            pack(lay.view, plan.view, lam.data(), msg.data(), first, last);
        });
    }
    static void spread_lam(Lay lay, Plan plan, In<double> lam, In<Index> source, In<double> part,
                           Out<double> msg, int threads) {
        require_size(source, 2 * lay.view.m, "source");
        require_size(part, 2 * lay.view.m, "part");
        for (Index h = 0; h < 2 * lay.view.m; ++h)
            require((source.data()[h] + 1) * lay.view.labels_at(h) <= Index(lam.size()),
                    "source names half-edges past the end of lam");
        split(threads, plan.view.num_blocks, [&](Index first, Index last) {
            spread(plan.view, lam.data(), source.data(), part.data(), msg.data(), first, last);
        });
    }
    static void to_lam(Lay lay, Plan plan, In<double> msg, Out<double> lam, int threads) {
        require_size(lam, lay.view.half_at(2 * lay.view.m), "lam");
        split(threads, plan.view.num_blocks, [&](Index first, Index last) {
            unpack(lay.view, plan.view, msg.data(), lam.data(), first, last);
        });
    }
    // The number of threads that a pass can use.
    static int useful(Plan plan, int threads) {
        require(threads >= 1, "threads must be at least 1");
        return int(std::min<Index>(threads, plan.view.bands));
    }
    // Returns the number of half passes that were completed before the deadline.
    static Index run(Lay lay, Plan plan, Arrays arrays, Index halves, double eta, bool momentum,
                     int threads, const Deadline *deadline) {
        arrays.require_fit(plan);
        const Stoppable run(arrays.view, deadline);
        together(useful(plan, threads), [&](Member &me) {
            kernels->passes(lay.view, plan.view, halves, run.view, eta, momentum, me);
        });
        return run.completed(halves);
    }
    // Makes `count` passes with momentum and with samples. Returns the number of passes that were
    // completed before the deadline.
    static Index run_sampled(Lay lay, Plan plan, Arrays arrays, Index count, double eta,
                             const Averaging &mean, int threads, const Deadline *deadline) {
        if (mean.size)
            require(mean.size == lay.view.node_offset[lay.view.n],
                    "mean must have one entry per node state");
        Index done = mean.done, samples = mean.samples;
        while (done < mean.done + count) {
            const Index now = std::min(mean.done + count - done, mean.every - done % mean.every);
            const Index halves = run(lay, plan, arrays, 2 * now, eta, true, threads, deadline);
            done += halves / 2;
            if (halves < 2 * now)
                break;
            if (done % mean.every)
                continue;
            arrays.view.clock->t = std::min(arrays.view.clock->t, mean.longest);
            if (!mean.size)
                continue;
            // theta holds the shares of all nodes: none changed after the half pass reached it
            const double weight = (mean.recent + 1.0) / (double(++samples) + mean.recent);
            if (mean.wide)
                blend_into(lay, plan, arrays.view.theta, eta, weight, mean.wide, threads);
            else
                blend_into(lay, plan, arrays.view.theta, eta, weight, mean.narrow, threads);
        }
        return done - mean.done;
    }
    // mean += weight · (marginals of the shares - mean); at weight 1, `mean` need not be
    // initialised.
    template <class T>
    static void blend(Lay lay, Plan plan, In<double> theta, double eta, double weight, Out<T> mean,
                      int threads) {
        require_shares(plan, theta);
        require_size(mean, lay.view.node_offset[lay.view.n], "mean");
        blend_into(lay, plan, theta.data(), eta, weight, mean.data(), threads);
    }
    template <class T>
    static void blend_into(Lay lay, Plan plan, const double *theta, double eta, double weight,
                           T *mean, int threads) {
        split(threads, plan.view.num_rows, [&](Index first, Index last) {
            soft<T>()(lay.view, plan.view, theta, eta, weight, mean, nullptr, nullptr, first, last);
        });
    }
    template <class T> static SoftRows<T> soft() {
        if constexpr (std::is_same_v<T, double>)
            return kernels->soft_rows;
        else
            return kernels->soft_rows_in_single;
    }
    static void require_shares(Plan plan, In<double> theta) {
        require(Index(theta.size()) >= plan.view.num_costs, "theta must hold the shares of nodes");
    }
    // out = marginals of the shares. Returns the sum of their entropies H_i, each times |N_i| -
    // n_i, and that of the soft minima of the shares, each times the number of chains that end at
    // the node in a forward (backward) half pass. Terms are summed in fixed portions of the rows.
    template <class T>
    static std::tuple<double, double> marginals(Lay lay, Plan plan, In<double> theta, double eta,
                                                bool forward, Out<T> out, int threads) {
        require_shares(plan, theta);
        require_size(out, lay.view.node_offset[lay.view.n], "out");
        const Schedule &v = plan.view;
        constexpr Index size = 512; // rows
        const Index portions = (v.num_rows + size - 1) / size;
        std::vector<double> entropies(static_cast<std::size_t>(portions)), minima = entropies;
        split_portions(threads, portions, lay.view.n, [&](Part part) {
            std::vector<double> entropy(std::size_t(size * lanes)), minimum = entropy;
            const Index p = part.index, first = p * size, last = std::min(first + size, v.num_rows);
            soft<T>()(lay.view, v, theta.data(), eta, 1.0, out.data(), entropy.data(),
                      minimum.data(), first, last);
            const Index begin = v.rows[first].first;
            Index count = 0;
            for (Index r = first; r < last; ++r)
                for (Index k = v.rows[r].first; k < v.rows[r].first + v.rows[r].nodes; ++k) {
                    const Index chains = v.chains_at(k), degree = v.rows[r].degree;
                    const Index onwards = v.onwards_at(k, degree);
                    entropy[k - begin] *= double(degree - chains);
                    minimum[k - begin] *= double(chains - (forward ? onwards : degree - onwards));
                    ++count;
                }
            entropies[p] = careful_sum(entropy.data(), count);
            minima[p] = careful_sum(minimum.data(), count);
        });
        return {careful_sum(entropies.data(), portions), careful_sum(minima.data(), portions)};
    }
    static void run_half(Lay lay, Plan plan, Arrays arrays, bool forward, double eta, bool momentum,
                         int threads) {
        arrays.require_fit(plan);
        together(useful(plan, threads), [&](Member &me) {
            kernels->one_half(lay.view, plan.view, forward, arrays.view, eta, momentum, me);
        });
    }
    // Throws OutOfTime if the deadline passes first.
    static void run_lowered(Lay lay, Plan plan, Arrays arrays, int threads,
                            const Deadline *deadline) {
        arrays.require_fit(plan);
        const Stoppable run(arrays.view, deadline);
        together(useful(plan, threads),
                 [&](Member &me) { kernels->lowered_half(lay.view, plan.view, run.view, me); });
        if (run.completed(1) < 1)
            throw OutOfTime();
    }
    static double bound(Plan plan, In<double> theta, In<double> shift, double constant,
                        int threads) {
        require_size(shift, plan.view.num_blocks, "shift");
        require_shares(plan, theta);
        const auto rests = [&](double *out, Index first, Index last) {
            return kernels->least_rests(plan.view, theta.data(), out, first, last);
        };
        return chain_bound(plan.view, rests, shift.data(), constant, threads);
    }
    static void move_on(Out<double> msg, Out<float> drift, Out<double> clock, int threads) {
        require(msg.size() >= drift.size(),
                "there are fewer messages in msg than entries in drift");
        require_size(clock, 3, "clock");
        require(threads >= 1, "threads must be at least 1");
        together(threads, [&](Member &me) {
            kernels->extrapolate(msg.data(), drift.data(), Index(drift.size()),
                                 *reinterpret_cast<Clock *>(clock.data()), me);
        });
    }
    static void run_traced(Lay lay, Plan plan, Arrays arrays, Index count, int threads,
                           const Deadline *deadline) {
        arrays.require_fit(plan);
        const Stoppable run(arrays.view, deadline);
        together(useful(plan, threads), [&](Member &me) {
            kernels->traced_passes(lay.view, plan.view, count, run.view, me);
        });
    }
    static void round_all(Out<double> msg, Out<float> drift, int threads) {
        move_by(kernels->round_off, msg, drift, threads);
    }
    static void put_all_back(Out<double> msg, Out<float> drift, int threads) {
        move_by(kernels->put_back, msg, drift, threads);
    }
    static void move_by(void (*move)(double *, float *, Index, Member &), Out<double> msg,
                        Out<float> drift, int threads) {
        require(msg.size() >= drift.size(),
                "there are fewer messages in msg than entries in drift");
        require(threads >= 1, "threads must be at least 1");
        together(Index(drift.size()) < worthwhile ? 1 : threads,
                 [&](Member &me) { move(msg.data(), drift.data(), Index(drift.size()), me); });
    }
    // One call, so that no signal handler runs between the two halves of the swap.
    static void exchange(Out<double> first, Out<double> second, int threads) {
        require_size(second, Index(first.size()), "second");
        double *one = first.data(), *other = second.data();
        split(threads, Index(first.size()), [&](Index begin, Index end) {
            std::swap_ranges(one + begin, one + end, other + begin);
        });
    }
    // Each thread first touches the memory that it copies to: pages are spread over the machine.
    template <class From, class To> static void copy_into(In<From> from, Out<To> to, int threads) {
        require_size(to, Index(from.size()), "to");
        split(threads, Index(from.size()), [&](Index begin, Index end) {
            std::copy(from.data() + begin, from.data() + end, to.data() + begin);
        });
    }
    static void share(Plan plan, In<double> msg, Out<double> theta, int threads) {
        split(threads, plan.view.num_rows, [&](Index first, Index last) {
            kernels->shares(plan.view, msg.data(), theta.data(), first, last);
        });
    }
    static void nodes(Lay lay, Plan plan, In<double> theta, Out<double> out, int threads) {
        require_size(out, lay.view.node_offset[lay.view.n], "out");
        split(threads, plan.view.num_rows, [&](Index first, Index last) {
            by_node(lay.view, plan.view, theta.data(), out.data(), first, last);
        });
    }
    static void cut(Lay lay, Plan plan, In<double> msg, In<double> theta, Out<double> lam,
                    int threads) {
        require_size(lam, lay.view.half_at(2 * lay.view.m), "lam");
        split(threads, plan.view.num_blocks, [&](Index first, Index last) {
            cut_chains(lay.view, plan.view, msg.data(), theta.data(), lam.data(), first, last);
        });
    }
    static void couple(Lay lay, Plan plan, In<double> msg, In<double> theta, Out<double> out,
                       int threads) {
        require_size(out, lay.view.half_at(2 * lay.view.m), "out");
        split(threads, plan.view.num_blocks, [&](Index first, Index last) {
            couplings(lay.view, plan.view, msg.data(), theta.data(), out.data(), first, last);
        });
    }

    // Row p of `out`: cost, entropy and slack, summed over the edges of portion p. Throws
    // OutOfTime if the deadline passes first.
    template <class T>
    static void price(Lay lay, Plan plan, In<double> msg, In<double> theta, In<T> nodes, double eta,
                      bool whole, OutMatrix<double> out, int threads, const Deadline *deadline) {
        const Index portions = portions_of(plan);
        require(Index(theta.size()) > plan.view.num_costs, "theta must hold the shares of nodes");
        require_size(nodes, lay.view.node_offset[lay.view.n], "nodes");
        require(eta > 0.0, "eta must be positive");
        require(Index(out.shape(0)) == portions && out.shape(1) == 3, "out must be portions by 3");
        ChainPoint point{lay.view, plan.view, msg.data(), theta.data(),
                         nullptr,  nullptr,   eta,        whole};
        if constexpr (std::is_same_v<T, double>)
            point.nodes = nodes.data();
        else
            point.rounded = nodes.data();
        auto *prices = reinterpret_cast<Prices *>(out.data());
        portions_in_time(threads, portions, lay.view.m, deadline,
                         [&](Index p) { kernels->price_portions(point, prices, p, p + 1); });
    }
    static Index portions_of(Plan plan) {
        return (plan.view.num_blocks + Pricing::portion - 1) / Pricing::portion;
    }
    static void read(Lay lay, Plan plan, In<double> msg, double margin, Out<Index> labels,
                     int threads) {
        require_size(labels, lay.view.n, "labels");
        together(lay.view.m < worthwhile ? 1 : threads, [&](Member &me) {
            kernels->read_labels(lay.view, plan.view, msg.data(), margin, labels.data(), me);
        });
    }

    // Functions that read or write node marginals in either precision.
    template <class T> [[gnu::cold]] static void bind_points(nb::module_ &m) {
        m.def("blend", &blend<T>, arg("layout"), arg("schedule"), arg("theta"), nb::arg("eta"),
              nb::arg("weight"), arg("mean"), arg("threads"), Unlocked(),
              "Move an average of node marginals towards the marginals of shares.");
        m.def("marginals", &marginals<T>, arg("layout"), arg("schedule"), arg("theta"),
              nb::arg("eta"), nb::arg("forward"), arg("out"), arg("threads"), Unlocked(),
              "Compute the node marginals of shares; return sums of entropies and soft minima.");
        m.def("price", &price<T>, arg("layout"), arg("schedule"), arg("msg"), arg("theta"),
              arg("nodes"), nb::arg("eta"), nb::arg("whole"), arg("out"), arg("threads"),
              deadline_arg(), Unlocked(),
              "Compute the cost (if `whole`, also entropy and slack) of couplings near κ = share - "
              "message.");
    }

    [[gnu::cold]] static void bind(nb::module_ &m) {
        nb::class_<HeldSchedule>(m, "Schedule", "The order of updates in a pass, and its arrays.")
            .def("__init__", &fill_schedule, nb::arg("arrays"));
        m.def("pack_lanes", &pack_all, arg("layout"), arg("blocks"), arg("edge"), arg("weight"),
              arg("truncation"), arg("table"), arg("threads") = 1, Unlocked());
        m.def("to_messages", &to_messages, arg("layout"), arg("schedule"), arg("lam"), arg("msg"),
              nb::arg("threads") = 1, Unlocked());
        m.def("spread", &spread_lam, arg("layout"), arg("schedule"), arg("lam"), arg("source"),
              arg("part"), arg("msg"), nb::arg("threads") = 1, Unlocked(),
              "Compute messages into early endpoints from λ of a coarser model.");
        m.def("to_lam", &to_lam, arg("layout"), arg("schedule"), arg("msg"), arg("lam"),
              nb::arg("threads") = 1, Unlocked());
        nb::class_<HeldArrays>(m, "ChainArrays", "The arrays of a run of passes.")
            .def(nb::init<Out<double>, Out<float>, Out<double>, Out<double>, Out<double>,
                          Out<double>>(),
                 arg("msg"), arg("drift"), arg("theta"), arg("shift"), arg("dot"), arg("clock"));
        nb::class_<Averaging>(m, "Averaging", "When passes add node marginals to an average.")
            .def(nb::init<Out<double>, Index, Index, double, Index, double>(), arg("mean"),
                 arg("done"), arg("every"), nb::arg("longest"), arg("samples"), nb::arg("recent"))
            .def(nb::init<Out<float>, Index, Index, double, Index, double>(), arg("mean"),
                 arg("done"), arg("every"), nb::arg("longest"), arg("samples"), nb::arg("recent"));
        m.def("passes", &run, arg("layout"), arg("schedule"), arg("arrays"), arg("halves"),
              nb::arg("eta"), arg("momentum"), arg("threads"), deadline_arg(), Unlocked(),
              "Make half passes; return how many were completed before the deadline.");
        m.def("sampled_passes", &run_sampled, arg("layout"), arg("schedule"), arg("arrays"),
              arg("count"), nb::arg("eta"), arg("averaging"), arg("threads"), deadline_arg(),
              Unlocked(),
              "Make passes with momentum, and update a running average of the node marginals; "
              "return how many were completed before the deadline.");
        bind_points<double>(m);
        bind_points<float>(m);
        m.def("half_pass", &run_half, arg("layout"), arg("schedule"), arg("arrays"), arg("forward"),
              nb::arg("eta"), arg("momentum"), arg("threads"), Unlocked());
        m.def("lowered_half", &run_lowered, arg("layout"), arg("schedule"), arg("arrays"),
              arg("threads"), deadline_arg(), Unlocked(),
              "Make a forward half pass with hard minima, rounded down; raise OutOfTime if the "
              "deadline passes first.");
        m.def("chain_bound", &bound, arg("schedule"), arg("theta"), arg("shift"),
              nb::arg("constant"), arg("threads"), Unlocked(),
              "Return a lower bound on the bound of `cut_chains` after `lowered_half`.");
        m.def("portions", &portions_of, arg("schedule"),
              "Return the number of rows that `price` writes.");
        m.def("read_labels", &read, arg("layout"), arg("schedule"), arg("msg"), nb::arg("margin"),
              arg("labels"), arg("threads"), Unlocked(),
              "Decode labels of all nodes from the messages of a hard forward half pass.");
        m.def("extrapolate", &move_on, arg("msg"), arg("drift"), arg("clock"), arg("threads"),
              Unlocked());
        m.def("traced_passes", &run_traced, arg("layout"), arg("schedule"), arg("arrays"),
              arg("count"), arg("threads"), deadline_arg(), Unlocked(),
              "Make hard passes; what they subtract from messages is added to drift.");
        m.def("round_off", &round_all, arg("msg"), arg("drift"), nb::arg("threads") = 1, Unlocked(),
              "Round messages to single precision; the rests are added to drift.");
        m.def("put_back", &put_all_back, arg("msg"), arg("drift"), nb::arg("threads") = 1,
              Unlocked(), "Add drift to messages; it becomes 0.");
        m.def("exchange", &exchange, arg("first"), arg("second"), nb::arg("threads") = 1,
              Unlocked(), "Exchange the contents of two arrays.");
        const auto bind_copy = [&](auto copy) {
            m.def("copy_into", copy, arg("source"), arg("to"), nb::arg("threads") = 1, Unlocked(),
                  "Copy an array into another one.");
        };
        bind_copy(&copy_into<double, double>);
        bind_copy(&copy_into<double, float>);
        bind_copy(&copy_into<float, double>);
        bind_copy(&copy_into<float, float>);
        m.def("shares", &share, arg("schedule"), arg("msg"), arg("theta"), arg("threads"),
              Unlocked());
        m.def("by_node", &nodes, arg("layout"), arg("schedule"), arg("theta"), arg("out"),
              arg("threads"), Unlocked());
        m.def("cut_chains", &cut, arg("layout"), arg("schedule"), arg("msg"), arg("theta"),
              arg("lam"), arg("threads"), Unlocked());
        m.def("couplings", &couple, arg("layout"), arg("schedule"), arg("msg"), arg("theta"),
              arg("out"), arg("threads"), Unlocked());
    }
};

// Copies node costs from the order of the model into the order of strips.
void arrange(const HeldLayout &lay, In<std::int32_t> nodes, In<std::uint8_t> rows, Out<double> out,
             int threads) {
    const Layout &v = lay.view;
    require_size(nodes, v.n, "nodes");
    for (Index k = 0; k < v.n; ++k)
        require(0 <= nodes.data()[k] && nodes.data()[k] < v.n, "there is no node ",
                nodes.data()[k]);
    const auto *row = reinterpret_cast<const Row *>(rows.data());
    const Index count = Index(rows.size() / sizeof(Row));
    for (Index r = 0; r < count; ++r) {
        require(0 <= row[r].first && 0 <= row[r].nodes && row[r].first + row[r].nodes <= v.n,
                "row ", r, " has no nodes");
        require(0 <= row[r].place && 0 <= row[r].step &&
                    row[r].place + (row[r].labels - 1) * Index(row[r].step) + row[r].nodes <=
                        Index(out.size()),
                "row ", r, " has no room");
        for (Index k = 0; k < row[r].nodes; ++k)
            require(v.num_labels[nodes.data()[row[r].first + k]] == row[r].labels, "a node of row ",
                    r, " has other labels");
    }
    split(threads, count, [&](Index first, Index last) {
        by_strip(v, nodes.data(), row, out.data(), first, last);
    });
}

} // namespace

void bind_passes(nb::module_ &m) {
    ChainCalls::bind(m);
    m.attr("RELAX") = chain_momentum.relax;
    m.attr("TURN") = chain_momentum.turn;
    m.def("by_strip", &arrange, arg("layout"), arg("nodes"), arg("rows"), arg("out"),
          arg("threads") = 1, Unlocked(), "Copy the costs of the nodes into the order of strips.");
    m.def("packed_size", [](Index kind, Index early, Index late) {
        return Families::visit(kind, [&](auto family) { return family.packed_size(early, late); });
    });
}

} // namespace softmap
