# Sets of heavy headers. Each is parsed once and shared by all folders of its kind: plain, fast (plain with more
# optimization, because GCC cannot mix two levels), widgets (Qt's). A header must be worth it: each source instantiates the
# templates that its inline functions use, for 1.5 s with <qcustomplot.h> and 0.4 s with <nlohmann/json.hpp>.
function(_warpsight_headers kind)
  cmake_parse_arguments(arg "FAST" "" "LIBRARIES;HEADERS" ${ARGN})
  add_library(headers_${kind} OBJECT ${PROJECT_SOURCE_DIR}/cmake/empty.cpp)
  target_link_libraries(headers_${kind} PRIVATE warpsight_flags ${arg_LIBRARIES})
  if(arg_FAST)
    warpsight_optimize(headers_${kind} 2)
  else()
    warpsight_optimize(headers_${kind} 1)
  endif()
  warpsight_precompile(headers_${kind} ${arg_HEADERS} ${WARPSIGHT_COMMON_HEADERS})
endfunction()

set(_json LIBRARIES nlohmann_json::nlohmann_json HEADERS <nlohmann/json.hpp>)
_warpsight_headers(plain ${_json})
_warpsight_headers(fast FAST ${_json})
if(WARPSIGHT_HAVE_APP)
  set(WARPSIGHT_QT_core Qt6::Core)
  set(WARPSIGHT_QT_widgets Qt6::Widgets Qt6::Svg QCustomPlotQt6::QCustomPlotQt6)
  # What a dozen sources include. All of <QtWidgets> takes twice the time to parse, and half a second of each unit.
  _warpsight_headers(widgets LIBRARIES ${WARPSIGHT_QT_widgets} HEADERS <QApplication> <QComboBox> <QDialog> <QDir> <QFileDialog>
    <QHeaderView> <QKeyEvent> <QLabel> <QLineEdit> <QMenu> <QPainter> <QPointer> <QPushButton> <QScrollArea> <QSplitter>
    <QTabBar> <QTableView> <QTimer> <QVBoxLayout>)
endif()
