// For tests that need a GPU.
#pragma once
#include <gtest/gtest.h>

#include "engine/executor.h"

#define NEEDS_GPU() \
  if (!ws::device_info().cuda) GTEST_SKIP() << ws::device_info().why_not
