// The results of a sweep in sentences.
#pragma once
#include <QStringList>

#include "engine/lab/lab.h"

namespace ws::app {

QString lab_machine(const lab::LabResult& result);  // where it was measured: "NVIDIA H200"
QString lab_headline(const lab::LabResult& result);
QStringList lab_findings(const lab::LabResult& result);

}  // namespace ws::app
