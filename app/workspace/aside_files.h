// Files of the library that could not be read, or that crashed the program while it read them. They stay in place,
// but no window reads them again unless asked to or they change.
#pragma once
#include <QFileInfo>
#include <QHash>
#include <QString>

namespace ws::app {

class AsideFiles {
 public:
  explicit AsideFiles(const QString& folder);

  bool holds(const QFileInfo& file) const;
  void put(const QFileInfo& file);
  void take(const QFileInfo& file);  // the file is readable after all

  // Marks a file while it is read. If the program ends meanwhile, its next start finds the mark.
  class Reading {
   public:
    Reading(const AsideFiles& files, const QString& path);
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    QString mark_;
  };

 private:
  void takeMarks();
  void save() const;

  QString folder_;
  QHash<QString, QString> files_;  // by name: size and time when put aside
};

}  // namespace ws::app
