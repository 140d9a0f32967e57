#include "app/lab/lab_presets.h"

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>

namespace ws::app {
namespace {

QDir folder() {
  const QString set = qEnvironmentVariable("WARPSCOPE_RESOURCES");
  if (!set.isEmpty()) return QDir(set + "/lab");
  const QDir installed(QCoreApplication::applicationDirPath() + "/../share/warpscope/resources/lab");
  return installed.exists() ? installed : QDir(QStringLiteral(WARPSCOPE_SOURCE_DIR) + "/resources/lab");
}

}  // namespace

std::vector<LabPreset> lab_presets() {
  std::vector<LabPreset> all;
  for (const QFileInfo& file : folder().entryInfoList({"*.json"}, QDir::Files, QDir::Name)) {
    QFile in(file.filePath());
    if (!in.open(QIODevice::ReadOnly)) continue;
    const QJsonObject object = QJsonDocument::fromJson(in.readAll()).object();
    all.push_back({object["title"].toString(file.baseName()), file.filePath()});
  }
  return all;
}

}  // namespace ws::app
