// Pictures of the window for the documentation and for review.
#pragma once
#include <QStringList>

class QCommandLineParser;

namespace ws::app {

class MainWindow;

// Applies --size, --tab, --preset and --set.
void prepare(MainWindow& window, const QCommandLineParser& options);
// Of a window that stays open: shows --tab, and trains as --start or --train ask.
void begin(MainWindow& window, const QCommandLineParser& options);
// Connects to the machine that is among the arguments, as ssh://user@host; returns the files, which are the others.
QStringList connect_to_machine(MainWindow& window, QStringList arguments);
// Trains as asked, lets everything be painted, and writes the picture. The program's exit status.
int take_screenshot(MainWindow& window, const QCommandLineParser& options);

}  // namespace ws::app
