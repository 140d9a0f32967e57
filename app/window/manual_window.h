// The manual: the pages of resources/docs, in a window of its own beside the program.
#pragma once
#include <QTextBrowser>

namespace ws::app {

class ManualWindow : public QTextBrowser {
  Q_OBJECT
 public:
  // Shows a page, such as "tour" or "glossary#Sync", in the one manual window of the program.
  static void open(const QString& page, QWidget* beside);

 protected:
  QVariant loadResource(int type, const QUrl& name) override;  // pictures no wider than the window

 private:
  explicit ManualWindow(QWidget* beside);
};

}  // namespace ws::app
