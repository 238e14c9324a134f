// Calls of bound functions.
#include "call.hpp"

#include <stdexcept>
#include <vector>

namespace softmap {
namespace {

// A bound function with what is needed to call it; it lives as long as the process.
struct Bound {
    const char *name, *doc = "";
    const Signature *signature;
    alignas(16) unsigned char target[16] = {};
    bool method, constructor, unlocked = false, kept = false;
    std::vector<Entry> parameters{};

    const Entry &parameter(std::size_t k) const { return parameters[k - method]; }
};

// The arguments of a call as C++ reads them.
class Arguments {
  public:
    explicit Arguments(const Bound &bound) : bound_(bound) {}
    ~Arguments() {
        for (; done_ > 0; --done_)
            if (const auto clear = bound_.signature->readers[done_ - 1]->clear)
                clear(memory_[done_ - 1]);
    }
    Arguments(const Arguments &) = delete;

    // Whether the arguments fit.
    bool read(nb::handle self, const nb::args &given, const nb::kwargs &named) {
        const std::size_t first = bound_.method, positional = given.size() + first;
        std::size_t used = 0;
        if (first && !read(self, false, false))
            return false;
        while (done_ < bound_.signature->count) {
            const Entry &own = bound_.parameter(done_);
            nb::handle from = own.standard;
            if (done_ < positional) {
                from = PyTuple_GetItem(given.ptr(), Py_ssize_t(done_ - first));
            } else if (const auto found = PyDict_GetItemString(named.ptr(), own.text)) {
                from = found;
                ++used;
            }
            if (!from.is_valid() || !read(from, own.converted, own.nullable))
                return false;
        }
        return used == named.size() && positional <= bound_.signature->count;
    }
    nb::object call() {
        PyObject *out = bound_.signature->call(bound_.target, memory_, bound_.unlocked);
        return out ? nb::steal(out) : nb::none();
    }

  private:
    static constexpr std::size_t most = 24; // parameters

    const Bound &bound_;
    std::size_t done_ = 0;
    alignas(16) unsigned char memory_[most][Reader::room];

    bool read(nb::handle from, bool converted, bool nullable) {
        const Reader &reader = *bound_.signature->readers[done_];
        if (reader.pointer && nullable && from.is_none())
            ::new (memory_[done_]) void *(nullptr);
        else if (!reader.read(from, memory_[done_], converted))
            return false;
        ++done_;
        return true;
    }
};

nb::object called(const Bound &bound, nb::handle self, const nb::args &given,
                  const nb::kwargs &named) {
    Arguments arguments(bound);
    if (!arguments.read(self, given, named))
        return nb::steal(NB_NEXT_OVERLOAD); // a TypeError after the last one; throwing takes long
    nb::object out = arguments.call();
    if (bound.constructor)
        nb::inst_mark_ready(self);
    return out;
}

// The name of a type. Texts of types that are read and returned are on the two sides of an @.
std::string type_name(nb::handle (*type)(), const char *text, bool returned) {
    if (type) {
        const nb::handle own = type();
        return std::string(nb::str(own.attr("__module__")).c_str()) + "." +
               nb::str(own.attr("__qualname__")).c_str();
    }
    std::string out;
    int side = 0;
    for (; *text; ++text)
        if (*text == '@')
            side = (side + 1) % 3;
        else if (side == 0 || (side == 2) == returned)
            out += *text;
    return out;
}

// As Python writes it: def name(a: int, b: float = 0.0) -> None
std::string written(const Bound &bound) {
    std::string out = "def " + std::string(bound.name) + (bound.method ? "(self" : "(");
    for (std::size_t k = bound.method; k < bound.signature->count; ++k) {
        const Entry &own = bound.parameter(k);
        const Reader &reader = *bound.signature->readers[k];
        out += (k ? ", " : "") + std::string(own.text) + ": " +
               type_name(reader.type, reader.text, false);
        if (reader.pointer && own.nullable)
            out += " | None";
        if (own.standard) {
            const std::string value = nb::repr(own.standard).c_str();
            out += " = " + (value == "inf" ? "float('inf')" : value);
        }
    }
    return out + ") -> " + type_name(bound.signature->type, bound.signature->text, true);
}

} // namespace

Released::Released(bool really) : state_(really ? PyEval_SaveThread() : nullptr) {}
Released::~Released() {
    if (state_)
        PyEval_RestoreThread(state_);
}

void add_function(nb::handle scope, bool method, const char *name, const Signature *signature,
                  const void *target, const Entry *entries, std::size_t count) {
    auto *bound = new Bound{.name = name,
                            .signature = signature,
                            .method = method,
                            .constructor = method && std::strcmp(name, "__init__") == 0};
    std::memcpy(bound->target, target, signature->size);
    for (const Entry *entry = entries; entry < entries + count; ++entry)
        if (entry->kind == Entry::PARAMETER)
            bound->parameters.push_back(*entry);
        else if (entry->kind == Entry::TEXT)
            bound->doc = entry->text;
        else
            (entry->kind == Entry::KEPT ? bound->kept : bound->unlocked) = true;
    if (bound->parameters.size() + method != signature->count)
        throw std::logic_error(std::string(name) + " needs a name for every parameter");
    const std::string text = written(*bound);
    const nb::sig sig(text.c_str());
    const nb::scope place(scope);
    const nb::name own_name(name);
    const auto call = [bound](nb::args given, nb::kwargs named) {
        return called(*bound, {}, given, named);
    };
    const auto call_method = [bound](nb::handle self, nb::args given, nb::kwargs named) {
        return called(*bound, self, given, named);
    };
    if (!method)
        nb::cpp_function_def<void>(call, place, own_name, sig, bound->doc);
    else if (!bound->kept)
        nb::cpp_function_def<void>(call_method, place, own_name, nb::is_method(), sig, bound->doc);
    else // arguments are in the tuple and the dictionary, which the object keeps alive
        nb::cpp_function_def<void>(call_method, place, own_name, nb::is_method(), sig, bound->doc,
                                   nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
}

} // namespace softmap
