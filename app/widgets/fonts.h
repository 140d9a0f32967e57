// Loads fonts for the window, even if the system has none, as on a bare server or in a container.
#pragma once
#include <QString>
#include <QStringList>

namespace ws::app {

// Loads font files if the font database is empty. Call it once, after the application exists and before the first font.
void ensure_fonts();
QStringList font_folders();  // search path, in order

bool have_family(const QString& family);
QString ui_family();      // Inter, otherwise DejaVu Sans, otherwise any Latin font
QString number_family();  // digits of equal width
QString mono_family();

}  // namespace ws::app
