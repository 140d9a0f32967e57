// The argument of a persistent kernel, for the host.
#pragma once
#include "engine/cuda/persistent/arguments.cuh"
