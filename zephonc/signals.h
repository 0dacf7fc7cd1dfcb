#pragma once
// Signals during a run: asked to stop (Ctrl-C, SIGTERM, SIGHUP), asked for a status (SIGQUIT). Polled by the watcher of
// a run.

namespace zephon {

/// From the start of the process: a closed pipe is an error of write(), not the end of us.
void ignore_closed_pipes();
/// From the start of the process: where no run polls for signals (SignalScope), being asked to stop ends it at once, by
/// message and exit code as a run ends. What was being written stays under its temporary name.
void end_when_asked();

/// While it lives, the signals set flags. A second request to stop has its usual effect, at once.
class SignalScope {
 public:
  SignalScope();
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;
};

/// The signal that asked to stop, or 0.
int stop_signal();
/// Whether a status was asked for since the last call.
bool take_status_request();

}  // namespace zephon
