// Goes through the states of some variables.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace softmap::exact {

// The states of some axes, the last axis fastest, with their offset in a table.
class Odometer {
  public:
    Odometer(std::span<const int> sizes, std::span<const std::int64_t> stride)
        : sizes_(sizes), stride_(stride), state_(std::make_unique<int[]>(sizes.size())) {}
    std::int64_t at = 0;

    void step() {
        for (std::size_t k = sizes_.size(); k-- > 0;) {
            at += stride_[k];
            if (++state_[k] < sizes_[k])
                return;
            at -= stride_[k] * sizes_[k];
            state_[k] = 0;
        }
    }

  private:
    std::span<const int> sizes_;
    std::span<const std::int64_t> stride_;
    std::unique_ptr<int[]> state_;
};

} // namespace softmap::exact
