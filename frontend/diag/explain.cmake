# Embeds explain/*.md: writes a .cpp that maps each code to its text, and adds it to zephon_diag.
file(GLOB explain_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/explain/*.md)
set(explain_cases "")
foreach(file ${explain_files})
  get_filename_component(code ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND explain_cases "  if (code == \"${code}\") return R\"explain(${text})explain\";\n")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${explain_files})
set(explain_source ${CMAKE_BINARY_DIR}/generated/explain_texts.cpp)
file(CONFIGURE OUTPUT ${explain_source} @ONLY CONTENT [=[
#include "frontend/diag/diagnostic.h"

namespace zephon {

std::string_view explain_text(Kind kind) {
  std::string_view code = info(kind).code;
@explain_cases@  return {};
}

}  // namespace zephon
]=])
target_sources(zephon_diag PRIVATE ${explain_source})
