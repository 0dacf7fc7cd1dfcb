#pragma once
// Where boxes of given sizes stand that arrows join, from top to bottom.

#include <string>
#include <utility>
#include <vector>

namespace zephon {

struct LayoutBox {
  double width = 0, height = 0;  ///< pixels
  double x = 0, y = 0;           ///< of the upper left corner: the layout's result
  std::vector<size_t> inputs;    ///< boxes before this one
};

struct LayoutEdge {
  size_t from = 0, to = 0;
  std::string path;  ///< of an SVG <path>
};

struct Layout {
  std::vector<LayoutBox> boxes;
  std::vector<LayoutEdge> edges;
  double width = 0, height = 0;
};

/// By Graphviz where it is installed and the graph is not too large for it, else in layers.
Layout lay_out(std::vector<LayoutBox> boxes);
/// A box stands in the layer below its lowest input; layers are ordered so that boxes stand near what they read.
Layout lay_out_in_layers(std::vector<LayoutBox> boxes);

}  // namespace zephon
