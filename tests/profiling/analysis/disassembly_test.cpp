// What nvdisasm prints, read; and what is said where it is missing.
#include "profiling/analysis/disassembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "profiling/base/whole_file.h"

namespace ws::prof {
namespace {

using ::testing::HasSubstr;

// nvdisasm --print-code --print-line-info
constexpr const char* kWithLines = R"~(	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
	.elftype	@"ET_EXEC"

//--------------------- .text.other              --------------------------
	.section	.text.other,"ax",@progbits
.text.other:
	//## File "/home/me/my.cu", line 90
        /*0000*/                   EXIT ;

//--------------------- .text.own_kernel         --------------------------
	.section	.text.own_kernel,"ax",@progbits
	.align	128
        .global         own_kernel
        .type           own_kernel,@function
own_kernel:
.text.own_kernel:
	//## File "/home/me/my.cu", line 7
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   S2R R9, SR_TID.X ;
	//## File "/usr/include/half.h", line 20 inlined at "/home/me/my.cu", line 8
        /*0020*/              @!P0 LDG.E.CONSTANT R2, desc[UR4][R2.64] ;
.L_x_0:
        /*0030*/                   BRA `(.L_x_0);
.L_x_1:
)~";
// nvdisasm --binary SM90a
constexpr const char* kRaw = R"~(	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   BRA 0x10;
)~";
// cuobjdump -sass
constexpr const char* kWithBytes = R"~(	code for sm_90
		Function : own_kernel
	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                          /* 0x00000a00ff017b82 */
                                                                                   /* 0x000fe20000000800 */
        /*0010*/                   EXIT ;                                          /* 0x000000000000794d */
		..........
)~";

TEST(Disassembly, AListingHasInstructionsWithTheirLines) {
  const std::vector<Instruction> found = instructions_in(kWithLines, "own_kernel");
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].text, "LDC R1, c[0x0][0x28]");
  EXPECT_EQ(found[1].offset, 16u);
  EXPECT_EQ(found[1].line, 7);
  EXPECT_EQ(found[1].file, "/home/me/my.cu");
  EXPECT_EQ(found[2].text, "@!P0 LDG.E.CONSTANT R2, desc[UR4][R2.64]");
  EXPECT_EQ(found[2].file, "/usr/include/half.h");
  EXPECT_EQ(found[2].line, 20) << "where the code stands, not where it is inlined";
  EXPECT_EQ(found[3].text, "BRA `(.L_x_0)");
  EXPECT_EQ(instructions_in(kWithLines, "other").size(), 1u);
  EXPECT_TRUE(instructions_in(kWithLines, "absent").empty());
}

TEST(Disassembly, CodeWithoutNamesAndCuobjdumpAreRead) {
  const std::vector<Instruction> raw = instructions_in(kRaw);
  ASSERT_EQ(raw.size(), 2u);
  EXPECT_EQ(raw[1].text, "BRA 0x10");
  const std::vector<Instruction> bytes = instructions_in(kWithBytes, "own_kernel");
  ASSERT_EQ(bytes.size(), 2u);
  EXPECT_EQ(bytes[0].text, "LDC R1, c[0x0][0x28]");
  EXPECT_TRUE(instructions_in("not a listing\n/*zz*/ what\n").empty());
}

std::string listing(const char* name) { return whole_text(WARPSIGHT_SOURCE_DIR "/tests/profiling/analysis/listings/" + std::string(name)); }

TEST(Disassembly, BothProgramsOfTheToolkitListTheSameInstructions) {
  for (const auto& [function, first, last] : {std::tuple("scale", 6, 10), std::tuple("turn", 12, 17)}) {
    const std::vector<Instruction> lines = instructions_in(listing("nvdisasm.txt"), function), bytes = instructions_in(listing("cuobjdump.txt"), function);
    ASSERT_EQ(lines.size(), bytes.size()) << function;
    EXPECT_GT(lines.size(), 20u);
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(lines[i].offset, 16 * i);
      EXPECT_EQ(bytes[i].offset, 16 * i);
      const auto opcode = [](const Instruction& one) { return one.text.substr(0, one.text.find(' ', one.text.starts_with('@') ? one.text.find(' ') + 1 : 0)); };
      EXPECT_EQ(opcode(lines[i]), opcode(bytes[i])) << function << " " << i;
      EXPECT_EQ(lines[i].file, "scale.cu");
      EXPECT_TRUE((lines[i].line >= first && lines[i].line <= last) || lines[i].line == 3) << lines[i].text << " " << lines[i].line;
    }
    EXPECT_EQ(lines[0].line, first);
  }
  const std::vector<Instruction> scale = instructions_in(listing("nvdisasm.txt"), "scale");
  const auto at = [&](const char* opcode) { return std::ranges::find_if(scale, [&](const Instruction& one) { return one.text.starts_with(opcode); })->line; };
  EXPECT_EQ(at("FFMA"), 3) << "the function that is inlined";
  EXPECT_EQ(at("STG"), 8);
}

// A stand-in that answers as nvdisasm does, and refuses the architecture "SM80a".
class Disassembler : public testing::Test {
 protected:
  Disassembler() {
    std::filesystem::create_directories(folder_);
    const std::string program = folder_ + "/nvdisasm";
    std::ofstream(folder_ + "/lines") << kWithLines;
    std::ofstream(folder_ + "/raw") << kRaw;
    std::ofstream(program) << "#!/bin/sh\ncase \"$*\" in *SM80a*) exit 1 ;; --binary*) cat " << folder_ << "/raw ;; *) cat " << folder_ << "/lines ;; esac\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
  }
  ~Disassembler() override {
    setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  const std::string path_ = std::getenv("PATH");
  const std::string folder_ = testing::TempDir() + "disassembler-" + std::to_string(getpid());
};

TEST_F(Disassembler, IsAskedForTheArchitectureOfTheCode) {
  for (const int compute : {80, 90}) {
    const Disassembly made = disassembled(SampledCode{7, {}, compute, std::string(32, '\0')});
    EXPECT_EQ(made.missing, "");
    EXPECT_EQ(made.module, 7u);
    ASSERT_EQ(made.instructions.size(), 2u) << compute;
    EXPECT_EQ(made.instructions[0].text, "MOV R1, c[0x0][0x28]");
  }
  const Disassembly whole = disassembled(std::string_view("cubin"), "own_kernel");
  ASSERT_EQ(whole.instructions.size(), 4u);
  EXPECT_EQ(whole.instructions[2].line, 20);
  EXPECT_THAT(disassembled(std::string_view("cubin"), "absent").missing, HasSubstr("newer CUDA toolkit"));
}

TEST_F(Disassembler, WithoutItOneSentenceShowsHowToGetIt) {
  std::filesystem::remove(folder_ + "/nvdisasm");
  setenv("PATH", folder_.c_str(), 1);
  const Disassembly made = disassembled(SampledCode{7, {}, 90, std::string(32, '\0')});
  if (std::filesystem::exists("/usr/local/cuda/bin/nvdisasm") || std::getenv("CUDA_HOME") || std::getenv("CUDA_PATH")) GTEST_SKIP() << "this machine has one";
  EXPECT_TRUE(made.instructions.empty());
  EXPECT_THAT(made.missing, HasSubstr("install nvdisasm of the CUDA toolkit"));
}

}  // namespace
}  // namespace ws::prof
