// A home of its own for a test that opens the main window: settings, runs, and how a run on the CPU is begun.
#pragma once
#include <QApplication>
#include <QSettings>
#include <QTemporaryDir>
#include <QtTest>
#include <memory>

#include "app/panels/setup_panel.h"
#include "app/panels/theme.h"
#include "app/window/main_window.h"

class WindowHome {
 protected:
  QString runs() const { return home_.path() + "/runs"; }
  std::unique_ptr<ws::app::MainWindow> open() const {
    auto window = std::make_unique<ws::app::MainWindow>(runs());
    window->setKeepLayout(false);
    window->show();
    return window;
  }
  static void iris(ws::app::MainWindow& window, int epochs) {
    QVERIFY(window.setup()->usePreset("iris"));
    window.setup()->set("train.epochs", QString::number(epochs));
    window.setup()->set("exec.device", "cpu");
  }

  void moveIn() const {
    qputenv("XDG_CONFIG_HOME", (home_.path() + "/config").toUtf8());
    QApplication::setOrganizationName("warpscope-test");
    ws::app::set_theme(*qApp, ws::app::ThemeName::Dark);
  }
  void clear() const {
    QDir(runs()).removeRecursively();
    QSettings().clear();
  }

  QTemporaryDir home_;
};
