// First the cuts: expressions whose value lies in memory between two kernels. Then one group per cut, with the cut
// scalars of one level in one columnar group. A level counts the kernels of other kinds below a scalar, so that a group
// never needs its own result.
#include "optimizer/plan/groups.h"

#include <algorithm>
#include <map>

#include "optimizer/analysis/expressions.h"

namespace zephon {
namespace {

class Partition {
 public:
  Partition(const Graph& graph, const ExprSet& ready, bool fuse) : graph_(graph), ready_(ready), fuse_(fuse) {}

  std::vector<KernelGroup> run(const std::vector<ExprId>& roots, const std::vector<ExprId>& also) {
    for (ExprId root : roots) collect(root);
    for (ExprId root : roots)
      if (!is_given(root)) cuts_.insert(root);
    find_later(also);
    find_cuts();
    for (ExprId id : also)
      if (done_.contains(id) && is_columnar(id)) cuts_.insert(id);
    find_levels();
    return build();
  }

 private:
  const Expr& at(ExprId id) const { return graph_.expr(id); }
  /// Lies in memory before the first group. Constants do not: generated code contains them.
  bool is_given(ExprId id) const {
    const Expr& e = at(id);
    return ready_.contains(id) || is_field(e) || is_data_constant(e);
  }
  bool is_input(ExprId id) const { return is_given(id) || cuts_.contains(id); }
  bool is_columnar(ExprId id) const { return !is_given(id) && is_scalar_work(graph_, at(id)); }
  bool is_generated_class(ExprId id, OpClass cls) const {
    return at(id).op->cls == cls && is_generated(graph_, at(id));
  }

  /// Everything to compute below `root`, arguments first.
  void collect(ExprId root) {
    std::vector<ExprId> stack = {root};
    while (!stack.empty()) {
      const ExprId id = stack.back();
      if (is_given(id) || is_constant(at(id)) || done_.contains(id)) {
        stack.pop_back();
        continue;
      }
      bool waits = false;
      for (ExprId arg : at(id).args)
        if (!is_given(arg) && !is_constant(at(arg)) && !done_.contains(arg)) {
          stack.push_back(arg);
          waits = true;
        }
      if (waits) continue;
      stack.pop_back();
      done_.insert(id);
      order_.push_back(id);
      for (ExprId arg : at(id).args) ++uses_[arg];
    }
  }

  /// What is computed here that `also` reads: a resampling among it is not made twice.
  void find_later(const std::vector<ExprId>& also) {
    if (std::ranges::none_of(order_, [this](ExprId id) { return is_generated_class(id, OpClass::Resample); })) return;
    std::vector<ExprId> stack = also;
    ExprSet seen;
    while (!stack.empty()) {
      const ExprId id = stack.back();
      stack.pop_back();
      if (!seen.insert(id) || is_given(id)) continue;
      if (done_.contains(id))
        ++uses_[id];
      else
        stack.insert(stack.end(), at(id).args.begin(), at(id).args.end());
    }
  }

  void cut(ExprId id) {
    if (!is_given(id) && !is_constant(at(id))) cuts_.insert(id);
  }

  /// A resampling reads rows of a picture in memory, of which a box may have been cut.
  void cut_picture(ExprId id) {
    while (!is_input(id) && at(id).op->cuts_box && is_generated(graph_, at(id)) && uses_[id] == 1) {
      cut(at(id).args[1]);
      id = at(id).args[0];
    }
    cut(id);
  }

  void find_cuts() {
    std::map<ExprId, bool> resampled;  // the expression's own kernel already contains a resampling
    for (ExprId id : order_) {
      const Expr& e = at(id);
      if (!fuse_ || !is_generated(graph_, e)) {
        cuts_.insert(id);
        for (ExprId arg : e.args) cut(arg);
        continue;
      }
      if (e.op->cls == OpClass::Reduce) cuts_.insert(id);
      if (e.op->cls == OpClass::Resample) {
        cut_picture(e.args[0]);
        for (size_t i = 1; i < e.args.size(); ++i) cut(e.args[i]);
        if (uses_[id] > 1) cuts_.insert(id);
        resampled[id] = true;
        continue;
      }
      if (is_scalar_work(graph_, e)) continue;
      bool contains = false;
      for (ExprId arg : e.args) {
        // A scalar for a whole tensor is computed once, before its loops.
        if (at(arg).type.is_scalar() && !e.type.is_scalar()) cut(arg);
        if (e.op->cls == OpClass::View && arg != e.args[0]) cut(arg);
        if (is_input(arg) || !resampled[arg]) continue;
        if (contains) cut(arg);  // one resampling a kernel
        contains = true;
      }
      // What contains a resampling is not made twice.
      if (contains && uses_[id] > 1) cuts_.insert(id);
      resampled[id] = contains && !cuts_.contains(id);
    }
    // A scalar made from tensors ends their kernel; the scalar work above it is columnar.
    for (ExprId id : order_)
      if (is_scalar_work(graph_, at(id)))
        for (ExprId arg : at(id).args)
          if (!is_scalar_work(graph_, at(arg))) cut(arg);
  }

  // A kernel of very many operators takes the code generator longer than it could ever save.
  static constexpr int kMostColumnar = 96;

  void find_levels() {
    std::map<int, int> columnar;  // operators by level
    for (ExprId id : order_) {
      int level = 0;
      for (ExprId arg : at(id).args) {
        auto it = levels_.find(arg);
        if (it == levels_.end()) continue;
        // From one kind of kernel to another; between tensor kernels the order of the roots decides.
        const bool step = is_columnar(arg) ? !is_columnar(id) : is_columnar(id);
        level = std::max(level, it->second + step);
      }
      if (fuse_ && is_columnar(id)) {
        while (columnar[level] >= kMostColumnar) ++level;
        ++columnar[level];
        for (ExprId arg : at(id).args)
          if (levels_.contains(arg) && levels_.at(arg) < level && columnar[levels_.at(arg)] >= kMostColumnar) cut(arg);
      }
      levels_[id] = level;
    }
  }

  std::vector<KernelGroup> build() {
    std::vector<KernelGroup> groups;
    std::map<int, size_t> columnar;  // level -> group
    struct Place {
      int level;
      bool tensor;
      size_t position;
    };
    std::vector<std::pair<Place, ExprId>> sorted;
    for (size_t i = 0; i < order_.size(); ++i)
      if (cuts_.contains(order_[i])) sorted.push_back({{levels_[order_[i]], !is_columnar(order_[i]), i}, order_[i]});
    // Scalars of a level first: tensor kernels of the same level may need them only from lower levels, and the reverse.
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first.level < b.first.level; });
    for (const auto& [place, id] : sorted) {
      if (place.tensor || !fuse_) {
        groups.push_back(group_of(id));
        continue;
      }
      auto [it, fresh] = columnar.emplace(place.level, groups.size());
      if (fresh) groups.push_back({KernelGroup::Kind::Columnar, {}, {}});
      groups[it->second].roots.push_back(id);
    }
    for (KernelGroup& group : groups)
      if (group.kind != KernelGroup::Kind::Native) add_leaves(group);
    return groups;
  }

  KernelGroup group_of(ExprId id) const {
    const Expr& e = at(id);
    KernelGroup group;
    group.roots = {id};
    if (!is_generated(graph_, e)) {
      group.kind = KernelGroup::Kind::Native;
      group.leaves = e.args;
    } else {
      group.kind = is_scalar_work(graph_, e) ? KernelGroup::Kind::Columnar : KernelGroup::Kind::PerSample;
    }
    return group;
  }

  void add_leaves(KernelGroup& group) const {
    const int level = levels_.at(group.roots.front());
    ExprSet seen(group.roots);
    std::vector<ExprId> stack(group.roots.rbegin(), group.roots.rend());
    while (!stack.empty()) {
      const ExprId id = stack.back();
      stack.pop_back();
      for (ExprId arg : at(id).args) {
        if (is_constant(at(arg)) || !seen.insert(arg)) continue;
        // Cheap scalars are made again rather than stored, unless they are stored already.
        const bool columns = group.kind == KernelGroup::Kind::Columnar && fuse_;
        const bool inside =
            columns ? is_columnar(arg) && (!cuts_.contains(arg) || levels_.at(arg) == level) : !is_input(arg);
        if (inside)
          stack.push_back(arg);
        else
          group.leaves.push_back(arg);
      }
    }
  }

  const Graph& graph_;
  const ExprSet& ready_;
  const bool fuse_;
  std::vector<ExprId> order_;
  ExprSet done_;
  ExprSet cuts_;
  std::map<ExprId, int> uses_;
  std::map<ExprId, int> levels_;
};

}  // namespace

std::vector<KernelGroup> make_groups(const Graph& graph, const std::vector<ExprId>& roots,
                                     const std::vector<ExprId>& also, ExprSet& ready, bool fuse) {
  std::vector<KernelGroup> groups = Partition(graph, ready, fuse).run(roots, also);
  for (const KernelGroup& group : groups) ready.insert_all(group.roots);
  return groups;
}

std::vector<ExprId> interior(const Graph& graph, const KernelGroup& group) {
  std::vector<ExprId> order;
  ExprSet seen(group.leaves);
  for (ExprId root : group.roots) {
    std::vector<ExprId> stack = {root};
    while (!stack.empty()) {
      const ExprId id = stack.back();
      if (seen.contains(id)) {
        stack.pop_back();
        continue;
      }
      bool waits = false;
      for (ExprId arg : graph.expr(id).args)
        if (!seen.contains(arg)) {
          stack.push_back(arg);
          waits = true;
        }
      if (waits) continue;
      stack.pop_back();
      seen.insert(id);
      if (!is_leaf(graph.expr(id))) order.push_back(id);
    }
  }
  return order;
}

}  // namespace zephon
