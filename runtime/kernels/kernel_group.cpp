#include "runtime/kernels/kernel_group.h"

#include <bit>
#include <type_traits>

#include "graph/op_def.h"

namespace zephon {
namespace {

void put(std::string& out, std::string_view text) {
  out += std::to_string(text.size());
  out += ':';
  out += text;
}

void put(std::string& out, int64_t value) {
  out += std::to_string(value);
  out += ' ';
}

void put(std::string& out, int32_t value) { put(out, int64_t{value}); }

void put(std::string& out, const Type& type) {
  put(out, elem_name(type.elem));
  auto dims = [&](const std::vector<Dim>& list) {
    put(out, static_cast<int64_t>(list.size()));
    for (const Dim& dim : list) {
      put(out, dim.extent);
      put(out, dim.symbol);
    }
  };
  dims(type.shape);
  dims(type.box);
}

void put(std::string& out, double value) { put(out, std::bit_cast<int64_t>(value)); }

void put(std::string& out, const Attr& attr) {
  put(out, static_cast<int64_t>(attr.index()));
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, Elem>) {
          put(out, static_cast<int64_t>(value));
        } else if constexpr (std::is_same_v<T, double>) {
          put(out, value);
        } else if constexpr (std::is_same_v<T, std::string>) {
          put(out, std::string_view(value));
        } else if constexpr (std::is_same_v<T, Schema>) {
          put(out, static_cast<int64_t>(value.columns.size()));
          for (const Field& field : value.columns) {
            put(out, std::string_view(field.name));
            put(out, field.type);
          }
        } else {
          put(out, static_cast<int64_t>(value.size()));
          for (const auto& item : value) {
            if constexpr (std::is_same_v<T, std::vector<std::string>>)
              put(out, std::string_view(item));
            else
              put(out, item);
          }
        }
      },
      attr);
}

}  // namespace

GroupExprs::GroupExprs(const Graph& graph, const KernelGroup& group) {
  for (size_t i = 0; i < group.leaves.size(); ++i) leaf.emplace(group.leaves[i], static_cast<int32_t>(i));
  // Depth first without recursion: expressions of generated programs may be deep.
  std::vector<std::pair<ExprId, size_t>> stack;
  for (ExprId root : group.roots) {
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto [id, next] = stack.back();
      const std::vector<ExprId>& args = graph.expr(id).args;
      if (local.contains(id)) {
        stack.pop_back();
      } else if (!is_leaf(id) && next < args.size()) {
        ++stack.back().second;
        stack.emplace_back(args[next], 0);
      } else {
        local.emplace(id, static_cast<int32_t>(order.size()));
        order.push_back(id);
        stack.pop_back();
      }
    }
  }
}

std::string group_key(const Graph& graph, const KernelGroup& group) {
  GroupExprs exprs(graph, group);
  std::string out;
  put(out, static_cast<int64_t>(group.kind));
  put(out, static_cast<int64_t>(group.leaves.size()));
  for (ExprId id : exprs.order) {
    const Expr& expr = graph.expr(id);
    out += '\n';
    if (auto leaf = exprs.leaf.find(id); leaf != exprs.leaf.end()) {
      out += "leaf ";
      put(out, leaf->second);
      put(out, expr.type);
      for (const char* bound : {"lo", "hi"})
        if (expr.attrs.has(bound)) {
          out += bound;
          for (const auto& [name, attr] : expr.attrs)
            if (name == bound) put(out, attr);
        }
      continue;
    }
    put(out, expr.op->name);
    put(out, expr.type);
    for (ExprId arg : expr.args) put(out, exprs.local.at(arg));
    for (const auto& [name, attr] : expr.attrs) {
      put(out, std::string_view(name));
      put(out, attr);
    }
    if (expr.constant) {
      for (int64_t extent : expr.constant->shape()) put(out, extent);
      auto bytes = expr.constant->bytes();
      put(out, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
  }
  out += "\nroots ";
  for (ExprId root : group.roots) put(out, exprs.local.at(root));
  return out;
}

}  // namespace zephon
