#!/bin/sh
# Installed by make as c++, ar and ranlib where there is no compiler: the ones of the ziglang wheel.
tool=$(basename "$0")
ZIG_GLOBAL_CACHE_DIR="$(dirname "$0")/cache"
export ZIG_GLOBAL_CACHE_DIR
# zig compiles the C++ library itself, once per processor and kind of optimisation: name one of each.
[ "$tool" = c++ ] && set -- -mcpu=baseline -O2 "$@"
exec "@PYTHON@" -m ziglang "$tool" "$@"
