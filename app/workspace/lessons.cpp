#include "app/workspace/lessons.h"

#include <algorithm>

#include "app/core/comparison/comparison_text.h"
#include "app/text/units.h"
#include "app/workspace/compared_live_run.h"
#include "app/workspace/shipped_runs.h"
#include "profiling/run_file/run_file.h"

namespace ws::app {
namespace {

using Requests = std::vector<StartRequest>;
using Runs = std::vector<const Run*>;

RunSpec digits(bool cuda, int64_t epochs) {
  RunSpec spec;
  spec.train.epochs = epochs;
  spec.train.batch = 64;
  if (!cuda) spec.data.limit = 12000;  // a CPU takes a few seconds for these rows
  return spec;
}

StartRequest request(RunSpec spec, const QString& title, bool cuda) {
  std::vector<std::string> notes;
  StartRequest one;
  one.spec = fit_to_machine(std::move(spec), cuda, notes);
  one.title = title;
  one.trace = prof::TraceLevel::Full;
  return one;
}

QString named(std::string_view name) { return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size())); }

double accuracy(const Run& run) { return run.summary ? run.summary->test_accuracy * 100 : 0; }

QString percent(double value) { return fixed_text(value, 1) + QStringLiteral(" %"); }

// How many times as long the step of the first run takes.
double ratio(const Runs& runs) { return runs.back()->stepUs() > 0 ? runs.front()->stepUs() / runs.back()->stepUs() : 0; }

// `answer` with the ratio of the steps. If the first run is not slower beyond noise, a sentence about both runs.
QString speed_of_last(const Runs& runs, const QString& answer, const QString& first, const QString& last) {
  const Comparison both = compare(compared_run(*runs.front()), compared_run(*runs.back()));
  if (both.speed == Speed::Differs && ratio(runs) > 1) return answer.arg(QString::fromStdString(ratio_text(ratio(runs))));
  return QString::fromStdString(speed_text(both, first.toStdString(), last.toStdString())) + QStringLiteral(".");
}

RunSpec allocating(bool cuda, Allocator allocator) {
  RunSpec spec = digits(cuda, 3);
  spec.exec.allocator = allocator;
  spec.exec.fusion = Fusion::Off;
  spec.exec.sync = SyncPolicy::EveryStep;
  return spec;
}

Requests allocation(bool cuda) {
  return {request(allocating(cuda, Allocator::Direct), QObject::tr("direct allocation"), cuda),
          request(allocating(cuda, Allocator::Arena), QObject::tr("arena allocation"), cuda)};
}

QString allocation_conclusion(const Runs& runs) {
  const auto calls = [](const Run& run) {
    const Summary& s = *run.summary;
    return s.steps > 0 ? static_cast<double>(s.calls.device_allocate + s.calls.device_free) / static_cast<double>(s.steps) : 0;
  };
  return speed_of_last(runs, QObject::tr("A step takes %1 as long with the allocations."), QObject::tr("Direct"), QObject::tr("the arena")) +
         QObject::tr(" Direct calls the driver's allocator %1 times per step, the arena %2 times.")
             .arg(fixed_text(calls(*runs.front()), 0), fixed_text(calls(*runs.back()), 0));
}

// The answer of the first limit that the value stays below.
int answer_below(double value, std::initializer_list<double> limits) {
  if (!(value > 0)) return -1;
  return static_cast<int>(std::ranges::find_if(limits, [value](double limit) { return value < limit; }) - limits.begin());
}

int allocation_right(const Runs& runs) { return answer_below(ratio(runs), {1.2, 4}); }

StartRequest allocation_next(bool cuda) {
  RunSpec spec = allocating(cuda, Allocator::Arena);
  spec.exec.fusion = Fusion::Epilogue, spec.exec.sync = SyncPolicy::OnRead;
  return request(spec, QObject::tr("arena, fused, no sync"), cuda);
}

RunSpec beginning(bool cuda, Init init, Optimizer optimizer) {
  RunSpec spec = digits(cuda, 2);
  spec.model.init = init;
  spec.train.optimizer = optimizer;
  if (optimizer == Optimizer::Adam) spec.train.lr = 0.001;
  return spec;
}

Requests first_weights(bool cuda) {
  Requests all;
  for (Init init : {Init::Normal, Init::Xavier, Init::Kaiming, Init::Zeros})
    all.push_back(request(beginning(cuda, init, Optimizer::Sgd), named(to_string(init)) + QObject::tr(" weights"), cuda));
  return all;
}

QString first_weights_conclusion(const Runs& runs) {
  const auto [worst, best] = std::minmax_element(
      runs.begin(), runs.end(), [](const Run* a, const Run* b) { return accuracy(*a) < accuracy(*b); });
  const auto first = [](const Run& run) {
    return run.steps.empty() ? QStringLiteral("—") : significant_text(static_cast<double>(run.steps.front().loss));
  };
  const auto same = [&best = best](const Run& run) {
    return is_quiet(compare(compared_run(run), compared_run(**best)).of(MeasureKind::TestAccuracy).delta.verdict);
  };
  if (same(**worst))
    return QObject::tr("All initial weights end at about %1: the differences are within noise.").arg(percent(accuracy(**best)));
  const auto init = [](const Run& run) {
    QString name = named(to_string(run.spec.model.init));
    return name.replace(0, 1, name[0].toUpper());
  };
  QStringList winners;
  for (const Run* run : runs)
    if (run == *best || same(*run)) winners << (winners.isEmpty() ? init(*run) : init(*run).toLower());
  return QObject::tr("%1 weights learn best: %2, from a first loss of %3. %4 weights come last: %5, from %6.")
      .arg(winners.join(QObject::tr(" and ")), percent(accuracy(**best)), first(**best), init(**worst), percent(accuracy(**worst)),
           first(**worst));
}

int first_weights_right(const Runs& runs) {
  const auto worst = std::ranges::min_element(runs, {}, [](const Run* run) { return accuracy(*run); });
  return static_cast<int>(worst - runs.begin());
}

StartRequest first_weights_next(bool cuda) {
  return request(beginning(cuda, Init::Normal, Optimizer::Adam), QObject::tr("normal weights, adam"), cuda);
}

Requests how_fast(bool cuda) {
  RunSpec spec = digits(cuda, 2);
  spec.exec.allocator = Allocator::Direct;
  spec.exec.sync = SyncPolicy::EveryOp;
  spec.exec.fusion = Fusion::Off;
  Requests all{request(spec, QObject::tr("eager"), cuda)};
  spec.exec.allocator = Allocator::Arena;
  spec.exec.sync = SyncPolicy::OnRead;
  all.push_back(request(spec, QObject::tr("+ arena, no sync"), cuda));
  spec.exec.fusion = Fusion::Epilogue;
  all.push_back(request(spec, QObject::tr("+ fused"), cuda));
  if (!cuda) return all;
  spec.exec.launch = Launch::Graph;
  all.push_back(request(spec, QObject::tr("+ graph"), cuda));
  return all;
}

QString how_fast_conclusion(const Runs& runs) {
  return speed_of_last(runs, QObject::tr("A step is %1 faster with all of it."), runs.front()->title, runs.back()->title) +
         QObject::tr(" The step time split shows what each change took away.");
}

int how_fast_right(const Runs& runs) { return answer_below(ratio(runs), {2, 5}); }

StartRequest how_fast_next(bool cuda) {
  RunSpec spec = how_fast(cuda).back().spec;
  if (cuda)
    spec.exec.launch = Launch::Persistent;
  else
    spec.train.batch = 256;
  return request(spec, cuda ? QObject::tr("one persistent kernel") : QObject::tr("a batch of 256"), cuda);
}

RunSpec spirals(std::vector<int64_t> hidden, Activation activation) {
  RunSpec spec;
  spec.data.name = "spirals", spec.data.points = 2000, spec.data.classes = 2, spec.data.noise = 0.03;
  spec.model.hidden = std::move(hidden), spec.model.activation = activation;
  spec.train.optimizer = Optimizer::Adam, spec.train.lr = 0.01, spec.train.batch = 64, spec.train.epochs = 40;
  return spec;
}

// A slow training of some 1 000 steps takes a few seconds: the boundary can be watched.
StartRequest watched(RunSpec spec, const QString& title, bool cuda) {
  StartRequest one = request(std::move(spec), title, cuda);
  one.slow_rate = 160;
  return one;
}

Requests hidden_layer(bool cuda) {
  return {watched(spirals({}, Activation::Relu), QObject::tr("no hidden layer"), cuda),
          watched(spirals({32, 32}, Activation::Relu), QObject::tr("two hidden layers"), cuda)};
}

QString hidden_layer_conclusion(const Runs& runs) {
  return QObject::tr("Without a hidden layer %1 of the test points are right, with two %2: only hidden layers bend the "
                     "boundary.")
      .arg(percent(accuracy(*runs.front())), percent(accuracy(*runs.back())));
}

int hidden_layer_right(const Runs& runs) { return answer_below(accuracy(*runs.front()), {65, 90}); }

StartRequest hidden_layer_next(bool cuda) {
  return watched(spirals({32, 32}, Activation::None), QObject::tr("no activation"), cuda);
}

QString hidden_layer_after(const Runs& runs, const Run& tried) {
  return QObject::tr("Without an activation, two hidden layers reach %1. No hidden layer at all reaches %2: layers without a "
                     "bend between them are one layer.")
      .arg(percent(accuracy(tried)), percent(accuracy(*runs.front())));
}

const std::vector<Lesson>& all_lessons() {
  static const std::vector<Lesson> all = {
      {"allocation", QObject::tr("What an allocation costs"),
       QObject::tr("The same network twice: an [allocation] around every buffer, then one planned block. Look for red."),
       QObject::tr("How many times as long does a step take with the allocations?"),
       {QObject::tr("nearly the same"), QObject::tr("1.2× to 4×"), QObject::tr("more than 4×")},
       true, {"mnist-direct", "mnist-arena"}, allocation, allocation_conclusion, allocation_right, allocation_next},
      {"hidden", QObject::tr("What a hidden layer does"),
       QObject::tr("Two spirals in the plane, without and with [hidden layers]. Watch the boundary bend as it trains."),
       QObject::tr("How many points can a network without a hidden layer get right?"),
       {QObject::tr("under 65 %"), QObject::tr("65 % to 90 %"), QObject::tr("more than 90 %")},
       false, {}, hidden_layer, hidden_layer_conclusion, hidden_layer_right, hidden_layer_next, hidden_layer_after, TrainSpeed::Slow},
      {"weights", QObject::tr("What the initial weights do"),
       QObject::tr("Normal, Xavier, Kaiming and zeros as [initial weights]. Compare the first [loss], and see which runs "
                   "learn."),
       QObject::tr("Which initial weights end worst?"),
       {QObject::tr("normal"), QObject::tr("xavier"), QObject::tr("kaiming"), QObject::tr("zeros")},
       false, {}, first_weights, first_weights_conclusion, first_weights_right, first_weights_next},
      {"speed", QObject::tr("How fast it can go"),
       QObject::tr("No [allocations], no [syncs|sync], fewer [kernels]: in this order, one run each. The step time split shows "
                   "where each µs went."),
       QObject::tr("How much faster is a step with all of it?"),
       {QObject::tr("less than 2×"), QObject::tr("2× to 5×"), QObject::tr("more than 5×")},
       false, {"mnist-direct", "mnist-arena", "mnist-graph"}, how_fast, how_fast_conclusion, how_fast_right, how_fast_next}};
  return all;
}

}  // namespace

std::vector<const Lesson*> lessons(bool cuda) {
  std::vector<const Lesson*> offered;
  for (const Lesson& lesson : all_lessons())
    if (cuda || !lesson.needs_gpu || !shipped_runs_of(lesson, cuda).isEmpty())
      offered.push_back(&lesson);
  return offered;
}

QStringList shipped_runs_of(const Lesson& lesson, bool cuda) {
  QStringList paths;
  for (const QString& name : lesson.recorded)
    if (const QString path = shipped_run(name); !cuda && !path.isEmpty()) paths << path;
  return paths.size() == lesson.recorded.size() ? paths : QStringList();
}

QString text_of(const Lesson& lesson, bool cuda) {
  const QStringList paths = shipped_runs_of(lesson, cuda);
  if (paths.isEmpty()) return lesson.text;
  const auto device = QString::fromStdString(prof::read_run_summary(paths.front().toStdString()).device);
  return lesson.text + QObject::tr(" Recorded on an %1.").arg(device);
}

QString answer_text(const Lesson& lesson, int expected, const Runs& runs) {
  const int right = lesson.right(runs);
  if (right < 0 || right >= lesson.answers.size()) return {};
  if (expected < 0) return QObject::tr("Answer: %1. ").arg(lesson.answers[right]);
  return expected == right ? QObject::tr("You guessed right: %1. ").arg(lesson.answers[right])
                           : QObject::tr("You guessed %1. It is %2. ").arg(lesson.answers[expected], lesson.answers[right]);
}

StartRequest the_same_here(const Run& run) {
  RunSpec spec = run.spec;
  spec.data.limit = 12000, spec.train.epochs = 2;  // a CPU takes a few seconds for these rows
  return request(spec, QObject::tr("the same on this CPU"), false);
}

}  // namespace ws::app
