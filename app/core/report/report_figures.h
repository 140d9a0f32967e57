// The drawings of a report, on white. No Qt.
#pragma once
#include <string>
#include <vector>

#include "app/core/report/drawing.h"
#include "app/core/report/report.h"

namespace ws::app::figure {

// Reports have a white background. These are the colours of meanings for it.
inline constexpr const char* kMeaningColour[] = {"#3D82E2", "#6DCB92", "#F9D632", "#D29DF3", "#BCE6F8",
                                                 "#EC3A38", "#8D9098", "#DDE1E8", "#EEF0F3", "#B4BBC7",
                                                 "#D23CC3", "#EF8200"};
inline constexpr const char *kGrid = "#E6E9EE", *kAxis = "#B4BBC7", *kEdge = "#7B8190";
// How a figure names a run.
struct RunMark {
  std::string letter, colour;
  bool dashed = false;
};
RunMark mark(const std::vector<ReportRun>& runs, size_t i);
std::vector<RunMark> marks(const std::vector<ReportRun>& runs);
std::string fixed(double value, int decimals);  // with a real minus; "–" for NaN
std::string signed_fixed(double value, int decimals);
std::string grouped(double value);     // whole, "3 418 765" with thin spaces; "–" if unknown
std::string bytes_text(double bytes);  // "4.1 KiB"; "–" if unknown

void legend(Drawing& drawing, double y, const std::vector<prof::PartId>& shown);  // one line of 13 units, or two

std::vector<ReportRun::Point> usable(std::vector<ReportRun::Point> points, bool log_y);
Drawing curves(const std::vector<std::vector<ReportRun::Point>>& curves, const std::vector<RunMark>& marks, bool log_y,
               bool by_time = false);
Drawing split(const std::vector<ReportRun>& runs);
// Causes side by side, for few causes; one below the other by op, because op names are long.
Drawing waterfall(const prof::Waterfall& w, const RunMark& baseline, const RunMark& candidate);
Drawing waterfall_by_op(const prof::Waterfall& w, const RunMark& baseline, const RunMark& candidate);
// A typical step of each run on one time scale: lanes and memory in use. No shapes if none was traced.
Drawing steps(const std::vector<ReportRun>& runs);

}  // namespace ws::app::figure
