#pragma once
// `--manifest FILE`: what was run, on what, and the digest of every record, as one JSON object. Written as the run goes
// (memory does not grow with it), published at its end. Digests of the whole follow from those of its parts (digest.h).

#include <memory>
#include <string>

#include "zephonc/sinks/record.h"

namespace zephon {

/// `head` is the text of a JSON object with what is known before the run. Null and `failure` set where the file cannot
/// be made.
std::unique_ptr<Writer> make_manifest_writer(const std::string& path, const std::string& head, Failure& failure);

}  // namespace zephon
