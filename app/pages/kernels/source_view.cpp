#include "app/pages/kernels/source_view.h"

#include <QFontDatabase>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QScrollBar>
#include <QSplitter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include "app/text/units.h"
#include "app/widgets/instruction_view.h"
#include "app/widgets/stall_bar.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"
#include "app/workspace/run.h"

namespace ws::app {

namespace {

// The number of samples and their bar.
class StallDelegate final : public QStyledItemDelegate {
 public:
  StallDelegate(const SourceModel& model, QObject* parent) : QStyledItemDelegate(parent), model_(model) {}
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    draw_stall_cell(*painter, option.rect, model_.stallsOf(index.row()), model_.mostSamples());
  }

 private:
  const SourceModel& model_;
};

}  // namespace

const prof::StallRow* SourceModel::stallsOf(int row) const {
  const auto at = stalls_.find(row + 1);
  return at == stalls_.end() ? nullptr : &at->second;
}

void SourceModel::setSource(std::vector<std::string> lines, std::map<int, int64_t> times, int64_t steps, const std::vector<prof::StallRow>& stalls) {
  beginResetModel();
  stalls_.clear(), most_ = 0;
  for (const prof::StallRow& row : stalls)
    if (row.line > 0) stalls_[row.line] = row, most_ = std::max(most_, row.samples);
  lines_ = std::move(lines), times_ = std::move(times), steps_ = steps;
  endResetModel();
}

int SourceModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(lines_.size()); }

QVariant SourceModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(static_cast<int>((index.column() == Text ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
  if (role == Qt::FontRole && index.column() == Text) return QFontDatabase::systemFont(QFontDatabase::FixedFont);
  const prof::StallRow* const stalls = stallsOf(index.row());
  if (role == Qt::ToolTipRole && index.column() == Samples && stalls) return stall_tip(*stalls);
  if (role != Qt::DisplayRole) return {};
  const int line = index.row() + 1;
  if (index.column() == Samples) return stalls ? QVariant(static_cast<qlonglong>(stalls->samples)) : QVariant();
  if (index.column() == Number) return line;
  if (index.column() == Text) return QString::fromStdString(lines_[static_cast<size_t>(index.row())]).replace('\t', "    ");
  const auto at = times_.find(line);
  if (at == times_.end()) return {};
  return us_text(static_cast<double>(at->second) / 1000 / static_cast<double>(std::max<int64_t>(steps_, 1)));
}

QVariant SourceModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  if (section == Time) return steps_ > 0 ? tr("µs per step") : tr("µs in all");
  if (section == Samples) return tr("samples");
  return section == Number ? tr("line") : tr("source");
}

SourceView::SourceView(QWidget* parent) : QWidget(parent), table_(new QTableView(this)), instructions_(new InstructionView(this)), note_(new QLabel(this)) {
  table_->setModel(&model_);
  style_table(*table_, tr("Source of the chosen kernel, with the time of each line"));
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->setColumnWidth(SourceModel::Time, 84), table_->setColumnWidth(SourceModel::Samples, 150), table_->setColumnWidth(SourceModel::Number, 48);
  table_->setItemDelegateForColumn(SourceModel::Samples, new StallDelegate(model_, table_));
  note_->setWordWrap(true), note_->setMargin(4), note_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0), column->setSpacing(0);
  auto* parts = new QSplitter(Qt::Horizontal, this);
  parts->addWidget(table_), parts->addWidget(instructions_);
  parts->setChildrenCollapsible(false), parts->setSizes({340, 300});
  column->addWidget(note_), column->addWidget(parts, 1);
  instructions_->hide();
  connect(table_, &QTableView::clicked, this, [this](const QModelIndex& index) { instructions_->showLine(shown_.path, model_.stallsOf(index.row()) ? index.row() + 1 : 0); });
  connect(instructions_, &InstructionView::chosen, this, [this](const QString& file, int line) {
    if (prof::same_file(file.toStdString(), shown_.path)) table_->setCurrentIndex(model_.index(line - 1, SourceModel::Text));
  });
}

void SourceView::setInstructions(std::vector<prof::StallRow> rows, const QString& sentence) {
  instructions_->setVisible(!rows.empty());
  table_->setColumnWidth(SourceModel::Samples, rows.empty() ? 150 : 108);
  instructions_->setRows(std::move(rows), sentence);
}

void SourceView::showNoSource(const std::string& file) {
  note_->setText(file.empty() ? tr("This code has no source lines. Compile it with -lineinfo to see them.")
                              : tr("%1 is not on this machine: these are its instructions only.").arg(QString::fromStdString(file)));
  note_->show();
  table_->hide();
  shown_ = {};
}

QString SourceView::note() const { return note_->isHidden() ? QString() : note_->text(); }

namespace {

prof::SourceFile source_of(const Run& run, const std::string& path) {
  const std::string folder = run.record_folder.toStdString();
  for (const std::string& name : {path, folder + "/" + path})
    if (const auto typed = run.sources.find(name); typed != run.sources.end()) return prof::source_of_text(typed->second);
  const qint64 recorded_s = run.created.toSecsSinceEpoch();
  return prof::read_source(folder, path, recorded_s);
}

}  // namespace

void SourceView::showLine(const Run& run, const prof::SourcePlace& place, std::map<int, int64_t> times, int64_t steps, const std::vector<prof::StallRow>& stalls) {
  prof::SourceFile file = source_of(run, place.path);
  if (!file.problem.empty())
    note_->setText(QString::fromStdString(file.problem));
  else if (file.changed)
    note_->setText(tr("%1 was changed after it was recorded: lines may not be those that ran.").arg(QString::fromStdString(place.path)));
  note_->setVisible(!file.problem.empty() || file.changed);
  table_->setVisible(file.problem.empty());
  const bool same = place == shown_;  // news of a live run: the reader may have scrolled
  const int scrolled = table_->verticalScrollBar()->value();
  shown_ = place;
  table_->setColumnHidden(SourceModel::Samples, stalls.empty()), table_->setColumnHidden(SourceModel::Time, times.empty() && !stalls.empty());
  model_.setSource(std::move(file.lines), std::move(times), steps, stalls);
  const QModelIndex line = model_.index(place.line - 1, SourceModel::Text);
  table_->setCurrentIndex(line);
  table_->scrollTo(line, QAbstractItemView::PositionAtCenter);
  if (same) table_->verticalScrollBar()->setValue(scrolled);
}

}  // namespace ws::app
