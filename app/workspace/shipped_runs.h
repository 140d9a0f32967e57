// Runs that ship with the program: small trainings recorded on a GPU, as examples for machines
// without one. They are never changed.
#pragma once
#include <QString>
#include <QStringList>
#include <vector>

namespace ws::app {

class Run;

QStringList shipped_runs();                // paths of the trainings of MNIST: first the one that the next are compared with
// A recorded PyTorch program with a fault, and what to find in it. resources/recorded/programs has its source.
struct RecordedProgram {
  QString path, title, find;
};
std::vector<RecordedProgram> recorded_programs();
QString shipped_run(const QString& name);  // path of "mnist-arena"; empty if there is none
bool is_shipped(const QString& path);
QString origin_text(const Run& run);  // "recorded on an NVIDIA H200"; empty for the user's own run

}  // namespace ws::app
