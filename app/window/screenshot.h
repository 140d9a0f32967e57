// Pictures of the window for the documentation and for review.
#pragma once

class QCommandLineParser;

namespace ws::app {

class MainWindow;

// Applies --size, --tab, --preset and --set.
void prepare(MainWindow& window, const QCommandLineParser& options);
// Of a window that stays open: shows --tab, and trains as --start or --train ask.
void begin(MainWindow& window, const QCommandLineParser& options);
// Trains as asked, lets everything be painted, and writes the picture. The program's exit status.
int take_screenshot(MainWindow& window, const QCommandLineParser& options);

}  // namespace ws::app
