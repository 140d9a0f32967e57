#include "app/window/manual_window.h"

#include <QDir>
#include <QImage>
#include <QPointer>

#include "profiling/base/paths.h"

namespace ws::app {

ManualWindow::ManualWindow(QWidget* beside) : QTextBrowser(beside) {
  setWindowFlag(Qt::Window);
  setWindowTitle(tr("Manual – Warpsight"));
  setAttribute(Qt::WA_DeleteOnClose);
  setOpenExternalLinks(true);
  document()->setDocumentMargin(24);
  resize(960, 800);
}

void ManualWindow::open(const QString& page, QWidget* beside) {
  static QPointer<ManualWindow> manual;
  if (!manual) manual = new ManualWindow(beside);
  const QDir docs(QString::fromStdString((resources_folder() / "docs").string()));
  manual->setSource(QUrl::fromLocalFile(docs.absoluteFilePath(page.section('#', 0, 0) + ".md")));
  manual->moveCursor(QTextCursor::Start);
  if (const QString word = page.section('#', 1); !word.isEmpty()) manual->find(word + ':');
  manual->show();
  manual->raise();
  manual->activateWindow();
}

QVariant ManualWindow::loadResource(int type, const QUrl& name) {
  if (type != QTextDocument::ImageResource) return QTextBrowser::loadResource(type, name);
  const QImage picture(source().resolved(name).toLocalFile());
  const int space = viewport()->width() - 2 * static_cast<int>(document()->documentMargin());
  return picture.width() > space ? picture.scaledToWidth(space, Qt::SmoothTransformation) : picture;
}

}  // namespace ws::app
