#pragma once
// Statistics of a field in one pass, in the order in which a run delivers: the same figures for any number of threads.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/value.h"

namespace zephon {

/// Mean and deviation, joined sample by sample (Chan, Golub and LeVeque 1979): within a sample two passes, between
/// samples in 64 bits of mantissa. Finite values only.
struct Moments {
  uint64_t count = 0;
  long double mean = 0, squares = 0;  ///< squares: sum of the squared distances to the mean
  long double least = 0, most = 0;  ///< exact, of every type

  void join(const Moments& other);
  /// Of all values, not of a sample drawn from more: divides by the count.
  double deviation() const;
};

/// Counts in at most 24 bins of equal width, a power of two. The width doubles, and neighbours are joined, whenever a
/// value lies outside: what comes out does not depend on the order of the values.
class Histogram {
 public:
  void add(double value, uint64_t count = 1);  ///< finite
  struct Bin {
    double begin, end;
    uint64_t count;
  };
  /// From the first to the last bin that is not empty.
  std::vector<Bin> bins() const;

 private:
  void widen();
  std::map<int64_t, uint64_t> counts_;  ///< by floor(value / width); at most kBins apart
  int exponent_ = 0;                    ///< width is 2^exponent
};

/// One field. Pictures (rank 3) have figures for each channel: the last axis where it has at most four entries, else
/// the first where that has. Integers, booleans and strings without shape are counted by value.
class FieldStatistics {
 public:
  static constexpr size_t kMostClasses = 1000;

  explicit FieldStatistics(Type type) : type_(std::move(type)) {}
  /// A sample's value.
  void add(const TensorRef& value);

  const Type& type() const { return type_; }
  uint64_t samples() const { return samples_; }
  uint64_t odd() const { return odd_; }  ///< NaN or infinite
  /// One for each channel, or one; joined.
  const std::vector<Moments>& channels() const { return channels_; }
  Moments all() const;
  enum class Axis : uint8_t { None, First, Last };
  Axis axis() const { return axis_; }
  const Histogram& histogram() const { return histogram_; }
  /// Values and how often each came; empty where there are more than kMostClasses, or the field is not counted.
  const std::map<int64_t, uint64_t>& numbers() const { return numbers_; }
  const std::map<std::string, uint64_t>& texts() const { return texts_; }
  bool too_many() const { return too_many_; }

 private:
  template <class T>
  void add_numbers(const TensorRef& value, double (*to_double)(T));

  Type type_;
  uint64_t samples_ = 0, odd_ = 0;
  Axis axis_ = Axis::None;
  std::vector<Moments> channels_;
  Histogram histogram_;
  std::map<int64_t, uint64_t> numbers_;
  std::map<std::string, uint64_t> texts_;
  bool too_many_ = false;
};

}  // namespace zephon
