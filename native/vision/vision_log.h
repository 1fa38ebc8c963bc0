// Errors of the library itself, by the way that mtmd's take.
#pragma once

#include <string>

void log_error(const std::string & text);
