# Embeds page/*.css and page/*.js: writes a .cpp that maps each name to its text, and adds it to zephon_driver.
file(GLOB page_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.css ${CMAKE_CURRENT_LIST_DIR}/*.js)
set(page_cases "")
foreach(file ${page_files})
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  string(APPEND page_cases "  if (name == \"${name}\") return R\"page(${text})page\";\n")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page_files})
set(page_source ${CMAKE_BINARY_DIR}/generated/page_assets.cpp)
file(CONFIGURE OUTPUT ${page_source} @ONLY CONTENT [=[
#include "zephonc/plan_page.h"

namespace zephon {

std::string_view page_asset(std::string_view name) {
@page_cases@  return {};
}

}  // namespace zephon
]=])
target_sources(zephon_driver PRIVATE ${page_source})
