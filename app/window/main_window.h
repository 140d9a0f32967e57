// The main window: the frame around the pages. It shows the workspace and forwards requests of the user and the pages.
#pragma once
#include <QMainWindow>

#include "app/window/all_pages.h"
#include "app/window/close_guard.h"

class QSplitter;
class QStackedWidget;
class QTabBar;

namespace ws::app {

class DeviceCorner;
class DockColumn;
class LessonRunner;
class MachineActions;
class NoticeBar;
class ProgramActions;
class RailButton;
class SideRail;
class StartPage;
class StatusLine;
class TabStrip;
class TopBar;
class WindowLayout;
class WindowMenus;

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  explicit MainWindow(const QString& runs_folder, QWidget* parent = nullptr);
  ~MainWindow() override;

  Workspace* workspace() { return &workspace_; }
  StartPage* startPage() const { return start_; }
  TopBar* topBar() const { return bar_; }
  StatusLine* statusLine() const { return status_; }
  NoticeBar* notice() const { return notice_; }
  TabStrip* tabStrip() const { return strip_; }
  QTabBar* tabs() const { return tabs_; }
  WindowLayout* windowLayout() const { return layout_; }
  ProgramActions* programs() const { return programs_; }
  MachineActions* machines() const { return machines_; }
  LessonRunner* lessons() const { return lessons_; }  // for the start page
  bool leftBehind() const { return guard_.leftBehind(); }

  void endUnasked();                // on a system request; runs are closed as by Stop
  void train();                     // Train, Pause or Resume
  static QString openFilters();     // for the Open dialog
  void trainAgain();                // the same choices and seed as the shown run
  void openFile(const QString& path) { openFiles({path}); }
  // Shows only these runs, in front. All problems are in one notice.
  void openFiles(const QStringList& paths);
  void saveCopyTo(const QString& path);  // copies the shown run with its weights
  void toggleTheme();

 public slots:
  void showKeys();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void changeEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void buildCentre();
  void buildMiddle();
  void addPages(const AllPages& pages);
  void addTab(const Page& page, QWidget* shown);
  void buildMenus(const AllPages& pages);
  void connectWorkspace();
  void connectPages();
  void connectBar();
  void connectStart();
  void runStarted(Run* run);
  void takeChoices(const Run& run);
  void stepOnce();
  void chooseFile();
  bool openOne(const QString& path);
  bool openChoices(const QString& path);
  void useData(const QString& path);
  void showOpened(Run* run);
  void offerFile(const QString& path);
  void conclude(const QString& line, Run* run, Run* baseline);
  void rememberFile(const QString& path);
  QStringList recentFiles() const;
  void saveCopy();
  void showSentence(const QString& sentence, bool problem);
  void showRuns();
  void offerPages(bool program);
  void showDevice();
  void checkTemporaryFolder();
  bool givenToPointed(QKeyEvent* event);
  void refreshBars();
  void showTab(int index);
  void showAbout();
  int tabOf(const QObject* page) const;  // -1 if it has none

  Workspace workspace_;
  CloseGuard guard_;
  TopBar* bar_;
  NoticeBar* notice_;
  StatusLine* status_;
  StartPage* start_;
  TabStrip* strip_;
  QTabBar* tabs_;
  QStackedWidget *pages_, *live_stack_;
  QWidget* live_;
  QSplitter* columns_;
  SideRail *left_rail_, *right_rail_;
  RailButton* setup_button_;
  DockColumn* docks_;
  DeviceCorner* device_;
  WindowLayout* layout_;
  ProgramActions* programs_;
  MachineActions* machines_ = nullptr;
  LessonRunner* lessons_;
  WindowMenus* menus_;
  bool giving_ = false;                 // a key goes to the view under the pointer
  bool opening_ = false;                // several files: collect the problems
  std::vector<QPointer<Run>> opened_;  // runs of the last files
  std::vector<Page> tab_list_;
  std::vector<std::function<bool(const QString&)>> openers_;
};

}  // namespace ws::app
