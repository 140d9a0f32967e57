// Words in the middle of a table or list without rows: what will be here, and how to get it.
#pragma once
#include <QLabel>

class QAbstractItemView;

namespace ws::app {

class EmptyWords : public QLabel {
  Q_OBJECT
 public:
  EmptyWords(QAbstractItemView* view, const QString& words);  // the view has its model

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void place();

  QAbstractItemView* view_;
};

}  // namespace ws::app
