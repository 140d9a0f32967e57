// The experiments to choose from: first the shipped ones, then the user's own, which are stored beside the results.
#pragma once
#include <QListWidget>
#include <optional>

#include "app/core/experiments/experiment.h"

namespace ws::app {

class ExperimentList : public QListWidget {
  Q_OBJECT
 public:
  ExperimentList(const QString& own_folder, QWidget* parent);
  void fill();                                             // call once, when the list is first shown
  void setCuda(bool cuda);                                 // whether the machine that runs them has a GPU; fills the list again
  QString keep(const ExperimentSpec& spec);                // writes a user's experiment; returns its path, or empty on failure
  void select(const QString& title, const QString& path);  // adds it if it is new
  void select(
      const ExperimentSpec& spec);  // selects it by name; if there is none, keeps it as the user's own; throws Failure
  QString path() const;                                    // path of the current one; empty if there is none
  bool own() const;                                        // True if the current one is the user's
  QString nextTitle() const;                               // of the next one, after the last the first; empty if alone
  void selectNext();

 signals:
  void said(const QString& sentence, bool problem);

 private:
  int nextRow() const;  // -1 if there is no other one
  void addHeading(const QString& text);
  void add(const QString& title, const QString& path, bool own);

  QString own_folder_;
  std::optional<bool> cuda_;  // nullopt: as this machine
};

}  // namespace ws::app
