#!/bin/sh
# Installed by make as c++, ar and ranlib where there is no compiler: the ones of the ziglang wheel.
tool=$(basename "$0")
ZIG_GLOBAL_CACHE_DIR="$(dirname "$0")/cache"
export ZIG_GLOBAL_CACHE_DIR
# zig compiles the C++ library when it first links, which takes a minute, and once more for every
# other processor, optimisation or kind of file. So everything is linked in one way, CMake's tests too.
if [ "$tool" = c++ ]; then
  case " $* " in
    *" -c "* | *" -E "* | *" --version "*) set -- -mcpu=baseline -O2 "$@" ;;
    *) set -- -mcpu=baseline -O2 "$@" -fPIC -shared -Wl,-s ;;
  esac
fi
exec "@PYTHON@" -m ziglang "$tool" "$@"
