// Runs that ship with the program: small trainings recorded on a GPU, so that a machine without one shows the real thing.
// Nothing of them is changed.
#pragma once
#include <QString>
#include <QStringList>

namespace ws::app {

class Run;

QStringList shipped_runs();                // paths, in the order of their names
QString shipped_run(const QString& name);  // path of "mnist-arena"; empty: there is none
bool is_shipped(const QString& path);
QString origin_text(const Run& run);  // "recorded on an NVIDIA H200"; empty: the run is this person's

}  // namespace ws::app
