// Files of the library that could not be read, or whose reading ended the program. They stay where they are, but no window
// reads them again unless it is asked to or they change.
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
  void take(const QFileInfo& file);  // it can be read after all

  // While a file is read: if the program ends meanwhile, the next one finds the mark.
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
  QHash<QString, QString> files_;  // by name: size and time, as put aside
};

}  // namespace ws::app
