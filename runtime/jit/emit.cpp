#include "runtime/jit/emit.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <set>
#include <utility>

#include "graph/op_def.h"
#include "runtime/kernels/code_image.h"

namespace zephon {
namespace {

using llvm::BasicBlock;
using llvm::Constant;
using llvm::ConstantFP;
using llvm::ConstantInt;
using llvm::Function;
using llvm::Type;
using llvm::Value;
using llvm::Intrinsic::ID;

constexpr unsigned kLanes = 16;           // of a reduction: part of its meaning
constexpr int64_t kMostExtent = 1 << 24;  // of a picture that is resampled; beyond, the sample fails
constexpr int64_t kLine = 64;             // bytes of a cache line
constexpr int64_t kRowBuffers = 1 << 14;  // bytes on the stack for rows on their way past the caches
constexpr size_t kMostRows = 8;           // that are written side by side
constexpr size_t kMostDirectRows = 4;     // of which lines are filled at the same time
constexpr const char* kStreamed = "streamed";
constexpr int64_t kRowsAhead = 2;  // of the input, that are asked for before they are read

class Emitter {
 public:
  Emitter(llvm::LLVMContext& context, KernelProgram& program, unsigned prefer_width)
      : context_(context),
        p_(program),
        module_(std::make_unique<llvm::Module>("zephon", context)),
        b_(context),
        prefer_width_(prefer_width),
        columnar_(program.group.kind == KernelGroup::Kind::Columnar) {
    llvm::MDBuilder md(context);
    llvm::MDNode* domain = md.createAnonymousAliasScopeDomain("kernel");
    auto scope = [&](const char* name) { return md.createAnonymousAliasScope(domain, name); };
    input_scope_ = scope("inputs");
    row_scope_ = scope("rows");
    failed_scope_ = scope("failed");
    for (size_t r = 0; r < program.group.roots.size(); ++r) output_scopes_.push_back(scope("output"));
    for (size_t r = 0; r < kMostRows; ++r) stored_scopes_.push_back(scope("stored"));
    for (size_t r = 0; r < kMostDirectRows; ++r) stored_scopes_.push_back(scope(kStreamed));
  }

  std::unique_ptr<llvm::Module> take() {
    emit_run();
    if (!p_.resamplers.empty()) emit_scratch();
    return std::move(module_);
  }

 private:
  // ---- types and memory

  Type* type(Elem elem) {
    switch (elem) {
      case Elem::Bool:
        return b_.getInt1Ty();
      case Elem::F16:
      case Elem::BF16:  // held as the float that they are
      case Elem::F32:
        return b_.getFloatTy();
      case Elem::F64:
        return b_.getDoubleTy();
      default:
        return b_.getIntNTy(static_cast<unsigned>(elem_size(elem)) * 8);
    }
  }
  Type* memory_type(Elem elem) {
    if (elem == Elem::Bool) return b_.getInt8Ty();
    if (elem == Elem::F16 || elem == Elem::BF16) return b_.getInt16Ty();
    return type(elem);
  }
  static unsigned lanes_in(Type* t) {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(t);
    return vector ? vector->getNumElements() : 1;
  }
  static Type* like(Type* element, Type* shape) {
    unsigned n = lanes_in(shape);
    return n > 1 ? llvm::FixedVectorType::get(element, n) : element;
  }
  Type* i(unsigned bits, Value* shape) { return like(b_.getIntNTy(bits), shape->getType()); }
  Type* f32(Value* shape) { return like(b_.getFloatTy(), shape->getType()); }
  Type* f64(Value* shape) { return like(b_.getDoubleTy(), shape->getType()); }
  static Constant* int_like(Type* t, uint64_t v) { return ConstantInt::get(t, v, true); }

  Value* from_memory(Elem elem, Value* v) {
    if (elem == Elem::Bool) return b_.CreateICmpNE(v, int_like(v->getType(), 0));
    if (elem == Elem::F16) return b_.CreateFPExt(b_.CreateBitCast(v, like(b_.getHalfTy(), v->getType())), f32(v));
    if (elem == Elem::BF16)
      return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(v, i(32, v)), int_like(i(32, v), 16)), f32(v));
    return v;
  }
  Value* to_memory(Elem elem, Value* v) {
    if (elem == Elem::Bool) return b_.CreateZExt(v, i(8, v));
    if (elem == Elem::F16) return b_.CreateBitCast(b_.CreateFPTrunc(v, like(b_.getHalfTy(), v->getType())), i(16, v));
    if (elem == Elem::BF16)
      return b_.CreateTrunc(b_.CreateLShr(b_.CreateBitCast(v, i(32, v)), int_like(i(32, v), 16)), i(16, v));
    return v;
  }

  void tag(llvm::Instruction* access, llvm::MDNode* scope, bool inputs, bool rows, bool failed, int output) {
    std::vector<llvm::Metadata*> others;
    if (inputs) others.push_back(input_scope_);
    if (rows) others.push_back(row_scope_);
    if (failed) others.push_back(failed_scope_);
    for (size_t r = 0; r < output_scopes_.size(); ++r)
      if (static_cast<int>(r) != output) others.push_back(output_scopes_[r]);
    for (llvm::MDNode* stored : stored_scopes_)
      if (scope != stored) others.push_back(stored);
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, llvm::MDNode::get(context_, {scope}));
    access->setMetadata(llvm::LLVMContext::MD_noalias, llvm::MDNode::get(context_, others));
  }

  Value* field(Value* object, size_t offset, Type* t) {
    return b_.CreateLoad(t, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), object, offset));
  }

  /// Elements at `index` (a number, or one per lane).
  Value* load(Elem elem, Value* base, Value* index, int32_t index_node,
              const std::function<void(llvm::Instruction*)>& mark) {
    Type* t = memory_type(elem);
    llvm::Align align(elem_size(elem));
    auto scalar = [&](Value* at) {
      llvm::LoadInst* v = b_.CreateAlignedLoad(t, b_.CreateInBoundsGEP(t, base, at), align);
      mark(v);
      return v;
    };
    unsigned lanes = lanes_in(index->getType());
    if (lanes == 1) return from_memory(elem, scalar(index));
    KVal coefficient, rest;
    if (p_.linear({index_node, Elem::I64}, lane_loop_, coefficient, rest) && p_.is_constant(coefficient, 1)) {
      Value* at = b_.CreateInBoundsGEP(t, base, b_.CreateExtractElement(index, uint64_t{0}));
      llvm::LoadInst* v = b_.CreateAlignedLoad(llvm::FixedVectorType::get(t, lanes), at, align);
      mark(v);
      return from_memory(elem, v);
    }
    Value* all = llvm::PoisonValue::get(llvm::FixedVectorType::get(t, lanes));
    for (unsigned lane = 0; lane < lanes; ++lane)
      all = b_.CreateInsertElement(all, scalar(b_.CreateExtractElement(index, lane)), lane);
    return from_memory(elem, all);
  }

  // ---- functions

  Function* begin_function(const char* name, Type* result) {
    auto* signature = llvm::FunctionType::get(result, {b_.getPtrTy(), b_.getPtrTy()}, false);
    function_ = Function::Create(signature, Function::ExternalLinkage, name, *module_);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    function_->addFnAttr("prefer-vector-width", std::to_string(prefer_width_));
    b_.SetInsertPoint(BasicBlock::Create(context_, "entry", function_));
    Value* call = function_->getArg(0);
    Value* context = function_->getArg(1);
    inputs_ = field(call, offsetof(KernelCall, inputs), b_.getPtrTy());
    outputs_ = field(call, offsetof(KernelCall, outputs), b_.getPtrTy());
    failed_ = field(call, offsetof(KernelCall, failed), b_.getPtrTy());
    scratch_ = field(call, offsetof(KernelCall, scratch), b_.getPtrTy());
    count_ = field(call, offsetof(KernelCall, count), b_.getInt64Ty());
    shapes_ = field(context, offsetof(KernelContext, shapes), b_.getPtrTy());
    functions_ = field(context, offsetof(KernelContext, functions), b_.getPtrTy());
    input_data_.clear();
    output_data_.clear();
    for (size_t l = 0; l < p_.group.leaves.size(); ++l)
      input_data_.push_back(field(inputs_, l * sizeof(TensorRef) + offsetof(TensorRef, data), b_.getPtrTy()));
    for (size_t r = 0; r < p_.group.roots.size(); ++r)
      output_data_.push_back(field(outputs_, r * sizeof(TensorRef) + offsetof(TensorRef, data), b_.getPtrTy()));
    env_.clear();
    exit_ = BasicBlock::Create(context_, "exit", function_);
    return function_;
  }

  bool any_effects() const {
    bool any = false;
    auto look = [&](const std::vector<int32_t>& effects) { any |= !effects.empty(); };
    for (const Version& v : p_.versions) look(v.nest.effects);
    for (const Reduction& r : p_.reductions) {
      look(r.effects);
      look(r.merge_effects);
    }
    for (const Resampler& r : p_.resamplers) look(r.copy.effects);
    return any || !p_.resamplers.empty();
  }

  void emit_run() {
    begin_function("run", b_.getVoidTy());
    flag_ = alloca_of(b_.getInt8Ty());
    b_.CreateStore(b_.getInt8(0), flag_);
    BasicBlock* entry = b_.GetInsertBlock();
    fail_exit_ = BasicBlock::Create(context_, "failed", function_);
    b_.SetInsertPoint(entry);
    stream_ = nullptr;

    std::vector<int32_t> conditions;
    for (auto [id, outcome] : p_.versions[0].assumed) conditions.push_back(id);
    emit_level(p_.closure(conditions), 0);
    std::vector<Value*> known = env_;
    for (size_t v = 0; v < p_.versions.size(); ++v) {
      const Version& version = p_.versions[v];
      BasicBlock* next = nullptr;
      if (v + 1 < p_.versions.size()) {
        Value* applies = b_.getTrue();
        for (int32_t input : version.small_inputs) applies = b_.CreateAnd(applies, all_small(input));
        for (auto [id, outcome] : version.assumed) {
          Value* condition = known[static_cast<size_t>(id)];
          applies = b_.CreateAnd(applies, outcome ? condition : b_.CreateNot(condition));
        }
        BasicBlock* here = BasicBlock::Create(context_, "version", function_);
        next = BasicBlock::Create(context_, "next", function_);
        b_.CreateCondBr(applies, here, next);
        b_.SetInsertPoint(here);
      }
      env_ = known;
      lay_out(version, true);
      emit_nest(version.nest, 0);
      b_.CreateBr(exit_);
      if (next) b_.SetInsertPoint(next);
    }
    b_.SetInsertPoint(exit_);
    if (!columnar_ && any_effects()) {
      BasicBlock* good = BasicBlock::Create(context_, "good", function_);
      b_.CreateCondBr(b_.CreateIsNull(b_.CreateLoad(b_.getInt8Ty(), flag_)), good, fail_exit_);
      b_.SetInsertPoint(good);
    }
    finish();
    b_.SetInsertPoint(fail_exit_);
    if (!columnar_) b_.CreateStore(b_.getInt8(1), failed_);
    finish();
  }

  void finish() {
    // What went past the caches is seen by other threads before anything that is written later.
    if (stream_) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
    b_.CreateRetVoid();
  }

  /// Whether every element of a column lies in [0, kSmallInput): one bitwise or over all of them tells.
  Value* all_small(int32_t input) {
    Value* bits = alloca_of(b_.getInt64Ty());
    b_.CreateStore(b_.getInt64(0), bits);
    for_loop(count_, [&](Value* index) {
      Value* at = b_.CreateInBoundsGEP(b_.getInt64Ty(), input_data_[static_cast<size_t>(input)], index);
      llvm::LoadInst* element = b_.CreateLoad(b_.getInt64Ty(), at);
      tag(element, input_scope_, false, true, true, -1);
      b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt64Ty(), bits), element), bits);
    });
    return b_.CreateICmpULT(b_.CreateLoad(b_.getInt64Ty(), bits), b_.getInt64(kSmallInput));
  }

  void emit_scratch() {
    begin_function("scratch", b_.getInt64Ty());
    Value* most = b_.getInt64(0);
    for (const Version& version : p_.versions) {
      env_.clear();
      Value* size = lay_out(version, false);
      most = b_.CreateSelect(b_.CreateICmpULT(most, size), size, most);
    }
    b_.CreateBr(exit_);
    b_.SetInsertPoint(exit_);
    b_.CreateRet(most);
  }

  Value* alloca_of(Type* t) {
    llvm::IRBuilder<> at_entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
    return at_entry.CreateAlloca(t);
  }

  // ---- scratch memory: rows, copied pictures, the native resamplers' own; each 64-byte aligned

  Value* lay_out(const Version& version, bool in_run) {
    std::vector<int32_t> rows, extents;
    std::vector<int32_t> used;
    for (int32_t id : p_.closure(p_.targets(version.nest))) {
      const KNode& n = p_.node(id);
      if (n.op == KOp::RowFill) rows.push_back(id);
      if (n.op != KOp::Prepare) continue;
      used.push_back(static_cast<int32_t>(n.imm));
      const Resampler& r = p_.resamplers[static_cast<size_t>(n.imm)];
      extents.insert(extents.end(), r.geometry.begin(), r.geometry.end());
    }
    Value* total = b_.getInt64(0);
    if (used.empty()) return total;
    emit_level(p_.closure(extents), 0);
    // Extents come from data here and there (boxes): what is absurd fails before memory is asked for.
    Value* sane = b_.getTrue();
    for (int32_t e : extents) sane = b_.CreateAnd(sane, b_.CreateICmpULE(get(e), b_.getInt64(kMostExtent)));
    for (int32_t number : used) {
      const Resampler& r = p_.resamplers[static_cast<size_t>(number)];
      sane = b_.CreateAnd(sane, b_.CreateICmpULE(get(r.channels()), b_.getInt64(64)));
      for (size_t side : {size_t{0}, size_t{3}}) {  // the input and what is made
        Value* area = b_.CreateMul(get(r.geometry[side]), get(r.geometry[side + 1]));
        sane = b_.CreateAnd(sane, b_.CreateICmpULE(area, b_.getInt64(int64_t{1} << 32)));
      }
    }
    BasicBlock* before = b_.GetInsertBlock();
    BasicBlock* good = BasicBlock::Create(context_, "sane", function_);
    BasicBlock* bad = fail_exit_;
    BasicBlock* join = nullptr;
    if (!in_run) bad = join = BasicBlock::Create(context_, "join", function_);
    b_.CreateCondBr(sane, good, bad);
    b_.SetInsertPoint(good);

    auto place = [&](Value* bytes) {
      Value* at = total;
      Value* rounded = b_.CreateAnd(b_.CreateAdd(bytes, b_.getInt64(127)), b_.getInt64(~int64_t{63}));
      total = b_.CreateAdd(total, rounded);
      return b_.CreateInBoundsGEP(b_.getInt8Ty(), scratch_, at);
    };
    row_at_.clear();
    copy_at_.assign(p_.resamplers.size(), nullptr);
    native_at_.assign(p_.resamplers.size(), nullptr);
    auto product = [&](std::initializer_list<int32_t> nodes, Elem elem) {
      Value* v = b_.getInt64(elem_size(elem));
      for (int32_t id : nodes) v = b_.CreateMul(v, get(id));
      return v;
    };
    for (int32_t id : rows) {
      const Resampler& r = p_.resamplers[static_cast<size_t>(p_.node(id).imm)];
      row_at_[id] = place(product({r.out_w(), r.channels()}, r.elem));
    }
    for (int32_t number : used) {
      const Resampler& r = p_.resamplers[static_cast<size_t>(number)];
      if (r.input < 0)
        copy_at_[static_cast<size_t>(number)] = place(product({r.in_h(), r.in_w(), r.channels()}, r.elem));
      native_at_[static_cast<size_t>(number)] =
          place(native(r, 0, b_.getInt64Ty(), {b_.getInt8(static_cast<uint8_t>(r.elem)), geometry_of(r)}));
    }
    if (in_run) return total;
    BasicBlock* end = b_.GetInsertBlock();
    b_.CreateBr(join);
    b_.SetInsertPoint(join);
    llvm::PHINode* size = b_.CreatePHI(b_.getInt64Ty(), 2);
    size->addIncoming(total, end);
    size->addIncoming(b_.getInt64(0), before);
    return size;
  }

  /// Calls function `which` (scratch_bytes, horizontal, vertical) of a resampler.
  Value* native(const Resampler& r, int which, Type* result, const std::vector<Value*>& args) {
    Value* target = field(functions_, static_cast<size_t>(r.slot * 3 + which) * 8, b_.getPtrTy());
    std::vector<Type*> types;
    for (Value* arg : args) types.push_back(arg->getType());
    llvm::CallInst* call = b_.CreateCall(llvm::FunctionType::get(result, types, false), target, args);
    call->addParamAttr(0, llvm::Attribute::ZExt);
    return call;
  }

  /// A ResampleGeometry in memory.
  Value* geometry_of(const Resampler& r) {
    Value* at = alloca_of(llvm::ArrayType::get(b_.getInt64Ty(), r.geometry.size()));
    for (size_t i = 0; i < r.geometry.size(); ++i)
      b_.CreateStore(get(r.geometry[i]), b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), at, i));
    return at;
  }

  // ---- loops

  void for_loop(Value* count, const std::function<void(Value*)>& body, Value* step = nullptr) {
    BasicBlock* before = b_.GetInsertBlock();
    BasicBlock* head = BasicBlock::Create(context_, "loop", function_);
    BasicBlock* inside = BasicBlock::Create(context_, "body", function_);
    BasicBlock* after = BasicBlock::Create(context_, "after", function_);
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2);
    index->addIncoming(b_.getInt64(0), before);
    b_.CreateCondBr(b_.CreateICmpSLT(index, count), inside, after);
    b_.SetInsertPoint(inside);
    body(index);
    index->addIncoming(b_.CreateNSWAdd(index, step ? step : b_.getInt64(1)), b_.GetInsertBlock());
    b_.CreateBr(head);
    b_.SetInsertPoint(after);
  }

  Value*& slot(int32_t id) {
    if (env_.size() <= static_cast<size_t>(id)) env_.resize(static_cast<size_t>(p_.node_count()) + 64);
    return env_[static_cast<size_t>(id)];
  }
  Value* get(int32_t id) { return slot(id); }
  void forget(LoopSet loops) {
    for (size_t id = 0; id < env_.size() && id < static_cast<size_t>(p_.node_count()); ++id)
      if (p_.node(static_cast<int32_t>(id)).loops & loops) env_[id] = nullptr;
  }

  /// Emits what of `nodes` does not vary in any other than the open loops.
  void emit_level(const std::vector<int32_t>& nodes, LoopSet active) {
    for (int32_t id : nodes) {
      const KNode n = p_.node(id);
      if (slot(id) || (n.loops & ~active) || n.op == KOp::Param || n.op == KOp::Index) continue;
      Value* v = emit(id, n, active);
      slot(id) = v;
    }
  }

  void emit_nest(const Nest& nest, LoopSet active) {
    std::vector<int32_t> all = p_.closure(p_.targets(nest));
    std::vector<Row> rows = rows_of(nest);
    emit_level(all, active);
    std::function<void(size_t)> level = [&](size_t depth) {
      if (depth + 1 == nest.loops.size() && !rows.empty()) {
        emit_rows(nest, rows, all, active);
        return;
      }
      if (depth < nest.loops.size()) {
        int32_t loop = nest.loops[depth];
        const bool per_sample_flag = columnar_ && depth == 0 && any_effects();
        // What fails before the loop (an operation on constants) fails every sample.
        Value* always = per_sample_flag ? b_.CreateLoad(b_.getInt8Ty(), flag_) : nullptr;
        for_loop(get(p_.loop_extents[static_cast<size_t>(loop)]), [&](Value* index) {
          active |= LoopSet{1} << loop;
          set_index(loop, index);
          if (per_sample_flag) b_.CreateStore(always, flag_);
          emit_level(all, active);
          level(depth + 1);
          if (per_sample_flag) {
            Value* at = b_.CreateInBoundsGEP(b_.getInt8Ty(), failed_, index);
            llvm::LoadInst* old = b_.CreateLoad(b_.getInt8Ty(), at);
            tag(old, failed_scope_, true, true, false, -1);
            Value* now = b_.CreateOr(old, b_.CreateLoad(b_.getInt8Ty(), flag_));
            tag(b_.CreateStore(now, at), failed_scope_, true, true, false, -1);
          }
          active &= ~(LoopSet{1} << loop);
          forget(LoopSet{1} << loop);
        });
        return;
      }
      for (const Store& store : nest.stores) {
        Elem elem = p_.node(store.value).elem;
        Value* base = store.output < 0 ? copying_ : output_data_[static_cast<size_t>(store.output)];
        Type* t = memory_type(elem);
        llvm::StoreInst* s =
            b_.CreateAlignedStore(to_memory(elem, get(store.value)), b_.CreateInBoundsGEP(t, base, get(store.index)),
                                  llvm::Align(elem_size(elem)));
        if (store.output < 0)
          tag(s, row_scope_, true, false, true, -1);
        else
          tag(s, output_scopes_[static_cast<size_t>(store.output)], true, true, true, store.output);
      }
    };
    level(0);
  }

  // ---- results past the caches
  //
  // An ordinary store reads the line that it writes to. A large result that nobody finds in a cache is written without
  // that: the innermost loop fills buffers on the stack, which then go out in whole lines. The loops are the same for
  // both ways; only where they write to is chosen at run time.

  /// Consecutive elements of an output, `width` for each pass of the innermost loop.
  struct Row {
    int32_t output = 0;
    int32_t first = 0;  // node: flat index in the first pass
    int64_t width = 1;
    Value* buffer = nullptr;
    Value* to = nullptr;       // where the row belongs
    Value* written = nullptr;  // where the loop writes it
  };

  /// A sum without its constants, and their sum.
  std::pair<std::vector<int32_t>, int64_t> without_offset(int32_t sum) {
    std::vector<int32_t> terms, open{sum};
    int64_t offset = 0;
    while (!open.empty()) {
      const KNode& n = p_.node(open.back());
      if (n.op != KOp::Add && n.op != KOp::Const) terms.push_back(open.back());
      open.pop_back();
      if (n.op == KOp::Const) offset += n.imm;
      if (n.op == KOp::Add) open.insert(open.end(), {n.a, n.b});
    }
    std::sort(terms.begin(), terms.end());
    return {terms, offset};
  }

  /// One row per store, or one of all stores (store i is element i of a pass); none where they are not consecutive or
  /// the result is small.
  std::vector<Row> rows_of(const Nest& nest) {
    std::vector<Row> rows;
    if (columnar_ || nest.loops.empty() || nest.stores.empty() || nest.stores.size() > kMostRows) return rows;
    int64_t bytes = static_cast<int64_t>(nest.stores.size() * elem_size(p_.node(nest.stores[0].value).elem));
    for (int32_t loop : nest.loops) {
      const KNode& extent = p_.node(p_.loop_extents[static_cast<size_t>(loop)]);
      bytes = bytes > kRowBuffers || extent.op != KOp::Const ? kRowBuffers + 1 : bytes * extent.imm;
    }
    if (bytes <= kRowBuffers) return rows;
    auto count = static_cast<int64_t>(nest.stores.size());
    bool apart = true, together = true;
    for (int64_t s = 0; s < count; ++s) {
      const Store& store = nest.stores[static_cast<size_t>(s)];
      KVal coefficient, first;
      if (store.output < 0 || !p_.linear({store.index, Elem::I64}, nest.loops.back(), coefficient, first)) return {};
      rows.push_back({store.output, first.id, 1});
      apart = apart && p_.is_constant(coefficient, 1);
      auto [base, offset] = without_offset(rows[0].first);
      together =
          together && p_.is_constant(coefficient, count) && without_offset(first.id) == std::pair(base, offset + s);
    }
    if (apart) return rows;
    if (!together) return {};
    rows.resize(1);
    rows[0].width = count;
    return rows;
  }

  void emit_rows(const Nest& nest, std::vector<Row>& rows, const std::vector<int32_t>& all, LoopSet active) {
    int32_t loop = nest.loops.back();
    Elem elem = p_.node(nest.stores[0].value).elem;
    Type* t = memory_type(elem);
    auto size = static_cast<int64_t>(elem_size(elem));
    int64_t buffer_bytes = kRowBuffers / static_cast<int64_t>(rows.size()) / kLine * kLine;
    int64_t most = buffer_bytes / (size * rows[0].width);  // passes of the loop that the buffers hold
    if (!stream_) {
      llvm::IRBuilder<> at_entry(&function_->getEntryBlock(), std::prev(function_->getEntryBlock().end()));
      Value* at =
          at_entry.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), function_->getArg(0), offsetof(KernelCall, stream));
      stream_ = at_entry.CreateIsNotNull(at_entry.CreateLoad(b_.getInt8Ty(), at));
    }
    for (Row& row : rows) {
      auto* buffer = llvm::cast<llvm::AllocaInst>(
          alloca_of(llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(buffer_bytes + kLine))));
      buffer->setAlignment(llvm::Align(kLine));
      row.buffer = buffer;
      emit_level(p_.closure({row.first}), active);
    }
    Value* extent = get(p_.loop_extents[static_cast<size_t>(loop)]);
    BasicBlock* after = BasicBlock::Create(context_, "filled", function_);
    if (rows[0].width == 1 && rows.size() <= kMostDirectRows) {
      // Rows that begin with a line need no buffers: mark_streams() finds the vectors that the loop stores.
      Value* misplaced = b_.getInt64(0);
      for (Row& row : rows) {
        row.to = b_.CreateInBoundsGEP(t, output_data_[static_cast<size_t>(row.output)], get(row.first));
        misplaced = b_.CreateOr(misplaced, b_.CreateAnd(b_.CreatePtrToInt(row.to, b_.getInt64Ty()), kLine - 1));
      }
      BasicBlock* direct = BasicBlock::Create(context_, "direct", function_);
      BasicBlock* other = BasicBlock::Create(context_, "other", function_);
      b_.CreateCondBr(b_.CreateAnd(stream_, b_.CreateIsNull(misplaced)), direct, other);
      b_.SetInsertPoint(direct);
      for (Row& row : rows)
        // Laundered, as else the branch above makes the mask superfluous, and with it what it says to mark_streams().
        row.written =
            b_.CreateIntrinsic(llvm::Intrinsic::ptrmask, {b_.getPtrTy(), b_.getInt64Ty()},
                               {b_.CreateLaunderInvariantGroup(row.to), b_.getInt64(static_cast<uint64_t>(-kLine))});
      std::vector<Value*> known = env_;
      ask_ahead(nest, all, active, b_.getInt64(0), extent);
      fill_rows(nest, rows, all, active, b_.getInt64(0), extent, kMostRows);
      env_ = known;
      b_.CreateBr(after);
      b_.SetInsertPoint(other);
    }
    auto piece = [&](Value* start, Value* count) {
      for (Row& row : rows) {
        Value* index = b_.CreateAdd(get(row.first), b_.CreateMul(start, b_.getInt64(row.width)));
        row.to = b_.CreateInBoundsGEP(t, output_data_[static_cast<size_t>(row.output)], index);
        // As far from the start of a line as the row's place is.
        Value* misplaced = b_.CreateAnd(b_.CreatePtrToInt(row.to, b_.getInt64Ty()), b_.getInt64(kLine - 1));
        row.written = b_.CreateSelect(stream_, b_.CreateInBoundsGEP(b_.getInt8Ty(), row.buffer, misplaced), row.to);
      }
      std::vector<Value*> known = env_;  // what is computed on one way only is unknown after it
      if_streaming([&] { ask_ahead(nest, all, active, start, count); });
      env_ = known;
      fill_rows(nest, rows, all, active, start, count, 0);
      if_streaming([&] {
        for (const Row& row : rows)
          b_.CreateCall(stream_out(), {row.to, row.written, b_.CreateMul(count, b_.getInt64(row.width * size))});
      });
    };
    if (auto* fixed = llvm::dyn_cast<ConstantInt>(extent); fixed && fixed->getSExtValue() <= most) {
      piece(b_.getInt64(0), extent);
    } else {
      Value* step = b_.CreateSelect(stream_, b_.getInt64(most), extent);
      for_loop(
          extent,
          [&](Value* start) {
            piece(start, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, step, b_.CreateSub(extent, start)));
          },
          step);
    }
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  /// `count` passes of the innermost loop, from `start`. Stores have scopes of their own, from `scope` on: no two write
  /// the same element.
  void fill_rows(const Nest& nest, const std::vector<Row>& rows, const std::vector<int32_t>& all, LoopSet active,
                 Value* start, Value* count, size_t scope) {
    int32_t loop = nest.loops.back();
    Elem elem = p_.node(nest.stores[0].value).elem;
    for_loop(count, [&](Value* pass) {
      set_index(loop, b_.CreateNSWAdd(start, pass));
      emit_level(all, active | LoopSet{1} << loop);
      for (size_t s = 0; s < nest.stores.size(); ++s) {
        const Row& row = rows[rows.size() == 1 ? 0 : s];
        Value* at = b_.CreateNSWMul(pass, b_.getInt64(row.width));
        if (rows.size() == 1) at = b_.CreateNSWAdd(at, b_.getInt64(static_cast<int64_t>(s)));
        llvm::StoreInst* store = b_.CreateAlignedStore(to_memory(elem, get(nest.stores[s].value)),
                                                       b_.CreateInBoundsGEP(memory_type(elem), row.written, at),
                                                       llvm::Align(elem_size(elem)));
        tag(store, stored_scopes_[scope + s], true, true, true, -1);
      }
      forget(LoopSet{1} << loop);
    });
  }

  void if_streaming(const std::function<void()>& body) {
    BasicBlock* here = BasicBlock::Create(context_, "streaming", function_);
    BasicBlock* after = BasicBlock::Create(context_, "streamed", function_);
    b_.CreateCondBr(stream_, here, after);
    b_.SetInsertPoint(here);
    body();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  /// Prefetches what the loops will read a few rows from now: while whole lines are written past the caches, the
  /// processor's own prefetching falls behind.
  void ask_ahead(const Nest& nest, const std::vector<int32_t>& all, LoopSet active, Value* start, Value* count) {
    if (nest.loops.size() < 2) return;
    int32_t outer = nest.loops[nest.loops.size() - 2];
    std::set<std::pair<int64_t, std::vector<int32_t>>> asked;
    for (int32_t id : all) {
      const KNode n = p_.node(id);
      KVal across, row, down, rest;
      if (n.op != KOp::Load || !p_.linear(p_.value_of(n.a), nest.loops.back(), across, row) ||
          !p_.is_constant(across) || p_.is_constant(across, 0) || !p_.linear(row, outer, down, rest) ||
          p_.is_constant(down, 0) || (p_.node(row.id).loops & ~active))
        continue;
      if (!asked.insert({n.imm, without_offset(row.id).first}).second) continue;  // channels of a pixel lie together
      emit_level(p_.closure({row.id, down.id}), active);
      int64_t step = p_.node(across.id).imm;
      auto size = static_cast<int64_t>(elem_size(n.elem));
      Value* first = step > 0 ? start : b_.CreateSub(b_.CreateAdd(start, count), b_.getInt64(1));
      Value* index = b_.CreateAdd(get(row.id), b_.CreateMul(get(down.id), b_.getInt64(kRowsAhead)));
      index = b_.CreateAdd(index, b_.CreateMul(first, b_.getInt64(step)));
      Value* at = b_.CreateGEP(memory_type(n.elem), input_data_[static_cast<size_t>(n.imm)], index);
      Value* bytes = b_.CreateMul(count, b_.getInt64(std::abs(step) * size));
      for_loop(
          bytes,
          [&](Value* byte) {
            b_.CreateIntrinsic(
                llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                {b_.CreateGEP(b_.getInt8Ty(), at, byte), b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
          },
          b_.getInt64(kLine));
    }
  }

  /// void(to, from, bytes), both as far from the start of a line: what fills whole lines of `to` goes past the caches.
  Function* stream_out() {
    if (stream_out_) return stream_out_;
    Type* word = b_.getInt64Ty();
    auto* signature = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getPtrTy(), word}, false);
    stream_out_ = Function::Create(signature, Function::InternalLinkage, "stream_out", *module_);
    for (auto attribute : {llvm::Attribute::NoUnwind, llvm::Attribute::NoInline}) stream_out_->addFnAttr(attribute);
    stream_out_->addFnAttr("prefer-vector-width", std::to_string(prefer_width_));
    llvm::IRBuilder<>::InsertPointGuard guard(b_);
    Function* outside = std::exchange(function_, stream_out_);
    b_.SetInsertPoint(BasicBlock::Create(context_, "entry", function_));
    Value *to = function_->getArg(0), *from = function_->getArg(1), *bytes = function_->getArg(2);
    auto copy = [&](Value* at, Value* count) {
      BasicBlock* some = BasicBlock::Create(context_, "some", function_);
      BasicBlock* after = BasicBlock::Create(context_, "after", function_);
      b_.CreateCondBr(b_.CreateIsNotNull(count), some, after);
      b_.SetInsertPoint(some);
      b_.CreateMemCpy(b_.CreateGEP(b_.getInt8Ty(), to, at), llvm::MaybeAlign(1), b_.CreateGEP(b_.getInt8Ty(), from, at),
                      llvm::MaybeAlign(1), count);
      b_.CreateBr(after);
      b_.SetInsertPoint(after);
    };
    Value* before = b_.CreateAnd(b_.CreateNeg(b_.CreatePtrToInt(to, word)), b_.getInt64(kLine - 1));
    before = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, before, bytes);
    copy(b_.getInt64(0), before);
    Value* lines = b_.CreateAnd(b_.CreateSub(bytes, before), b_.getInt64(~(kLine - 1)));
    Type* line = llvm::FixedVectorType::get(b_.getFloatTy(), kLine / 4);
    llvm::MDNode* past = llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(b_.getInt32(1)));
    for_loop(
        lines,
        [&](Value* at) {
          Value* place = b_.CreateAdd(before, at);
          Value* v = b_.CreateAlignedLoad(line, b_.CreateGEP(b_.getInt8Ty(), from, place), llvm::Align(kLine));
          b_.CreateAlignedStore(v, b_.CreateGEP(b_.getInt8Ty(), to, place), llvm::Align(kLine))
              ->setMetadata(llvm::LLVMContext::MD_nontemporal, past);
        },
        b_.getInt64(kLine));
    Value* done = b_.CreateAdd(before, lines);
    copy(done, b_.CreateSub(bytes, done));
    b_.CreateRetVoid();
    function_ = outside;
    return stream_out_;
  }

  void set_index(int32_t loop, Value* v) {
    KVal extent{p_.loop_extents[static_cast<size_t>(loop)], Elem::I64};
    slot(p_.index(loop, extent).id) = v;
  }

  // ---- reductions

  Value* emit_reduction(const Reduction& r, LoopSet active) {
    Type* scalar = r.elem == Elem::Bool ? b_.getInt8Ty() : type(r.elem);
    Type* vector = llvm::FixedVectorType::get(scalar, kLanes);
    auto widen = [&](Value* v) { return r.elem == Elem::Bool ? b_.CreateZExt(v, i(8, v)) : v; };
    auto narrow = [&](Value* v) { return r.elem == Elem::Bool ? b_.CreateICmpNE(v, int_like(v->getType(), 0)) : v; };
    Value* lanes = alloca_of(vector);
    b_.CreateStore(b_.CreateVectorSplat(kLanes, widen(get(r.init))), lanes);
    std::vector<int32_t> inside = r.effects;
    inside.push_back(r.next);
    std::vector<int32_t> body = p_.closure(inside);
    LoopSet outer_active = active, own = 0;
    for (int32_t loop : r.loops) own |= LoopSet{1} << loop;
    int32_t inner = r.loops.back();
    LoopSet inner_bit = LoopSet{1} << inner;
    bool vectorizable = true;
    for (int32_t id : body) {
      const KNode& n = p_.node(id);
      bool serial = n.op == KOp::ReduceValue || n.op == KOp::RowFill || n.op == KOp::Prepare;
      if (serial && (n.loops & inner_bit)) vectorizable = false;
    }
    bool single = r.loops.size() == 1;
    Value* position = alloca_of(b_.getInt64Ty());  // how many elements so far
    b_.CreateStore(b_.getInt64(0), position);

    auto one = [&](Value* x) {
      Value* j = b_.CreateLoad(b_.getInt64Ty(), position);
      Value* at = b_.CreateInBoundsGEP(scalar, lanes, b_.CreateAnd(j, b_.getInt64(kLanes - 1)));
      set_index(inner, x);
      slot(r.accumulator) = narrow(b_.CreateLoad(scalar, at));
      emit_level(body, active | inner_bit);
      b_.CreateStore(widen(get(r.next)), at);
      b_.CreateStore(b_.CreateAdd(j, b_.getInt64(1)), position);
      forget(inner_bit);
      slot(r.accumulator) = nullptr;
    };
    std::function<void(size_t)> level = [&](size_t depth) {
      int32_t loop = r.loops[depth];
      Value* extent = get(p_.loop_extents[static_cast<size_t>(loop)]);
      if (depth + 1 < r.loops.size()) {
        for_loop(extent, [&](Value* index) {
          active |= LoopSet{1} << loop;
          set_index(loop, index);
          emit_level(body, active);
          level(depth + 1);
          active &= ~(LoopSet{1} << loop);
          forget(LoopSet{1} << loop);
        });
        return;
      }
      if (!vectorizable) {
        for_loop(extent, one);
        return;
      }
      Value* head = b_.getInt64(0);
      if (!single) {
        // Up to the next element of lane 0.
        Value* j = b_.CreateLoad(b_.getInt64Ty(), position);
        head = b_.CreateAnd(b_.CreateNeg(j), b_.getInt64(kLanes - 1));
        head = b_.CreateSelect(b_.CreateICmpSLT(head, extent), head, extent);
        for_loop(head, one);
      }
      Value* blocks = b_.CreateLShr(b_.CreateSub(extent, head), b_.getInt64(4));
      Value* first = b_.CreateLoad(vector, lanes);
      BasicBlock* before = b_.GetInsertBlock();
      llvm::PHINode* running = nullptr;
      for_loop(blocks, [&](Value* block) {
        llvm::IRBuilder<> at_phi(block->getType()->getContext());
        auto* phi = llvm::cast<llvm::PHINode>(block);
        at_phi.SetInsertPoint(phi);
        running = at_phi.CreatePHI(vector, 2);
        running->addIncoming(first, before);
        Value* x = b_.CreateAdd(head, b_.CreateShl(block, b_.getInt64(4)));
        std::vector<Constant*> steps;
        for (unsigned lane = 0; lane < kLanes; ++lane) steps.push_back(b_.getInt64(lane));
        unsigned saved = lanes_;
        int32_t saved_loop = lane_loop_;
        lanes_ = kLanes;
        lane_loop_ = inner;
        set_index(inner, b_.CreateAdd(b_.CreateVectorSplat(kLanes, x), llvm::ConstantVector::get(steps)));
        slot(r.accumulator) = narrow(running);
        emit_level(body, active | inner_bit);
        Value* next = operand(r.next, lanes_);
        lanes_ = saved;
        lane_loop_ = saved_loop;
        running->addIncoming(widen(next), b_.GetInsertBlock());
        forget(inner_bit);
        slot(r.accumulator) = nullptr;
      });
      b_.CreateStore(running, lanes);
      Value* done = b_.CreateShl(blocks, b_.getInt64(4));
      b_.CreateStore(b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), position), done), position);
      Value* start = b_.CreateAdd(head, done);
      for_loop(b_.CreateSub(extent, start), [&](Value* k) { one(b_.CreateAdd(start, k)); });
    };
    level(0);

    // Pairwise: lanes i and i + 8, then 4, 2, 1 apart.
    std::vector<int32_t> merging = r.merge_effects;
    merging.push_back(r.merged);
    std::vector<int32_t> merge = p_.closure(merging);
    LoopSet merge_bit = LoopSet{1} << kMergeLoop;
    Value* values = narrow(b_.CreateLoad(vector, lanes));
    for (unsigned half = kLanes / 2; half > 0; half /= 2) {
      std::vector<int> low, high;
      for (unsigned lane = 0; lane < half; ++lane) {
        low.push_back(static_cast<int>(lane));
        high.push_back(static_cast<int>(lane + half));
      }
      Value* left = half == 1 ? b_.CreateExtractElement(values, uint64_t{0}) : b_.CreateShuffleVector(values, low);
      Value* right = half == 1 ? b_.CreateExtractElement(values, uint64_t{1}) : b_.CreateShuffleVector(values, high);
      slot(r.left) = left;
      slot(r.right) = right;
      unsigned saved = lanes_;
      lanes_ = half;
      emit_level(merge, outer_active | merge_bit);
      values = operand(r.merged, half);
      lanes_ = saved;
      forget(merge_bit);
    }
    return values;
  }

  // ---- values

  Value* operand(int32_t id, unsigned lanes) {
    Value* v = get(id);
    return lanes > 1 && lanes_in(v->getType()) == 1 ? b_.CreateVectorSplat(lanes, v) : v;
  }

  Value* any(Value* condition) { return lanes_in(condition->getType()) > 1 ? b_.CreateOrReduce(condition) : condition; }

  Value* round16(Elem elem, Value* v) {
    if (elem == Elem::F16) return b_.CreateFPExt(b_.CreateFPTrunc(v, like(b_.getHalfTy(), v->getType())), v->getType());
    if (elem != Elem::BF16) return v;
    Type* t = i(32, v);
    Value* bits = b_.CreateBitCast(v, t);
    Value* odd = b_.CreateAnd(b_.CreateLShr(bits, int_like(t, 16)), int_like(t, 1));
    Value* rounded = b_.CreateAdd(b_.CreateAdd(bits, odd), int_like(t, 0x7fff));
    Value* kept = b_.CreateSelect(b_.CreateFCmpUNO(v, v), b_.CreateOr(bits, int_like(t, 0x400000)), rounded);
    return b_.CreateBitCast(b_.CreateAnd(kept, int_like(t, 0xffff0000)), v->getType());
  }

  /// double -> float so that a second rounding to fewer bits is right: inexact values become odd.
  Value* to_odd(Value* v) {
    Value* near = b_.CreateFPTrunc(v, f32(v));
    Value* back = b_.CreateFPExt(near, v->getType());
    Type* t = i(32, v);
    Value* bits = b_.CreateBitCast(near, t);
    Value* inexact = b_.CreateFCmpONE(back, v);
    Value* away = b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                   b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v));
    Value* toward = b_.CreateSub(bits, b_.CreateZExt(away, t));
    Value* odd = b_.CreateOr(toward, int_like(t, 1));
    return b_.CreateBitCast(b_.CreateSelect(inexact, odd, bits), near->getType());
  }

  static bool is_unsigned(Elem elem) { return elem == Elem::Bool || elem == Elem::U8 || elem == Elem::U16; }

  Value* int_to_float(const KNode& from, Elem to, Value* v) {
    if (is_unsigned(from.elem)) v = b_.CreateZExt(v, i(32, v));
    if (to == Elem::F64) return b_.CreateSIToFP(v, f64(v));
    bool exact = from.lo >= -(1 << 24) && from.hi <= 1 << 24;
    if (to == Elem::F32 || exact) return round16(to, b_.CreateSIToFP(v, f32(v)));
    if (from.elem == Elem::I64 && (from.lo < -(int64_t{1} << 53) || from.hi > int64_t{1} << 53)) {
      // Beyond 53 bits: what is cut off leaves a mark that later rounding sees.
      Type* t = v->getType();
      Value* cut = b_.CreateAnd(v, int_like(t, 0x7ff));
      Value* mark = b_.CreateZExt(b_.CreateICmpNE(cut, int_like(t, 0)), t);
      Value* marked = b_.CreateShl(b_.CreateOr(b_.CreateAShr(v, int_like(t, 11)), mark), int_like(t, 11));
      Value* magnitude = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, v, b_.CreateNeg(v));
      v = b_.CreateSelect(b_.CreateICmpUGT(magnitude, int_like(t, uint64_t{1} << 53)), marked, v);
    }
    return round16(to, to_odd(b_.CreateSIToFP(v, f64(v))));
  }

  Value* convert(const KNode& from, Elem to, Value* v) {
    bool from_float = is_float(from.elem), to_float = is_float(to);
    if (from_float && to_float) {
      if (to == Elem::F64) return from.elem == Elem::F64 ? v : b_.CreateFPExt(v, f64(v));
      if (from.elem == Elem::F64) return to == Elem::F32 ? b_.CreateFPTrunc(v, f32(v)) : round16(to, to_odd(v));
      return round16(to, v);
    }
    if (to_float) return int_to_float(from, to, v);
    if (from_float) {
      // Out of range is excluded by the caller; freeze keeps what is computed there from spoiling the verdict.
      Type* wide = i(to == Elem::I64 ? 64 : 32, v);
      Value* whole = b_.CreateFreeze(b_.CreateFPToSI(v, wide));
      if (to == Elem::Bool) return b_.CreateICmpNE(whole, int_like(wide, 0));
      return b_.CreateTrunc(whole, like(type(to), v->getType()));
    }
    if (to == Elem::Bool) return b_.CreateICmpNE(v, int_like(v->getType(), 0));
    return b_.CreateIntCast(v, like(type(to), v->getType()), !is_unsigned(from.elem));
  }

  Value* bits_of(Elem elem, Value* v) {
    if (elem == Elem::F16 || elem == Elem::BF16) return to_memory(elem, v);
    if (is_float(elem)) return b_.CreateBitCast(v, i(elem == Elem::F64 ? 64 : 32, v));
    return v;
  }

  Value* constant(const KNode& n) {
    if (is_float(n.elem)) {
      auto v = std::bit_cast<double>(n.imm);
      if (n.elem == Elem::F64) return ConstantFP::get(b_.getDoubleTy(), v);
      return ConstantFP::get(context_, llvm::APFloat(static_cast<float>(v)));
    }
    return ConstantInt::get(type(n.elem), static_cast<uint64_t>(n.imm), true);
  }

  Value* extent(int64_t packed) {
    ExtentSource source = ExtentSource::unpack(packed);
    auto dim = static_cast<size_t>(source.dim) * 8;
    switch (source.kind) {
      case ExtentSource::Count:
        return count_;
      case ExtentSource::Interior:
        return field(shapes_, static_cast<size_t>(source.slot) * kMaxRank * 8 + dim, b_.getInt64Ty());
      default: {
        Value* refs = source.kind == ExtentSource::Input ? inputs_ : outputs_;
        size_t offset = static_cast<size_t>(source.slot) * sizeof(TensorRef) + offsetof(TensorRef, shape) + dim;
        return field(refs, offset, b_.getInt64Ty());
      }
    }
  }

  llvm::GlobalVariable* table(int64_t number) {
    auto at = static_cast<size_t>(number);
    if (tables_.size() <= at) tables_.resize(p_.tables.size());
    if (!tables_[at]) {
      const KTable& t = p_.tables[at];
      llvm::StringRef bytes(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
      Constant* data = llvm::ConstantDataArray::getString(context_, bytes, false);
      tables_[at] = new llvm::GlobalVariable(*module_, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
      tables_[at]->setAlignment(llvm::Align(64));
      tables_[at]->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    }
    return tables_[at];
  }

  Value* emit_prepare(const KNode& n, LoopSet active) {
    const Resampler& r = p_.resamplers[static_cast<size_t>(n.imm)];
    auto number = static_cast<size_t>(n.imm);
    Value* picture = nullptr;
    Value* stride = nullptr;
    auto size = static_cast<int64_t>(elem_size(r.elem));
    if (r.input >= 0) {
      picture = b_.CreateInBoundsGEP(memory_type(r.elem), input_data_[static_cast<size_t>(r.input)], get(r.base));
      stride = b_.CreateMul(get(r.row_stride), b_.getInt64(size));
    } else {
      picture = copying_ = copy_at_[number];
      emit_nest(r.copy, active);
      stride = b_.CreateMul(b_.CreateMul(get(r.in_w()), get(r.channels())), b_.getInt64(size));
    }
    Value* made =
        native(r, 1, b_.getInt8Ty(),
               {b_.getInt8(static_cast<uint8_t>(r.elem)), picture, stride, geometry_of(r), native_at_[number]});
    BasicBlock* good = BasicBlock::Create(context_, "resampled", function_);
    b_.CreateCondBr(b_.CreateTrunc(made, b_.getInt1Ty()), good, fail_exit_);
    b_.SetInsertPoint(good);
    return native_at_[number];
  }

  Value* emit_row(int32_t id, const KNode& n) {
    const Resampler& r = p_.resamplers[static_cast<size_t>(n.imm)];
    Value* row = row_at_.at(id);
    native(r, 2, b_.getVoidTy(),
           {b_.getInt8(static_cast<uint8_t>(r.elem)), native_at_[static_cast<size_t>(n.imm)], get(n.a), row});
    return row;
  }

  Value* emit(int32_t id, const KNode& n, LoopSet active) {
    switch (n.op) {
      case KOp::Const:
        return constant(n);
      case KOp::Extent:
        return extent(n.imm);
      case KOp::Load:
        return load(n.elem, input_data_[static_cast<size_t>(n.imm)], get(n.a), n.a,
                    [&](llvm::Instruction* v) { tag(v, input_scope_, false, true, true, -1); });
      case KOp::Table:
        return load(n.elem, table(n.imm), get(n.a), n.a, [](llvm::Instruction*) {});
      case KOp::RowLoad:
        return load(n.elem, get(n.a), get(n.b), n.b,
                    [&](llvm::Instruction* v) { tag(v, row_scope_, true, false, true, -1); });
      case KOp::ReduceValue:
        return emit_reduction(p_.reductions[static_cast<size_t>(n.imm)], active);
      case KOp::Prepare:
        return emit_prepare(n, active);
      case KOp::RowFill:
        return emit_row(id, n);
      case KOp::Guard: {
        BasicBlock* good = BasicBlock::Create(context_, "good", function_);
        b_.CreateCondBr(any(get(n.a)), fail_exit_, good);
        b_.SetInsertPoint(good);
        return b_.getTrue();
      }
      case KOp::Fail: {
        Value* now = b_.CreateZExt(any(get(n.a)), b_.getInt8Ty());
        b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt8Ty(), flag_), now), flag_);
        return b_.getTrue();
      }
      default:
        break;
    }
    // Operands of one width: that of the widest.
    unsigned lanes = 1;
    for (int32_t arg : {n.a, n.b, n.c})
      if (arg >= 0) lanes = std::max(lanes, lanes_in(get(arg)->getType()));
    Value* a = operand(n.a, lanes);
    Value* b = n.b >= 0 ? operand(n.b, lanes) : nullptr;
    Value* c = n.c >= 0 ? operand(n.c, lanes) : nullptr;
    const KNode na = p_.node(n.a);
    return is_float(na.elem) && n.op != KOp::Select ? float_operation(n, na, a, b, c) : int_operation(n, na, a, b, c);
  }

  Value* float_operation(const KNode& n, const KNode& na, Value* a, Value* b, Value* c) {
    auto intrinsic = [&](ID which) { return b_.CreateUnaryIntrinsic(which, a); };
    switch (n.op) {
      case KOp::Add:
        return round16(n.elem, b_.CreateFAdd(a, b));
      case KOp::Sub:
        return round16(n.elem, b_.CreateFSub(a, b));
      case KOp::Mul:
        return round16(n.elem, b_.CreateFMul(a, b));
      case KOp::Div:
        return round16(n.elem, b_.CreateFDiv(a, b));
      case KOp::Fma:
        return round16(n.elem, b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c}));
      case KOp::Sqrt:
        return round16(n.elem, intrinsic(llvm::Intrinsic::sqrt));
      case KOp::Floor:
        return intrinsic(llvm::Intrinsic::floor);
      case KOp::Ceil:
        return intrinsic(llvm::Intrinsic::ceil);
      case KOp::Trunc:
        return intrinsic(llvm::Intrinsic::trunc);
      case KOp::RoundEven:
        return intrinsic(llvm::Intrinsic::roundeven);
      case KOp::Abs:
        return intrinsic(llvm::Intrinsic::fabs);
      case KOp::Minimum:
      case KOp::Maximum:
        return extreme(n, a, b);
      case KOp::Compare: {
        using P = llvm::CmpInst;
        constexpr P::Predicate predicates[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT,
                                               P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
        return b_.CreateFCmp(predicates[static_cast<int>(n.compare)], a, b);
      }
      case KOp::Convert:
        return convert(na, n.elem, a);
      case KOp::Bitcast:
        return bitcast(na, n, a);
      default:
        llvm_unreachable("no such operation on floats");
    }
  }

  Value* extreme(const KNode& n, Value* a, Value* b) {
    bool least = n.op == KOp::Minimum;
    if (n.elem != Elem::F16)
      return b_.CreateBinaryIntrinsic(least ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum, a, b);
    // LLVM 19 narrows the intrinsic to half, and then loses NaN where the processor has no half arithmetic.
    Type* t = i(32, a);
    Value* bits_a = b_.CreateBitCast(a, t);
    Value* bits_b = b_.CreateBitCast(b, t);
    Value* zero = b_.CreateBitCast(least ? b_.CreateOr(bits_a, bits_b) : b_.CreateAnd(bits_a, bits_b), a->getType());
    Value* other = b_.CreateSelect(least ? b_.CreateFCmpOLT(a, b) : b_.CreateFCmpOGT(a, b), a, b);
    Value* number = b_.CreateSelect(b_.CreateFCmpOEQ(a, b), zero, other);
    return b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, number);  // a NaN in b was chosen by the comparison
  }

  Value* bitcast(const KNode& from, const KNode& n, Value* a) {
    Value* bits = bits_of(from.elem, a);
    if (n.elem == Elem::F16 || n.elem == Elem::BF16) return from_memory(n.elem, bits);
    return b_.CreateBitCast(bits, like(type(n.elem), a->getType()));
  }

  static bool within(const KNode& n, int64_t lo, int64_t hi) { return n.lo >= lo && n.hi <= hi; }

  Value* int_operation(const KNode& n, const KNode& na, Value* a, Value* b, Value* c) {
    const KNode& nb = n.b >= 0 ? p_.node(n.b) : na;
    Type* t = a->getType();
    unsigned bits = t->getScalarSizeInBits();
    // A range that is not the whole type was found without wrapping.
    bool no_wrap = !is_unsigned(n.elem) && (n.lo > least_of(n.elem) || n.hi < greatest_of(n.elem));
    auto amount = [&] { return within(nb, 0, bits - 1) ? b : b_.CreateAnd(b, int_like(b->getType(), bits - 1)); };
    switch (n.op) {
      case KOp::Add:
        return b_.CreateAdd(a, b, "", false, no_wrap);
      case KOp::Sub:
        return b_.CreateSub(a, b, "", false, no_wrap);
      case KOp::Mul:
        return b_.CreateMul(a, b, "", false, no_wrap);
      case KOp::Div:
      case KOp::Rem: {
        bool natural = is_unsigned(n.elem) || (na.lo >= 0 && nb.lo >= 0);
        bool remainder = n.op == KOp::Rem;
        if (natural && n.elem == Elem::I64 && na.hi <= int64_t{0xffffffff} && nb.hi <= int64_t{0xffffffff}) {
          Value* x = b_.CreateTrunc(a, i(32, a));
          Value* y = b_.CreateTrunc(b, i(32, a));
          return b_.CreateZExt(remainder ? b_.CreateURem(x, y) : b_.CreateUDiv(x, y), t);
        }
        if (natural) return remainder ? b_.CreateURem(a, b) : b_.CreateUDiv(a, b);
        return remainder ? b_.CreateSRem(a, b) : b_.CreateSDiv(a, b);
      }
      case KOp::And:
        return b_.CreateAnd(a, b);
      case KOp::Or:
        return b_.CreateOr(a, b);
      case KOp::Xor:
        return b_.CreateXor(a, b);
      case KOp::ShiftLeft:
        return b_.CreateShl(a, amount());
      case KOp::ShiftRightLogical:
        return b_.CreateLShr(a, amount());
      case KOp::ShiftRightArithmetic:
        return is_unsigned(n.elem) ? b_.CreateLShr(a, amount()) : b_.CreateAShr(a, amount());
      case KOp::Abs:
        return b_.CreateSelect(b_.CreateICmpSLT(a, int_like(t, 0)), b_.CreateNeg(a), a);
      case KOp::Minimum:
        return b_.CreateBinaryIntrinsic(is_unsigned(n.elem) ? llvm::Intrinsic::umin : llvm::Intrinsic::smin, a, b);
      case KOp::Maximum:
        return b_.CreateBinaryIntrinsic(is_unsigned(n.elem) ? llvm::Intrinsic::umax : llvm::Intrinsic::smax, a, b);
      case KOp::Compare: {
        using P = llvm::CmpInst;
        constexpr P::Predicate with_sign[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_SLT,
                                              P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
        constexpr P::Predicate without[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_ULT, P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
        return b_.CreateICmp((is_unsigned(na.elem) ? without : with_sign)[static_cast<int>(n.compare)], a, b);
      }
      case KOp::Select:
        return b_.CreateSelect(a, b, c);
      case KOp::Convert:
        return convert(na, n.elem, a);
      case KOp::Bitcast:
        return bitcast(na, n, a);
      case KOp::AddOverflows: {
        Value* sum = b_.CreateAdd(a, b);
        return b_.CreateICmpSLT(b_.CreateAnd(b_.CreateXor(a, sum), b_.CreateXor(b, sum)), int_like(t, 0));
      }
      case KOp::SubOverflows: {
        Value* rest = b_.CreateSub(a, b);
        return b_.CreateICmpSLT(b_.CreateAnd(b_.CreateXor(a, b), b_.CreateXor(a, rest)), int_like(t, 0));
      }
      case KOp::MulOverflows: {
        if (bits < 64) {
          Value* product = b_.CreateMul(b_.CreateSExt(a, i(64, a)), b_.CreateSExt(b, i(64, a)));
          return b_.CreateICmpNE(product, b_.CreateSExt(b_.CreateTrunc(product, t), i(64, a)));
        }
        return b_.CreateExtractValue(b_.CreateBinaryIntrinsic(llvm::Intrinsic::smul_with_overflow, a, b), 1);
      }
      default:
        llvm_unreachable("no such operation on integers");
    }
  }

  llvm::LLVMContext& context_;
  KernelProgram& p_;
  std::unique_ptr<llvm::Module> module_;
  llvm::IRBuilder<> b_;
  unsigned prefer_width_;
  bool columnar_;
  llvm::MDNode *input_scope_, *row_scope_, *failed_scope_;
  std::vector<llvm::MDNode*> output_scopes_, stored_scopes_;
  Function* function_ = nullptr;
  Function* stream_out_ = nullptr;
  BasicBlock *exit_ = nullptr, *fail_exit_ = nullptr;
  Value *inputs_ = nullptr, *outputs_ = nullptr, *failed_ = nullptr, *scratch_ = nullptr, *count_ = nullptr,
        *shapes_ = nullptr, *functions_ = nullptr, *flag_ = nullptr, *copying_ = nullptr, *stream_ = nullptr;
  std::vector<Value*> input_data_, output_data_, env_, copy_at_, native_at_;
  std::map<int32_t, Value*> row_at_;
  std::vector<llvm::GlobalVariable*> tables_;
  unsigned lanes_ = 1;
  int32_t lane_loop_ = -1;
};

}  // namespace

void mark_streams(llvm::Module& module) {
  llvm::MDNode* past = llvm::MDNode::get(module.getContext(), llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(
                                                                  llvm::Type::getInt32Ty(module.getContext()), 1)));
  auto streamed = [](const llvm::Instruction& store) {
    llvm::MDNode* scopes = store.getMetadata(llvm::LLVMContext::MD_alias_scope);
    if (!scopes) return false;
    return std::any_of(scopes->op_begin(), scopes->op_end(), [](const llvm::MDOperand& scope) {
      return llvm::AliasScopeNode(llvm::cast<llvm::MDNode>(scope)).getName() == kStreamed;
    });
  };
  const llvm::DataLayout& layout = module.getDataLayout();
  for (Function& function : module)
    for (BasicBlock& block : function)
      for (llvm::Instruction& instruction : block) {
        auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
        if (!store || !store->getValueOperand()->getType()->isVectorTy() || !streamed(*store)) continue;
        uint64_t size = layout.getTypeStoreSize(store->getValueOperand()->getType());
        llvm::Align known =
            std::max(store->getAlign(), llvm::getKnownAlignment(store->getPointerOperand(), layout, store));
        if (size < 16 || size > kLine || known.value() < size) continue;
        store->setAlignment(known);
        store->setMetadata(llvm::LLVMContext::MD_nontemporal, past);
      }
}

std::unique_ptr<llvm::Module> emit_module(llvm::LLVMContext& context, KernelProgram& program, unsigned prefer_width) {
  return Emitter(context, program, prefer_width).take();
}

}  // namespace zephon
