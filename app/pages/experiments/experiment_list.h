// The experiments to choose from: first the shipped ones, then the user's own, which are stored beside the results.
#pragma once
#include <QListWidget>

#include "app/core/experiments/experiment.h"

namespace ws::app {

class ExperimentList : public QListWidget {
  Q_OBJECT
 public:
  ExperimentList(const QString& own_folder, QWidget* parent);
  void fill();                                             // call once, when the list is first shown
  QString keep(const ExperimentSpec& spec);  // writes a user's experiment; returns its path, or empty on failure
  void select(const QString& title, const QString& path);  // adds it if it is new
  QString path() const;                                    // path of the current one; empty if there is none
  bool own() const;
  QString nextTitle() const;  // title of the one below; empty if there is none
  void selectNext();                                        // True if the current one is the user's

 signals:
  void said(const QString& sentence, bool problem);

 private:
  void addHeading(const QString& text);
  void add(const QString& title, const QString& path, bool own);

  QString own_folder_;
};

}  // namespace ws::app
