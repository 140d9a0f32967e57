// A change of the theme styles every widget once and moves nothing.
#include <QTest>
#include <QFile>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <set>

#include "tests/app/support/filled_window.h"
#include "tests/app/support/window_tests.h"
#include "tests/support/machine.h"
#include "tests/support/sanitizers.h"

using namespace ws::app;

namespace {

bool look_alike(QRgb a, QRgb b) {
  constexpr int kInvisible = 3;  // of 255: the edge of a curve that is drawn anew
  return std::max({std::abs(qRed(a) - qRed(b)), std::abs(qGreen(a) - qGreen(b)), std::abs(qBlue(a) - qBlue(b))}) <= kInvisible;
}

// What surrounds the pixels that do not look the same.
QRect difference(const QImage& a, const QImage& b) {
  QRect found;
  for (int y = 0; y < a.height(); ++y)
    for (int x = 0; x < a.width(); ++x)
      if (!look_alike(a.pixel(x, y), b.pixel(x, y))) found |= QRect(x, y, 1, 1);
  return found;
}

// How often widgets learn of a new style.
class StyleChanges : public QObject {
 public:
  std::map<QObject*, int> of;
  bool eventFilter(QObject* object, QEvent* event) override {
    if (event->type() == QEvent::StyleChange && object->isWidgetType()) ++of[object];
    return false;
  }
};

}  // namespace

class ThemeTest : public QObject, FilledWindow {
  Q_OBJECT
 private slots:
  void initTestCase() { moveIn(); }
  void cleanup() { clear(); }
  void everyWidgetIsStyledOnce();
  void aChangeIsQuick();
  void nothingMoves();
  void textIsReadable();
  void coloursKeepADistance();
  void namesHaveTheirColours();
};

// A colour as people see it, in OKLab: with normal sight, and without one of the three cones (Machado 2009, full strength).
struct Seen {
  std::array<std::array<double, 3>, 4> by;
};

static std::array<double, 3> times(const double (&m)[3][3], const std::array<double, 3>& c) {
  std::array<double, 3> out{};
  for (size_t i = 0; i < 3; ++i) out[i] = m[i][0] * c[0] + m[i][1] * c[1] + m[i][2] * c[2];
  return out;
}

static Seen seen(const QColor& colour) {
  constexpr double kSight[4][3][3] = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
                                      {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
                                      {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
                                      {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};
  constexpr double kCones[3][3] = {{0.4122214708, 0.5363325363, 0.0514459929}, {0.2119034982, 0.6806995451, 0.1073969566}, {0.0883024619, 0.2817188376, 0.6299787005}};
  constexpr double kLab[3][3] = {{0.2104542553, 0.7936177850, -0.0040720468}, {1.9779984951, -2.4285922050, 0.4505937099}, {0.0259040371, 0.7827717662, -0.8086757660}};
  const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
  const std::array<double, 3> light{linear(colour.redF()), linear(colour.greenF()), linear(colour.blueF())};
  Seen all{};
  for (size_t sight = 0; sight < 4; ++sight) {
    std::array<double, 3> cones = times(kSight[sight], light);
    for (double& v : cones) v = std::clamp(v, 0.0, 1.0);
    cones = times(kCones, cones);
    for (double& v : cones) v = std::cbrt(v);
    all.by[sight] = times(kLab, cones);
  }
  return all;
}

// The smallest over all four.
static double distance(const QColor& a, const QColor& b) {
  const Seen p = seen(a), q = seen(b);
  double least = 9;
  for (size_t sight = 0; sight < 4; ++sight)
    least = std::min(least, std::hypot(p.by[sight][0] - q.by[sight][0], p.by[sight][1] - q.by[sight][1], p.by[sight][2] - q.by[sight][2]));
  return least;
}

static double plain_distance(const QColor& a, const QColor& b) {
  const auto p = seen(a).by[0], q = seen(b).by[0];
  return std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

void ThemeTest::coloursKeepADistance() {
  using ws::prof::Meaning;
  constexpr Meaning kMeanings[] = {Meaning::Matrix, Meaning::Pointwise, Meaning::Loss, Meaning::Optimizer, Meaning::Copy, Meaning::Allocation, Meaning::Sync, Meaning::Communication, Meaning::Reduction};
  QFile page(QStringLiteral(WARPSIGHT_SOURCE_DIR) + "/resources/page/view.js");
  QVERIFY(page.open(QIODevice::ReadOnly));
  const QString shared = QString::fromUtf8(page.readAll());
  for (const ThemeName name : {ThemeName::Dark, ThemeName::Light}) {
    const PaintTheme paint(name);
    const Theme& t = theme();
    const double apart = t.dark() ? 0.0495 : 0.065, plain = t.dark() ? 0.085 : 0.11, first_two = t.dark() ? 0.1 : 0.2;
    for (const QColor& run : t.run) {
      const double least = &run < t.run + 2 ? first_two : plain;  // most comparisons have two runs
      for (const Meaning meaning : kMeanings)
        QVERIFY2(distance(run, t.of(meaning)) > apart && plain_distance(run, t.of(meaning)) > least, qPrintable(QString("%1 and %2: %3").arg(run.name(), ws::app::meaning_name(meaning)).arg(distance(run, t.of(meaning)))));
      for (const QColor& other : t.run)
        QVERIFY2(&other == &run || distance(run, other) > (t.dark() ? 0.079 : 0.0645), qPrintable(run.name() + " " + other.name()));
      QVERIFY2(distance(run, t.late) > 0.08, qPrintable(run.name() + " and what is late"));
      QVERIFY2(shared.contains(run.name(), Qt::CaseInsensitive), "the page to share has the same colours");
    }
    for (const QColor& one : t.data_class) {
      for (const QColor& other : t.data_class)
        QVERIFY2(&other == &one || distance(one, other) > 0.1, qPrintable(one.name() + " " + other.name()));
      for (const QColor& run : t.run) QVERIFY2(plain_distance(one, run) > 0.085, qPrintable(one.name() + " is a run's " + run.name()));
    }
    for (const Meaning meaning : kMeanings) QVERIFY2(distance(t.late, t.of(meaning)) > 0.08, qPrintable(ws::app::meaning_name(meaning) + " and what is late"));
    const QColor data_wait = part_colour({.kind = ws::prof::PartKind::HostData});
    for (const Meaning meaning : kMeanings) QVERIFY2(distance(data_wait, t.of(meaning)) > 0.06, qPrintable(ws::app::meaning_name(meaning) + " and waits for data"));
    for (const QColor& run : t.run) QVERIFY2(plain_distance(data_wait, run) > 0.2, qPrintable(run.name() + " and waits for data"));
    for (const Meaning call : {Meaning::Allocation, Meaning::Copy, Meaning::Sync})  // they share a lane
      QVERIFY2(distance(t.of(Meaning::Launch), t.of(call)) > 0.08, qPrintable(ws::app::meaning_name(call)));
    for (size_t i = 0; i < std::size(kMeanings); ++i)
      for (size_t j = 0; j < i; ++j)
        QVERIFY2(distance(t.of(kMeanings[i]), t.of(kMeanings[j])) > 0.08, qPrintable(ws::app::meaning_name(kMeanings[i]) + " and " + ws::app::meaning_name(kMeanings[j])));
  }
}

// What has no meaning is recognised by its name, always in the same colour.
void ThemeTest::namesHaveTheirColours() {
  for (const ThemeName name : {ThemeName::Dark, ThemeName::Light}) {
    const PaintTheme paint(name);
    std::set<QRgb> colours;
    for (int i = 0; i < 200; ++i) {
      const std::string word = "kernel " + std::to_string(i);
      for (const Hashed strength : {Hashed::Strong, Hashed::Muted}) {
        const QColor colour = hashed_colour(word, strength);
        QCOMPARE(hashed_colour(word, strength), colour);
        const QColor ink = theme().ink_on(colour);
        QVERIFY((std::max(luminance(ink), luminance(colour)) + 0.05) / (std::min(luminance(ink), luminance(colour)) + 0.05) >= 4.5);
        colours.insert(colour.rgb());
      }
    }
    QVERIFY2(colours.size() > 30, qPrintable(QString::number(colours.size())));
  }
}

// Text of 12 px needs a contrast of 4.5 : 1.
void ThemeTest::textIsReadable() {
  const auto contrast = [](const QColor& a, const QColor& b) {
    return (std::max(luminance(a), luminance(b)) + 0.05) / (std::min(luminance(a), luminance(b)) + 0.05);
  };
  for (const ThemeName name : {ThemeName::Dark, ThemeName::Light}) {
    const PaintTheme paint(name);
    const Theme& t = theme();
    for (const QColor& ground : {t.window, t.base, t.header, t.raised, t.button, t.input, t.selected_row})
      for (const QColor& text : {t.text, t.secondary, t.quiet, t.better, t.worse})
        QVERIFY2(contrast(text, ground) >= 4.5, qPrintable(text.name() + " on " + ground.name()));
    for (const QColor& ground : {t.base, t.header}) QVERIFY2(contrast(t.focus, ground) >= 4.5, "a link");
    QVERIFY(contrast(t.text, t.chosen) >= 4.5 && contrast(Qt::white, t.primary) >= 4.5);
    for (const QColor& run : t.run) QVERIFY2(contrast(run, t.base) >= 4.5, qPrintable(run.name()));
    for (const QColor& fill : t.meaning) QVERIFY2(contrast(t.ink_on(fill), fill) >= 4.5, qPrintable(fill.name()));
  }
}

// Once without and once with the style sheet. Qt styles a widget again for each of its ancestors where one sheet replaces
// another: ten times as often.
void ThemeTest::everyWidgetIsStyledOnce() {
  auto window = open();
  window->resize(1600, 972);
  fill(*window, {"direct"});
  for (int tab = 0; tab < window->tabs()->count(); ++tab) window->tabs()->setCurrentIndex(tab), settle(20);
  StyleChanges changes;
  qApp->installEventFilter(&changes);
  const double begin = ws::test::thread_cpu_ms();
  window->toggleTheme();
  QApplication::processEvents();
  qInfo("%.0f ms for %zu widgets", ws::test::thread_cpu_ms() - begin, changes.of.size());
  int all = 0;
  for (const auto& [widget, count] : changes.of) all += count;
  QVERIFY(changes.of.size() > 500);
  QVERIFY2(all < 2.5 * double(changes.of.size()), qPrintable(QString("%1 for %2 widgets").arg(all).arg(changes.of.size())));
}

// 200 ms with every page filled, until all is painted.
void ThemeTest::aChangeIsQuick() {
  if (ws::test::kSanitized) QSKIP("A sanitizer takes most of the time.");
  auto window = open();
  window->resize(1600, 972);
  fill(*window, {"direct"});
  for (int tab = window->tabs()->count() - 1; tab >= 0; --tab) window->tabs()->setCurrentIndex(tab), settle(20);
  double best = 1e9, painting = 1e9;
  for (int i = 0; i < 4; ++i) {
    const double before = ws::test::thread_cpu_ms();
    window->toggleTheme();
    QApplication::processEvents();
    window->repaint();
    const double changed = ws::test::thread_cpu_ms();
    window->repaint();
    best = std::min(best, changed - before);
    painting = std::min(painting, ws::test::thread_cpu_ms() - changed);
  }
  qInfo("a change of theme: %.1f ms, to paint the window again: %.1f ms", best, painting);
  // Caches are shared with the neighbours; and a slow processor paints slowly, too: a change takes 29 paintings.
  const double most = std::max(200 * std::min(2.0, ws::test::busy()), 65 * painting);
  QVERIFY2(best <= most, qPrintable(QString::number(best)));
}

// There and back, the window looks the same in each pixel, and in between everything has its place.
void ThemeTest::nothingMoves() {
  auto window = open();
  window->resize(1600, 972);
  fill(*window, {"direct"});
  const auto tabs = {"Overview", "Compare", "Plan", "Kernel times", "Memory"};
  for (const char* tab : tabs) {  // Compare reads its runs beside the window
    QVERIFY(show_tab(*window, tab));
    settle();
  }
  for (const char* tab : tabs) {
    QVERIFY(show_tab(*window, tab));
    settle(60);
    const auto before = places();
    const QWidget* setup = window->findChild<SetupPanel*>();  // says how much memory is free, which changes
    const QRect pages = window->rect().adjusted(setup->mapTo(window.get(), QPoint()).x() + setup->width(), 0, 0, 0);
    const QImage picture = window->grab(pages).toImage();
    window->toggleTheme();
    settle(60);
    QStringList moved;
    for (const auto& [widget, place] : places())
      if (const auto at = before.find(widget); at == before.end() || at->second != place)
        moved << QString("%1 “%2” %3").arg(widget->metaObject()->className(), ws::test::words(*widget), widget->accessibleName());
    QVERIFY2(moved.isEmpty(), qPrintable(tab + (": " + moved.join(", "))));
    QVERIFY(window->grab(pages).toImage() != picture);
    window->toggleTheme();
    settle(60);
    const QRect other = difference(window->grab(pages).toImage(), picture);
    // One pixel of a curve may be mixed otherwise: its axis has the same range, rounded once more.
    QVERIFY2(other.width() * other.height() <= 1, qPrintable(QString("%1: %2×%3 at %4, %5").arg(tab).arg(other.width()).arg(other.height()).arg(other.x()).arg(other.y())));
  }
}

WARPSIGHT_QTEST(ThemeTest)
#include "theme_test.moc"
