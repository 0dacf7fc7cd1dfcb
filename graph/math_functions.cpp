#include "graph/math_functions.h"

namespace zephon::plain {
namespace {
PlainNumbers numbers;
}
double exp(double x) { return zephon::exp(numbers, x); }
double log(double x) { return zephon::log(numbers, x); }
double sin(double x) { return zephon::sin(numbers, x); }
double cos(double x) { return zephon::cos(numbers, x); }
double pow(double x, double y) { return zephon::pow(numbers, x, y); }
}  // namespace zephon::plain
