#include "zephonc/watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include "zephonc/command_line.h"
#include "zephonc/console.h"

namespace zephon {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr double kGrace = 5;  // seconds for a stalled run to end by itself

}  // namespace

RunWatch::RunWatch(WatchOptions options) : options_(std::move(options)) {}
void RunWatch::start() {
  thread_ = std::thread([this] { loop(); });
}
RunWatch::~RunWatch() { finish(); }

double RunWatch::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void RunWatch::delivered(uint64_t members) {
  last_at_ = seconds();
  if (records_.load(std::memory_order_relaxed) == 0) {
    first_at_ = last_at_;
    first_samples_ = members;
  }
  records_.fetch_add(1, std::memory_order_relaxed);
  samples_.fetch_add(members, std::memory_order_relaxed);
}

void RunWatch::stalled(const std::string& message) {
  say_above([&] { say(message); });
  stalled_ = true;
}

void RunWatch::finish() {
  {
    std::lock_guard lock(mutex_);
    if (ending_) return;
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  clear_progress();
}

void RunWatch::loop() {
  double stalled_at = 0;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kTick, [&] { return ending_; })) {
    if (stop_signal() != 0) stop_ = true;
    if (take_status_request() && options_.status) {
      say_above([&] {
        say(fmt::format("{} samples after {}\n{}", human_count(static_cast<double>(samples())),
                        human_seconds(seconds()), options_.status()));
      });
    }
    break_silence();
    if (options_.progress) draw_progress();
    if (!stalled_) continue;
    if (stalled_at == 0) stalled_at = seconds();
    // A thread that hangs in the kernel cannot be joined. What was written so far carries a temporary name.
    if (seconds() - stalled_at > kGrace) _exit(kExitRun);
  }
}

// A run that delivers nothing may wait for ever, by the program: an endless stream of which a filter drops everything.
void RunWatch::break_silence() {
  const double now = seconds();
  if (records() != heard_records_) {
    heard_records_ = records();
    heard_at_ = now;
  }
  if (heard_at_ < 0 || now - heard_at_ < options_.quiet_seconds || stop_ || stalled_) return;
  heard_at_ = -1;
  say_above([&] {
    say(
        fmt::format("nothing was delivered for {}; this is what every operator is doing (Ctrl-C ends the run, `run "
                    "--stall-timeout S` does so by itself):\n{}",
                    human_seconds(options_.quiet_seconds), options_.status ? options_.status() : ""));
  });
}

void RunWatch::draw_progress() {
  double now = seconds();
  if (now - shown_at_ < 0.2) return;
  uint64_t done = samples();
  double rate = static_cast<double>(done - shown_samples_) / (now - shown_at_);
  // Smoothed, so that the figure can be read.
  shown_rate_ = shown_rate_ == 0 ? rate : 0.7 * shown_rate_ + 0.3 * rate;
  shown_at_ = now;
  shown_samples_ = done;
  std::string line =
      fmt::format("{} samples  {} samples/s", human_count(static_cast<double>(done)), human_count(shown_rate_));
  if (std::string name = options_.bottleneck ? options_.bottleneck() : ""; !name.empty()) line += "  busiest: " + name;
  if (uint64_t so_far = records(); options_.expected_records > so_far && so_far > 0) {
    double left = now / static_cast<double>(so_far) * static_cast<double>(options_.expected_records - so_far);
    line += "  left: " + human_seconds(left);
  }
  size_t width = static_cast<size_t>(terminal_width());
  if (line.size() >= width) line.resize(width - 1);
  line = "\r" + line + "\x1b[K";
  std::lock_guard lock(terminal_);
  if (write(STDERR_FILENO, line.data(), line.size()) > 0) shown_ = true;
}

void RunWatch::clear_progress() {
  if (!shown_) return;
  shown_ = false;
  constexpr std::string_view kClear = "\r\x1b[K";
  if (write(STDERR_FILENO, kClear.data(), kClear.size()) < 0) return;
}

}  // namespace zephon
