// The experiments to choose from: the shipped ones, and below them one's own, which are kept beside the results.
#pragma once
#include <QListWidget>

#include "app/core/experiments/experiment.h"

namespace ws::app {

class ExperimentList : public QListWidget {
  Q_OBJECT
 public:
  ExperimentList(const QString& own_folder, QWidget* parent);
  void fill();                                             // once, when it is first looked at
  QString keep(const ExperimentSpec& spec);                // writes one's own; returns its path, empty if that failed
  void select(const QString& title, const QString& path);  // added where it is new
  QString path() const;                                    // of the current one; empty: none
  bool own() const;
  QString nextTitle() const;  // of the one below; empty: there is none
  void selectNext();                                        // true if the current one is the person's

 signals:
  void said(const QString& sentence, bool problem);

 private:
  void addHeading(const QString& text);
  void add(const QString& title, const QString& path, bool own);

  QString own_folder_;
};

}  // namespace ws::app
