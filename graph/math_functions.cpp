#include "graph/math_functions.h"

namespace zephon::plain {
double exp(double x) {
  PlainNumbers n;
  return zephon::exp(n, x);
}
double log(double x) {
  PlainNumbers n;
  return zephon::log(n, x);
}
double sin(double x) {
  PlainNumbers n;
  return zephon::sin(n, x);
}
double cos(double x) {
  PlainNumbers n;
  return zephon::cos(n, x);
}
double pow(double x, double y) {
  PlainNumbers n;
  return zephon::pow(n, x, y);
}
}  // namespace zephon::plain
