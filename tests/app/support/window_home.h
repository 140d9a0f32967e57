// A home of its own for a test that opens the main window: settings, runs, and how a run on the CPU is begun.
#pragma once
#include <signal.h>

#include <QAbstractButton>
#include <QApplication>
#include <QDir>
#include <QFile>
#include <QMessageBox>
#include <QSettings>
#include <QTabBar>
#include <QTemporaryDir>
#include <QTest>
#include <map>
#include <memory>
#include <utility>

#include "app/pages/setup/setup_panel.h"
#include "app/widgets/theme.h"
#include "app/window/main_window.h"
#include "app/window/program_actions.h"
#include "app/window/side_rail.h"
#include "app/window/window_layout.h"

// Puts the tab of this name in front; false: there is none.
inline bool show_tab(ws::app::MainWindow& window, const QString& name) {
  for (int tab = 0; tab < window.tabs()->count(); ++tab)
    if (window.tabs()->tabText(tab) == name) {
      window.tabs()->setCurrentIndex(tab);
      return true;
    }
  return false;
}

inline bool offers_tab(const ws::app::MainWindow& window, const QString& name) {
  for (int tab = 0; tab < window.tabs()->count(); ++tab)
    if (window.tabs()->tabText(tab) == name) return window.tabs()->isTabEnabled(tab);
  return false;
}

// Setup is folded beside the start page.
inline void open_dock(ws::app::MainWindow& window, const QString& dock) {
  for (auto* button : window.findChildren<ws::app::RailButton*>())
    if (button->text() == dock) button->setChecked(true);
}

// Presses this button of the question that comes up next; `asked` becomes its words.
inline void answer(const char* button_text, QString* asked = nullptr) {
  QTimer::singleShot(150, [button_text, asked] {
    auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    if (!box) return;
    if (asked) *asked = box->text();
    for (QAbstractButton* button : box->buttons())
      if (button->text() == button_text) button->click();
  });
}

inline QByteArray bytes_of(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

class WindowHome {
 protected:
  static std::map<QWidget*, QRect> places() {
    std::map<QWidget*, QRect> all;
    for (QWidget* w : QApplication::allWidgets())
      if (w->isVisible()) all[w] = w->geometry();
    return all;
  }
  // Until nothing moves: on a busy machine a layout takes its time.
  static void settle(int turn_ms = 150) {
    std::map<QWidget*, QRect> before;
    for (int turn = 0; turn < 40; ++turn) {
      for (int event = 0; event < 5; ++event) QTest::qWait(turn_ms / 5);
      if (const auto now = places(); std::exchange(before, now) == now) return;
    }
  }
  // What a test that fails leaves running in the folder of another machine.
  static void endJobs(const QString& there) {
    for (const QFileInfo& job : QDir(there + "/.jobs").entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot)) {
      const QList<QByteArray> lines = bytes_of(job.filePath() + "/.owner").split('\n');
      const int owner = lines.size() > 2 ? lines[2].split(' ').first().toInt() : 0;
      if (owner > 1) kill(owner, SIGKILL);
    }
  }
  QString runs() const { return home_.path() + "/runs"; }
  std::unique_ptr<ws::app::MainWindow> open() const {
    auto window = std::make_unique<ws::app::MainWindow>(runs());
    window->windowLayout()->setKeep(false);
    window->show();
    return window;
  }
  static void iris(ws::app::MainWindow& window, int epochs) {
    QVERIFY(window.workspace()->choices()->usePreset("iris"));
    window.workspace()->choices()->set("train.epochs", QString::number(epochs));
    window.workspace()->choices()->set("exec.device", "cpu");
  }

  void moveIn() const {
    qputenv("XDG_CONFIG_HOME", (home_.path() + "/config").toUtf8());
    QApplication::setOrganizationName("warpsight-test");
    ws::app::set_theme(*qApp, ws::app::ThemeName::Dark);
  }
  void clear() const {
    QDir(runs()).removeRecursively();
    QSettings().clear();
  }

  QTemporaryDir home_;
};
