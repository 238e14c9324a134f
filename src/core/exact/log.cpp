// Writing the proof log.
#include "log.hpp"

#include <cstring>

namespace softmap::exact {

Log::Log(const std::string &path)
    : path_(path), file_(std::fopen(path.c_str(), "wb")), failed_(file_ == nullptr) {
    buffer_.reserve(2 * CHUNK);
}

Log::Log(const std::string &path, Log &other, std::int64_t size) : Log(path) {
    other.finish();
    failed_ = failed_ || other.failed_;
    std::FILE *from = std::fopen(other.path_.c_str(), "rb");
    while (from != nullptr && !failed_ && written_ < size) {
        buffer_.resize(std::min<std::int64_t>(CHUNK, size - written_));
        failed_ = std::fread(buffer_.data(), 1, buffer_.size(), from) != buffer_.size();
        flush();
    }
    failed_ = failed_ || from == nullptr;
    if (from != nullptr)
        std::fclose(from);
}

void Log::flush() {
    failed_ = failed_ || std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size();
    written_ += static_cast<std::int64_t>(buffer_.size());
    buffer_.clear();
}

std::int64_t Log::finish() {
    flush();
    failed_ = failed_ || std::fflush(file_) != 0;
    return failed_ ? 0 : written_;
}

template <class Narrow, class T> void Log::put(const T *data, std::size_t count) {
    static_assert(std::endian::native == std::endian::little);
    const auto begin = buffer_.size();
    buffer_.resize(begin + count * sizeof(Narrow));
    std::uint8_t *out = buffer_.data() + begin;
    for (std::size_t k = 0; k < count; ++k) {
        const auto value = static_cast<Narrow>(data[k]);
        std::memcpy(out + k * sizeof(Narrow), &value, sizeof(Narrow));
    }
}

template <class T> void Log::array(const T *data, std::size_t count) {
    std::int64_t low = -1, high = 0; // -(low + 1) is at least 0
    for (std::size_t k = 0; k < count; ++k) {
        low = std::min<std::int64_t>(low, data[k]);
        high = std::max<std::int64_t>(high, data[k]);
    }
    const auto fits = [&](int bits) {
        return -(low + 1) >> (bits - 1) == 0 && high >> (bits - 1) == 0;
    };
    const int width = fits(8) ? 0 : fits(16) ? 1 : fits(32) ? 2 : 3;
    buffer_.push_back(static_cast<std::uint8_t>(std::min<std::size_t>(count, 63) << 2 | width));
    if (count >= 63)
        put<std::int64_t>(&count, 1);
    if (width == 0)
        put<std::int8_t>(data, count);
    else if (width == 1)
        put<std::int16_t>(data, count);
    else if (width == 2)
        put<std::int32_t>(data, count);
    else
        put<std::int64_t>(data, count);
    if (buffer_.size() >= CHUNK)
        flush();
}

template void Log::array(const int *, std::size_t);
template void Log::array(const std::int64_t *, std::size_t);

} // namespace softmap::exact
