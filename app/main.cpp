// The desktop program.
#include <QApplication>
#include <QCommandLineParser>
#include <QSettings>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "app/core/lab/first_call.h"
#include "app/widgets/theme.h"
#include "app/report/report_pages.h"
#include "app/workspace/run_library.h"
#include "app/window/end_signals.h"
#include "app/window/main_window.h"
#include "app/window/password_dialog.h"
#include "app/window/screenshot.h"
#include "app/window/window_layout.h"
#include "profiling/base/paths.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/version.h"
#include "profiling/recording/record_environment.h"

namespace {

using namespace ws::app;

constexpr const char* kNoDisplay =
    "warpsight-window: no display can be used here. Train without a window (warpsight train mnist), or let the window "
    "draw into memory (QT_QPA_PLATFORM=offscreen warpsight-window --screenshot window.png).\n";

bool asks_for(int argc, char** argv, std::initializer_list<std::string_view> options) {
  for (int i = 1; i < argc; ++i)
    for (std::string_view option : options)
      if (std::string_view(argv[i]) == option || std::string_view(argv[i]).starts_with(std::string(option) + "="))
        return true;
  return false;
}

// Qt aborts without a display. Options that need none continue offscreen. Returns false if nothing can be shown.
bool can_draw(int argc, char** argv) {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"})
    if (!qEnvironmentVariableIsEmpty(name)) return true;
  if (asks_for(argc, argv, {"-platform", "--platform"})) return true;
  if (!asks_for(argc, argv, {"-h", "--help", "--help-all", "-v", "--version", "--screenshot", "--report"}))
    return false;
  qputenv("QT_QPA_PLATFORM", "offscreen");
  return true;
}

// Handles a fatal message at startup: the display is set but does not answer.
void while_starting(QtMsgType type, const QMessageLogContext&, const QString& text) {
  if (type != QtFatalMsg) return static_cast<void>(std::fprintf(stderr, "%s\n", qPrintable(text)));
  std::fputs(kNoDisplay, stderr);
  std::_Exit(1);
}

// A file that may not grow (ulimit -f), or a reader that leaves, must cause a failed write and not end the program.
// Programs that we start do not inherit our own handler, unlike SIG_IGN.
void outlive_failed_writes() {
  for (const int signal : {SIGXFSZ, SIGPIPE}) std::signal(signal, [](int) {});
}

// Sets the scale, which Qt must know before the application exists.
void scale_early(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i)
    if (QByteArray(argv[i]) == "--scale") qputenv("QT_SCALE_FACTOR", argv[i + 1]);
}

ThemeName wanted_theme(const QCommandLineParser& parser) {
  QString name = parser.value("theme");
  if (name.isEmpty()) name = QSettings().value("theme", "dark").toString();
  return name == "light" ? ThemeName::Light : ThemeName::Dark;
}

// Copies the settings that this program kept under its name before, once.
void take_over_settings() {
  QSettings now;
  if (!now.allKeys().isEmpty()) return;
  const QSettings before(ws::kNameBefore, ws::kNameBefore);
  for (const QString& key : before.allKeys()) now.setValue(key, before.value(key));
}

void describe(QCommandLineParser& parser) {
  parser.setApplicationDescription("Trains small networks on a GPU and shows what each choice costs.");
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addOptions({{"theme", "dark or light", "name"},
                     {"runs", "Folder of the run library", "folder"},
                     {"scale", "Scale of the whole window, 1 to 2", "factor"},
                     {"preset", "Begin with this preset, or a JSON file of settings", "name"},
                     {"train", "Train at once"},
                     {"screenshot", "Write a picture of the window and quit", "file.png"},
                     {"size", "Size of the window", "WxH"},
                     {"tab", "Tab to show", "name"},
                     {"start", "Begin with this start of the first page: 1 to 4", "number"},
                     {"train-seconds", "Longest training before the picture", "seconds"},
                     {"set", "Set a setting, as key=value", "setting"},
                     {"report", "Write a report of the run files and quit", "file.pdf"}});
  parser.addPositionalArgument("files", "Run files to open; ssh://user@host to train there", "[files...]");
}

// warpsight starts this program for PDF reports, because their pages need fonts.
int write_report_of_files(const QStringList& files, const QString& path) {
  try {
    if (files.isEmpty() || files.size() > 8) throw ws::Failure("--report: name one to eight run files.");
    std::vector<ReportRun> runs;
    for (const QString& file : files) {
      runs.push_back(report_run_of_file(file.toStdString()));
      for (const std::string& problem : runs.back().problems)
        std::fprintf(stderr, "%s\n", ws::printable(file.toStdString() + ": " + problem).c_str());
    }
    save_report(runs, path);
    return 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "warpsight-window: %s\n", ws::printable(problem.what()).c_str());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  ws::prof::leave_serving_environment();
  if (ws::app::run_first_call_if_asked()) return 0;
  outlive_failed_writes();
  scale_early(argc, argv);
  QGuiApplication::setHighDpiScaleFactorRoundingPolicy(Qt::HighDpiScaleFactorRoundingPolicy::PassThrough);
  if (!can_draw(argc, argv)) {
    std::fputs(kNoDisplay, stderr);
    return 1;
  }
  qInstallMessageHandler(while_starting);
  QApplication app(argc, argv);
  qInstallMessageHandler(nullptr);
  QApplication::setApplicationName("warpsight");
  QApplication::setOrganizationName("warpsight");
  QApplication::setApplicationVersion(ws::version());
  QGuiApplication::setDesktopFileName("warpsight");
  take_over_settings();
  if (argc == 3 && std::string_view(argv[1]) == "--ask-password") {
    set_theme(app, QSettings().value("theme", "dark").toString() == "light" ? ThemeName::Light : ThemeName::Dark);
    return ask_password(QString::fromLocal8Bit(argv[2]));
  }
  QCommandLineParser parser;
  describe(parser);
  parser.process(app);
  if (parser.isSet("report")) return write_report_of_files(parser.positionalArguments(), parser.value("report"));
  set_theme(app, wanted_theme(parser));
  offer_password_dialog(QApplication::applicationFilePath());
  QApplication::setWindowIcon(QIcon(":/icons/warpsight.svg"));
  MainWindow window(parser.isSet("runs") ? parser.value("runs") : RunLibrary::defaultFolder());
  if (const QString problem = unknown_page(window, parser); !problem.isEmpty()) {
    std::fprintf(stderr, "warpsight-window: %s\n", qPrintable(problem));
    return 2;
  }
  if (parser.isSet("screenshot")) return take_screenshot(window, parser);
  window.windowLayout()->restore();
  prepare(window, parser);
  window.show();
  const QStringList files = connect_to_machine(window, parser.positionalArguments());
  if (!files.isEmpty()) window.openFiles(files);
  begin(window, parser);
  const EndSignals ending;
  QObject::connect(&ending, &EndSignals::received, &window, &MainWindow::endUnasked);
  const int code = QApplication::exec();
  // A thread that was left may hang in a driver, so destroy nothing that it uses.
  if (!window.leftBehind()) return code;
  window.workspace()->jobs()->abandon();
  QSettings().sync();
  std::_Exit(code);
}
