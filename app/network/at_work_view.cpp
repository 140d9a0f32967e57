#include "app/network/at_work_view.h"

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QStackedWidget>
#include <QTextBrowser>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/core/runs/data_shape.h"
#include "app/network/attention_view.h"
#include "app/network/network_images.h"
#include "app/network/tile_view.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/labels.h"
#include "app/widgets/pane.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr size_t kKeptTexts = 5;
constexpr int kMostMaps = 256, kGuesses = 3, kLeftColumn = 250;
constexpr double kMostTemperature = 5;

QLabel* quiet_text(QWidget* parent) { return label(parent, ui_font(11), {.quiet = true}); }

QPushButton* sign_button(const QString& sign, const QString& name, QWidget* parent) {
  auto* button = small_button(sign, parent, name);
  button->setFixedWidth(28);
  button->setAccessibleName(name);
  return button;
}

QString class_text(const data::Dataset& data, size_t which) {
  return which < data.class_names.size() ? text(data.class_names[which]) : QString::number(which);
}

// "7 · 98 %", the likeliest classes first.
QString guesses_text(const data::Dataset& data, const std::vector<float>& scores, int64_t row) {
  const float best = *std::ranges::max_element(scores);
  double sum = 0;
  std::vector<std::pair<double, size_t>> shares;
  for (size_t i = 0; i < scores.size(); ++i) {
    shares.emplace_back(std::exp(static_cast<double>(scores[i] - best)), i);
    sum += shares.back().first;
  }
  std::ranges::sort(shares, std::greater<>{});
  QStringList lines;
  for (size_t i = 0; i < std::min<size_t>(kGuesses, shares.size()); ++i)
    lines << QString("%1 · %2 %").arg(class_text(data, shares[i].second), fixed_text(100 * shares[i].first / sum, 0));
  const auto truth = static_cast<size_t>(shown_part(data).labels[static_cast<size_t>(row)]);
  const bool right = shares[0].second == truth;
  return QString(right ? "✓ " : "✗ ") + QObject::tr("%1 read as %2").arg(class_text(data, truth), lines.join(QObject::tr(", then ")));
}

QString layer_text(const NetworkLayer& l) {
  const QString name = l.layer.kind == LayerKind::Join ? QObject::tr("+ input") : text(text_of(l.layer));
  const QString part = l.part.empty() ? QString() : text(l.part) + " · ";
  return part + name + " · " + text(text_of(l.out));
}

QString as_html(const QString& plain, const QColor& colour) {
  return QString("<span style='color:%1; white-space:pre-wrap'>%2</span>").arg(colour.name(), plain.toHtmlEscaped().replace('\n', "<br>"));
}

Pane* pane_with(const QString& title, QWidget* body, QWidget* parent) {
  auto* pane = new Pane(title, parent);
  pane->legend()->hide();
  pane->setBody(body);
  return pane;
}

// Keeps the chosen entry where the new list has it too.
void refill(QComboBox& box, const QStringList& texts, const QVariantList& values, int otherwise) {
  const QVariant before = box.currentData();
  const QSignalBlocker quiet(box);
  box.clear();
  for (int i = 0; i < texts.size(); ++i) box.addItem(texts[i], values[i]);
  const int found = before.isValid() ? box.findData(before) : -1;
  box.setCurrentIndex(found >= 0 ? found : std::min(otherwise, box.count() - 1));
}

}  // namespace

void keep_text(std::vector<WrittenText>& all, WrittenText text, size_t most) {
  const auto same_step = [&](const WrittenText& t) { return t.step >= text.step; };  // a new prompt, or another run
  std::erase_if(all, same_step);
  if (all.size() > 1 && 2 * all.back().step < 3 * all[all.size() - 2].step) all.pop_back();
  all.push_back(std::move(text));
  if (all.size() > most) all.erase(all.begin() + 1);
}

QString written_html(const std::vector<WrittenText>& all) {
  const Theme& t = theme();
  QString html;
  for (size_t i = all.size(); i-- > 0;) {
    const bool now = i + 1 == all.size();
    html += QString("<p style='margin-bottom:2px'><b>%1</b></p><p style='margin-top:0; margin-bottom:12px; font-family:%2'>%3%4</p>")
                .arg((now ? QObject::tr("now, step %1") : QObject::tr("step %1")).arg(count_text(all[i].step)), mono_font(12).family(),
                     as_html(all[i].prompt, t.quiet), as_html(all[i].text, now ? t.text : t.secondary));
  }
  return html;
}

AtWorkView::AtWorkView(QWidget* parent)
    : QWidget(parent), kinds_(new QStackedWidget(this)), waiting_(quiet_text(this)), problem_(quiet_text(this)) {
  waiting_->setAlignment(Qt::AlignCenter);
  waiting_->setText(tr("Reading the weights…"));
  problem_->hide();
  kinds_->addWidget(waiting_);
  kinds_->addWidget(makePictures());
  kinds_->addWidget(makeTexts());
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(5);
  column->addWidget(kinds_, 1);
  column->addWidget(problem_);
  connect(&reader_, &LookReader::looked, this, &AtWorkView::take);
  connect(&reader_, &LookReader::failed, this, [this](const QString& sentence) { problem_->setText(sentence); problem_->show(); });
}

QWidget* AtWorkView::makePictures() {
  auto* page = new QWidget(this);
  auto* row = new QHBoxLayout(page);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(5);
  auto* chosen = new QWidget(page);
  auto* inside = new QVBoxLayout(chosen);
  inside->setContentsMargins(0, 0, 0, 6);
  picture_ = new TileView(tr("Chosen picture"), chosen);
  picture_->setSides(40, 400);
  guesses_ = quiet_text(chosen);
  guesses_->setContentsMargins(8, 0, 8, 0);
  inside->addWidget(picture_, 1);
  inside->addWidget(guesses_);
  picture_pane_ = pane_with(tr("Chosen picture"), chosen, page);
  for (const auto& [sign, name, step] : {std::tuple{QString(QChar(0x2039)), tr("Picture before"), -1}, {QString(QChar(0x203A)), tr("Next picture"), 1}}) {
    auto* button = sign_button(sign, name, picture_pane_);
    connect(button, &QPushButton::clicked, this, [this, by = step] { changeRow(reader_.request().row + by); });
    picture_pane_->addOption(button);
  }
  misread_ = new TileView(tr("Misread pictures"), page);
  misread_->setSides(34, 46);
  misread_->setPickable(true);
  connect(misread_, &TileView::picked, this, [this](int tile) {
    if (static_cast<size_t>(tile) < snapshot_->wrong.size()) changeRow(snapshot_->wrong[static_cast<size_t>(tile)].row);
  });
  misread_pane_ = pane_with(tr("Misread"), misread_, page);
  auto* left = new QVBoxLayout;
  left->setSpacing(5);
  left->addWidget(picture_pane_, 3);
  left->addWidget(misread_pane_, 2);
  maps_ = new TileView(tr("Feature maps"), page);
  maps_pane_ = pane_with(tr("Feature maps"), maps_, page);
  layer_ = new QComboBox(maps_pane_);
  layer_->setAccessibleName(tr("Layer"));
  layer_->setMinimumWidth(210);
  connect(layer_, qOverload<int>(&QComboBox::activated), this, [this] { showMaps(); showFilters(); });
  maps_pane_->addOption(layer_);
  filters_ = new TileView(tr("Filters"), page);
  filters_->setSides(10, 64);
  filters_pane_ = pane_with(tr("Filters"), filters_, page);
  auto* right = new QVBoxLayout;
  right->setSpacing(5);
  right->addWidget(maps_pane_, 3);
  right->addWidget(filters_pane_, 2);
  for (Pane* pane : {picture_pane_, misread_pane_}) pane->setFixedWidth(kLeftColumn);
  row->addLayout(left);
  row->addLayout(right, 1);
  return page;
}

QWidget* AtWorkView::makeWriting() {
  auto* body = new QWidget(this);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(8, 4, 8, 6);
  auto* row = new QHBoxLayout;
  prompt_ = new QLineEdit(body);
  prompt_->setAccessibleName(tr("Prompt"));
  prompt_->setToolTip(tr("The network continues this text"));
  temperature_ = new QLineEdit("0.8", body);
  temperature_->setFixedWidth(52);
  temperature_->setAccessibleName(tr("Temperature"));
  temperature_->setToolTip(tr("0 takes the likeliest character, 1 draws as the network thinks, more is wilder"));
  auto* again = sign_button(QString(QChar(0x21BB)), tr("Write another text"), body);
  connect(again, &QPushButton::clicked, this, [this] {
    LookRequest request = reader_.request();
    ++request.seed;
    reader_.setRequest(request);
  });
  for (QLineEdit* field : {prompt_, temperature_}) connect(field, &QLineEdit::editingFinished, this, &AtWorkView::changeTexts);
  row->addWidget(new QLabel(tr("prompt"), body));
  row->addWidget(prompt_, 1);
  row->addWidget(new QLabel(tr("temperature"), body));
  row->addWidget(temperature_);
  row->addWidget(again);
  texts_ = new QTextBrowser(body);
  texts_->setAccessibleName(tr("What the network writes"));
  texts_->setFrameShape(QFrame::NoFrame);
  texts_->setProperty("inPane", true);
  texts_->setOpenLinks(false);
  column->addLayout(row);
  column->addWidget(texts_, 1);
  return body;
}

QWidget* AtWorkView::makeAttention() {
  auto* body = new QWidget(this);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(8, 4, 8, 6);
  heads_ = new TileView(tr("Heads"), body);
  heads_->setSides(24, 64);
  heads_->setFixedHeight(94);
  heads_->setPickable(true);
  connect(heads_, &TileView::picked, this, [this](int head) { head_ = head; showHead(); });
  attention_ = new AttentionView(body);
  share_ = quiet_text(body);
  share_->setMinimumHeight(18);
  connect(attention_, &AttentionView::hovered, share_, &QLabel::setText);
  sentence_ = new QLineEdit(body);
  sentence_->setAccessibleName(tr("Sentence"));
  sentence_->setToolTip(tr("The head reads this sentence"));
  connect(sentence_, &QLineEdit::editingFinished, this, &AtWorkView::changeTexts);
  column->addWidget(heads_);
  column->addWidget(attention_, 1);
  column->addWidget(share_);
  column->addWidget(sentence_);
  return body;
}

QWidget* AtWorkView::makeTexts() {
  auto* page = new QWidget(this);
  auto* row = new QHBoxLayout(page);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(5);
  row->addWidget(pane_with(tr("What it writes"), makeWriting(), page), 3);
  attention_pane_ = pane_with(tr("Attention"), makeAttention(), page);
  attention_layer_ = new QComboBox(attention_pane_);
  attention_layer_->setAccessibleName(tr("Layer of the heads"));
  attention_layer_->setMinimumWidth(150);
  connect(attention_layer_, qOverload<int>(&QComboBox::activated), this, [this] { showHeads(); showHead(); });
  attention_pane_->addOption(attention_layer_);
  row->addWidget(attention_pane_, 2);
  return page;
}

bool AtWorkView::shows(const RunSpec& spec) {
  return data::holds_pictures(spec.data.name) || data_shape(spec.data).input.is_text();
}

void AtWorkView::setRun(const RunSpec& spec) {
  reader_.setRun(spec);
  snapshot_.reset(), rows_.reset(), look_.reset();
  written_.clear();
  head_ = 0;
  problem_->hide();
  kinds_->setCurrentWidget(waiting_);
}

void AtWorkView::setWeights(std::shared_ptr<const WeightsSnapshot> snapshot, std::shared_ptr<const data::Dataset> rows) {
  snapshot_ = std::move(snapshot), rows_ = std::move(rows);
  reader_.setWeights(snapshot_, rows_);
}

void AtWorkView::changeRow(int64_t row) {
  if (!rows_ || shown_part(*rows_).rows == 0) return;
  LookRequest request = reader_.request();
  request.row = (row + shown_part(*rows_).rows) % shown_part(*rows_).rows;
  reader_.setRequest(request);
}

void AtWorkView::changeTexts() {
  LookRequest request = reader_.request();
  bool number = false;
  const double temperature = temperature_->text().toDouble(&number);
  if (number && temperature >= 0 && temperature <= kMostTemperature) request.temperature = temperature;
  temperature_->setText(QString::number(request.temperature));
  if (prompt_->isModified()) request.prompt = prompt_->text();
  if (sentence_->isModified()) request.sentence = sentence_->text();
  reader_.setRequest(request);
}

bool AtWorkView::pictures() const { return rows_ && rows_->image_width > 0; }

void AtWorkView::take(const std::shared_ptr<const Look>& look) {
  if (!snapshot_ || !rows_ || !look->inside.model) return;
  look_ = look;
  problem_->hide();
  kinds_->setCurrentIndex(pictures() ? 1 : 2);
  fillLayers();
  if (pictures()) {
    showPicture(), showMisread(), showMaps(), showFilters();
  } else {
    keep_text(written_, {look->step, look->prompt, look->written}, kKeptTexts);
    showWritten(), showHeads(), showHead();
  }
  emit looked();
}

void AtWorkView::fillLayers() {
  QStringList texts, attention_texts;
  QVariantList places, attention_places;
  const auto& layers = look_->inside.model->layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerKind kind = layers[i].layer.kind;
    if (kind == LayerKind::Branch || kind == LayerKind::Dropout) continue;
    texts << layer_text(layers[i]), places << static_cast<int>(i);
    if (kind != LayerKind::Attention) continue;
    attention_texts << (layers[i].part.empty() ? text(layers[i].name) : text(layers[i].part));
    attention_places << static_cast<int>(i);
  }
  if (pictures())
    refill(*layer_, texts, places, 0);
  else
    refill(*attention_layer_, attention_texts, attention_places, 0);
}

void AtWorkView::showPicture() {
  const int64_t row = look_->asked.row;
  picture_->setTiles({{row_image(*rows_, shown_part(*rows_), row), {}, tr("picture %1").arg(count_text(row + 1)), false}});
  picture_pane_->setTitle(tr("Picture %1").arg(count_text(row + 1)), {});
  if (rows_->task == data::Task::Classification) guesses_->setText(guesses_text(*rows_, look_->inside.outputs.back(), row));
}

void AtWorkView::showMisread() {
  std::vector<Tile> tiles;
  int chosen = -1;
  for (const SamplePrediction& s : snapshot_->wrong) {
    if (s.row == look_->asked.row) chosen = static_cast<int>(tiles.size());
    const QString words = class_text(*rows_, static_cast<size_t>(s.guess)) + " → " + class_text(*rows_, static_cast<size_t>(s.truth));
    tiles.push_back({row_image(*rows_, shown_part(*rows_), s.row), words, tr("guess → truth: %1").arg(words), true});
  }
  misread_->setTiles(std::move(tiles));
  misread_->setChosen(chosen);
  misread_pane_->setTitle(tr("Misread"), tr("%1 of %2 · guess → truth").arg(count_text(snapshot_->wrong_rows), count_text(snapshot_->confusion_rows)),
                          tr("%1 of %2").arg(count_text(snapshot_->wrong_rows), count_text(snapshot_->confusion_rows)));
}

void AtWorkView::showMaps() {
  if (!look_ || layer_->currentIndex() < 0) return;
  const auto layer = static_cast<size_t>(layer_->currentData().toInt());
  const NetworkLayer& l = look_->inside.model->layers[layer];
  const std::vector<float>& values = look_->inside.outputs[layer];
  std::vector<QImage> images = output_images(l.out, values);
  if (images.size() > kMostMaps) images.resize(kMostMaps);
  std::vector<Tile> tiles;
  for (size_t i = 0; i < images.size(); ++i)
    tiles.push_back({images[i], {}, l.out.is_picture() ? tr("channel %1 of %2").arg(i + 1).arg(l.out.channels) : tr("%1 values").arg(values.size()), false});
  maps_->setTiles(std::move(tiles));
  const auto [least, most] = std::ranges::minmax_element(values);
  maps_pane_->setTitle(tr("Feature maps"), tr("step %1 · blue %2 to orange %3")
                                               .arg(count_text(look_->step), significant_text(static_cast<double>(*least), 2), significant_text(static_cast<double>(*most), 2)),
                       tr("step %1").arg(count_text(look_->step)));
}

// The filters of the chosen layer, or of the layer before it that has some.
void AtWorkView::showFilters() {
  if (!look_ || layer_->currentIndex() < 0) return;
  const Model& model = *look_->inside.model;
  const auto chosen = static_cast<size_t>(layer_->currentData().toInt());
  std::optional<size_t> layer = first_filter_layer(model);
  for (size_t i = 0; i <= chosen; ++i)
    if (model.layers[i].layer.kind == LayerKind::Conv) layer = i;
  filters_pane_->setVisible(layer.has_value());
  if (!layer) return;
  const auto& weights = (*snapshot_->parameters)[index(model.layer_parameters[*layer][0])];
  std::vector<Tile> tiles;
  for (int64_t i = 0; i < std::min<int64_t>(kMostMaps, filter_count(model, *layer)); ++i)
    tiles.push_back({filter_image(model, *layer, weights, i), {}, tr("filter %1").arg(i + 1), false});
  filters_->setTiles(std::move(tiles));
  const int64_t channels = model.layers[*layer].in.channels;
  const bool many = model.layers[*layer].layer.kind == LayerKind::Conv && channels != 1 && channels != 3;
  filters_pane_->setTitle(tr("Filters of %1").arg(text(model.layers[*layer].name)), many ? tr("the strongest of %1 channels of each").arg(channels) : QString());
}

void AtWorkView::showWritten() {
  if (!prompt_->hasFocus() && prompt_->text().isEmpty()) prompt_->setText(look_->prompt.section('\n', 0, 0));
  texts_->setHtml(written_html(written_));
}

void AtWorkView::showHeads() {
  if (!look_ || attention_layer_->currentIndex() < 0) return attention_pane_->hide();
  attention_pane_->show();
  const auto layer = static_cast<size_t>(attention_layer_->currentData().toInt());
  const std::vector<float>& shares = look_->inside.attention[layer];
  const auto symbols = look_->symbols.size(), each = symbols * symbols;
  std::vector<Tile> tiles;
  for (size_t head = 0; each > 0 && head < shares.size() / each; ++head)
    tiles.push_back({attention_image(std::span(shares).subspan(head * each, each), static_cast<int>(symbols)), tr("head %1").arg(head + 1), {}, false});
  head_ = std::clamp(head_, 0, std::max(0, static_cast<int>(tiles.size()) - 1));
  heads_->setTiles(std::move(tiles));
  if (!sentence_->hasFocus() && sentence_->text().isEmpty()) {
    QString sentence;
    for (const QString& symbol : look_->symbols) sentence += symbol;
    sentence_->setText(sentence.replace('\n', ' '));
  }
}

void AtWorkView::showHead() {
  if (!look_ || attention_layer_->currentIndex() < 0) return;
  heads_->setChosen(head_);
  const auto layer = static_cast<size_t>(attention_layer_->currentData().toInt());
  const std::vector<float>& shares = look_->inside.attention[layer];
  const auto each = look_->symbols.size() * look_->symbols.size(), first = static_cast<size_t>(head_) * each;
  attention_->setMap(QStringList(look_->symbols.begin(), look_->symbols.end()),
                     {shares.begin() + static_cast<std::ptrdiff_t>(first), shares.begin() + static_cast<std::ptrdiff_t>(first + each)});
  attention_pane_->setTitle(tr("Attention"), tr("head %1 · step %2").arg(head_ + 1).arg(count_text(look_->step)), tr("head %1").arg(head_ + 1));
}

void AtWorkView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange || !look_) return;
  if (pictures())
    showMaps(), showFilters();
  else
    showWritten(), showHeads();
}

}  // namespace ws::app
