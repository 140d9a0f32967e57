// The page about the inside of kernels: who ends a part late as a sentence, a step by multiprocessor and time, a table.
#pragma once
#include <QWidget>

#include "app/widgets/table_model.h"
#include "app/widgets/chart_file.h"
#include "app/workspace/report_reader.h"

class QSplitter;
class QTableView;

namespace ws::app {

class Headlined;
class MultiprocessorView;
class Pane;

class MultiprocessorsPanel : public QWidget {
  Q_OBJECT
 public:
  explicit MultiprocessorsPanel(QWidget* parent = nullptr);
  void setRun(Run* run);
  const Run* run() const { return reader_.run(); }
  void showSpan(const SpanChoice& choice);  // the step and the bar of a span inside a kernel
  MultiprocessorReader* reader() { return &reader_; }
  MultiprocessorView* view() const { return view_; }
  QTableView* parts() const { return parts_table_; }
  QString headline() const;
  ChartPicture picture() const;

 signals:
  void spanWanted(const ws::app::SpanChoice& span, const ws::app::SpanChoice& step, bool show);
  void said(const QString& sentence, bool problem);

 protected:
  void showEvent(QShowEvent*) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void build();
  void addExportMenu();
  void refresh();
  void fill();
  QString besideStepTime() const;
  QString besideBusy() const;
  QString briefNote() const;
  void wantBar(const prof::InnerBar& bar, bool show);
  void exportWith(const std::function<QString()>& write);

  MultiprocessorReader reader_;
  Pane *top_ = nullptr, *parts_pane_ = nullptr;
  QSplitter* columns_ = nullptr;
  bool dragged_ = false;  // by the user
  Headlined* body_ = nullptr;
  MultiprocessorView* view_ = nullptr;
  TableModel parts_model_;
  TableSorter parts_sorter_;
  QTableView* parts_table_ = nullptr;
};

}  // namespace ws::app
