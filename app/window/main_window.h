// The window: menus, toolbar, rails, docks, tabs and the status line around one session and one run library.
#pragma once
#include <QMainWindow>
#include <QPointer>
#include <functional>
#include <map>
#include <vector>

#include "app/workspace/program_recording.h"
#include "app/workspace/run_library.h"
#include "app/workspace/training_session.h"
#include "app/workspace/selection.h"
#include "app/workspace/time_cursor.h"

class QMenu;
class QPlainTextEdit;
class QSplitter;
class QStackedWidget;
class QTabBar;

namespace ws::app {

class FinishingBox;
struct Waiting;
class LivePage;
class NoticeBar;
class RailButton;
class RunsPanel;
class SetupPanel;
class SideRail;
class StartPage;
class StatusLine;
class TabStrip;
class TopBar;

using ShowRuns = std::function<void(const std::vector<Run*>&)>;

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  explicit MainWindow(const QString& runs_folder, QWidget* parent = nullptr);
  ~MainWindow() override;

  Session* session() { return &session_; }
  RunLibrary* library() { return &library_; }
  TimeCursor* cursor() { return &cursor_; }
  Selection* selection() { return &selection_; }
  SetupPanel* setup() const { return setup_; }
  RunsPanel* runsPanel() const { return runs_; }
  StartPage* startPage() const { return start_; }
  LivePage* livePage() const { return live_; }
  TopBar* topBar() const { return bar_; }
  StatusLine* statusLine() const { return status_; }
  NoticeBar* notice() const { return notice_; }
  QTabBar* tabs() const { return tabs_; }
  TabStrip* tabStrip() const { return strip_; }
  QMenu* menu(const QString& name);  // made when asked for the first time

  // How other parts of the program join the window: a tab, or a panel in the right column. `show_runs` gets the ticked
  // runs whenever they change; `picker` stands in the toolbar while the tab is in front.
  int addTab(const QString& name, QWidget* page, ShowRuns show_runs, bool with_setup = false,
             QWidget* picker = nullptr);
  void addSidePanel(const QString& name, QWidget* panel, bool open, ShowRuns show_runs = {});
  void setTabNote(int tab, const QString& note);  // "3"
  // Something of a page that is remembered from one session to the next.
  void remember(const QString& key, std::function<QByteArray()> save, std::function<void(const QByteArray&)> restore);
  // Opens a file of another kind; true when it was taken. Asked in order before a sentence says that nothing fits.
  void addOpener(std::function<bool(const QString& path)> opener) { openers_.push_back(std::move(opener)); }

  // What goes on beside training, which a closing window asks about. `what` is a sentence; empty: nothing does.
  struct Chore {
    std::function<QString()> what;
    QString kept;  // what stays of it when it is stopped
    std::function<void()> stop;
  };
  void addChore(Chore chore) { chores_.push_back(std::move(chore)); }
  // It was closed without waiting for all threads: the process has to end without them.
  bool leftBehind() const { return left_ || Session::leftBehind(); }

  void train();                     // Train, Pause or Resume
  void trainAgain();                // the same choices and seed as the shown run
  void startFrom(int start_index);  // one of the three starts
  // Runs a CUDA program and shows it live; its file is a run of the library afterwards.
  Run* record(const QStringList& command, const prof::RecordOptions& options = {});
  ProgramRecording* recording() { return &recording_; }
  void openFile(const QString& path);
  void saveCopyTo(const QString& path);  // of the shown run, with its weights
  void say(const QString& sentence, bool problem);
  void toggleTheme();
  void setKeepLayout(bool keep) { keep_layout_ = keep; }
  void restoreLayout();
  void whenDevice(std::function<void()> then);  // at once, or when it is known whether there is a GPU
  bool deviceKnown() const { return info_ != nullptr; }
  // Begins the program anew with the same choices and runs. Tests put in what asks and what starts.
  void restart();
  void setRestarter(std::function<bool(const QStringList& arguments)> restarter) { restarter_ = std::move(restarter); }
  void setGpuProbe(std::function<bool()> lost) { gpu_lost_ = std::move(lost); }
  Run* shownRun() const;  // the live one, else the picked one, else the first ticked

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
  struct Tab {
    QString name;
    ShowRuns show_runs;
    QWidget* picker = nullptr;
    bool setup = false;
  };
  struct Side {
    QString name;
    QWidget* panel;
    RailButton* button;
    ShowRuns show_runs;
  };
  void buildCentre();
  void buildTabStrip();
  void buildSidePanels();
  void buildLog();
  void buildMenus();
  void buildFileMenu();
  void buildRunMenu();
  void buildViewMenu();
  void connectSession();
  void connectBar();
  void lookForDevice();
  void showDevice();
  void runStarted(Run* run);
  void runEnded(Run* run);
  void showLog(Run* run);
  void askForProgram();
  void saveCopy();
  void recorded(Run* run, const QString& path);
  void offerRestart(const QString& sentence);
  void showRuns();
  void refreshBars();
  void refreshSetup();
  void showTab(int index);
  void setCompact(bool compact);
  void rememberLayout();
  // True: nothing is in the way. Else it has been asked, and `then` is called once what went on has ended.
  bool mayClose(std::function<void()> then);
  const Chore* chore() const;  // that goes on
  bool askToStop();
  void waitToClose(Waiting waiting, std::function<void()> then);
  void chooseFile();

  TimeCursor cursor_;
  Selection selection_;
  RunLibrary library_;
  Session session_;
  ProgramRecording recording_;
  struct Kept {
    QString key;
    std::function<QByteArray()> save;
    std::function<void(const QByteArray&)> restore;
  };
  TopBar* bar_;
  NoticeBar* notice_;
  StatusLine* status_;
  SetupPanel* setup_;
  RunsPanel* runs_;
  StartPage* start_;
  LivePage* live_;
  QWidget* log_panel_;
  QPlainTextEdit* log_;
  TabStrip* strip_;
  QTabBar* tabs_;
  QMenu* tab_menu_;  // of View: a key for each
  QStackedWidget *pages_, *live_stack_;
  QSplitter *columns_, *right_;
  SideRail *left_rail_, *right_rail_;
  RailButton* setup_button_;
  QWidget* device_ = nullptr;
  std::vector<Tab> tab_list_;
  std::vector<Side> sides_;
  std::map<QString, QMenu*> menus_;
  std::vector<std::function<bool(const QString&)>> openers_;
  std::vector<Kept> kept_;
  std::vector<Chore> chores_;
  std::vector<std::function<void()>> waiting_;  // for the device
  std::function<bool(const QStringList&)> restarter_;
  std::function<bool()> gpu_lost_;
  QPointer<Run> watched_;
  QPointer<FinishingBox> finishing_;
  qsizetype logged_ = 0;  // lines of the watched run
  const DeviceInfo* info_ = nullptr;
  bool compact_ = false, keep_layout_ = true, sides_by_hand_ = false, left_ = false;
};

}  // namespace ws::app
