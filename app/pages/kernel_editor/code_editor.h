// Edits a kernel in CUDA, PTX or Triton: colours, line numbers, and the compiler's messages under their lines.
//
// A column at the left may show the samples of each line.
#pragma once
#include <QWidget>
#include <vector>

#include "engine/own_kernels/kernel_build.h"
#include "engine/own_kernels/kernel_versions.h"
#include "profiling/analysis/stalls.h"

class QsciLexer;
class QsciScintilla;

namespace ws::app {

class StallMargin;

class CodeEditor : public QWidget {
  Q_OBJECT
 public:
  explicit CodeEditor(QWidget* parent = nullptr);
  QString text() const;
  void setText(const QString& text);      // another file: there is nothing to undo
  void replaceText(const QString& text);  // can be undone
  void setLanguage(own::KernelLanguage language);  // for the colours
  void setReadOnly(bool on);
  void setNotes(const std::vector<own::BuildNote>& notes);
  const std::vector<own::BuildNote>& notes() const { return notes_; }
  QStringList annotations() const;  // the shown messages, by line
  void goToLine(int line);          // from 1
  void goToNextNote();              // after the cursor, then from the top
  QsciScintilla* editor() const { return editor_; }
  void setStalls(const std::vector<prof::StallRow>& lines);
  StallMargin* stalls() const { return stalls_; }

 signals:
  void edited();
  void lineChosen(int line);  // the cursor stands there, from 1

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void applyTheme();
  void showNotes();

  QsciScintilla* editor_;
  StallMargin* stalls_;
  QsciLexer* lexer_;
  own::KernelLanguage language_ = own::KernelLanguage::Cuda;
  std::vector<own::BuildNote> notes_;
};

}  // namespace ws::app
