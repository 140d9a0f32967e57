// A pane with several pages: tabs replace the title, and the options of the current page are on the right. The names of all
// pages always have their space. An option that only explains gives way when the row is too narrow.
#pragma once
#include <QWidget>
#include <vector>

class QHBoxLayout;
class QStackedWidget;
class QTabBar;

namespace ws::app {

class PagedPane : public QWidget {
  Q_OBJECT
 public:
  explicit PagedPane(const QString& name, QWidget* parent = nullptr);
  int addPage(const QString& name, QWidget* page);
  void addOption(int page, QWidget* option);
  void addExplanation(int page, QWidget* option);  // gives way
  void setPageVisible(int page, bool visible);
  void setOptionVisible(QWidget* option, bool visible);
  void setPage(int page);
  int page() const;
  QTabBar* strip() const { return strip_; }

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override { fit(); }

 private:
  void show(int page);
  void fit();

  QTabBar* strip_;
  QStackedWidget* pages_;
  QHBoxLayout* row_;
  std::vector<std::pair<int, QWidget*>> options_;
};

}  // namespace ws::app
