#include "app/widgets/glossary.h"

#include <QCursor>
#include <QEvent>
#include <QFile>
#include <QRegularExpression>
#include <QTextBrowser>
#include <QToolTip>
#include <QUrl>
#include <algorithm>

#include "app/widgets/theme.h"
#include "profiling/base/paths.h"

namespace ws::app {
namespace {

const QString kScheme = QStringLiteral("word:");
constexpr int kTipMs = 30'000;  // Qt counts 0.4 s a letter and hides long texts early

// Each line "- **Word**: meaning" of the page.
std::vector<Word> words_of(const QString& page) {
  static const QRegularExpression entry("^- \\*\\*(.+?)\\*\\*: (.+)$", QRegularExpression::MultilineOption);
  std::vector<Word> words;
  for (auto found = entry.globalMatch(page); found.hasNext();) {
    const QRegularExpressionMatch match = found.next();
    words.push_back({match.captured(1), match.captured(2).remove('`')});
  }
  return words;
}

// "Launch gaps" and "launch gap" are the same.
QString key_of(const QString& label) {
  QString key = label.section(',', 0, 0).section(" (", 0, 0).trimmed().toLower();
  if (key.endsWith('s') && !key.endsWith("ss")) key.chop(1);
  return key;
}

void show_tip(const QString& link, const QPoint& at, QWidget* widget) {
  const Word* word = link.startsWith(kScheme) ? word_of(QUrl::fromPercentEncoding(link.mid(kScheme.size()).toUtf8())) : nullptr;
  word ? QToolTip::showText(at, word_tip(*word), widget, {}, kTipMs) : QToolTip::hideText();
}

QPoint below_pointer() { return QCursor::pos() + QPoint(0, 4); }

}  // namespace

const std::vector<Word>& glossary() {
  static const std::vector<Word> words = [] {
    QFile page(QString::fromStdString((resources_folder() / "docs" / "glossary.md").string()));
    return page.open(QIODevice::ReadOnly) ? words_of(QString::fromUtf8(page.readAll())) : std::vector<Word>();
  }();
  return words;
}

const Word* word_of(const QString& label) {
  const QString key = key_of(label);
  const auto found = std::ranges::find_if(glossary(), [&key](const Word& word) { return key_of(word.name) == key; });
  return found == glossary().end() ? nullptr : &*found;
}

QString word_tip(const Word& word) { return QString("<b>%1</b><br>%2").arg(word.name.toHtmlEscaped(), word.meaning.toHtmlEscaped()); }

QString word_link(const QString& label, const QColor& ink, const QString& word) {
  const QString name = word.isEmpty() ? label : word;
  if (!word_of(name)) return label.toHtmlEscaped();
  return QString("<a href='%1%2' style='color:%3;text-decoration:underline'>%4</a>")
      .arg(kScheme, QString::fromUtf8(QUrl::toPercentEncoding(name)), ink.name(), label.toHtmlEscaped());
}

QFont word_font(QFont font, const QString& label) {
  font.setUnderline(word_of(label) != nullptr);
  return font;
}

WordLabel::WordLabel(QWidget* parent) : QLabel(parent) {
  setTextFormat(Qt::RichText);
  setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
  connect(this, &QLabel::linkHovered, this, [this](const QString& link) { show_tip(link, below_pointer(), this); });
  connect(this, &QLabel::linkActivated, this, [this](const QString& link) {
    show_tip(link, underMouse() ? below_pointer() : mapToGlobal(rect().bottomLeft()), this);
  });
}

void WordLabel::setWords(const QString& text) {
  words_ = text;
  showWords();
}

void WordLabel::showWords() {
  QString html;
  const QColor ink = palette().color(foregroundRole());
  const QStringList parts = words_.split('[');
  html += parts.first().toHtmlEscaped();
  for (const QString& part : parts.mid(1)) {
    const QString marked = part.section(']', 0, 0);
    html += word_link(marked.section('|', 0, 0), ink, marked.section('|', 1)) + part.section(']', 1).toHtmlEscaped();
  }
  html.replace('\n', QStringLiteral("<br>"));
  html.replace(QChar(0x202F), QChar::Nbsp);  // rich text breaks lines at the narrow space of thousands
  if (html != text()) setText(html);
}

void WordLabel::changeEvent(QEvent* event) {
  QLabel::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) showWords();
}

void explain_words(QTextBrowser* text) {
  const auto show = [text](const QUrl& link) {
    const QPoint at = text->underMouse() ? below_pointer() : text->viewport()->mapToGlobal(text->cursorRect().bottomLeft());
    show_tip(link.toString(QUrl::FullyEncoded), at, text);
  };
  QObject::connect(text, &QTextBrowser::highlighted, text, show);
  QObject::connect(text, &QTextBrowser::anchorClicked, text, show);
}

}  // namespace ws::app
