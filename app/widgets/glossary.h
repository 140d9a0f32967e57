// Words that a page underlines. Pointing at one, a click or Enter shows its meaning from resources/docs/glossary.md; no page
// has a copy of a meaning.
#pragma once
#include <QColor>
#include <QFont>
#include <QLabel>
#include <QString>
#include <vector>

class QTextBrowser;

namespace ws::app {

struct Word {
  QString name, meaning;
};
const std::vector<Word>& glossary();
// The word that a label names: "launch gaps" is the word "Launch gap". Null if the glossary has none.
const Word* word_of(const QString& label);
QString word_tip(const Word& word);  // what hover shows, as HTML

// The label as HTML, underlined if it is in the glossary. `word`: its name there, if it is another one.
QString word_link(const QString& label, const QColor& ink, const QString& word = {});
QFont word_font(QFont font, const QString& label);  // likewise, for painted text

// A text with words in brackets, which it underlines: "[kernels] and [syncs|sync]". Tab reaches them, Enter shows the meaning.
class WordLabel : public QLabel {
  Q_OBJECT
 public:
  explicit WordLabel(QWidget* parent = nullptr);
  void setWords(const QString& text);
  const QString& words() const { return words_; }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void showWords();
  QString words_;
};

// The same in a text that has other links, too.
void explain_words(QTextBrowser* text);

}  // namespace ws::app
