#include "app/widgets/empty_words.h"

#include <QAbstractItemView>
#include <QEvent>

namespace ws::app {

EmptyWords::EmptyWords(QAbstractItemView* view, const QString& words) : QLabel(words, view->viewport()), view_(view) {
  setAlignment(Qt::AlignCenter);
  setWordWrap(true);
  setForegroundRole(QPalette::PlaceholderText);
  setAttribute(Qt::WA_TransparentForMouseEvents);
  view->viewport()->installEventFilter(this);
  const QAbstractItemModel* model = view->model();
  connect(model, &QAbstractItemModel::modelReset, this, &EmptyWords::place);
  connect(model, &QAbstractItemModel::rowsInserted, this, &EmptyWords::place);
  connect(model, &QAbstractItemModel::rowsRemoved, this, &EmptyWords::place);
  place();
}

bool EmptyWords::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) place();
  return QLabel::eventFilter(watched, event);
}

void EmptyWords::place() {
  constexpr int kSides = 12;
  setGeometry(view_->viewport()->rect().adjusted(kSides, 0, -kSides, 0));
  setVisible(view_->model()->rowCount() == 0);
}

}  // namespace ws::app
