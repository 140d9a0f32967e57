#include "app/pages/kernel_editor/code_editor.h"

#include <Qsci/qscilexercpp.h>
#include <Qsci/qscilexerpython.h>
#include <Qsci/qsciscintilla.h>
#include <Qsci/qscistyle.h>

#include <QEvent>
#include <QHBoxLayout>
#include <utility>

#include "app/pages/kernel_editor/stall_margin.h"
#include "app/text/qt_text.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kNumbers = 0, kFolds = 2, kWave = 8;      // margins and an indicator
constexpr int kErrorStyle = 40, kWarningStyle = 41;  // the lexer has styles below and from 64 on
constexpr double kCodePx = 12.5;

// CUDA, and PTX: its comments, numbers and braces look as in C.
class KernelLexer final : public QsciLexerCPP {
 public:
  KernelLexer(QObject* parent, bool is_ptx) : QsciLexerCPP(parent), is_ptx_(is_ptx) {}
  const char* keywords(int set) const override {
    if (is_ptx_ && set == 1)
      return "version target address_size visible entry func param reg global shared const local align maxntid pragma loc file "
             "pred b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64 v2 v4";
    if (is_ptx_)
      return set == 2 ? "abs add and atom bar barrier bra call cp cvt cvta div ex2 exit fma ld ldmatrix lg2 mad max membar min mma mov mul neg "
                        "not or prefetch rcp red rem ret rsqrt selp setp shfl shl shr sin cos sqrt st sub tanh vote wgmma xor"
                      : nullptr;
    if (set == 2)
      return "__global__ __device__ __shared__ __constant__ __restrict__ __syncthreads __syncwarp threadIdx blockIdx blockDim gridDim warpSize "
             "float2 float4 half bfloat16 int2 int4";
    return QsciLexerCPP::keywords(set);
  }

 private:
  bool is_ptx_;
};

// The styles of a lexer that have a colour of their own.
struct Styles {
  std::vector<int> comments, keywords, numbers, texts;
};

Styles styles_of(own::KernelLanguage language) {
  using C = QsciLexerCPP;
  using Py = QsciLexerPython;
  if (language == own::KernelLanguage::Triton)
    return {{Py::Comment, Py::CommentBlock}, {Py::Keyword, Py::Decorator}, {Py::Number},
            {Py::DoubleQuotedString, Py::SingleQuotedString, Py::TripleDoubleQuotedString, Py::TripleSingleQuotedString}};
  return {{C::Comment, C::CommentLine, C::CommentDoc, C::CommentLineDoc}, {C::Keyword, C::KeywordSet2}, {C::PreProcessor, C::Number},
          {C::DoubleQuotedString, C::SingleQuotedString}};
}

QString note_text(const own::BuildNote& note) {
  const QString number = note.number.empty() ? QString() : text(note.number) + QStringLiteral(": ");
  return (note.error ? CodeEditor::tr("error: ") : CodeEditor::tr("warning: ")) + number + text(note.text);
}

}  // namespace

CodeEditor::CodeEditor(QWidget* parent) : QWidget(parent), editor_(new QsciScintilla(this)), lexer_(new KernelLexer(editor_, false)) {
  stalls_ = new StallMargin(editor_, this);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0), row->setSpacing(0);
  row->addWidget(stalls_), row->addWidget(editor_, 1);
  setFocusProxy(editor_);
  editor_->setUtf8(true);
  editor_->setFrameShape(QFrame::NoFrame);
  editor_->setAccessibleName(tr("Source of the kernel"));
  editor_->setLexer(lexer_);
  editor_->setMarginType(kNumbers, QsciScintilla::NumberMargin);
  editor_->setMarginWidth(kNumbers, QStringLiteral("00000"));
  editor_->setScrollWidth(1), editor_->setScrollWidthTracking(true);  // as wide as the longest line
  editor_->setFolding(QsciScintilla::PlainFoldStyle, kFolds);
  editor_->setBraceMatching(QsciScintilla::SloppyBraceMatch);
  editor_->setAutoIndent(true), editor_->setIndentationsUseTabs(false), editor_->setTabWidth(2);
  editor_->setCaretLineVisible(true);
  editor_->setAnnotationDisplay(QsciScintilla::AnnotationIndented);
  editor_->indicatorDefine(QsciScintilla::SquiggleIndicator, kWave);
  applyTheme();
  connect(editor_, &QsciScintilla::textChanged, this, &CodeEditor::edited);
  connect(editor_, &QsciScintilla::cursorPositionChanged, this, [this, last = -1](int line, int) mutable {
    if (std::exchange(last, line) != line) emit lineChosen(line + 1);
  });
}

void CodeEditor::setLanguage(own::KernelLanguage language) {
  if (std::exchange(language_, language) == language) return;
  QsciLexer* const before = lexer_;
  if (language == own::KernelLanguage::Triton)
    lexer_ = new QsciLexerPython(editor_);
  else
    lexer_ = new KernelLexer(editor_, language == own::KernelLanguage::Ptx);
  editor_->setLexer(lexer_);
  delete before;
  applyTheme();
}

QString CodeEditor::text() const { return editor_->text(); }

void CodeEditor::setText(const QString& text) {
  const QSignalBlocker quiet(editor_);
  notes_.clear();
  editor_->setText(text);
  editor_->setModified(false);
  showNotes();
}

void CodeEditor::replaceText(const QString& text) {
  int line = 0, column = 0;
  editor_->getCursorPosition(&line, &column);
  const int first = editor_->firstVisibleLine();
  editor_->beginUndoAction();
  editor_->selectAll();
  editor_->replaceSelectedText(text);
  editor_->endUndoAction();
  editor_->setCursorPosition(std::min(line, editor_->lines() - 1), column);
  editor_->setFirstVisibleLine(first);
}

void CodeEditor::setStalls(const std::vector<prof::StallRow>& lines) { stalls_->setLines(lines); }

void CodeEditor::setReadOnly(bool on) { editor_->setReadOnly(on); }

void CodeEditor::setNotes(const std::vector<own::BuildNote>& notes) {
  notes_ = notes;
  showNotes();
}

void CodeEditor::showNotes() {
  editor_->clearAnnotations();
  editor_->clearIndicatorRange(0, 0, editor_->lines(), 0, kWave);
  const QsciStyle error(kErrorStyle, QString(), theme().worse, theme().header, mono_font(11), true);
  const QsciStyle warning(kWarningStyle, QString(), theme().secondary, theme().header, mono_font(11), true);
  for (const own::BuildNote& note : notes_) {
    const int line = std::clamp(note.line, 1, editor_->lines()) - 1;
    const QString before = editor_->annotation(line);
    editor_->annotate(line, before.isEmpty() ? note_text(note) : before + '\n' + note_text(note), note.error ? error : warning);
    if (note.line > 0) editor_->fillIndicatorRange(line, 0, line, std::max(0, editor_->lineLength(line) - 1), kWave);
  }
}

QStringList CodeEditor::annotations() const {
  QStringList all;
  for (int line = 0; line < editor_->lines(); ++line)
    if (const QString note = editor_->annotation(line); !note.isEmpty()) all << note;
  return all;
}

void CodeEditor::goToLine(int line) {
  editor_->setCursorPosition(std::max(0, line - 1), 0);
  editor_->ensureLineVisible(std::max(0, line - 1));
}

void CodeEditor::goToNextNote() {
  int line = 0, column = 0;
  editor_->getCursorPosition(&line, &column);
  const own::BuildNote* next = nullptr;
  for (const own::BuildNote& note : notes_)
    if (note.line > line + 1 && (!next || note.line < next->line)) next = &note;
  if (!next && !notes_.empty()) next = &*std::ranges::min_element(notes_, {}, &own::BuildNote::line);
  if (next) goToLine(next->line);
}

void CodeEditor::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) applyTheme(), showNotes();
}

void CodeEditor::applyTheme() {
  const Theme& t = theme();
  const QFont font = mono_font(kCodePx);
  lexer_->setDefaultFont(font), lexer_->setDefaultPaper(t.base), lexer_->setDefaultColor(t.text);
  for (int style = 0; style < 128; ++style) lexer_->setFont(font, style), lexer_->setPaper(t.base, style), lexer_->setColor(t.text, style);
  const Styles styles = styles_of(language_);
  for (const auto& [group, color] : {std::pair(&styles.comments, t.quiet), {&styles.keywords, t.run[1]}, {&styles.numbers, t.run[5]}, {&styles.texts, t.run[6]}})
    for (const int style : *group) lexer_->setColor(color, style);
  editor_->setPaper(t.base), editor_->setColor(t.text);
  editor_->setMarginsBackgroundColor(t.header), editor_->setMarginsForegroundColor(t.quiet), editor_->setMarginsFont(mono_font(11));
  editor_->setFoldMarginColors(t.header, t.header);
  editor_->setCaretLineBackgroundColor(t.selected_row), editor_->setCaretForegroundColor(t.text);
  editor_->setSelectionBackgroundColor(t.chosen), editor_->resetSelectionForegroundColor();
  editor_->setMatchedBraceBackgroundColor(t.chosen), editor_->setMatchedBraceForegroundColor(t.text);
  editor_->setIndicatorForegroundColor(t.worse, kWave);
}

}  // namespace ws::app
