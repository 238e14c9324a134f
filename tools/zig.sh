#!/bin/sh
# Installed by make as c++, ar and ranlib on machines without a compiler: the ones of the ziglang wheel.
ZIG_GLOBAL_CACHE_DIR="$(dirname "$0")/cache"
export ZIG_GLOBAL_CACHE_DIR
exec "@PYTHON@" -m ziglang @TOOL@ "$@"
