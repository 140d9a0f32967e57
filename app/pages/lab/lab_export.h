// Exports the laboratory's chart as a picture with its points as numbers.
#pragma once
#include "app/widgets/chart_file.h"
#include "engine/lab/lab.h"

namespace ws::app {

class LabChart;
ChartPicture lab_picture(const LabChart& chart, const lab::LabResult& result);

}  // namespace ws::app
