# The desktop program: all Qt code in one static library, so that tests can drive the real window, and a thin main.
warpscope_library(app
  charts/curve_draw.cpp
  charts/curve_pane.cpp
  charts/pane.cpp
  charts/plot.cpp
  charts/series.cpp
  charts/split_pane.cpp
  panels/data_shape.cpp
  panels/field_row.cpp
  panels/section.cpp
  panels/segmented_row.cpp
  panels/setup_notes.cpp
  panels/setup_panel.cpp
  panels/spec_json_dialog.cpp
  panels/theme.cpp
  panels/units.cpp
  ../resources/resources.qrc)
set_target_properties(warpscope_app PROPERTIES AUTOMOC ON AUTORCC ON)
target_link_libraries(warpscope_app PUBLIC warpscope::engine Qt6::Widgets Qt6::Svg QCustomPlotQt6::QCustomPlotQt6)
target_precompile_headers(warpscope_app PRIVATE <QtWidgets> <qcustomplot.h>)
if(TARGET warpscope_session)
  target_sources(warpscope_app PRIVATE session/run.cpp session/session.cpp)
  target_link_libraries(warpscope_app PUBLIC warpscope::session)
endif()
add_subdirectory(${CMAKE_CURRENT_SOURCE_DIR}/timeline)
