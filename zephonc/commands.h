#pragma once
// One function, and one file in commands/, per command. Each returns the exit code.

#include "zephonc/command_line.h"

namespace zephon {

int command_run(const Options& options);
int command_check(const Options& options);
int command_plan(const Options& options);
int command_show(const Options& options);
int command_where(const Options& options);
int command_scan(const Options& options);
int command_stats(const Options& options);
int command_init(const Options& options);
int command_manifest(const Options& options);
int command_completion(const Options& options);
int command_man(const Options& options);
int command_ir(const Options& options);
int command_verify(const Options& options);
int command_calibrate(const Options& options);
int command_ops(const Options& options);
int command_rules(const Options& options);
int command_test(const Options& options);
int command_fmt(const Options& options);
int command_convert(const Options& options);
int command_lsp(const Options& options);
int command_explain(const Options& options);

}  // namespace zephon
