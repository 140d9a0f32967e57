// Parallel coordinates of an experiment: one upright line per choice or measure, one thread through them per trial.
#pragma once
#include "app/pages/experiments/experiments_model.h"

class QPainter;
class QRectF;

namespace ws::app {

class ParallelCoordinates {
 public:
  // `looked_at` is the measure that colours the threads and stands last.
  ParallelCoordinates(const ExperimentResult& result, Outcome looked_at) : result_(result), outcome_(looked_at) {}
  void render(QPainter& painter, const QRectF& area) const;

 private:
  struct Coordinate {  // an upright line
    QString name;
    QStringList values;        // of a choice, from below; empty: numbers
    double low = 0, high = 1;  // of numbers
    bool log = false;
    std::vector<double> place;  // of each trial: 0 below, 1 above; NaN: nothing is known
  };
  std::vector<Coordinate> coordinates() const;
  Coordinate choiceCoordinate(const std::string& key) const;
  Coordinate numberCoordinate(Outcome outcome) const;
  void paintCoordinate(QPainter& painter, const Coordinate& line, double x, const QRectF& plot, bool last) const;

  const ExperimentResult& result_;
  Outcome outcome_;
};

}  // namespace ws::app
