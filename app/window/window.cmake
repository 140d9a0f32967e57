# The desktop program: all Qt code in one static library, so that tests can drive the real window, and a thin main.
warpscope_library(app
  panels/theme.cpp
  ../resources/resources.qrc)
set_target_properties(warpscope_app PROPERTIES AUTOMOC ON AUTORCC ON)
target_link_libraries(warpscope_app PUBLIC Qt6::Widgets Qt6::Svg QCustomPlotQt6::QCustomPlotQt6)
target_precompile_headers(warpscope_app PRIVATE <QtWidgets> <qcustomplot.h>)
if(TARGET warpscope_session)
  target_link_libraries(warpscope_app PUBLIC warpscope::session)
endif()
add_subdirectory(${CMAKE_CURRENT_SOURCE_DIR}/timeline)
