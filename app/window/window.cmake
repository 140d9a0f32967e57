# The desktop program: all Qt code in one static library, so that tests can drive the real window, and a thin main.
warpscope_library(app
  charts/curve_draw.cpp
  charts/curve_export.cpp
  charts/curve_pane.cpp
  charts/driver_calls.cpp
  charts/pane.cpp
  charts/plot.cpp
  charts/series.cpp
  charts/split_pane.cpp
  panels/data_shape.cpp
  panels/field_row.cpp
  panels/fonts.cpp
  panels/layer_editor.cpp
  panels/runs_model.cpp
  panels/runs_panel.cpp
  panels/section.cpp
  panels/segmented_row.cpp
  panels/setup_notes.cpp
  panels/setup_panel.cpp
  panels/spec_json_dialog.cpp
  panels/theme.cpp
  panels/units.cpp
  session/program_recording.cpp
  session/run.cpp
  session/run_library.cpp
  session/run_library_edit.cpp
  session/run_library_files.cpp
  session/run_reader.cpp
  session/run_trace.cpp
  session/session.cpp
  window/finishing_box.cpp
  window/key_list.cpp
  window/live_page.cpp
  window/main_window.cpp
  window/main_window_bars.cpp
  window/main_window_closing.cpp
  window/main_window_menus.cpp
  window/main_window_programs.cpp
  window/notice_bar.cpp
  window/record_dialog.cpp
  window/screenshot.cpp
  window/side_rail.cpp
  window/start_page.cpp
  window/starts.cpp
  window/status_line.cpp
  window/tab_strip.cpp
  window/tabs.cpp
  window/top_bar.cpp
  ../resources/resources.qrc)
set_target_properties(warpscope_app PROPERTIES AUTOMOC ON AUTORCC ON)
target_link_libraries(warpscope_app PUBLIC warpscope::engine Qt6::Widgets Qt6::Svg QCustomPlotQt6::QCustomPlotQt6)
warpscope_precompile(warpscope_app ${WARPSCOPE_COMMON_HEADERS} <QtWidgets> <qcustomplot.h>)
target_link_libraries(warpscope_app PUBLIC warpscope::session)
add_subdirectory(${CMAKE_CURRENT_SOURCE_DIR}/timeline)
include(${CMAKE_CURRENT_SOURCE_DIR}/panels/analysis.cmake)
add_subdirectory(${CMAKE_CURRENT_SOURCE_DIR}/library)
add_subdirectory(${CMAKE_CURRENT_SOURCE_DIR}/compare)
add_subdirectory(${CMAKE_CURRENT_SOURCE_DIR}/report)
add_subdirectory(${CMAKE_CURRENT_SOURCE_DIR}/lab)
add_subdirectory(${CMAKE_CURRENT_SOURCE_DIR}/insights)

add_executable(warpscope main.cpp)
target_link_libraries(warpscope PRIVATE warpscope::app)
target_compile_definitions(warpscope PRIVATE WARPSCOPE_VERSION="${PROJECT_VERSION}")
