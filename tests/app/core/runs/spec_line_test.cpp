#include "app/core/runs/spec_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ws::app {
namespace {

TEST(SpecLine, GivesBackEveryPreset) {
  for (const Preset& preset : presets()) {
    const RunSpec spec = load_spec(std::string(preset.name));
    const std::string line = spec_line(spec);
    EXPECT_EQ(spec_of_line(line), spec) << line;
    EXPECT_EQ(spec_line(spec_of_line(line)), line);
    EXPECT_EQ(line.find_first_of("\n'\"$`\\"), std::string::npos) << "a shell takes it in single quotes: " << line;
  }
}

TEST(SpecLine, GivesBackEveryChoice) {
  for (const Field& field : fields()) {
    for (const FieldValue& value : field.values) {
      RunSpec spec;
      set_field(spec, field.key, value.name);
      EXPECT_EQ(spec_of_line(spec_line(spec)), spec) << field.key << " " << value.name;
    }
    if (field.kind != FieldKind::Text) continue;
    RunSpec spec;
    try {
      set_field(spec, field.key, "a;b=c %41 \xc3\xa4\n'");
    } catch (const SpecError&) {
      continue;  // this text has a grammar of its own
    }
    EXPECT_EQ(spec_of_line(spec_line(spec)), spec) << field.key;
  }
  RunSpec odd;
  odd.name = "0.1 + 0.2; ä", odd.train.lr = 0.1 + 0.2;
  EXPECT_EQ(spec_of_line(spec_line(odd)), odd) << "numbers keep every digit";
}

TEST(SpecLine, ComesThroughMailAndShell) {
  const RunSpec spec = load_spec("mnist");
  EXPECT_EQ(spec_of_line("  '" + spec_line(spec) + "'\n"), spec);
  EXPECT_TRUE(is_spec_line(" ws1:name=x"));
  EXPECT_FALSE(is_spec_line("mnist"));
}

TEST(SpecLine, ReportsWhatIsWrong) {
  for (const char* line : {"ws2:name=x", "", "ws1:exec.allocator", "ws1:exec.allocator=none", "ws1:no.such=1", "ws1:train.batch=-4", "ws1:train.batch=1e9999"})
    EXPECT_THROW(spec_of_line(line), SpecError) << line;
  EXPECT_THROW(spec_of_line("ws1:name=" + std::string(100'000, 'x')), SpecError);
  EXPECT_EQ(spec_of_line("ws1:").name, RunSpec{}.name);
  EXPECT_EQ(spec_of_line("ws1:name=%zz%4").name, "%zz%4");
}

}  // namespace
}  // namespace ws::app
