// The families that the window is set in, also where the system offers no font at all: a bare server, a container.
#pragma once
#include <QString>
#include <QStringList>

namespace ws::app {

// Loads font files when the font database is empty. Once, after the application exists and before the first font.
void ensure_fonts();
QStringList font_folders();  // where it looks, in order

bool have_family(const QString& family);
QString ui_family();      // Inter, else DejaVu Sans, else whatever writes Latin
QString number_family();  // figures of one width
QString mono_family();

}  // namespace ws::app
