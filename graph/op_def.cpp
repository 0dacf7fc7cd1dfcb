#include "graph/op_def.h"

#include <algorithm>

namespace zephon {

const OpDef* OpTable::find(std::string_view name) const {
  auto it = std::lower_bound(ops_.begin(), ops_.end(), name,
                             [](const OpDef* op, std::string_view n) { return op->name < n; });
  return it != ops_.end() && (*it)->name == name ? *it : nullptr;
}

bool is_data_constant(const Expr& expr) {
  return expr.op->cls == OpClass::Leaf && !expr.constant && expr.op->name != "field";
}

Failure DefineCall::failure(std::string code, std::string message) const {
  const Expr& e = expr();
  return {std::move(code), std::move(message), e.origin.empty() ? Span{} : e.origin.front()};
}

namespace {
class Ready final : public Thunk {
 public:
  explicit Ready(Value value) : value_(std::move(value)) {}
  const Value& force() override { return value_; }

 private:
  Value value_;
};
}  // namespace

LazyValue ready(Value value) { return std::make_shared<Ready>(std::move(value)); }

LazyValue Sample::find(const std::string& name) const {
  for (const auto& [field, value] : fields)
    if (field == name) return value;
  return nullptr;
}

void Sample::assign(const std::string& name, LazyValue value) {
  for (auto& [field, old] : fields) {
    if (field == name) {
      old = std::move(value);
      return;
    }
  }
  fields.emplace_back(name, std::move(value));
}

}  // namespace zephon
