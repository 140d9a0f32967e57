// The argument of a persistent kernel for host code.
#pragma once
#include "engine/cuda/persistent/arguments.cuh"
