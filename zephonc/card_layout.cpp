#include "zephonc/card_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <sstream>

#include "zephonc/plan_view.h"

namespace zephon {
namespace {

constexpr double kAcross = 26, kDown = 30, kMargin = 12, kDots = 72;  // Graphviz counts inches
constexpr size_t kMostForGraphviz = 400;

std::optional<Layout> by_graphviz(const std::vector<LayoutBox>& boxes) {
  std::string dot = fmt::format(
      "digraph {{\n  rankdir=TB; nodesep={}; ranksep={};\n  node [shape=box, fixedsize=true, label=\"\"]; "
      "edge [arrowhead=none];\n",
      kAcross / kDots, kDown / kDots);
  for (size_t i = 0; i < boxes.size(); ++i) {
    dot += fmt::format("  n{} [width={:.4f}, height={:.4f}];\n", i, boxes[i].width / kDots, boxes[i].height / kDots);
    for (size_t input : boxes[i].inputs) dot += fmt::format("  n{} -> n{};\n", input, i);
  }
  std::string error;
  const auto plain = run_graphviz(dot + "}\n", "plain", error);
  if (!plain) return std::nullopt;

  Layout out{boxes, {}, 0, 0};
  std::istringstream lines(*plain);
  double high = 0;
  auto x_of = [](double inches) { return kMargin + inches * kDots; };
  auto y_of = [&](double inches) { return kMargin + (high - inches) * kDots; };
  size_t placed = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, name, other;
    words >> kind;
    if (kind == "graph") {
      double scale = 0, wide = 0;
      words >> scale >> wide >> high;
      out.width = wide * kDots + 2 * kMargin;
      out.height = high * kDots + 2 * kMargin;
    } else if (kind == "node") {
      double x = 0, y = 0;
      words >> name >> x >> y;
      const size_t i = std::stoul(name.substr(1));
      if (!words || i >= boxes.size()) return std::nullopt;
      out.boxes[i].x = x_of(x) - boxes[i].width / 2;
      out.boxes[i].y = y_of(y) - boxes[i].height / 2;
      ++placed;
    } else if (kind == "edge") {
      size_t count = 0;
      words >> name >> other >> count;
      LayoutEdge edge{std::stoul(name.substr(1)), std::stoul(other.substr(1)), {}};
      for (size_t i = 0; i < count; ++i) {
        double x = 0, y = 0;
        words >> x >> y;
        edge.path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : i == 1 ? " C" : " ", x_of(x), y_of(y));
      }
      if (!words) return std::nullopt;
      out.edges.push_back(std::move(edge));
    }
  }
  if (placed != boxes.size()) return std::nullopt;
  return out;
}

/// A box, or the place where an edge passes through a layer.
struct Item {
  size_t box = SIZE_MAX;    // SIZE_MAX: passing
  double width = 0, x = 0;  // x: of the middle
  std::vector<size_t> above;
};

}  // namespace

Layout lay_out_in_layers(std::vector<LayoutBox> boxes) {
  Layout out;
  std::vector<size_t> layer_of(boxes.size(), 0);
  for (size_t i = 0; i < boxes.size(); ++i)
    for (size_t input : boxes[i].inputs) layer_of[i] = std::max(layer_of[i], layer_of[input] + 1);
  // What feeds only a deep layer stands right above it.
  std::vector<size_t> first_user(boxes.size(), SIZE_MAX);
  for (size_t i = boxes.size(); i-- > 0;) {
    if (boxes[i].inputs.empty() && first_user[i] != SIZE_MAX) layer_of[i] = first_user[i] - 1;
    for (size_t input : boxes[i].inputs) first_user[input] = std::min(first_user[input], layer_of[i]);
  }

  std::vector<Item> items(boxes.size());
  const size_t count = boxes.empty() ? 0 : *std::max_element(layer_of.begin(), layer_of.end()) + 1;
  std::vector<std::vector<size_t>> layers(count);
  struct Route {
    size_t from, to;
    std::vector<size_t> by;  // items
  };
  std::vector<Route> routes;
  for (size_t i = 0; i < boxes.size(); ++i) {
    items[i].box = i;
    items[i].width = boxes[i].width;
    layers[layer_of[i]].push_back(i);
  }
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t input : boxes[i].inputs) {
      Route route{input, i, {input}};
      for (size_t layer = layer_of[input] + 1; layer < layer_of[i]; ++layer) {
        items.push_back({SIZE_MAX, 8, 0, {route.by.back()}});
        layers[layer].push_back(items.size() - 1);
        route.by.push_back(items.size() - 1);
      }
      items[i].above.push_back(route.by.back());
      route.by.push_back(i);
      routes.push_back(std::move(route));
    }
  }
  std::vector<std::vector<size_t>> below(items.size());
  for (size_t i = 0; i < items.size(); ++i)
    for (size_t above : items[i].above) below[above].push_back(i);

  // Side by side, each as near to `wanted` as its neighbours allow.
  auto place = [&](std::vector<size_t>& layer, const std::vector<double>& wanted) {
    std::stable_sort(layer.begin(), layer.end(), [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
    double edge = -1e18, shift = 0;
    for (size_t id : layer) {
      items[id].x = std::max(wanted[id], edge + items[id].width / 2);
      edge = items[id].x + items[id].width / 2 + kAcross;
      shift += items[id].x - wanted[id];
    }
    // All were moved to the right at most: half of it back.
    for (size_t id : layer) items[id].x -= shift / static_cast<double>(layer.size());
  };
  std::vector<double> wanted(items.size(), 0);
  for (std::vector<size_t>& layer : layers) {
    for (size_t k = 0; k < layer.size(); ++k) wanted[layer[k]] = static_cast<double>(k);
    place(layer, wanted);
  }
  auto middle = [&](const std::vector<size_t>& of, double otherwise) {
    if (of.empty()) return otherwise;
    double sum = 0;
    for (size_t id : of) sum += items[id].x;
    return sum / static_cast<double>(of.size());
  };
  constexpr int kSweeps = 6;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t k = 0; k < count; ++k) {
      std::vector<size_t>& layer = layers[sweep % 2 == 0 ? k : count - 1 - k];
      for (size_t id : layer) wanted[id] = middle(sweep % 2 == 0 ? items[id].above : below[id], items[id].x);
      place(layer, wanted);
    }
  }

  double left = 1e18, right = -1e18, y = kMargin;
  std::vector<double> top(count), high(count, 0);
  for (size_t k = 0; k < count; ++k) {
    top[k] = y;
    for (size_t id : layers[k]) {
      left = std::min(left, items[id].x - items[id].width / 2);
      right = std::max(right, items[id].x + items[id].width / 2);
      if (items[id].box != SIZE_MAX) high[k] = std::max(high[k], boxes[items[id].box].height);
    }
    y += high[k] + kDown;
  }
  for (size_t i = 0; i < boxes.size(); ++i) {
    boxes[i].x = items[i].x - boxes[i].width / 2 - left + kMargin;
    boxes[i].y = top[layer_of[i]];
  }
  for (const Route& route : routes) {
    LayoutEdge edge{route.from, route.to, {}};
    double from_x = items[route.from].x - left + kMargin, from_y = boxes[route.from].y + boxes[route.from].height;
    edge.path = fmt::format("M{:.1f} {:.1f}", from_x, from_y);
    for (size_t k = 1; k < route.by.size(); ++k) {
      const Item& item = items[route.by[k]];
      const size_t layer = layer_of[route.from] + k;
      const double to_x = item.x - left + kMargin, to_y = top[layer], half = (to_y - from_y) / 2;
      edge.path += fmt::format(" C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", from_x, from_y + half, to_x, to_y - half,
                               to_x, to_y);
      from_x = to_x;
      from_y = to_y;
      if (item.box != SIZE_MAX) continue;
      from_y = to_y + high[layer];
      edge.path += fmt::format(" L{:.1f} {:.1f}", from_x, from_y);
    }
    out.edges.push_back(std::move(edge));
  }
  out.width = boxes.empty() ? 0 : right - left + 2 * kMargin;
  out.height = boxes.empty() ? 0 : y - kDown + kMargin;
  out.boxes = std::move(boxes);
  return out;
}

Layout lay_out(std::vector<LayoutBox> boxes) {
  if (boxes.size() <= kMostForGraphviz)
    if (auto layout = by_graphviz(boxes)) return *std::move(layout);
  return lay_out_in_layers(std::move(boxes));
}

}  // namespace zephon
