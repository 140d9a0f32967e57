// The menus: the window's own entries, which are signals here, and entries of the pages.
#pragma once
#include <QObject>
#include <map>

#include "app/window/all_pages.h"

class QAbstractButton;
class QMenu;
class QMenuBar;

namespace ws::app {

class TabStrip;

class WindowMenus : public QObject {
  Q_OBJECT
 public:
  struct Rails {
    QAbstractButton *setup, *runs;
  };
  WindowMenus(QMenuBar* bar, TabStrip* strip, Rails rails, const AllPages& pages);
  void setRecent(const QStringList& paths);

 signals:
  void openWanted();
  void recentWanted(const QString& path);
  void programWanted(const QString& path, const QString& find);  // a recorded program, and what to find in it
  void shippedWanted();  // the runs that came with the program
  void recordWanted();
  void connectWanted();
  void remoteRunsWanted();
  void saveCopyWanted();
  void quitWanted();
  void trainWanted();  // Train, Pause or Resume
  void stopWanted();
  void stepWanted();
  void trainAgainWanted();
  void themeWanted();
  void fullScreenWanted();
  void followWanted();
  void commandsWanted();
  void manualWanted(const QString& page);  // of resources/docs; "glossary#Sync": at this word
  void keysWanted();
  void startPageWanted();
  void aboutWanted();

 private:
  QMenu* add(MenuName name, const QString& title);
  void addPageEntries(MenuName name);
  void buildShipped(QMenu& menu);
  void buildFile();
  void buildRun();
  void buildView();
  QMenu* pageMenu();
  QMenu* wordMenu();
  void buildHelp();

  QMenuBar* bar_;
  QMenu* recent_ = nullptr;
  TabStrip* strip_;
  Rails rails_;
  const AllPages& pages_;  // used only while the menus are built
  std::map<MenuName, QMenu*> menus_;
};

}  // namespace ws::app
