#include "app/network/look_reader.h"

#include <algorithm>
#include <map>

#include "app/text/qt_text.h"

namespace ws::app {
namespace {

constexpr int64_t kPromptSymbols = 16, kSentenceSymbols = 24, kWrittenSymbols = 160;
constexpr qint64 kRestPerLook = 4;  // a look takes at most a fifth of one core
constexpr qint64 kShortestRestMs = 200;

QString text_of_symbols(const std::vector<int32_t>& symbols, const data::Dataset& data) {
  QString written;
  for (const int32_t symbol : symbols) written += text(data.class_names[static_cast<size_t>(symbol)]);
  return written;
}

std::vector<int32_t> first_symbols(const data::Dataset& data, int64_t count) {
  const data::Split& part = shown_part(data);
  std::vector<int32_t> symbols;
  for (int64_t i = 0; i < std::min({count, data.context, part.rows * data.context}); ++i)
    symbols.push_back(static_cast<int32_t>(part.x[static_cast<size_t>(i)]));
  return symbols;
}

std::vector<int32_t> asked_symbols(const QString& asked, const data::Dataset& data, int64_t count) {
  std::vector<int32_t> symbols = symbols_of(asked, data);
  return symbols.empty() ? first_symbols(data, count) : symbols;
}

void inspect_text(Look& look, Inspector& inspector, const data::Dataset& data, const std::function<bool()>& more) {
  std::vector<int32_t> sentence = asked_symbols(look.asked.sentence, data, kSentenceSymbols);
  sentence.resize(std::min<size_t>(sentence.size(), static_cast<size_t>(data.context)));
  for (const int32_t symbol : sentence) look.symbols.push_back(text(data.class_names[static_cast<size_t>(symbol)]));
  look.inside = inspector.inspect(std::vector<float>(sentence.begin(), sentence.end()));
  const std::vector<int32_t> prompt = asked_symbols(look.asked.prompt, data, kPromptSymbols);
  look.prompt = text_of_symbols(prompt, data);
  look.written = text_of_symbols(inspector.write(prompt, {kWrittenSymbols, look.asked.temperature, look.asked.seed}, more), data);
}

void inspect_row(Look& look, Inspector& inspector, const data::Dataset& data) {
  const data::Split& part = shown_part(data);
  if (part.rows == 0) return;
  look.asked.row = std::clamp<int64_t>(look.asked.row, 0, part.rows - 1);
  look.inside = inspector.inspect(
      std::span(part.x).subspan(static_cast<size_t>(look.asked.row * data.features), static_cast<size_t>(data.features)));
}

}  // namespace

std::vector<int32_t> symbols_of(const QString& text, const data::Dataset& data) {
  std::map<QString, int32_t> number;
  for (size_t i = 0; i < data.class_names.size(); ++i)
    number.emplace(QString::fromStdString(data.class_names[i]), static_cast<int32_t>(i));
  std::vector<int32_t> symbols;
  for (const uint code : text.toUcs4()) {
    const char32_t letter = code;
    if (const auto found = number.find(QString::fromUcs4(&letter, 1)); found != number.end()) symbols.push_back(found->second);
  }
  return symbols;
}

LookReader::LookReader(QObject* parent) : QObject(parent) {
  due_.setSingleShot(true);
  connect(&due_, &QTimer::timeout, this, &LookReader::start);
  clock_.start();
}

void LookReader::setRun(const RunSpec& spec) {
  job_.drop();
  due_.stop();
  spec_ = spec;
  snapshot_.reset(), rows_.reset(), inspector_.reset();
  again_ = false;
  took_ms_ = 0;
}

void LookReader::setWeights(std::shared_ptr<const WeightsSnapshot> snapshot, std::shared_ptr<const data::Dataset> rows) {
  if (rows != rows_) inspector_ = std::make_shared<Inspector>(spec_, *rows);
  snapshot_ = std::move(snapshot), rows_ = std::move(rows);
  startWhenDue();
}

void LookReader::setRequest(const LookRequest& request) {
  if (request == request_) return;
  request_ = request;
  due_.stop();
  start();
}

void LookReader::startWhenDue() {
  if (job_.running()) {
    again_ = true;
    return;
  }
  const qint64 rest = std::max(kShortestRestMs, kRestPerLook * took_ms_) - clock_.elapsed();
  if (took_ms_ == 0 || rest <= 0) return start();
  if (!due_.isActive()) due_.start(static_cast<int>(rest));
}

void LookReader::start() {
  if (!snapshot_ || !snapshot_->parameters) return;
  if (job_.running()) {
    again_ = true;
    return;
  }
  const auto look = std::make_shared<Look>();
  look->step = snapshot_->step;
  look->asked = answered_ = request_;
  clock_.start();
  job_.start(
      [look, inspector = inspector_, rows = rows_, parameters = snapshot_->parameters](const Job::Side& side) {
        inspector->set_parameters(*parameters);
        const auto more = [cancelled = side.cancelled()] { return !*cancelled; };
        rows->context > 0 ? inspect_text(*look, *inspector, *rows, more) : inspect_row(*look, *inspector, *rows);
      },
      [this, look](const QString& problem) { ended(problem, look); });
}

void LookReader::ended(const QString& problem, const std::shared_ptr<Look>& look) {
  took_ms_ = std::max<qint64>(1, clock_.elapsed());
  clock_.start();
  const bool other_request = answered_ != request_;
  problem.isEmpty() ? emit looked(look) : emit failed(problem);
  if (!std::exchange(again_, false)) return;
  other_request ? start() : startWhenDue();
}

}  // namespace ws::app
