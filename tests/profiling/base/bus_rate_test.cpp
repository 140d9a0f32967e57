#include "profiling/base/bus_rate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ws {
namespace {

const std::vector<BusRate> kMeasured{{2, 4096, 1}, {2, 65536, 4}, {2, 1 << 20, 100}, {4, 4096, 3}};

TEST(BusRates, LieOnALineBetweenMeasuredSizes) {
  EXPECT_DOUBLE_EQ(bus_rate(kMeasured, 2, 65536), 4);
  EXPECT_NEAR(bus_rate(kMeasured, 2, 16384), 2, 1e-12) << "halfway on log axes";
  EXPECT_DOUBLE_EQ(bus_rate(kMeasured, 2, 1e9), 100) << "larger messages are not faster";
  EXPECT_EQ(bus_rate(kMeasured, 2, 100), 0) << "smaller messages are slower";
  EXPECT_EQ(bus_rate(kMeasured, 8, 65536), 0);
  EXPECT_EQ(bus_rate({}, 2, 65536), 0);
}

TEST(BusRates, AreReadAsTheyWereWritten) {
  const auto read = bus_rates_from_json(to_json(kMeasured));
  ASSERT_EQ(read.size(), kMeasured.size());
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].ranks, kMeasured[i].ranks);
    EXPECT_EQ(read[i].bytes, kMeasured[i].bytes);
    EXPECT_EQ(read[i].gb_s, kMeasured[i].gb_s);
  }
}

TEST(BusRates, OfADamagedListAreLeftOut) {
  const auto read = bus_rates_from_json(nlohmann::json::parse(
      R"([7, {"ranks": 2}, {"ranks": "2", "bytes": 1, "gb_s": 1}, {"ranks": 1e300, "bytes": 1, "gb_s": 1},
          {"ranks": 2, "bytes": -4, "gb_s": 1}, {"ranks": 2, "bytes": 8, "gb_s": 9}, {"ranks": 2, "bytes": 4, "gb_s": 1}])"));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].bytes, 4);
  EXPECT_TRUE(bus_rates_from_json(nlohmann::json::parse(R"({"ranks": 2})")).empty());
}

TEST(BusRates, OfAHostileListAreFew) {
  const std::vector<BusRate> many(100'000, BusRate{2, 4096, 1});
  EXPECT_LE(bus_rates_from_json(to_json(many)).size(), 4096u);
}

}  // namespace
}  // namespace ws
