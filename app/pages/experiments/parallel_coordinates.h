// Parallel coordinates of an experiment: a vertical line per choice or measure, and one thread per trial through them.
#pragma once
#include "app/pages/experiments/experiments_model.h"

class QPainter;
class QRectF;

namespace ws::app {

class ParallelCoordinates {
 public:
  // `looked_at` is the last measure. It colours the threads.
  ParallelCoordinates(const ExperimentResult& result, Outcome looked_at) : result_(result), outcome_(looked_at) {}
  void render(QPainter& painter, const QRectF& area) const;

 private:
  struct Coordinate {  // a vertical line
    QString name;
    QStringList values;        // values of a choice, from the bottom; empty for numbers
    double low = 0, high = 1;  // range of numbers
    bool log = false;
    std::vector<double> place;  // per trial: 0 bottom, 1 top; NaN if unknown
  };
  std::vector<Coordinate> coordinates() const;
  Coordinate choiceCoordinate(const std::string& key) const;
  Coordinate numberCoordinate(Outcome outcome) const;
  void paintCoordinate(QPainter& painter, const Coordinate& line, double x, const QRectF& plot, bool last) const;

  const ExperimentResult& result_;
  Outcome outcome_;
};

}  // namespace ws::app
