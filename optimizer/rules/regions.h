#pragma once
// Boxes of pictures: of whose makers a region may be asked for, and which boxes lie inside.

#include "optimizer/rules/patterns.h"

namespace zephon::rules {

/// `whole`, whose operator has a region form, has no argument that the form does not know.
bool has_region(const Graph& graph, ExprId whole);
/// crop(whole, box) by the region form; `type` is that of the crop.
ExprId region_of(Graph& graph, ExprId whole, ExprId box, const Type& type);
/// A picture of the shape of `whole`, whose operator has a shape form.
ExprId shape_of(Graph& graph, ExprId whole);
/// The box cannot leave the picture: it was made for one of that shape, or both are known.
bool box_fits(const Graph& graph, ExprId box, ExprId picture);

/// Only `user` needs more of the picture than its shape, which stands in a header.
bool only_shape_besides(Rewriter& rewriter, ExprId picture, ExprId user);

}  // namespace zephon::rules
