// Inspects a network on a thread of its own, with the weights that were read last: the layers' values for a chosen row, one
// head's attention over a sentence, and a text that the network writes. The training never waits for it.
#pragma once
#include <QElapsedTimer>
#include <QObject>
#include <QString>
#include <QTimer>
#include <memory>
#include <vector>

#include "app/network/weights_probe.h"
#include "app/workspace/job.h"
#include "engine/cpu/inspector.h"

namespace ws::app {

struct LookRequest {
  int64_t row = 0;            // of the part that is shown: the test part if there is one
  QString prompt, sentence;   // of a text; empty: the beginning of the shown part
  double temperature = 0.8;
  uint64_t seed = 1;          // of the written text
  bool operator==(const LookRequest&) const = default;
};

struct Look {
  int64_t step = 0;
  LookRequest asked;
  Inspection inside;                 // of the row, or of the sentence
  std::vector<QString> symbols;      // of the sentence
  QString prompt, written;
};

// The characters of `text` that the data set knows, as symbols.
std::vector<int32_t> symbols_of(const QString& text, const data::Dataset& data);

class LookReader : public QObject {
  Q_OBJECT
 public:
  explicit LookReader(QObject* parent = nullptr);
  void setRun(const RunSpec& spec);  // forgets the weights of another run
  void setWeights(std::shared_ptr<const WeightsSnapshot> snapshot, std::shared_ptr<const data::Dataset> rows);
  void setRequest(const LookRequest& request);  // answered at once, with the weights at hand
  const LookRequest& request() const { return request_; }
  bool reading() const { return job_.running(); }

 signals:
  void looked(std::shared_ptr<const ws::app::Look> look);
  void failed(const QString& sentence);

 private:
  void start();
  void startWhenDue();
  void ended(const QString& problem, const std::shared_ptr<Look>& look);

  RunSpec spec_;
  std::shared_ptr<const WeightsSnapshot> snapshot_;
  std::shared_ptr<const data::Dataset> rows_;
  std::shared_ptr<Inspector> inspector_;
  LookRequest request_, answered_;
  bool again_ = false;  // newer weights or another request came meanwhile
  qint64 took_ms_ = 0;
  QElapsedTimer clock_;
  QTimer due_;
  Job job_;
};

}  // namespace ws::app
