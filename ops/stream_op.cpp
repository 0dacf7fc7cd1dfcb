#include "ops/stream_op.h"

#include <fmt/format.h>

#include <algorithm>

namespace zephon {

void append_identity(Sample& sample, uint64_t word) {
  for_each_member(sample, [&](Sample& s) { s.id.words.push_back(word); });
}

StreamPtr define_same(StreamContext& context) { return context.open_input(0); }

void infer_same(const Node&, std::span<const StreamType> inputs, StreamType& out, std::string&) { out = inputs[0]; }

void infer_counted(const Node&, std::span<const StreamType> inputs, StreamType& out, std::string&) {
  out = inputs[0];
  out.domain = Domain::Data;
}

bool reject_batches(const Node& node, const StreamType& input, std::string& error) {
  if (!input.batch) return true;
  error = fmt::format("`{}` works on samples, and must stand before `batch` (or after `unbatch`)",
                      node.op->surface.empty() ? node.op->name : node.op->surface);
  return false;
}

bool merge_arms(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  out = inputs[0];
  auto arm = [&](size_t i) {
    return i < node.input_names.size() ? fmt::format("`{}`", node.input_names[i]) : fmt::format("stream {}", i + 1);
  };
  for (size_t i = 1; i < inputs.size(); ++i) {
    const StreamType& other = inputs[i];
    if (other.batch != out.batch) {
      error = fmt::format("{} and {} are not batched alike", arm(0), arm(i));
      return false;
    }
    for (const StreamType* type : {&other, &inputs[0]}) {
      const StreamType& without = type == &other ? inputs[0] : other;
      for (const Field& f : type->fields) {
        if (!is_companion(f.name) || without.find(f.name)) continue;
        const std::string name = f.name.substr(0, f.name.find_first_of("?#"));
        const Field *mine = inputs[0].find(name), *theirs = other.find(name);
        if (!mine || !theirs) continue;
        error = fmt::format("field `{}` is `{}` in {}, `{}` in {}", name, field_type_text(inputs[0], *mine), arm(0),
                            field_type_text(other, *theirs), arm(i));
        if (f.name.ends_with('?')) error += ": say what stands for a missing value with `default`";
        return false;
      }
    }
    for (const Field& f : other.fields) {
      if (out.find(f.name)) continue;
      error = fmt::format("{} has a field `{}`, {} has not", arm(i), f.name, arm(0));
      return false;
    }
    for (size_t k = 0; k < out.fields.size(); ++k) {
      const Field& f = out.fields[k];
      const Field* g = other.find(f.name);
      if (!g) {
        error = fmt::format("{} has a field `{}`, {} has not", arm(0), f.name, arm(i));
        return false;
      }
      if (f.type.elem != g->type.elem || f.type.rank() != g->type.rank()) {
        error = fmt::format("field `{}` is `{}` in {}, `{}` in {}", f.name, to_string(f.type), arm(0),
                            to_string(g->type), arm(i));
        return false;
      }
      Type type = f.type;
      for (size_t d = 0; d < type.shape.size(); ++d)
        if (!(type.shape[d] == g->type.shape[d]))
          type.shape[d] = is_varying(type.shape[d]) || is_varying(g->type.shape[d]) ? varying_dim() : Dim::unknown();
      if (!(type.box == g->type.box)) type.box.clear();
      out.fields.set_type(k, std::move(type));
    }
    out.domain = std::max(out.domain, other.domain);
    out.endless = out.endless || other.endless;
  }
  return true;
}

}  // namespace zephon
