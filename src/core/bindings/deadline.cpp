// The deadline of a run, which Python sets and compiled loops look at.
#include "base/deadline.hpp"
#include "bind.hpp"

#include <optional>
#include <thread>

namespace softmap {
namespace {

// Python's signal handlers run in its main thread only, and not while that thread computes here.
// Looks of that thread call them, 20 times a second: taking the interpreter's lock may mean waiting
// for another thread. What a handler raises is raised after the call, as soon as Python goes on.
class Signals {
  public:
    static inline std::thread::id main_thread;

    static bool poll() {
        using Clock = Deadline::Clock;
        static Clock::time_point next{}; // of the main thread alone
        if (std::this_thread::get_id() != main_thread || Clock::now() < next)
            return false;
        next = Clock::now() + std::chrono::milliseconds(50);
        const nb::gil_scoped_acquire held;
        if (PyErr_CheckSignals() == 0)
            return false;
        raised = new nb::python_error();
        Py_AddPendingCall(&raise, nullptr);
        return true;
    }

  private:
    static inline nb::python_error *raised = nullptr;

    static int raise(void *) {
        if (raised == nullptr)
            return 0;
        raised->restore();
        delete std::exchange(raised, nullptr);
        return -1;
    }
};

Deadline after(double seconds) {
    Deadline out(seconds);
    out.set_poll(&Signals::poll);
    return out;
}

bool in_main_thread() {
    const nb::module_ threading = nb::module_::import_("threading");
    return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

} // namespace

void bind_deadline(nb::module_ &m) {
    if (in_main_thread())
        Signals::main_thread = std::this_thread::get_id();
    nb::exception<OutOfTime>(m, "OutOfTime");
    nb::class_<Deadline>(m, "Deadline",
                         "When compiled loops have to stop: at a time, or once `stop` is called.")
        .def(
            "__init__", [](Deadline *out, double seconds) { new (out) Deadline(after(seconds)); },
            nb::arg("seconds") = infinity)
        .def("stop", &Deadline::stop,
             "Stop all loops with this deadline, or with one made from it, for good.")
        .def_prop_ro("stopped", &Deadline::stopped, "Whether `stop` was called.")
        .def_prop_ro("passed", &Deadline::passed, "Whether loops have to stop.")
        .def(
            "require", [](const Deadline &own) { require_time(&own); },
            "Raise OutOfTime if loops have to stop.")
        .def_prop_ro("left", &Deadline::left, "Seconds until the end; 0 if it has passed.")
        .def_prop_rw("end", &Deadline::end, &Deadline::set_end,
                     "The end, in seconds of time.perf_counter; +inf if there is none.")
        .def("at", &Deadline::at, nb::arg("end"),
             "Return a deadline with this end if it is earlier; both are stopped together.")
        .def("within", &Deadline::within, nb::arg("seconds"),
             "Return a deadline that ends so many seconds from now, or earlier; both are stopped "
             "together.")
        .def("stop_after", &Deadline::stop_after, nb::arg("looks"),
             "For tests: let the k-th look of a loop from now on stop all loops.");
}

} // namespace softmap
