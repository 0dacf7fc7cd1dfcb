#include "zephonc/statistics.h"

#include <algorithm>
#include <cmath>

namespace zephon {
namespace {

constexpr int64_t kBins = 24;
constexpr int64_t kMostChannels = 4;

int64_t bin_of(double value, int exponent) { return static_cast<int64_t>(std::floor(std::ldexp(value, -exponent))); }

}  // namespace

void Moments::join(const Moments& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  const auto n = static_cast<long double>(count), m = static_cast<long double>(other.count);
  const long double distance = other.mean - mean;
  mean += distance * (m / (n + m));
  squares += other.squares + distance * distance * (n * m / (n + m));
  count += other.count;
  least = std::min(least, other.least);
  most = std::max(most, other.most);
}

double Moments::deviation() const {
  return count == 0 ? 0 : static_cast<double>(std::sqrt(squares / static_cast<long double>(count)));
}

void Histogram::widen() {
  std::map<int64_t, uint64_t> joined;
  for (const auto& [bin, count] : counts_) joined[bin >> 1] += count;
  counts_ = std::move(joined);
  ++exponent_;
}

void Histogram::add(double value, uint64_t count) {
  if (count == 0) return;
  // The finest bins in which the value is a whole number below 2^53.
  const int finest = value == 0 ? -1074 : std::max(-1074, std::ilogb(value) - 52);
  if (counts_.empty()) exponent_ = finest;
  while (exponent_ < finest) widen();
  int64_t bin = bin_of(value, exponent_);
  while (!counts_.empty() && std::max(bin, counts_.rbegin()->first) - std::min(bin, counts_.begin()->first) >= kBins) {
    widen();
    bin = bin_of(value, exponent_);
  }
  counts_[bin] += count;
}

std::vector<Histogram::Bin> Histogram::bins() const {
  std::vector<Bin> out;
  if (counts_.empty()) return out;
  for (int64_t bin = counts_.begin()->first; bin <= counts_.rbegin()->first; ++bin) {
    auto found = counts_.find(bin);
    out.push_back({std::ldexp(static_cast<double>(bin), exponent_), std::ldexp(static_cast<double>(bin + 1), exponent_),
                   found == counts_.end() ? 0 : found->second});
  }
  return out;
}

template <class T>
void FieldStatistics::add_numbers(const TensorRef& value, double (*to_double)(T)) {
  // A double does not hold every i64.
  using Real = std::conditional_t<std::is_same_v<T, int64_t>, long double, double>;
  auto real = [&](T x) -> Real {
    if constexpr (std::is_same_v<T, int64_t>)
      return static_cast<long double>(x);
    else
      return to_double(x);
  };
  const T* data = static_cast<const T*>(value.data);
  const int64_t size = value.size();
  int64_t channels = 1;
  Axis axis = Axis::None;
  if (value.rank == 3 && value.shape[2] <= kMostChannels) {
    axis = Axis::Last;
    channels = value.shape[2];
  } else if (value.rank == 3 && value.shape[0] <= kMostChannels) {
    axis = Axis::First;
    channels = value.shape[0];
  }
  if (channels_.empty()) {
    axis_ = axis;
    channels_.resize(static_cast<size_t>(std::max<int64_t>(channels, 1)));
  }
  // Pictures of other channels than the first one's: figures for all together.
  if (axis != axis_ || static_cast<size_t>(channels) != channels_.size()) {
    const Moments joined = all();
    channels_ = {joined};
    axis_ = Axis::None;
  }
  channels = static_cast<int64_t>(channels_.size());
  if (channels == 0 || size == 0) return;
  const int64_t each = size / channels, step = axis_ == Axis::Last ? channels : 1;
  for (int64_t c = 0; c < channels; ++c) {
    const T* at = data + (axis_ == Axis::Last ? c : c * each);
    Moments own;
    long double sum = 0;
    Real least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < each; ++i) {
      const Real x = real(at[i * step]);
      if (!std::isfinite(x)) {
        ++odd_;
        continue;
      }
      ++own.count;
      sum += x;
      least = std::min(least, x);
      most = std::max(most, x);
      if (sizeof(T) > 1) histogram_.add(static_cast<double>(x));
    }
    own.least = least;
    own.most = most;
    if (own.count == 0) continue;
    own.mean = sum / static_cast<long double>(own.count);
    for (int64_t i = 0; i < each; ++i) {
      const Real x = real(at[i * step]);
      if (!std::isfinite(x)) continue;
      const long double distance = x - own.mean;
      own.squares += distance * distance;
    }
    channels_[static_cast<size_t>(c)].join(own);
  }
  if constexpr (sizeof(T) == 1) {
    // Few values, many of them: counted first.
    std::array<uint64_t, 256> counts{};
    for (int64_t i = 0; i < size; ++i) ++counts[static_cast<uint8_t>(data[i])];
    for (size_t byte = 0; byte < counts.size(); ++byte) histogram_.add(to_double(static_cast<T>(byte)), counts[byte]);
  }
}

void FieldStatistics::add(const TensorRef& value) {
  ++samples_;
  auto count = [&](auto& counts, auto key) {
    if (too_many_) return;
    ++counts[std::move(key)];
    if (counts.size() <= kMostClasses) return;
    too_many_ = true;
    counts.clear();
  };
  auto plain = [&]<class T>(T) {
    add_numbers<T>(value, [](T x) { return static_cast<double>(x); });
    if constexpr (std::is_integral_v<T>) {
      if (value.rank == 0) count(numbers_, static_cast<int64_t>(*static_cast<const T*>(value.data)));
    }
  };
  switch (value.elem) {
    case Elem::Bool:
    case Elem::U8:
      return plain(uint8_t{});
    case Elem::I8:
      return plain(int8_t{});
    case Elem::U16:
      return plain(uint16_t{});
    case Elem::I16:
      return plain(int16_t{});
    case Elem::I32:
      return plain(int32_t{});
    case Elem::I64:
      return plain(int64_t{});
    case Elem::F32:
      return plain(float{});
    case Elem::F64:
      return plain(double{});
    case Elem::F16:
      return add_numbers<uint16_t>(value, f16_to_double);
    case Elem::BF16:
      return add_numbers<uint16_t>(value, bf16_to_double);
    case Elem::Str:
    case Elem::Path:
      if (value.rank == 0) count(texts_, std::string(static_cast<const StringRef*>(value.data)->view()));
      return;
    case Elem::Bytes:
      return;
  }
}

Moments FieldStatistics::all() const {
  Moments out;
  for (const Moments& channel : channels_) out.join(channel);
  return out;
}

}  // namespace zephon
