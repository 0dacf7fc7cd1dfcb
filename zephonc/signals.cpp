#include "zephonc/signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "zephonc/command_line.h"

namespace zephon {
namespace {

std::atomic<int> stop{0};
std::atomic<bool> status{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void on_stop(int number) {
  stop.store(number);
  for (int next : {SIGINT, SIGTERM}) signal(next, SIG_DFL);
}
void on_status(int) { status.store(true); }

void on_end(int) {
  constexpr std::string_view kMessage = "error[R0506]: asked to end\n  = more: zephonc explain R0506\n";
  if (write(STDERR_FILENO, kMessage.data(), kMessage.size()) < 0) _exit(kExitRun);
  _exit(kExitRun);
}

void handle(int number, void (*handler)(int)) {
  // Under nohup a hang-up does not concern us.
  struct sigaction before {};
  if (number == SIGHUP && sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

void ignore_closed_pipes() { signal(SIGPIPE, SIG_IGN); }
void end_when_asked() {
  for (int number : {SIGINT, SIGTERM, SIGHUP}) handle(number, on_end);
}

SignalScope::SignalScope() {
  stop = 0;
  for (int number : {SIGINT, SIGTERM, SIGHUP}) handle(number, on_stop);
  handle(SIGQUIT, on_status);
}

SignalScope::~SignalScope() {
  end_when_asked();
  signal(SIGQUIT, SIG_DFL);
}

int stop_signal() { return stop.load(); }
bool take_status_request() { return status.exchange(false); }

}  // namespace zephon
