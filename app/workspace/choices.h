// The choices for the next run, and how it is traced. Setup and the top bar edit them, everybody reads them.
#pragma once
#include <QObject>
#include <QString>
#include <QStringList>
#include <optional>
#include <string>
#include <vector>

#include "app/workspace/training_session.h"
#include "engine/plan/run_spec.h"

namespace ws::app {

std::vector<Preset> presets_by_title();

class Choices : public QObject {
  Q_OBJECT
 public:
  explicit Choices(QObject* parent = nullptr) : QObject(parent) {}

  const RunSpec& spec() const { return spec_; }
  RunSpec plainPreset() const;  // the preset of that name as it is in its file, fitted to this machine; else preset()
  const RunSpec& preset() const { return preset_; }  // reference for "changed"
  void setSpec(const RunSpec& spec);                 // also the preset
  void edit(const RunSpec& spec);                    // the preset stays
  // Takes the choices of a training that somebody else chose: a start, an insight, a run that is trained again. The
  // user's own choices can be brought back.
  void replace(const RunSpec& spec);
  bool replaced() const { return own_ && spec_ == replacement_; }
  void bringBack();  // the user's own choices
  void set(const QString& key, const QString& value);
  bool usePreset(const QString& name);  // returns false if there is none; `said` reports why
  void useDefaults();                   // as far as this machine can run them

  // The problem with the choices on this machine and the field to change, or the memory that the run will need.
  struct Verdict {
    std::string problem, key;                     // both empty if the run can start
    int64_t needed_bytes = 0, free_bytes = 0;     // for the memory that is shortest; 0 if unknown
    bool with_data = false;                       // the GPU holds the data set as well; the CPU has it already
  };
  Verdict verdict() const;
  // The columns of the CSV file that the choices name; empty without one, or if it cannot be read.
  std::vector<std::string> columns() const;
  void useFile(const QString& path);             // a CSV file, or a file of an IDX folder
  void setFilesHere(bool here) { files_here_ = here; }  // false: paths name files of another machine

  bool cuda() const { return cuda_; }  // false until setCuda()
  void setCuda(bool cuda);             // also fits a preset that was chosen before to the machine

  prof::TraceLevel traceLevel() const { return trace_level_; }
  const TraceExtras& traceExtras() const { return trace_extras_; }
  void setTraceLevel(prof::TraceLevel level);
  void setTraceExtras(const TraceExtras& extras);

 signals:
  void changed();
  // What was changed to fit the machine, or why a choice was rejected.
  void said(const QString& sentence, bool problem);
  void traceLevelChanged(ws::prof::TraceLevel level);
  void traceExtrasChanged(const ws::app::TraceExtras& extras);

 private:
  QStringList fit();  // returns what was changed
  Verdict ofTable() const;

  struct Own {
    RunSpec spec, preset;
  };
  RunSpec spec_, preset_, replacement_;
  std::optional<Own> own_;  // the user's choices before they were replaced
  bool cuda_ = false, cuda_known_ = false, fit_later_ = false, files_here_ = true;
  prof::TraceLevel trace_level_ = prof::TraceLevel::Full;
  TraceExtras trace_extras_;
};

}  // namespace ws::app
