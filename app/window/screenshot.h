// Takes pictures of the window for the documentation and for review.
#pragma once
#include <QString>
#include <QStringList>

class QCommandLineParser;

namespace ws::app {

class MainWindow;

// Applies --size, --tab, --preset and --set.
void prepare(MainWindow& window, const QCommandLineParser& options);
// Why --tab names no page; empty: it does, or is not given.
QString unknown_page(const MainWindow& window, const QCommandLineParser& options);
// For a window that stays open: shows --tab, and trains as --start or --train say.
void begin(MainWindow& window, const QCommandLineParser& options);
// Connects to the machine in the arguments, as ssh://user@host. Returns the other arguments, which are files.
QStringList connect_to_machine(MainWindow& window, QStringList arguments);
// Trains as asked, waits until everything is painted, and writes the picture. Returns the exit status.
int take_screenshot(MainWindow& window, const QCommandLineParser& options);

}  // namespace ws::app
