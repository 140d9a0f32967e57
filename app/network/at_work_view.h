// The network at work, while it trains. Pictures: what each layer makes of a chosen one, the filters, and those it misreads.
// Text: what it writes now beside what it wrote before, and one head's attention over a sentence.
#pragma once
#include <QWidget>
#include <memory>
#include <vector>

#include "app/network/look_reader.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QStackedWidget;
class QTextBrowser;

namespace ws::app {

class AttentionView;
class Pane;
class TileView;

// A text that the network wrote after `step` steps.
struct WrittenText {
  int64_t step = 0;
  QString prompt, text;
};
// Keeps the first text, the newest, and those between whose steps grow by half: as many as `most`.
void keep_text(std::vector<WrittenText>& all, WrittenText text, size_t most);
QString written_html(const std::vector<WrittenText>& all);  // the newest first

class AtWorkView : public QWidget {
  Q_OBJECT
 public:
  explicit AtWorkView(QWidget* parent = nullptr);
  void setRun(const RunSpec& spec);
  void setWeights(std::shared_ptr<const WeightsSnapshot> snapshot, std::shared_ptr<const data::Dataset> rows);
  bool hasContent() const { return look_ != nullptr; }
  static bool shows(const RunSpec& spec);  // pictures and text have something to show here
  std::shared_ptr<const Look> look() const { return look_; }
  LookReader* reader() { return &reader_; }
  const std::vector<WrittenText>& written() const { return written_; }
  void changeRow(int64_t row);

 signals:
  void looked();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  QWidget* makePictures();
  QWidget* makeTexts();
  QWidget* makeWriting();
  QWidget* makeAttention();
  void changeTexts();
  void take(const std::shared_ptr<const Look>& look);
  void showPicture();
  void showMisread();
  void showMaps();
  void showFilters();
  void fillLayers();
  void showWritten();
  void showHeads();
  void showHead();
  bool pictures() const;

  LookReader reader_;
  std::shared_ptr<const WeightsSnapshot> snapshot_;
  std::shared_ptr<const data::Dataset> rows_;
  std::shared_ptr<const Look> look_;
  std::vector<WrittenText> written_;
  int head_ = 0;

  QStackedWidget* kinds_;
  QLabel *waiting_, *problem_;
  Pane *picture_pane_ = nullptr, *misread_pane_ = nullptr, *maps_pane_ = nullptr, *filters_pane_ = nullptr;
  TileView *picture_ = nullptr, *misread_ = nullptr, *maps_ = nullptr, *filters_ = nullptr, *heads_ = nullptr;
  QLabel* guesses_ = nullptr;
  QComboBox *layer_ = nullptr, *attention_layer_ = nullptr;
  QLineEdit *prompt_ = nullptr, *temperature_ = nullptr, *sentence_ = nullptr;
  QTextBrowser* texts_ = nullptr;
  Pane* attention_pane_ = nullptr;
  AttentionView* attention_ = nullptr;
  QLabel* share_ = nullptr;
};

}  // namespace ws::app
