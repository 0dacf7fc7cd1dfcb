#pragma once
// What a person is about to write, by the text before the place: for completion, which must work where nothing parses.

#include <cstddef>
#include <string>
#include <string_view>

namespace zephon::lsp {

struct Context {
  enum class Kind { Nothing, Top, Source, Step, Fields, Member, Type, Argument, Value };
  Kind kind = Kind::Nothing;
  std::string base;  ///< Member: the word before the dot; Argument: what is called
  size_t begin = 0;  ///< of the word that has been begun
};

/// `name` says the form.
Context context_of(std::string_view name, std::string_view before);

}  // namespace zephon::lsp
