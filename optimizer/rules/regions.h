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

/// The operand of pointwise work whose shape is that of the result: the only one that is not a constant, if no constant
/// broadcasts it. Invalid where there is none.
ExprId shaped_operand(const Graph& graph, ExprId pointwise);

/// The view leaves rows and columns alone (it chooses channels), and cannot fail by itself.
bool keeps_rows_and_columns(const Graph& graph, const Expr& view);
/// What a picture was made of by arithmetic, mirror images and choices of channels, none of which can fail by itself: a
/// picture of the same height and width that fails, as a whole or in part, where this one does, with the same failure.
ExprId base_of(const Graph& graph, ExprId picture);

// For relaxations: resize_region(part, box, source, rows, columns), of a picture of which only `source` is at hand.

/// It is one, with the rows and columns around its box that the filter needs.
bool has_margin(const Graph& graph, const Expr& region);
/// The part without them: what the box covers.
ExprId part_without_margin(Graph& graph, const Expr& region);
/// The box cannot leave the resized picture.
bool box_stays(Rewriter& rewriter, const Expr& region);
/// The operator whose region form `region` is.
const OpDef& whole_form(const OpTable& ops, const OpDef& region);

}  // namespace zephon::rules
