// Fills gaps of MinGW-w64's headers for llama.cpp's sources, and mends what is wrong in them. scripts/build-tools.mjs
// puts it in front of each file that is compiled for Windows.
#pragma once

// M_PI, which strict C++17 hides.
#ifndef _USE_MATH_DEFINES
#define _USE_MATH_DEFINES
#endif

// GCC 12's loads and stores of AMX tiles take their stride as `long`, which has 32 bits on Windows: the assembler
// refuses such an index.
#ifdef __AMX_TILE__
#include <immintrin.h>
#define CRIA_TILE_ROWS(base, stride) "r"((void *)(base)), "r"((long long)(stride))
#undef _tile_loadd_internal
#define _tile_loadd_internal(dst, base, stride) \
    __asm__ volatile("tileloadd\t(%0,%1,1), %%tmm" #dst ::CRIA_TILE_ROWS(base, stride))
#undef _tile_stream_loadd_internal
#define _tile_stream_loadd_internal(dst, base, stride) \
    __asm__ volatile("tileloaddt1\t(%0,%1,1), %%tmm" #dst ::CRIA_TILE_ROWS(base, stride))
#undef _tile_stored_internal
#define _tile_stored_internal(src, base, stride) \
    __asm__ volatile("tilestored\t%%tmm" #src ", (%0,%1,1)" ::CRIA_TILE_ROWS(base, stride) : "memory")
#endif

// The state of a thread's power throttling, which ggml's C files set: version 10, Debian 12's, does not declare it.
// https://learn.microsoft.com/windows/win32/api/processthreadsapi/ns-processthreadsapi-thread_power_throttling_state
#ifndef __cplusplus
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0A00
#endif
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>
#ifndef THREAD_POWER_THROTTLING_CURRENT_VERSION
#define THREAD_POWER_THROTTLING_CURRENT_VERSION 1
#define THREAD_POWER_THROTTLING_EXECUTION_SPEED 0x1
typedef struct {
    ULONG Version;
    ULONG ControlMask;
    ULONG StateMask;
} THREAD_POWER_THROTTLING_STATE;
#endif
#endif
