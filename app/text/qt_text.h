// Converts UTF-8 of the Qt-free libraries to Qt's text.
#pragma once
#include <QString>
#include <string_view>

#include "profiling/base/text.h"

namespace ws::app {

inline QString text(std::string_view view) {
  return QString::fromUtf8(view.data(), static_cast<qsizetype>(view.size()));
}

inline QString with_capital(const QString& line) { return text(ws::with_capital(line.toStdString())); }

}  // namespace ws::app
