#include "runtime/flow/source_reader.h"

#include <algorithm>
#include <cstring>

#include "graph/op_def.h"

namespace zephon {

SourceReader::SourceReader(const Plan& plan, const PlanNode& plan_node, const OpenSources& sources, BufferPool& pool)
    : node_(plan.graph.node(plan_node.node)), source_(sources.at(plan_node.node)), pool_(pool) {
  const FieldList& fields = node_.type.fields;
  for (const Field& field : fields) {
    TensorRef shape;
    shape.elem = field.type.elem;
    shape.rank = static_cast<int32_t>(field.type.rank());
    static_.push_back(field.type.has_static_shape());
    for (size_t d = 0; d < field.type.rank() && static_.back(); ++d) shape.shape[d] = field.type.shape[d].extent;
    shapes_.push_back(shape);
  }
  for (const OutputField& output : plan_node.outputs) {
    const std::string& name = plan.graph.expr(output.expr).attrs.text("name");
    picked_.push_back(static_cast<int>(fields.index(name).value_or(fields.size())));
    columns_.push_back(output.name);
  }
  size_ = source_.size();
  for (const IndexStep& from : plan_node.index) {
    Step step;
    step.node = &plan.graph.node(from.node);
    step.input_size = size_;
    if (from.arm >= 0) {
      step.is_arm = ordered_ = true;
      step.arm = static_cast<uint64_t>(from.arm);
      for (size_t i = 0; i < step.arm; ++i) step.arm_begin += domain_size(plan.graph, sources, step.node->inputs[i]);
      step.arm_end = step.arm_begin + size_;
    }
    size_ = domain_size(plan.graph, sources, from.node);
    steps_.push_back(step);
  }
  head_ = sources.identity(plan_node.node, 0, {}).words;
  head_.pop_back();
}

bool SourceReader::locate(uint64_t g, uint64_t& position, std::vector<uint64_t>& arms, EpochContext& context) const {
  arms.clear();
  context.passes.resize(context_.passes.size());
  for (size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    if (step.is_arm) {
      if (g < step.arm_begin || g >= step.arm_end) return false;
      g -= step.arm_begin;
      arms.push_back(step.arm);
      continue;
    }
    const IndexMap& map = *step.node->op->kernel.index_map;
    uint64_t input = map.input_index(*step.node, context, step.input_size, g);
    if (map.appends_pass) context.passes.push_back(step.input_size ? g / step.input_size : 0);
    g = input;
  }
  std::reverse(arms.begin(), arms.end());
  position = g;
  return true;
}

ChunkPtr SourceReader::read(uint64_t begin, uint64_t end) const {
  auto out = std::make_shared<Chunk>();
  if (steps_.empty() && context_.passes.size() <= Ids::kMaxTail) {
    out->rows = static_cast<int64_t>(end - begin);
    out->ids = Ids::range(head_, begin, context_.passes);
    return read_columns(std::move(out), begin, {});
  }
  // Each row has its position and, behind it in the identity, passes and arms: as many words for all.
  std::vector<uint64_t> positions, tails, arms;
  EpochContext context = context_;
  for (uint64_t g = begin; g < end; ++g) {
    uint64_t position = 0;
    if (!locate(g, position, arms, context)) continue;
    positions.push_back(position);
    tails.insert(tails.end(), context.passes.begin(), context.passes.end());
    tails.insert(tails.end(), arms.begin(), arms.end());
    if (ordered_) out->order.push_back(g);
  }
  out->rows = static_cast<int64_t>(positions.size());
  const size_t rows = positions.size(), tail = rows == 0 ? 0 : tails.size() / rows;
  // What only cuts a stream, or repeats it, leaves neighbours neighbours.
  bool in_a_row = rows > 0 && tail <= Ids::kMaxTail;
  for (size_t i = 1; i < rows && in_a_row; ++i) in_a_row = positions[i] == positions[i - 1] + 1;
  if (in_a_row && std::equal(tails.begin() + static_cast<int64_t>(tail), tails.end(), tails.begin())) {
    out->ids = Ids::range(head_, positions[0], std::span(tails).first(tail));
    return read_columns(std::move(out), positions[0], {});
  }
  std::vector<uint64_t> words;
  std::vector<uint32_t> offsets{0};
  for (size_t i = 0; i < rows; ++i) {
    words.insert(words.end(), head_.begin(), head_.end());
    words.push_back(positions[i]);
    const auto at = tails.begin() + static_cast<int64_t>(i * tail);
    words.insert(words.end(), at, at + static_cast<int64_t>(tail));
    offsets.push_back(static_cast<uint32_t>(words.size()));
  }
  out->ids = Ids::dense(pool_, words, offsets);
  return read_columns(std::move(out), begin, positions);
}

ChunkPtr SourceReader::read_again(std::span<const SampleId> ids) const {
  auto out = std::make_shared<Chunk>();
  std::vector<uint64_t> positions, words;
  std::vector<uint32_t> offsets{0};
  for (const SampleId& id : ids) {
    if (id.words.size() <= head_.size() || !std::equal(head_.begin(), head_.end(), id.words.begin()) ||
        id.words[head_.size()] >= source_.size())
      return nullptr;
    positions.push_back(id.words[head_.size()]);
    words.insert(words.end(), id.words.begin(), id.words.end());
    offsets.push_back(static_cast<uint32_t>(words.size()));
  }
  out->rows = static_cast<int64_t>(ids.size());
  out->ids = Ids::dense(pool_, words, offsets);
  return read_columns(std::move(out), 0, positions);
}

// Positions from `begin` on where none are given.
ChunkPtr SourceReader::read_columns(std::shared_ptr<Chunk> out, uint64_t begin,
                                    const std::vector<uint64_t>& positions) const {
  const bool direct = positions.empty();
  auto rows = static_cast<size_t>(out->rows);
  std::vector<Column> columns;
  std::vector<TensorRef> refs(shapes_.size());
  bool all_fixed = true;
  for (size_t c = 0; c < shapes_.size(); ++c) {
    all_fixed = all_fixed && static_[c];
    columns.push_back(static_[c] ? make_fixed_column(pool_, shapes_[c], out->rows)
                                 : make_ref_column(pool_, shapes_[c].elem, shapes_[c].rank, out->rows));
    refs[c] = shapes_[c];
    refs[c].data = columns[c].data;
  }
  if (!(direct && all_fixed && source_.read_range(begin, rows, refs))) {
    auto arena = std::make_shared<Arena>(pool_);
    NativeCall allocator;
    allocator.allocate = Arena::allocate_from;
    allocator.context = arena.get();
    for (size_t row = 0; row < rows; ++row) {
      for (size_t c = 0; c < shapes_.size(); ++c) {
        refs[c] = shapes_[c];
        if (static_[c]) refs[c].data = columns[c].at(static_cast<int64_t>(row)).data;
      }
      source_.read(direct ? begin + row : positions[row], refs, allocator);
      for (size_t c = 0; c < shapes_.size(); ++c) {
        if (static_[c]) {
          void* place = columns[c].at(static_cast<int64_t>(row)).data;
          if (refs[c].data != place) std::memcpy(place, refs[c].data, columns[c].row_bytes);
        } else {
          columns[c].refs[row] = refs[c];
        }
      }
    }
    out->keep.push_back(arena);
  }
  for (int column : picked_) out->columns.push_back(columns[static_cast<size_t>(column)]);
  return out;
}

}  // namespace zephon
