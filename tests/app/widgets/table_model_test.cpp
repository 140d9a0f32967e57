// The table of the window: what it shows, and how its rows are sorted.
#include "app/widgets/table_model.h"

#include <QAbstractItemModelTester>
#include <QListWidget>
#include <QTableView>
#include <QTest>

#include "app/widgets/table_style.h"
#include "tests/app/support/window_tests.h"

using namespace ws;
using namespace ws::app;

class TableModelTest : public QObject {
  Q_OBJECT
 private slots:
  void cellsAreForReaders();
  void unknownValuesAndSumsStayLast();
  void theSelectionStaysIfTheRowsDo();
  void noRowIsCut();

 private:
  static Table table() {
    using Kind = Table::Kind;
    Table made{{{"name", "name", "", Kind::Text, 0, 1, "of what"},
                {"us", "mean", "µs", Kind::Time, 3, 10, ""},
                {"share", "time", "%", Kind::Percent, 1, 7, ""}}, {}};
    Table::Cell named("gemm");
    named.swatch = 3;
    made.rows = {{{"softmax", 12.5, 0.25}}, {{"copy", {}, 0.05}}, {{named, 12345.6, 0.7}}, {{"all", 12358.1, 1.0}, Table::Row::Part::Sum}};
    return made;
  }
};

// In a table of 4.5 rows and more to scroll, the lowest one is covered; scrolled to the end, the last one is seen.
void TableModelTest::noRowIsCut() {
  Table many = table();
  while (many.rows.size() < 30) many.rows.insert(many.rows.begin(), many.rows.front());
  TableModel model;
  model.setTable(many);
  QTableView view;
  style_table(view, "many rows");
  view.setModel(&model);
  view.resize(400, 300);
  view.show();
  const int row_height = view.rowHeight(0);
  view.resize(400, view.height() - view.viewport()->height() + 4 * row_height + row_height / 2);
  const auto letters_in = [](QAbstractItemView& rows, int top) {
    const QRect seen = rows.viewport()->geometry();
    const QImage image = rows.grab(QRect(seen.left(), seen.top() + top, seen.width() - 2, seen.height() - top)).toImage();
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x)
        if (image.pixel(x, y) != image.pixel(0, 0)) return true;
    return false;
  };
  QTRY_VERIFY(!letters_in(view, 4 * row_height));
  QVERIFY(letters_in(view, 3 * row_height));
  view.scrollToBottom();
  QTRY_COMPARE(view.rowAt(view.rowViewportPosition(29) + 1), 29);
  QListWidget list;
  for (int i = 0; i < 30; ++i) list.addItem("row");
  show_whole_rows(list);
  list.show();
  const int item_height = list.sizeHintForRow(0);
  list.resize(200, list.height() - list.viewport()->height() + 4 * item_height + item_height * 3 / 4);
  QTRY_VERIFY(!letters_in(list, 4 * item_height));
  QVERIFY(letters_in(list, 3 * item_height));
  QVERIFY(view.rowViewportPosition(29) >= 0 && letters_in(view, view.rowViewportPosition(29)));
}

void TableModelTest::cellsAreForReaders() {
  TableModel model;
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
  model.setTable(table());
  const auto text = [&](int row, int column) { return model.index(row, column).data().toString(); };
  QCOMPARE(text(2, 1), QString::fromUtf8("12\u202F346"));
  QCOMPARE(text(1, 1), QString::fromUtf8("—"));
  QCOMPARE(text(0, 2), QString("25.0"));
  QCOMPARE(model.headerData(1, Qt::Horizontal, Qt::DisplayRole).toString(), QString::fromUtf8("mean, µs"));
  QCOMPARE(model.headerData(0, Qt::Horizontal, Qt::ToolTipRole).toString(), QString("of what"));
  QCOMPARE(model.index(2, 0).data(kMeaningRole).toInt(), 3);
  QVERIFY(!model.index(0, 0).data(kMeaningRole).isValid());
  QVERIFY(model.index(3, 0).data(kSectionRole).toBool() && !model.index(0, 0).data(kSectionRole).toBool());
}

void TableModelTest::unknownValuesAndSumsStayLast() {
  TableModel model;
  TableSorter sorter;
  model.setTable(table());
  sorter.setSourceModel(&model);
  sorter.setSortRole(kSortRole);
  const auto names = [&] {
    QStringList all;
    for (int row = 0; row < sorter.rowCount(); ++row) all << sorter.index(row, 0).data().toString();
    return all;
  };
  sorter.sort(1, Qt::AscendingOrder);
  QCOMPARE(names(), QStringList({"softmax", "gemm", "copy", "all"}));
  sorter.sort(1, Qt::DescendingOrder);
  QCOMPARE(names(), QStringList({"gemm", "softmax", "copy", "all"}));
  sorter.sort(0, Qt::AscendingOrder);
  QCOMPARE(names(), QStringList({"copy", "gemm", "softmax", "all"}));
}

void TableModelTest::theSelectionStaysIfTheRowsDo() {
  TableModel model;
  TableSorter sorter;
  model.setTable(table());
  QWidget window;
  QTableView* view = table_view(&window, model, sorter, "rows");
  view->setCurrentIndex(sorter.index(2, 0));
  Table later = table();
  later.rows[2].cells[1] = 20.0;
  model.setTable(later);
  QCOMPARE(view->currentIndex().row(), 2);
  QCOMPARE(view->currentIndex().siblingAtColumn(1).data().toString(), QString("20.0"));
  later.rows.pop_back();
  model.setTable(later);
  QVERIFY(!view->currentIndex().isValid());
}

WARPSIGHT_QTEST(TableModelTest)
#include "table_model_test.moc"
