#include "runtime/flow/reference_fallback.h"

#include "runtime/reference/sample_evaluator.h"

namespace zephon {
namespace {

class ReferenceFallback final : public RowFallback {
 public:
  explicit ReferenceFallback(const Plan& plan) : plan_(plan), constants_(plan.graph, plan.base_dir) {}
  void begin_epoch(uint64_t epoch) override { epoch_ = epoch; }
  Value evaluate(ExprId expr, const std::function<Value(const std::string&)>& field,
                 const SampleId& draw_identity) const override {
    EpochContext context{plan_.seed, epoch_, {}};
    SampleEvaluator evaluator(plan_.graph, constants_, field, draw_identity.hash(), context);
    return evaluator.evaluate(expr);
  }
  const Value& constant(ExprId expr) const override { return constants_.get(expr); }

 private:
  const Plan& plan_;
  DataConstants constants_;
  uint64_t epoch_ = 0;
};

}  // namespace

std::unique_ptr<RowFallback> make_reference_fallback(const Plan& plan) {
  return std::make_unique<ReferenceFallback>(plan);
}

}  // namespace zephon
