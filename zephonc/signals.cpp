#include "zephonc/signals.h"

#include <signal.h>

#include <atomic>

namespace zephon {
namespace {

std::atomic<int> stop{0};
std::atomic<bool> status{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void on_stop(int number) {
  stop.store(number);
  for (int next : {SIGINT, SIGTERM, SIGHUP}) signal(next, SIG_DFL);
}
void on_status(int) { status.store(true); }

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

void ignore_closed_pipes() { signal(SIGPIPE, SIG_IGN); }

SignalScope::SignalScope() {
  stop = 0;
  for (int number : {SIGINT, SIGTERM, SIGHUP}) handle(number, on_stop);
  handle(SIGQUIT, on_status);
}

SignalScope::~SignalScope() {
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) signal(number, SIG_DFL);
}

int stop_signal() { return stop.load(); }
bool take_status_request() { return status.exchange(false); }

}  // namespace zephon
