// Converts UTF-8 of the Qt-free libraries to Qt's text.
#pragma once
#include <QString>
#include <algorithm>
#include <string_view>

namespace ws::app {

inline QString text(std::string_view view) {
  return QString::fromUtf8(view.data(), static_cast<qsizetype>(view.size()));
}

// With a capital letter, unless the first word is a name: "train.py:3", "fc1", "dX".
inline QString with_capital(QString line) {
  const QString word = line.section(' ', 0, 0);
  const bool plain = std::all_of(word.begin(), word.end(), [](QChar c) { return c.isLower(); });
  return plain && !line.isEmpty() ? line.replace(0, 1, line[0].toUpper()) : line;
}

}  // namespace ws::app
