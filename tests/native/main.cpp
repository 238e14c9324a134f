// Checks of what proofs rest on, for one instruction set; `--digests` prints those to be stored.
#include "base/cpu.hpp"
#include "check.hpp"

#include <cstring>

int main(int count, char **words) {
    const bool print = count > 1 && std::strcmp(words[1], "--digests") == 0;
    if (std::strcmp(SOFTMAP_LEVEL, softmap::cpu_level()) > 0) {
        std::printf("%s: skipped, as this processor is of level %s\n", SOFTMAP_LEVEL,
                    softmap::cpu_level());
        return 0;
    }
    if (!print) {
        checks::check_rounding();
        checks::check_lanes();
        checks::check_messages();
        checks::check_bounds();
        checks::check_prices();
        checks::check_threads();
        checks::check_moves();
        checks::check_search();
    }
    checks::check_bits(print);
    if (!print)
        std::printf("%s: %d passed, %d failed\n", SOFTMAP_LEVEL, checks::passed, checks::failed);
    return checks::failed > 0;
}
