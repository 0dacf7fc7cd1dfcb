#pragma once
// Writers of `--out DIR`. The folder appears when the run has ended well.
//
// npy:   RECORD.FIELD.npy per numeric field; fields of strings as RECORD.FIELD.json (bytes in base64).
// tar:   the same members in one records.tar, in order (what WebDataset readers expect).
// jsonl: records.jsonl, one object a record; NaN and infinities as strings, bytes in base64.
// RECORD is the ordinal in the epoch with at least eight digits, after the first epoch headed by the epoch's number:
// "1-00000000".

#include <memory>
#include <string>

#include "zephonc/sinks/record.h"

namespace zephon {

/// `format` is npy, tar or jsonl. Null and `failure` set where the folder cannot be made.
/// Of what a killed run has left: the folder with exactly the records before the mark. `kept` is false where nothing is
/// left. Refused where that run is still at work.
std::optional<Failure> keep_marked(const OutputMark& mark, bool& kept);

std::unique_ptr<Writer> make_folder_writer(const std::string& folder, const std::string& format, Failure& failure);

}  // namespace zephon
