#include "ops/files_in_turn.h"

#include <algorithm>

namespace zephon {
namespace {

class FilesInTurn final : public Source {
 public:
  FilesInTurn(std::unique_ptr<Source> source, const std::vector<uint64_t>& rows, uint64_t cycle, uint64_t block)
      : source_(std::move(source)), cycle_(cycle), block_(block) {
    uint64_t begin = 0;
    for (uint64_t count : rows) {
      files_.push_back({begin, count});
      begin += count;
    }
    arrange();
    files_.clear();
  }

  uint64_t size() const override { return size_; }
  void read(uint64_t position, std::span<TensorRef> columns, const NativeCall& allocator) const override {
    source_->read(inner(position), columns, allocator);
  }
  std::string describe(uint64_t position) const override { return source_->describe(inner(position)); }
  std::string fingerprint() const override { return source_->fingerprint(); }
  std::vector<std::string> files() const override { return source_->files(); }

 private:
  // What is left of a file: its next row, and how many there are.
  struct Rest {
    uint64_t next, count;
  };
  // From position `begin` on, the pieces [first, first + count) give `block` rows each in turn, round after round.
  struct Segment {
    uint64_t begin, block;
    size_t first, count;
  };

  void add(uint64_t block, uint64_t rounds, std::span<const uint64_t> starts) {
    segments_.push_back({size_, block, pieces_.size(), starts.size()});
    pieces_.insert(pieces_.end(), starts.begin(), starts.end());
    size_ += block * rounds * starts.size();
  }
  // Rounds in which every open file gives a whole block are one segment; each turn of a round in which a file ends is
  // one.
  void arrange() {
    size_t next = 0;
    std::vector<Rest> places;  // empty ones have no rows
    for (; next < files_.size() && places.size() < cycle_; ++next) places.push_back(files_[next]);
    for (;;) {
      std::erase_if(places, [&](const Rest& place) { return place.count == 0 && next == files_.size(); });
      if (places.empty()) return;
      uint64_t rounds = UINT64_MAX;
      for (const Rest& place : places) rounds = std::min(rounds, place.count / block_);
      if (rounds > 0) {
        std::vector<uint64_t> starts;
        for (Rest& place : places) {
          starts.push_back(place.next);
          place.next += rounds * block_;
          place.count -= rounds * block_;
        }
        add(block_, rounds, starts);
        continue;
      }
      for (Rest& place : places) {
        for (;;) {
          const uint64_t rows = std::min(block_, place.count);
          if (rows > 0) add(rows, 1, std::span(&place.next, 1));
          place.next += rows;
          place.count -= rows;
          if (rows == block_ || next == files_.size()) break;
          place = files_[next++];
        }
      }
    }
  }

  uint64_t inner(uint64_t position) const {
    const auto behind = std::upper_bound(segments_.begin(), segments_.end(), position,
                                         [](uint64_t p, const Segment& segment) { return p < segment.begin; });
    const Segment& segment = *(behind - 1);
    const uint64_t at = position - segment.begin, turn = at / segment.block;
    return pieces_[segment.first + turn % segment.count] + turn / segment.count * segment.block + at % segment.block;
  }

  std::unique_ptr<Source> source_;
  uint64_t cycle_, block_, size_ = 0;
  std::vector<Rest> files_;
  std::vector<Segment> segments_;
  std::vector<uint64_t> pieces_;  // positions in the source
};

}  // namespace

std::string files_in_turn_problem(const Node& node) {
  return node.attrs.integer("block_length") != 1 && !node.attrs.has("cycle_length")
             ? "`block_length` needs `cycle_length`: without it the files are read one after the other"
             : "";
}

uint64_t files_at_a_time(const Node& node) {
  return node.attrs.has("cycle_length") ? static_cast<uint64_t>(node.attrs.integer("cycle_length")) : 1;
}

std::unique_ptr<Source> files_in_turn(std::unique_ptr<Source> source, const std::vector<uint64_t>& rows,
                                      const Node& node) {
  if (files_at_a_time(node) == 1 || rows.size() < 2) return source;
  return std::make_unique<FilesInTurn>(std::move(source), rows, files_at_a_time(node),
                                       static_cast<uint64_t>(node.attrs.integer("block_length")));
}

}  // namespace zephon
