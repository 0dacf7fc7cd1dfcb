#pragma once
// What the cost model assumes of a machine. One struct, so that calibration or a file can replace it as a whole.

namespace zephon {

struct Machine {
  double ns_per_kernel_call = 15;    ///< to call a compiled kernel for one sample
  double ns_per_row_and_step = 0.2;  ///< bookkeeping of one step of a stage, per row
  double bytes_per_ns = 8;           ///< writing a result to memory and reading it back
  double default_extent = 256;       ///< of a dimension whose size is not known before the run (pictures)
  double default_text_bytes = 48;    ///< of a str or path
  double default_record_bytes = 256; ///< of a source's own record: a line of a table
  double default_blob_bytes = 96e3;  ///< of a bytes value: a small picture file
};

}  // namespace zephon
