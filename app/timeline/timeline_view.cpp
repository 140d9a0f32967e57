#include "app/timeline/timeline_view.h"

#include <QEvent>
#include <QPainter>

#include "app/widgets/theme.h"
#include "app/widgets/tip.h"
#include "profiling/trace/thread_names.h"

namespace ws::app {

TimelineView::TimelineView(TimelineModel* model, Focus* focus, QWidget* parent)
    : QWidget(parent),
      model_(model),
      focus_(focus),
      viewport_(model, focus, this),
      painter_(*model),
      overlay_(model, focus, &viewport_, &painter_),
      search_(model, focus, &viewport_),
      input_(this, model, &viewport_, &overlay_, &search_) {
  setAttribute(Qt::WA_OpaquePaintEvent);
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setObjectName("timeline");
  setAccessibleName(tr("Timeline"));
  connect(&viewport_, &TimelineViewport::changed, this, &TimelineView::stale);
  connect(model_, &TimelineModel::lanesChanged, this, [this] { painter_.forget(); overlay_.forget(); });
  connect(model_->paths(), &CriticalPaths::changed, this, &TimelineView::stale);
  connect(model_, &TimelineModel::marksChanged, this, qOverload<>(&QWidget::update));
  connect(model_->cursor(), &TimeCursor::cursorChanged, this, qOverload<>(&QWidget::update));
  connect(focus_, &Focus::changed, this, [this] { describe(); update(); });
  connect(&search_, &TimelineSearch::said, this, &TimelineView::said);
  connect(&input_, &TimelineInput::noteWanted, this, &TimelineView::noteWanted);
  connect(&input_, &TimelineInput::laneMenuWanted, this, &TimelineView::laneMenuWanted);
}

void TimelineView::stale() {
  stale_ = true;
  update();
}

// New lanes are painted directly on the widget, because each picture is shown only once while following. A copy is
// kept only if the same lanes are needed again, under a moving cursor.
void TimelineView::paintLanes(QPainter& painter) {
  const qreal ratio = devicePixelRatioF();
  if (stale_ || lanes_ratio_ != ratio) {
    painter_.paint(painter, viewport_.geometry());
    stale_ = kept_ = false, lanes_ratio_ = ratio;
    return;
  }
  if (!kept_) {
    if (lanes_.size() != size() * ratio) lanes_ = QPixmap(size() * ratio);
    lanes_.setDevicePixelRatio(ratio);
    QPainter copy(&lanes_);
    painter_.paint(copy, viewport_.geometry());
    kept_ = true;
  }
  painter.drawPixmap(0, 0, lanes_);
}

void TimelineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paintLanes(painter);
  overlay_.paint(painter);
}

void TimelineView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange ||
      event->type() == QEvent::StyleChange) {
    painter_.setTheme();
    stale();
  }
  QWidget::changeEvent(event);
}

// The whole name of a lane where the gutter cuts it, and what the lane shows.
bool TimelineView::event(QEvent* event) {
  const auto name_at = [this](QPointF at) {
    const TimelineGeometry& g = viewport_.geometry();
    const int lane = at.x() < g.gutter ? g.laneAt(model_->lanes(), static_cast<int>(at.y())) : -1;
    if (lane < 0) return QString();
    const Lane& named = model_->lanes()[static_cast<size_t>(lane)];
    const bool cut = named.nested || (named.kind != LaneKind::Group && g.titleLeft(named) + QFontMetrics(ui_font(11)).horizontalAdvance(named.title) + kTitleEnd > g.gutter);
    const QString name = cut ? named.title : QString();
    return name + (cut && !named.tip.isEmpty() ? "\n" : "") + named.tip;
  };
  return showed_tip(event, this, name_at) || QWidget::event(event);
}

// Describes the selection for a screen reader.
void TimelineView::describe() {
  QString text;
  if (const auto* span = focus_->get<SpanChoice>()) {
    const prof::Trace& trace = span->run->trace;
    text = span_card(trace, span->track, span->span).title + ", " +
           span_time(static_cast<prof::TimeNs>(span->span.duration)) + ", " +
           QString::fromStdString(prof::row_title(trace, trace.tracks()[span->track])) + ", " + span->run->title;
  } else if (viewport_.selected()) {
    text = tr("Range of %1").arg(span_time(viewport_.selected()->length()));
  }
  setAccessibleDescription(text);
}

}  // namespace ws::app
