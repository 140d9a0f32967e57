// The button that exports the Compare page: reports, pictures, numbers, traces for other viewers.
#pragma once
#include <QPushButton>

#include "app/workspace/job.h"

namespace ws::app {

class BarsView;
class StepView;
class WaterfallView;
struct ChartPicture;
struct ComparedRuns;

class CompareExport : public QPushButton {
  Q_OBJECT
 public:
  struct Views {
    const StepView* steps;
    const WaterfallView* waterfall;
    const BarsView* bars;
  };
  CompareExport(const ComparedRuns* compared, Views views, QWidget* parent = nullptr);
  void writeReport(const QString& path);  // .html or .pdf
  void writeRange(const QString& path);   // the visible or selected time of each run as Chrome JSON

 signals:
  void said(const QString& sentence, bool problem);
  void wrote(const QString& path);

 private:
  void chooseReport();
  void chooseRange();
  void exportChart(ChartPicture chart);
  void exportTable(const QString& title, const QString& name, const QByteArray& csv);
  QString captions() const;
  ChartPicture timelinePicture() const;
  ChartPicture waterfallPicture() const;
  ChartPicture barsPicture() const;

  const ComparedRuns* compared_;
  Views views_;
  Job page_;
};

}  // namespace ws::app
