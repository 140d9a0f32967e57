// The building blocks of the Details text.
#pragma once
#include <QString>

#include "app/workspace/run.h"

namespace ws::app::details {

QString swatch(const QColor& colour);
QString heading(const QColor& colour, const QString& title, const QString& value, int slot);
QString mono(const QString& text);
QString row(const QString& name, const QString& value);       // escapes its arguments
QString row_html(const QString& name, const QString& value);  // does not escape the value
QString table(const QString& rows);
QString op_link(const Run& run, prof::OpTag op);
QString plan_op_link(const Run& run, size_t op_index);

}  // namespace ws::app::details
