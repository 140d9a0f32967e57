# The panels about one run.
target_sources(warpscope_app PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/allocator_calls.cpp
  ${CMAKE_CURRENT_LIST_DIR}/analysis_tabs.cpp
  ${CMAKE_CURRENT_LIST_DIR}/command_palette.cpp
  ${CMAKE_CURRENT_LIST_DIR}/details_html.cpp
  ${CMAKE_CURRENT_LIST_DIR}/details_panel.cpp
  ${CMAKE_CURRENT_LIST_DIR}/details_time.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernels_model.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernels_panel.cpp
  ${CMAKE_CURRENT_LIST_DIR}/memory_blocks.cpp
  ${CMAKE_CURRENT_LIST_DIR}/memory_map_panel.cpp
  ${CMAKE_CURRENT_LIST_DIR}/memory_map_view.cpp
  ${CMAKE_CURRENT_LIST_DIR}/memory_story.cpp
  ${CMAKE_CURRENT_LIST_DIR}/memory_time_view.cpp
  ${CMAKE_CURRENT_LIST_DIR}/panel_table.cpp
  ${CMAKE_CURRENT_LIST_DIR}/plan_model.cpp
  ${CMAKE_CURRENT_LIST_DIR}/plan_panel.cpp
  ${CMAKE_CURRENT_LIST_DIR}/plan_tags.cpp
  ${CMAKE_CURRENT_LIST_DIR}/roofline_panel.cpp
  ${CMAKE_CURRENT_LIST_DIR}/weights_panel.cpp
  ${CMAKE_CURRENT_LIST_DIR}/weights_probe.cpp
  ${CMAKE_CURRENT_LIST_DIR}/weights_view.cpp)
