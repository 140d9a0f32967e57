#include "app/pages/details/details_html.h"

#include "app/core/runs/plan_times.h"
#include "app/text/units.h"
#include "app/timeline/block_label.h"
#include "app/widgets/glossary.h"
#include "app/widgets/theme.h"

namespace ws::app::details {

QString swatch(const QColor& colour) { return QString("<span style='color:%1'>■</span>&nbsp;").arg(colour.name()); }

QString heading(const QColor& colour, const QString& title, const QString& value, int slot) {
  const QString badge =
      slot < 0 ? QString()
               : QString("&nbsp;&nbsp;<span style='background-color:%1;color:%2;font-weight:700'>&nbsp;%3&nbsp;</span>")
                     .arg(theme().run[slot % 8].name(), theme().dark() ? theme().fill_ink.name() : "#ffffff",
                          run_letter(slot));
  return QString(
             "<table width='100%' cellspacing='0' cellpadding='2'><tr><td style='font-weight:600;font-size:13px'>%1%2</td><td align='right' "
             "style='font-weight:600'>%3%4</td></tr></table>")
      .arg(colour.isValid() ? swatch(colour) : QString(), title.toHtmlEscaped(), value.toHtmlEscaped(), badge);
}

QString mono(const QString& text) {
  return QString("<p style='font-family:\"%1\";color:%2;font-size:11px'>%3</p>")
      .arg(mono_font(11).family(), theme().secondary.name(), text.toHtmlEscaped());
}

QString row_html(const QString& name, const QString& value) {
  return QString("<tr><td style='color:%1;padding-right:12px'>%2</td><td>%3</td></tr>")
      .arg(theme().quiet.name(), word_link(name, theme().quiet), value);
}

QString row(const QString& name, const QString& value) { return row_html(name, value.toHtmlEscaped()); }
QString table(const QString& rows) { return "<table width='100%' cellspacing='0' cellpadding='2'>" + rows + "</table>"; }

QString op_link(const Run& run, prof::OpTag op) {
  if (!op_of(run.trace, op)) return {};
  return QString("<a href='op:%1'>%2</a>").arg(op).arg(op_text(run.trace, op).toHtmlEscaped());
}

QString plan_op_link(const Run& run, size_t index) {
  const Plan& plan = run.plan->plan;
  const prof::OpTag tag = op_tags(plan, run.trace)[index];
  const QString text =
      QString("op %1 · %2").arg(index).arg(QString::fromStdString(plan.ops[index].name)).toHtmlEscaped();
  return tag == prof::kNoOp ? text : QString("<a href='op:%1'>%2</a>").arg(tag).arg(text);
}

}  // namespace ws::app::details
