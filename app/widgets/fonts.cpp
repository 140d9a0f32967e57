#include "app/widgets/fonts.h"

#include <QCoreApplication>
#include <QDir>
#include <QDirIterator>
#include <QFontDatabase>
#include <QHash>
#include <QStandardPaths>
#include <algorithm>
#include <cstdio>

namespace ws::app {
namespace {

// Font weights that the window uses. A font folder may hold hundreds.
const char* const kWanted[] = {
    "Inter-Regular",          "Inter-Medium",          "Inter-SemiBold",      "Inter-Bold",       "DejaVuSans",
    "DejaVuSans-Bold",        "JetBrainsMono-Regular", "DejaVuSansMono",      "NotoSans-Regular", "NotoSans-Bold",
    "LiberationSans-Regular", "LiberationSans-Bold",   "NotoSansMono-Regular"};
constexpr int kMostOthers = 8;

bool wanted(const QString& name) {
  return std::any_of(std::begin(kWanted), std::end(kWanted), [&](const char* file) { return name == file; });
}

int load_folder(const QString& folder) {
  QStringList known, others;
  QDirIterator files(folder, {"*.ttf", "*.otf"}, QDir::Files, QDirIterator::Subdirectories);
  while (files.hasNext()) {
    const QString path = files.next();
    (wanted(files.fileInfo().completeBaseName()) ? known : others) << path;
  }
  if (known.isEmpty()) known = others.mid(0, kMostOthers);
  return static_cast<int>(std::count_if(
      known.begin(), known.end(), [](const QString& path) { return QFontDatabase::addApplicationFont(path) >= 0; }));
}

// Qt lists these even if there is no font for them.
bool is_generic(const QString& family) {
  static const QStringList generic{"Sans", "Sans Serif", "Serif", "Monospace"};
  return generic.contains(family);
}

bool any_font() {
  const QStringList families = QFontDatabase::families(QFontDatabase::Latin);
  return !std::all_of(families.begin(), families.end(), is_generic);
}

QString first_of(std::initializer_list<const char*> families, bool fixed) {
  for (const char* family : families)
    if (have_family(family)) return family;
  for (const QString& family : QFontDatabase::families(QFontDatabase::Latin))
    if (!is_generic(family) && (!fixed || QFontDatabase::isFixedPitch(family))) return family;
  return families.begin()[0];
}

}  // namespace

QStringList font_folders() {
  QStringList folders = qEnvironmentVariable("QT_QPA_FONTDIR").split(':', Qt::SkipEmptyParts);
  folders << qEnvironmentVariable("WARPSIGHT_RESOURCES",
                                  QCoreApplication::applicationDirPath() + "/../share/warpsight/resources") +
                 "/fonts";
  for (const QString& shared : QStandardPaths::standardLocations(QStandardPaths::GenericDataLocation))
    folders << shared + "/fonts";
  return folders << "/usr/share/fonts"
                 << "/usr/local/share/fonts";
}

void ensure_fonts() {
  if (any_font()) return;
  for (const QString& folder : font_folders())
    if (QDir(folder).exists() && load_folder(folder) > 0) return;
  std::fprintf(stderr,
               "No font was found, so the window has no readable text: install fonts-dejavu-core, or name a folder of "
               ".ttf files in QT_QPA_FONTDIR.\n");
}

bool have_family(const QString& family) {
  static QHash<QString, bool> known;
  auto it = known.find(family);
  if (it == known.end()) it = known.insert(family, QFontDatabase::hasFamily(family));
  return *it;
}

QString ui_family() {
  static const QString family = first_of({"Inter", "DejaVu Sans", "Noto Sans", "Liberation Sans"}, false);
  return family;
}

QString number_family() {
  static const QString family = first_of({"DejaVu Sans", "Noto Sans", "Liberation Sans"}, false);
  return family;
}

QString mono_family() {
  static const QString family = first_of({"JetBrains Mono", "DejaVu Sans Mono", "Noto Sans Mono"}, true);
  return family;
}

}  // namespace ws::app
